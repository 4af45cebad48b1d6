"""Output files: whole or not at all; `-` is stdout where stdout is free."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from tooli import Option, Output, Tooli
from tooli.testing import invoke

if TYPE_CHECKING:
    from pathlib import Path


STDOUT = Output("-")


def make() -> Tooli:
    app = Tooli("writes")

    @app.command()
    def write(out: Annotated[Output, Option("--out", "-O")], fail: bool = False) -> str:
        """Write, then fail perhaps."""
        out.write_text("first")
        with out.open("wb") as file:
            file.write(b"new\n")
        if fail:
            raise ValueError("too late")
        return "done"

    @app.command()
    def leave(out: Output) -> str:
        """Leave it open."""
        out.open("w").write("left open")
        return "done"

    @app.command()
    def items(out: Output, fail: bool = False):
        """Write while items come."""
        with out.open() as file:
            for i in range(3):
                file.write(f"{i}\n")
                yield i
        if fail:
            raise ValueError("too late")

    @app.command()
    def say(out: Output = STDOUT) -> None:
        """Print."""
        out.write_text("text\n")
        out.write_bytes(b"bytes\n")

    @app.command()
    def nothing(out: Output) -> bool:
        """Write nothing."""
        return out.is_stdout

    return app


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make()


def left(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_in_its_place(app: Tooli, tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    for old in (None, "old"):
        if old is not None:
            target.write_text(old)
        assert invoke(app, "write", "--out", str(target), mode="json").result == "done"
        assert target.read_text() == "new\n"
        assert left(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize(("tool", "flag"), [("write", "fail"), ("items", "fail")])
def test_or_as_it_was(app: Tooli, tmp_path: Path, old: str | None, tool: str, flag: str) -> None:
    target = tmp_path / "a.txt"
    if old is not None:
        target.write_text(old)
    assert not app.call(tool, out=target, fail=True).ok
    assert left(tmp_path) == (["a.txt"] if old else [])
    if old is not None:
        assert target.read_text() == old


def test_a_stream_that_is_left_early_leaves_nothing(app: Tooli, tmp_path: Path) -> None:
    stream = app.stream("items", out=tmp_path / "a")
    assert next(stream) == 0
    assert len(left(tmp_path)) == 1
    stream.close()
    assert left(tmp_path) == []


async def test_async_doors(app: Tooli, tmp_path: Path) -> None:
    assert (await app.acall("write", out=tmp_path / "a")).ok
    assert [i async for i in app.astream("items", out=tmp_path / "b")] == [0, 1, 2]
    assert left(tmp_path) == ["a", "b"]
    assert (tmp_path / "b").read_text() == "0\n1\n2\n"


def test_what_is_left_open_is_closed(app: Tooli, tmp_path: Path) -> None:
    assert app.call("leave", out=tmp_path / "a").ok
    assert (tmp_path / "a").read_text() == "left open"


def test_nothing_written_is_nothing_changed(app: Tooli, tmp_path: Path) -> None:
    assert app.call("nothing", out=tmp_path / "a").ok
    assert left(tmp_path) == []


def test_a_dry_run_writes_nothing(app: Tooli, tmp_path: Path) -> None:
    result = app.call("write", out=tmp_path / "a", dry_run=True)
    assert result.to_dict()["result"]["arguments"] == {"out": str(tmp_path / "a"), "fail": False}
    assert left(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are POSIX's")
def test_modes_and_links_stay(app: Tooli, tmp_path: Path) -> None:
    target, link = tmp_path / "a", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("a")
    assert app.call("write", out=link).ok
    assert link.is_symlink()
    assert target.read_text() == "new\n"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_usual_mode(app: Tooli, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert app.call("write", out=tmp_path / "a").ok
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to(app: Tooli) -> None:
    assert app.call("write", out="/dev/null").ok
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("", "not a path"),
        (".", "is a directory"),
        ("nowhere/a", "the folder 'nowhere' does not exist"),
    ]
    + [("new/", "is a directory"), ("a\0b", "not a path")],
)
def test_refused_before_anything_runs(app, tmp_path, monkeypatch, target, said) -> None:
    monkeypatch.chdir(tmp_path)
    error = app.call("write", out=target).error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "out")
    assert said in error.message


def test_stdout_in_text_modes(app: Tooli) -> None:
    for mode in ("text", "plain"):
        done = invoke(app, "write", "--out", "-", mode=mode)
        assert done.stdout == "firstnew\ndone\n"


@pytest.mark.parametrize("mode", ["json", "jsonl"])
def test_stdout_belongs_to_the_answer(app: Tooli, mode: str) -> None:
    done = invoke(app, "write", "--out", "-", mode=mode)
    assert done.exit_code == 2
    assert done.lines[-1]["error"]["code"] == "E1036"


def test_a_command_without_a_result_says_what_it_writes(app: Tooli) -> None:
    assert invoke(app, "say", mode="text").stdout == "text\nbytes\n"
    assert invoke(app, "say", mode="json").result == "text\nbytes"


def test_modes_that_make_no_sense() -> None:
    for mode in ("r", "a", "x", "w+"):
        with pytest.raises(ValueError, match="must be 'w' or"):
            Output("x").open(mode)


def test_what_cannot_be_put_in_its_place_fails(app: Tooli, tmp_path: Path, monkeypatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "a")

    monkeypatch.setattr(os, "replace", full)
    result = app.call("write", out=tmp_path / "a")
    assert not result.ok
    assert left(tmp_path) == []
