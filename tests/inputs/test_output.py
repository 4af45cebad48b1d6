"""Output files: written completely or not at all; `-` is stdout."""

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


def make_app() -> Tooli:
    app = Tooli("writes")

    @app.command()
    def write(out: Annotated[Output, Option("--out", "-O")], fail: bool = False) -> str:
        """Write the output; fail afterwards if `fail` is set."""
        out.write_text("first")
        with out.open("wb") as file:
            file.write(b"new\n")
        if fail:
            raise ValueError("too late")
        return "done"

    @app.command()
    def leave(out: Output) -> str:
        """Leave the output open."""
        out.open("w").write("left open")
        return "done"

    @app.command()
    def items(out: Output, fail: bool = False):
        """Write a line for each item."""
        with out.open() as file:
            for i in range(3):
                file.write(f"{i}\n")
                yield i
        if fail:
            raise ValueError("too late")

    @app.command()
    def say(out: Output = STDOUT) -> None:
        """Write text and bytes."""
        out.write_text("text\n")
        out.write_bytes(b"bytes\n")

    @app.command()
    def nothing(out: Output) -> bool:
        """Write nothing."""
        return out.is_stdout

    return app


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make_app()


def files_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_success_replaces_target(app: Tooli, tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    for old in (None, "old"):
        if old is not None:
            target.write_text(old)
        assert invoke(app, "write", "--out", str(target), mode="json").result == "done"
        assert target.read_text() == "new\n"
        assert files_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("tool", ["write", "items"])
def test_failure_keeps_target(app: Tooli, tmp_path: Path, old: str | None, tool: str) -> None:
    target = tmp_path / "a.txt"
    if old is not None:
        target.write_text(old)
    assert not app.call(tool, out=target, fail=True).ok
    assert files_in(tmp_path) == (["a.txt"] if old else [])
    if old is not None:
        assert target.read_text() == old


def test_closed_stream_writes_nothing(app: Tooli, tmp_path: Path) -> None:
    stream = app.stream("items", out=tmp_path / "a")
    assert next(stream) == 0
    assert len(files_in(tmp_path)) == 1
    stream.close()
    assert files_in(tmp_path) == []


async def test_async_calls_write_the_target(app: Tooli, tmp_path: Path) -> None:
    assert (await app.acall("write", out=tmp_path / "a")).ok
    assert [i async for i in app.astream("items", out=tmp_path / "b")] == [0, 1, 2]
    assert files_in(tmp_path) == ["a", "b"]
    assert (tmp_path / "b").read_text() == "0\n1\n2\n"


def test_open_file_is_closed(app: Tooli, tmp_path: Path) -> None:
    assert app.call("leave", out=tmp_path / "a").ok
    assert (tmp_path / "a").read_text() == "left open"


def test_unwritten_output_creates_no_file(app: Tooli, tmp_path: Path) -> None:
    assert app.call("nothing", out=tmp_path / "a").ok
    assert files_in(tmp_path) == []


def test_dry_run_writes_nothing(app: Tooli, tmp_path: Path) -> None:
    result = app.call("write", out=tmp_path / "a", dry_run=True)
    assert result.to_dict()["result"]["arguments"] == {"out": str(tmp_path / "a"), "fail": False}
    assert files_in(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX modes and links")
def test_mode_and_symlink_are_kept(app: Tooli, tmp_path: Path) -> None:
    target, link = tmp_path / "a", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("a")
    assert app.call("write", out=link).ok
    assert link.is_symlink()
    assert target.read_text() == "new\n"
    assert target.stat().st_mode & 0o777 == 0o640


def test_new_file_respects_umask(app: Tooli, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert app.call("write", out=tmp_path / "a").ok
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_device_is_written_directly(app: Tooli) -> None:
    assert app.call("write", out="/dev/null").ok
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "not a path"),
        (".", "is a directory"),
        ("nowhere/a", "the folder 'nowhere' does not exist"),
    ]
    + [("new/", "is a directory"), ("a\0b", "not a path")],
)
def test_invalid_targets_are_rejected(app, tmp_path, monkeypatch, target, message) -> None:
    monkeypatch.chdir(tmp_path)
    error = app.call("write", out=target).error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "out")
    assert message in error.message


def test_stdout_target_is_written_in_text_modes(app: Tooli) -> None:
    for mode in ("text", "plain"):
        done = invoke(app, "write", "--out", "-", mode=mode)
        assert done.stdout == "firstnew\ndone\n"


@pytest.mark.parametrize("mode", ["json", "jsonl"])
def test_stdout_is_rejected_in_json_modes(app: Tooli, mode: str) -> None:
    done = invoke(app, "write", "--out", "-", mode=mode)
    assert done.exit_code == 2
    assert done.lines[-1]["error"]["code"] == "E1036"


def test_text_written_to_stdout_is_the_result(app: Tooli) -> None:
    assert invoke(app, "say", mode="text").stdout == "text\nbytes\n"
    assert invoke(app, "say", mode="json").result == "text\nbytes"


def test_open_rejects_invalid_modes() -> None:
    for mode in ("r", "a", "x", "w+"):
        with pytest.raises(ValueError, match="must be 'w' or"):
            Output("x").open(mode)


def test_failed_commit_is_an_error(app: Tooli, tmp_path: Path, monkeypatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "a")

    monkeypatch.setattr(os, "replace", full)
    result = app.call("write", out=tmp_path / "a")
    assert not result.ok
    assert files_in(tmp_path) == []
