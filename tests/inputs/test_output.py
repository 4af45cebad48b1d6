"""Output files: written completely or not at all; `-` is stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from tooli import ConflictError, Option, Output, Tooli
from tooli.core import safe_files
from tooli.inputs import output as output_module
from tooli.inputs import output_target
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


class TestReplacedPaths:
    """Other code changes paths after the argument was checked."""

    def prepared(self, target: Path) -> Output:
        output = Output(target)
        output.prepare({})
        return output

    def test_link_is_resolved_once(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("old")
        (tmp_path / "b").write_text("kept")
        (tmp_path / "link").symlink_to("a")
        output = Output(tmp_path / "link")
        assert output.tooli_real_path == str(tmp_path / "a")
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("b")
        output.write_text("new")
        output.verify()
        output.commit()
        assert [(tmp_path / name).read_text() for name in "ab"] == ["new", "kept"]

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux checks every part of a path")
    def test_folder_that_becomes_a_link_before_the_run(self, tmp_path: Path) -> None:
        for name in ("sub", "other"):
            (tmp_path / name / "inner").mkdir(parents=True)
        output = Output(tmp_path / "sub" / "inner" / "a")
        assert output.tooli_real_path is not None
        (tmp_path / "sub").rename(tmp_path / "moved")
        (tmp_path / "sub").symlink_to("other")
        with pytest.raises(ConflictError, match="its folder was replaced"):
            output.prepare({})
        assert files_in(tmp_path / "other" / "inner") == []

    def test_folder_that_is_replaced_before_the_file_is_created(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        output = self.prepared(tmp_path / "sub" / "a")
        (tmp_path / "sub").rename(tmp_path / "moved")
        (tmp_path / "sub").mkdir()
        with pytest.raises(ConflictError, match="its folder was replaced"):
            output.write_text("secret")
        assert not [file for file in (tmp_path / "sub").iterdir() if file.read_text()]
        output.discard()

    def test_temporary_file_that_is_replaced_by_a_link(self, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        victim.write_text("kept")
        (tmp_path / "sub").mkdir()
        output = self.prepared(tmp_path / "sub" / "a")
        output.write_text("first")
        (temporary,) = (tmp_path / "sub").iterdir()
        temporary.unlink()
        temporary.symlink_to(victim)
        with pytest.raises(OSError):
            output.write_text("second")
        os.unlink(temporary)
        os.link(victim, temporary)
        with pytest.raises(ConflictError, match="temporary file was replaced"):
            output.write_text("second")
        output.discard()
        assert victim.read_text() == "kept"
        assert temporary.read_text() == "kept", "another file has the name"

    def test_pipe_that_is_replaced_by_a_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a")
        output = self.prepared(tmp_path / "a")
        (tmp_path / "a").unlink()
        (tmp_path / "a").write_text("kept")
        output.prepare({})
        assert (tmp_path / "a").read_text() == "kept"
        with pytest.raises(FileExistsError):
            open(tmp_path / "a", "wb", opener=output_module._open_device)
        assert (tmp_path / "a").read_text() == "kept"

    def test_first_output_is_kept_if_the_second_one_conflicts(self, tmp_path: Path) -> None:
        app = Tooli("two")

        @app.command()
        def both(first: Output, second: Output) -> None:
            first.write_text("new")
            second.write_text("new")
            os.mkdir(second.target)

        (tmp_path / "a").write_text("old")
        assert not app.call("both", first=tmp_path / "a", second=tmp_path / "b").ok
        assert (tmp_path / "a").read_text() == "old"

    def test_conflict_before_the_run_does_not_start_it(self, tmp_path: Path) -> None:
        app, calls = Tooli("one"), list[str]()

        @app.command()
        def one(out: Output) -> None:
            calls.append(out.target)

        def replace(call: Any) -> Any:
            (tmp_path / "a").symlink_to("b")
            return (yield call)

        app.use(replace, before="handles")
        error = app.call("one", out=tmp_path / "a").error
        assert error is not None
        assert (error.code, calls) == ("E3020", [])

    def test_many_outputs_need_few_descriptors(self, tmp_path: Path) -> None:
        app = Tooli("many")

        @app.command()
        def many(outs: list[Output]) -> int:
            for out in outs:
                out.write_text("x")
            return len(os.listdir("/dev/fd"))

        before = len(os.listdir("/dev/fd"))
        targets = [tmp_path / str(i) for i in range(300)]
        assert app.call("many", outs=targets).result < before + 100
        assert len(os.listdir("/dev/fd")) <= before
        assert len(files_in(tmp_path)) == 300

    def test_long_names(self, app: Tooli, tmp_path: Path) -> None:
        for name in ("x" * 255, "\U0001f600" * 60, os.fsdecode(b"\xff" * 200)):
            assert app.call("write", out=tmp_path / name).ok, name
        assert len(files_in(tmp_path)) == 3

    def test_without_directory_descriptors(
        self, app: Tooli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (safe_files, output_target):
            monkeypatch.setattr(module, "HAS_DIR_FD", False)
        (tmp_path / "a").write_text("old")
        assert app.call("write", out=tmp_path / "a").ok
        assert not app.call("write", out=tmp_path / "b", fail=True).ok
        assert files_in(tmp_path) == ["a"]
        assert (tmp_path / "a").read_text() == "new\n"


class TestStaleFiles:
    STALE = ".a.tooli-0123456789abcdef.tmp"

    @pytest.fixture(autouse=True)
    def _sweep_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(output_target, "_swept_folders", set())

    def test_left_over_files_are_removed(self, app: Tooli, tmp_path: Path) -> None:
        (tmp_path / self.STALE).touch()
        assert app.call("write", out=tmp_path / "b").ok
        assert files_in(tmp_path) == ["b"]

    def test_files_in_use_are_kept(self, app: Tooli, tmp_path: Path) -> None:
        with_lock = output_target.OutputFolder(str(tmp_path))
        output_target._swept_folders.clear()
        (tmp_path / self.STALE).touch()
        assert app.call("write", out=tmp_path / "b").ok
        assert files_in(tmp_path) == [self.STALE, "b"]
        with_lock.close()

    def test_other_files_are_kept(self, app: Tooli, tmp_path: Path) -> None:
        names = (
            *(self.STALE[1:], self.STALE + "x", self.STALE.replace("f", "F")),
            *(self.STALE.replace("0", ""), ".tooli-0123456789abcdef.tmp", ".a.tmp"),
            *("tooli-0123456789abcdef.tmp", ".a.tooli-0123456789abcdef", ".swp"),
        )
        for name in names:
            (tmp_path / name).touch()
        (tmp_path / self.STALE).mkdir()
        linked = tmp_path / self.STALE.replace("0", "1")
        linked.symlink_to("a")
        second = tmp_path / self.STALE.replace("0", "2")
        second.touch()
        os.link(second, tmp_path / "second-name")
        before = set(files_in(tmp_path))
        assert app.call("write", out=tmp_path / "b").ok
        assert set(files_in(tmp_path)) == {*before, "b"}

    def test_file_of_another_user_is_kept(self, app: Tooli, tmp_path: Path) -> None:
        (tmp_path / self.STALE).touch()
        try:
            os.chown(tmp_path / self.STALE, 65534, 65534)
        except PermissionError:
            pytest.skip("only root can change the owner")
        assert app.call("write", out=tmp_path / "b").ok
        assert files_in(tmp_path) == [self.STALE, "b"]
