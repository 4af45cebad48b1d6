"""A sandboxed command prepares paths, on which the trusted parent process then acts.

Every attack declares full access to one folder and tries to change something outside of it, or to
make this call hang, or later calls fail.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli import Output, Tooli
from tooli.core import safe_files
from tooli.execution.sandbox import temp_dirs
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.inputs import output_target

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

Attack = Callable[[Path], None]


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "outside"
    folder.mkdir()
    file = folder / "victim"
    file.write_text("unchanged")
    yield file
    assert file.read_text() == "unchanged"
    assert os.listdir(folder) == ["victim"]


def make_app(inside: Path, attack: Callable[[Output], None]) -> Tooli:
    app = Tooli("hostile")
    access = [f"fs:{action}:{inside}" for action in ("read", "write", "delete")]

    @app.command(isolation="required", capabilities=access, timeout=30)
    def run(out: Output) -> str:
        attack(out)
        return "done"

    return app


def find_temporary_file(inside: Path) -> Path:
    (found,) = inside.glob("**/.*.tmp")
    return found


class TestReplacedTarget:
    def attack(self, inside: Path, prepare: Attack, target: str = "a") -> str:
        def run(out: Output) -> None:
            out.write_text("new")
            prepare(inside)

        result = make_app(inside, run).call("run", out=inside / target)
        assert not result.ok
        assert result.error is not None
        assert result.error.code == "E3020", result.error
        return result.error.message

    @pytest.mark.parametrize("existed", [False, True])
    def test_link(self, inside: Path, victim: Path, existed: bool) -> None:
        def prepare(folder: Path) -> None:
            (folder / "a").unlink(missing_ok=True)
            (folder / "a").symlink_to(victim)

        if existed:
            (inside / "a").write_text("old")
        assert "symbolic link" in self.attack(inside, prepare)
        assert sorted(os.listdir(inside)) == ["a"]

    def test_dangling_link(self, inside: Path, victim: Path) -> None:
        new = victim.parent / "new"
        self.attack(inside, lambda folder: (folder / "a").symlink_to(new))
        assert not new.exists()

    def test_pipe(self, inside: Path) -> None:
        assert "pipe" in self.attack(inside, lambda folder: os.mkfifo(folder / "a"))

    def test_folder(self, inside: Path) -> None:
        assert "folder" in self.attack(inside, lambda folder: (folder / "a").mkdir())

    def test_other_file(self, inside: Path) -> None:
        def prepare(folder: Path) -> None:
            (folder / "b").write_text("other")
            (folder / "b").rename(folder / "a")

        (inside / "a").write_text("old")
        self.attack(inside, prepare)
        assert (inside / "a").read_text() == "other"

    def test_new_file(self, inside: Path) -> None:
        self.attack(inside, lambda folder: (folder / "a").write_text("other") and None)
        assert (inside / "a").read_text() == "other"

    def test_removed_file_is_written(self, inside: Path) -> None:
        def run(out: Output) -> None:
            os.unlink(out.target)
            out.write_text("new")

        (inside / "a").write_text("old")
        assert make_app(inside, run).call("run", out=inside / "a").ok
        assert (inside / "a").read_text() == "new"

    def test_target_given_by_a_link_that_changes(self, inside: Path, victim: Path) -> None:
        """The link was resolved before the run: the file that it named then is written."""

        def run(out: Output) -> None:
            out.write_text("new")
            (inside / "link").unlink()
            (inside / "link").symlink_to(victim)

        (inside / "link").symlink_to("a")
        assert make_app(inside, run).call("run", out=inside / "link").ok
        assert (inside / "a").read_text() == "new"

    def test_folder_of_the_target_becomes_a_link(self, inside: Path, victim: Path) -> None:
        def run(out: Output) -> None:
            out.write_text("new")
            (inside / "sub").rename(inside / "moved")
            (inside / "sub").symlink_to(victim.parent)

        (inside / "sub").mkdir()
        result = make_app(inside, run).call("run", out=inside / "sub" / "victim")
        assert result.ok
        assert (inside / "moved" / "victim").read_text() == "new"

    def test_folder_of_the_target_is_removed(self, inside: Path, victim: Path) -> None:
        def run(out: Output) -> None:
            find_temporary_file(inside).unlink()
            (inside / "sub").rmdir()
            (inside / "sub").symlink_to(victim.parent)

        (inside / "sub").mkdir()
        result = make_app(inside, run).call("run", out=inside / "sub" / "victim")
        assert result.ok or result.error is not None

    def test_special_mode_bits_are_not_kept(self, inside: Path) -> None:
        def run(out: Output) -> None:
            out.write_text("new")

        (inside / "a").write_text("old")
        (inside / "a").chmod(0o6755)
        assert make_app(inside, run).call("run", out=inside / "a").ok
        assert stat.S_IMODE((inside / "a").stat().st_mode) == 0o755


class TestReplacedTemporaryFile:
    @pytest.mark.parametrize("writes", [False, True])
    @pytest.mark.parametrize("held_files", [0, 64])
    @pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder", "file", "hard link"])
    def test_replaced(
        self,
        inside: Path,
        victim: Path,
        kind: str,
        held_files: int,
        writes: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def run(out: Output) -> None:
            if writes:
                out.write_text("new")
            path = find_temporary_file(inside)
            path.rename(inside / "moved")
            if kind == "link":
                path.symlink_to(victim)
            elif kind == "dangling":
                path.symlink_to(victim.parent / "new")
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "folder":
                path.mkdir()
            elif kind == "file":
                (inside / "b").write_text("other")
                (inside / "b").rename(path)
            else:
                os.link(inside / "c", path)

        (inside / "a").write_text("old")
        (inside / "c").write_text("other name")
        monkeypatch.setattr(output_target, "_MAX_HELD_FILES", held_files)
        result = make_app(inside, run).call("run", out=inside / "a")
        if writes or not held_files:
            assert result.error is not None
            assert result.error.code == "E3020", result.error
        else:
            assert result.ok, "nothing was written"
        assert (inside / "a").read_text() == "old"
        assert (inside / "c").read_text() == "other name"

    def test_new_file_with_the_same_number(self, inside: Path) -> None:
        """A file system may give the number of a removed file to the next new file."""

        def run(out: Output) -> None:
            out.write_text("new")
            path = find_temporary_file(inside)
            path.unlink()
            path.write_text("other")

        result = make_app(inside, run).call("run", out=inside / "a")
        assert result.error is not None
        assert result.error.code == "E3020"
        assert not (inside / "a").exists()

    def test_removed(self, inside: Path) -> None:
        (inside / "a").write_text("old")
        app = make_app(inside, lambda out: find_temporary_file(inside).unlink())
        assert app.call("run", out=inside / "a").ok, "nothing was written"
        assert (inside / "a").read_text() == "old"

    def test_removed_after_it_was_written(self, inside: Path) -> None:
        def run(out: Output) -> None:
            out.write_text("new")
            find_temporary_file(inside).unlink()

        (inside / "a").write_text("old")
        error = make_app(inside, run).call("run", out=inside / "a").error
        assert error is not None
        assert "was removed" in error.message
        assert (inside / "a").read_text() == "old"

    def test_failed_call_removes_only_its_own_file(self, inside: Path) -> None:
        def run(out: Output) -> None:
            path = find_temporary_file(inside)
            path.unlink()
            (inside / "other").rename(path)
            raise ValueError("failed")

        (inside / "other").write_text("kept")
        assert not make_app(inside, run).call("run", out=inside / "a").ok
        assert find_temporary_file(inside).read_text() == "kept"

    def test_second_name_does_not_reach_outside(self, inside: Path, victim: Path) -> None:
        def run(out: Output) -> None:
            with pytest.raises(OSError):
                os.link(victim, inside / "second")
            out.write_text("new")

        assert make_app(inside, run).call("run", out=inside / "a").ok


class TestTemporaryFolder:
    @pytest.fixture(autouse=True)
    def _temp_root(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = tmp_path / "temp"
        root.mkdir()
        monkeypatch.setenv("TMPDIR", str(root))
        monkeypatch.setattr(temp_dirs, "_swept_dirs", set())
        for module in (safe_files, temp_dirs):  # a busy machine takes longer than the limit
            monkeypatch.setattr(module, "monotonic", lambda: 0.0)

    def run(self, inside: Path, attack: Callable[[Path], None]) -> None:
        """Run an attack in the temporary folder of a call, then an ordinary call."""

        def attacking(out: Output) -> None:
            attack(Path(os.environ["TMPDIR"]))

        assert make_app(inside, attacking).call("run", out=inside / "a").ok
        temp_dirs._swept_dirs.clear()
        harmless = make_app(inside, lambda out: out.write_text("x") and None)
        assert harmless.call("run", out=inside / "b").ok

    def test_deep_folders(self, inside: Path, tmp_path: Path) -> None:
        def nest(folder: Path) -> None:
            os.chdir(folder)
            for _ in range(1500):
                os.mkdir("d")
                os.chdir("d")

        self.run(inside, nest)
        assert os.listdir(tmp_path / "temp") == []

    def test_many_files(self, inside: Path, tmp_path: Path) -> None:
        def fill(folder: Path) -> None:
            for i in range(20_000):
                os.close(os.open(folder / str(i), os.O_CREAT | os.O_WRONLY))

        self.run(inside, fill)
        assert os.listdir(tmp_path / "temp") == []

    def test_folders_without_permissions(self, inside: Path, tmp_path: Path) -> None:
        def lock(folder: Path) -> None:
            os.umask(0o777)
            for _ in range(3):
                os.mkdir(folder / "closed")
                folder = folder / "closed"

        self.run(inside, lock)
        assert os.listdir(tmp_path / "temp") == []

    def test_links(self, inside: Path, victim: Path, tmp_path: Path) -> None:
        def link(folder: Path) -> None:
            (folder / "to-folder").symlink_to(victim.parent)
            (folder / "to-file").symlink_to(victim)
            (folder / "up").symlink_to("../..")

        self.run(inside, link)
        assert os.listdir(tmp_path / "temp") == []

    def test_replaced_by_a_link(
        self, inside: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The temporary folder is in a folder in which the command may delete."""

        def replace(folder: Path) -> None:
            (folder / "left").write_text("x")
            folder.rename(inside / "moved")
            folder.symlink_to(victim.parent)

        monkeypatch.setenv("TMPDIR", str(inside))
        self.run(inside, replace)


class TestFilesOfKilledRuns:
    APP = """
import os, signal, sys, time
from tooli import Output, Tooli
app = Tooli("killed")

@app.command()
def write(out: Output, kill: bool = False) -> str:
    out.write_text("half")
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"

@app.command(timeout=60)
def limited(out: Output, kill: bool = False) -> str:
    out.write_text("half")
    if kill:
        os.kill(int(os.environ["CALLER"]), signal.SIGKILL)
    return "done"

os.environ["CALLER"] = str(os.getpid())
app()
"""

    @pytest.mark.parametrize("command", ["write", "limited"])
    def test_next_run_sweeps(self, tmp_path: Path, inside: Path, command: str) -> None:
        script = tmp_path / "app.py"
        script.write_text(self.APP)
        kept = [".a.tmp", ".a.0123456789abcdef.tmp", "a.tooli-0123456789abcdef.tmp"]
        for name in kept:
            (inside / name).touch()
        (inside / ".l.tooli-0123456789abcdef.tmp").symlink_to("a.tmp")

        def run(*argv: str) -> int:
            command_line = [sys.executable, str(script), command, str(inside / "a"), *argv]
            env = environment(TOOLI_STATE_DIR=str(tmp_path / "state"))
            return subprocess.run(command_line, capture_output=True, env=env, timeout=60).returncode

        assert run("--kill") != 0
        assert len(list(inside.glob(".a.tooli-*.tmp"))) == 1
        assert run() == 0
        assert sorted(os.listdir(inside)) == sorted(["a", ".l.tooli-0123456789abcdef.tmp", *kept])

    def test_file_of_a_run_in_progress_is_kept(self, inside: Path) -> None:
        app = Tooli("slow")

        @app.command()
        def outer(out: Output) -> str:
            out.write_text("outer")
            assert app.call("inner", out=inside / "b").ok
            return "done"

        @app.command()
        def inner(out: Output) -> str:
            out.write_text("inner")
            return "done"

        assert app.call("outer", out=inside / "a").ok
        assert (inside / "a").read_text() == "outer"
