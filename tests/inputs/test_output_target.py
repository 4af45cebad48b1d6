"""Outputs whose target, folder or temporary file is replaced, and left-over temporary files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tooli import ConflictError, Output, Tooli
from tooli.core import safe_files
from tooli.inputs import output as output_module
from tooli.inputs import output_target


@pytest.fixture(scope="module")
def app() -> Tooli:
    app = Tooli("writes")

    @app.command()
    def write(out: Output, fail: bool = False) -> str:
        """Write the output; fail afterwards if `fail` is set."""
        out.write_text("new\n")
        if fail:
            raise ValueError("too late")
        return "done"

    @app.command()
    def nothing() -> None:
        """Do nothing."""

    return app


def files_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


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

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no descriptors for folders")
    def test_target_that_is_removed_and_created_again(self, tmp_path: Path) -> None:
        target = tmp_path / "a"
        target.write_text("old")
        output = self.prepared(target)
        target.unlink()
        target.write_text("of somebody else")  # many file systems use the number of "a" again
        output.write_text("new")
        with pytest.raises(ConflictError, match="another file was put there"):
            output.verify()
        output.discard()
        assert target.read_text() == "of somebody else"
        assert files_in(tmp_path) == ["a"]

    @pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
    def test_held_files_are_closed(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("old")
        before = len(os.listdir("/proc/self/fd"))
        for is_written in (True, False):
            output = self.prepared(tmp_path / "a")
            if is_written:
                output.write_text("new")
                output.verify()
                output.commit()
            output.discard()
        del output
        assert len(os.listdir("/proc/self/fd")) == before

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
