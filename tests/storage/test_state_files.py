"""The state directory: marker files, overflow files, first calls and repeated failures."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli.errors import InputError
from tooli.storage import state_files
from tooli.storage.state_files import (
    FAILURE_RETENTION_SECONDS,
    SESSION_RETENTION_SECONDS,
    FileFailureHistory,
    MemoryFailureHistory,
    RepeatedFailure,
    claim_once,
    get_state_dir,
    is_first_call,
)

APP = """
import tooli
app = tooli.Tooli("counter")

@app.command()
def count(upto: int) -> list[int]:
    return list(range(upto))

@app.command()
def shout(word: str):
    print(word.upper())

app()
"""
SCHEMA = {"type": "array", "items": {"type": "integer"}}


@pytest.fixture
def read_schema(tmp_path: Path) -> Any:
    program = tmp_path / "counter.py"
    program.write_text(APP)

    def start(*argv: str, session: str = "s-1", **env: str) -> subprocess.Popen[bytes]:
        variables = {"TOOLI_SESSION_ID": session, "TOOLI_STATE_DIR": str(tmp_path / "state"), **env}
        command = [sys.executable, str(program), *argv]
        return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(**variables))

    def schema(*argv: str, **more: str) -> Any:
        return json.loads(start(*argv, **more).communicate()[0])["meta"].get("output_schema")

    schema.start = start  # type: ignore[attr-defined]
    return schema


class TestFirstCallSchema:
    def test_first_call_of_session_returns_schema(self, read_schema: Any) -> None:
        assert read_schema("count", "2", "--json") == SCHEMA
        assert read_schema("count", "2", "--json") is None
        assert read_schema("count", "2", "--json", session="s-2") == SCHEMA

    def test_call_without_schema_is_not_counted(self, read_schema: Any) -> None:
        assert read_schema("count", "many", "--json") is None
        assert read_schema("shout", "hey", "--json") is None
        assert read_schema("count", "2", "--json", "--response-format", "concise") is None
        read_schema.start("count", "2", "--text").communicate()
        assert read_schema("count", "2", "--json") == SCHEMA

    def test_detailed_response_always_has_schema(self, read_schema: Any) -> None:
        assert read_schema("count", "2", "--json") == SCHEMA
        assert read_schema("count", "2", "--json", "--response-format", "detailed") == SCHEMA

    def test_one_concurrent_call_is_first(self, read_schema: Any) -> None:
        started = [read_schema.start("count", "1", "--json") for _ in range(8)]
        metas = [json.loads(process.communicate()[0])["meta"] for process in started]
        assert sum("output_schema" in meta for meta in metas) == 1

    def test_unwritable_state_directory_is_ignored(self, read_schema: Any, tmp_path: Path) -> None:
        blocked = tmp_path / "file"
        blocked.write_text("")
        assert read_schema("count", "2", "--json", TOOLI_STATE_DIR=str(blocked)) is None


class TestSessionFiles:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
        return tmp_path

    @pytest.mark.parametrize(
        "name", ["a", "A", "../../etc/passwd", "CON", "x" * 5000, "ü", "\udcff", "a b", ".", ""]
    )
    def test_any_session_name_is_stored_safely(self, home: Path, name: str) -> None:
        assert is_first_call("app", name)
        assert not is_first_call("app", name)
        assert is_first_call("other", name)
        assert not [path for path in home.rglob("*") if len(path.name) > 64]
        assert os.listdir(home) == ["sessions"]

    def test_expired_sessions_are_forgotten(self, home: Path) -> None:
        assert is_first_call("app", "old")
        long_ago = 1_000_000_000
        (old,) = (home / "sessions").glob("*/*")
        os.utime(old, (long_ago, long_ago))
        for number in range(1000):  # some of them purge
            assert is_first_call("app", f"new-{number}")
        assert not old.exists()
        assert is_first_call("app", "old")
        assert SESSION_RETENTION_SECONDS > 24 * 3600

    def test_state_directory_is_below_xdg_state_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TOOLI_STATE_DIR")
        monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
        assert get_state_dir() == os.path.join("/somewhere", "tooli")
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv("HOME", "/home/ann")
        assert get_state_dir() == "/home/ann/.local/state/tooli"


def test_most_claims_do_not_purge_expired_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    purges: list[str] = []
    monkeypatch.setattr(
        state_files, "_delete_expired_markers", lambda folder, ttl: purges.append(folder)
    )
    for number in range(1000):
        assert claim_once(str(tmp_path / "folder"), f"mark-{number}", 1.0)
    assert 0 < len(purges) < 100


# ------------------------------------------------------------------ overflow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def test_overflow_file_is_private(home: Path) -> None:
    path = state_files.write_overflow("app.tool one", lambda: [b"[1,", b"2]"])
    assert path is not None
    assert Path(path).read_bytes() == b"[1,2]"
    assert Path(path).parent == home / "results"
    assert Path(path).name.startswith("app-tool-one-")
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_number_of_overflow_files_is_limited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_OVERFLOW_FILES", 3)
    paths = []
    for i in range(6):
        path = state_files.write_overflow("t", lambda: [b"x" * 10])
        assert path is not None
        os.utime(path, ns=(i, i))
        paths.append(path)
    state_files.write_overflow("t", lambda: [b"x"])
    assert sum(map(os.path.exists, paths)) == 2


def test_size_of_overflow_files_is_limited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_OVERFLOW_BYTES", 25)
    first = state_files.write_overflow("t", lambda: [b"x" * 20])
    assert first is not None
    os.utime(first, ns=(1, 1))
    second = state_files.write_overflow("t", lambda: [b"x" * 20])
    assert second is not None
    assert not os.path.exists(first)
    assert os.path.exists(second)


def test_overflow_falls_back_to_temp_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TOOLI_STATE_DIR", str(blocked / "below"))
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(tmp_path / "temporary"))
    path = state_files.write_overflow("t", lambda: [b"1"])
    assert path is not None
    assert Path(path).parent == tmp_path / "temporary"
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(blocked / "neither"))
    assert state_files.write_overflow("t", lambda: [b"1"]) is None


def test_full_disk_falls_back_to_temp_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file in the temporary folder contains the whole result, not only the rest."""
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(tmp_path / "temporary"))
    attempts: list[str] = []

    def encode_chunks() -> Iterator[bytes]:
        attempts.append("started")
        yield b"[1,"
        if len(attempts) == 1:
            raise OSError(28, "No space left on device")
        yield b"2]"

    path = state_files.write_overflow("t", encode_chunks)
    assert path is not None
    assert Path(path).parent == tmp_path / "temporary"
    assert Path(path).read_bytes() == b"[1,2]"
    assert list((home / "results").iterdir()) == []


def test_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    monkeypatch.setattr(state_files, "_temp_folder", lambda: str(tmp_path / "temp"))
    assert state_files.write_overflow("t", lambda: [b"1"]) is None


@pytest.mark.skipif(os.name == "nt", reason="pathlib cannot change its system")
def test_state_directory_on_windows_is_below_localappdata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLI_STATE_DIR", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    monkeypatch.setattr(state_files.os, "name", "nt")
    found = state_files.get_state_dir()
    monkeypatch.undo()
    assert found == "/local/tooli"


# ------------------------------------------------------------------ repeated failures

NOW = time() - 1.0


@pytest.fixture
def failures_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(state_files, "time", lambda: NOW + 1.0)
    return tmp_path / "loops"


def failure(count: int = 1, failed_at: float = NOW, **error: Any) -> RepeatedFailure:
    return RepeatedFailure("call", "error", count, failed_at, error)


def session_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


@pytest.mark.usefixtures("failures_dir")
@pytest.mark.parametrize("history_class", [MemoryFailureHistory, FileFailureHistory])
class TestFailureHistory:
    def test_last_failure_replaces_earlier_ones(self, history_class: Any) -> None:
        history = history_class()
        assert history.last_failure("s", "a.t") is None
        history.record_failure("s", "a.t", failure(1))
        history.record_failure("s", "a.t", failure(2, code="E1"))
        assert history.last_failure("s", "a.t") == failure(2, code="E1")
        assert history.last_failure("s", "a.other") is None
        assert history.last_failure("other", "a.t") is None

    def test_success_forgets_the_failure(self, history_class: Any) -> None:
        history = history_class()
        history.record_failure("s", "a.t", failure())
        history.record_failure("s", "a.u", failure())
        history.forget("s", "a.t")
        history.forget("s", "a.t")
        assert history.last_failure("s", "a.t") is None
        assert history.last_failure("s", "a.u") == failure()

    @pytest.mark.parametrize("age", [FAILURE_RETENTION_SECONDS, -3600.0])
    def test_expired_failure_is_ignored(self, history_class: Any, age: float) -> None:
        history = history_class()
        history.record_failure("s", "a.t", failure(failed_at=NOW - age))
        assert history.last_failure("s", "a.t") is None


def test_memory_for_failures_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "MAX_MEMORY_FAILURES", 2)
    history = MemoryFailureHistory()
    for session in "abc":
        history.record_failure(session, "t", failure())
    assert [history.last_failure(session, "t") is None for session in "abc"] == [True, False, False]


@pytest.mark.usefixtures("failures_dir")
class TestFailureFiles:
    def test_file_is_private_and_deleted_when_empty(self, failures_dir: Path) -> None:
        history = FileFailureHistory()
        history.record_failure("s", "a.t", failure())
        assert session_file(failures_dir).stat().st_mode & 0o777 == 0o600
        history.forget("s", "a.t")
        assert list(failures_dir.iterdir()) == []

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"[]",
            b'{"a.t": 1}',
            b'{"a.t": ["call", "error", "1", 1.0, {}]}',
            b"[" * 50_000,
        ],
    )
    def test_invalid_file_has_no_failures(self, failures_dir: Path, data: bytes) -> None:
        history = FileFailureHistory()
        history.record_failure("s", "a.t", failure())
        session_file(failures_dir).write_bytes(data)
        assert history.last_failure("s", "a.t") is None
        history.record_failure("s", "a.t", failure(3))
        assert history.last_failure("s", "a.t") == failure(3)

    def test_number_of_tools_is_limited(
        self, failures_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(state_files, "MAX_TOOLS_PER_SESSION", 2)
        for tool in "abc":
            FileFailureHistory().record_failure("s", tool, failure())
        assert list(json.loads(session_file(failures_dir).read_text())) == ["b", "c"]

    def test_expired_files_are_deleted(self, failures_dir: Path) -> None:
        history = FileFailureHistory()
        history.record_failure("old", "t", failure())
        os.utime(session_file(failures_dir), (NOW - FAILURE_RETENTION_SECONDS,) * 2)
        history.record_failure("new", "t", failure())
        assert history.last_failure("old", "t") is None

    def test_unwritable_folder_is_ignored(self, tmp_path: Path) -> None:
        (tmp_path / "loops").write_text("a file")
        history = FileFailureHistory()
        history.record_failure("s", "t", failure())
        history.forget("s", "t")
        assert history.last_failure("s", "t") is None


def test_unreadable_proc_files_are_empty(tmp_path: Path) -> None:
    assert state_files.read_proc_file(str(tmp_path / "missing")) == ""
    assert state_files.read_proc_file(str(tmp_path)) == "", "a folder cannot be read"


def test_file_lock_is_exclusive(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.lock"
    with state_files.FileLock(str(path)):
        other = os.open(path, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            state_files.set_file_lock(other, locked=True)
    state_files.set_file_lock(other, locked=True)
    os.close(other)


def test_lock_file_that_cannot_be_created_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with state_files.FileLock(str(tmp_path / "file" / "a.lock")):
        pass


def test_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A worker process that outlives the block has the file open, but not the lock."""
    path = tmp_path / "a.lock"
    read_end, write_end = os.pipe()
    with state_files.FileLock(str(path)):
        child = os.fork()
        if child == 0:
            os.close(write_end)
            os.read(read_end, 1)
            os._exit(0)
    other = os.open(path, os.O_RDWR)
    try:
        state_files.set_file_lock(other, locked=True)
    finally:
        os.close(other)
        os.close(write_end)
        os.close(read_end)
        os.waitpid(child, 0)


def test_forked_child_does_not_release_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lock = state_files.FileLock(str(path))
    with lock:
        child = os.fork()
        if child == 0:
            lock.__exit__()
            os._exit(0)
        os.waitpid(child, 0)
        other = os.open(path, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            state_files.set_file_lock(other, locked=True)
        os.close(other)


def test_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.lock").symlink_to("made")
    with state_files.FileLock(str(tmp_path / "a.lock")):
        pass
    assert not (tmp_path / "made").exists()


# ------------------------------------------------------------------ private folders


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
class TestPrivateFolders:
    def test_all_new_folders_are_private(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            state_files.make_private_folder(str(tmp_path / "a" / "b" / "c"))
        finally:
            os.umask(before)
        for name in ("a", "a/b", "a/b/c"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700

    def test_calls_leave_nothing_open_to_others(self, tmp_path: Path, read_schema: Any) -> None:
        """A whole call with umask 000, in a new home folder."""
        before = os.umask(0)
        try:
            read_schema("count", "2", "--json", TOOLI_STATE_DIR=str(tmp_path / "x" / "y" / "state"))
            read_schema.start("count", "zwei", "--json").communicate()
            read_schema.start("count", "9000", "--json", "--max-bytes", "500").communicate()
        finally:
            os.umask(before)
        made = [*(tmp_path / "x").rglob("*"), *(tmp_path / "state").rglob("*"), tmp_path / "x"]
        assert len(made) > 5
        assert [path for path in made if path.stat().st_mode & 0o077] == []

    def test_file_in_the_way_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in ("file", "file/below"):
            with pytest.raises(OSError):
                state_files.make_private_folder(str(tmp_path / path))
        with pytest.raises(OSError):
            state_files.make_private_folder("")

    @pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777, 0o770])
    def test_folder_that_others_can_write_is_refused(self, tmp_path: Path, mode: int) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        folder.chmod(mode)
        with pytest.raises(PermissionError, match="chmod go-w"):
            state_files.check_private_folder(str(folder))
        with pytest.raises(PermissionError):
            claim_once(str(folder), "a", 1.0)
        assert os.listdir(folder) == []

    @pytest.mark.parametrize("kind", ["folder", "link"])
    def test_folder_of_another_user_is_refused(self, tmp_path: Path, kind: str) -> None:
        folder = tmp_path / "folder"
        if kind == "folder":
            folder.mkdir()
        else:
            (tmp_path / "own").mkdir()
            folder.symlink_to("own")
        try:
            os.chown(folder, 65534, 65534, follow_symlinks=False)
        except PermissionError:
            pytest.skip("only root can change the owner")
        with pytest.raises(PermissionError, match="another user"):
            state_files.check_private_folder(str(folder))

    def test_own_link_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "own").mkdir()
        (tmp_path / "link").symlink_to("own")
        state_files.check_private_folder(str(tmp_path / "link"))

    def test_results_are_not_written_where_others_can_write(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(state_files, "_temp_folder", lambda: str(tmp_path / "temporary"))
        (home / "results").mkdir(parents=True)
        (home / "results").chmod(0o777)
        path = state_files.write_overflow("t", lambda: [b"1"])
        assert path is not None
        assert Path(path).parent == tmp_path / "temporary"


# ------------------------------------------------------------------ clean-up


class TestCleanUp:
    """The state directory is somebody's project."""

    LONG_AGO = 1_000_000_000

    def fill(self, folder: Path, *names: str, content: str = "work") -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / name for name in names]
        for file in files:
            file.write_text(content)
            os.utime(file, (self.LONG_AGO, self.LONG_AGO))
        return files

    def test_results_of_others_are_kept(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state_files, "MAX_OVERFLOW_FILES", 1)
        monkeypatch.setattr(state_files, "MAX_OVERFLOW_BYTES", 1)
        names = [f"run-{number}.csv" for number in range(51)]
        names += ["a.json", "a-0123456789ab.json", "a-0123456789ab.tooli.json.bak", ".tooli.json"]
        names += ["a-0123456789aB.tooli.json", "a-0123456789a.tooli.json", "a.tooli.json"]
        kept = self.fill(home / "results", *names)
        (obsolete,) = self.fill(home / "results", "a-0123456789ab.tooli.json")
        state_files.write_overflow("t", lambda: [b"12"])
        assert all(map(Path.exists, kept))
        assert not obsolete.exists()

    def test_links_are_kept_and_not_followed(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(state_files, "MAX_OVERFLOW_FILES", 1)
        (target,) = self.fill(tmp_path / "project", "a-0123456789ab.tooli.json")
        (home / "results").mkdir(parents=True)
        link = home / "results" / "b-0123456789ab.tooli.json"
        link.symlink_to(target)
        state_files.write_overflow("t", lambda: [b"12"])
        assert link.is_symlink()
        assert target.exists()

    def test_folder_that_is_a_link_is_not_cleaned(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(state_files, "MAX_OVERFLOW_FILES", 1)
        kept = self.fill(tmp_path / "project", "a-0123456789ab.tooli.json")
        home.mkdir()
        (home / "results").symlink_to(tmp_path / "project")
        for _ in range(3):
            state_files.write_overflow("t", lambda: [b"12"])
        assert all(map(Path.exists, kept))

    def test_only_markers_are_deleted(self, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        kept = self.fill(folder, "notes", "as-plan.md", "as-UPPER", "by-me", "used", content="")
        kept += self.fill(folder, "as-plan", "0123456789abcdef", "by-" + "0" * 40)
        obsolete = self.fill(
            folder, "as-a", "abcd-1234.used", "0" * 16, "by-" + "1" * 40, content=""
        )
        state_files._delete_expired_markers(str(folder), 1.0)
        assert all(map(Path.exists, kept))
        assert not any(map(Path.exists, obsolete))

    def test_only_failure_files_are_deleted(self, failures_dir: Path) -> None:
        kept = self.fill(failures_dir, "drums.wav", "as-drums", "a.failures", "as-a.failures.bak")
        obsolete = self.fill(failures_dir, "as-a.failures", "as-b.failures.0123abcd")
        FileFailureHistory().record_failure("s", "t", failure())
        assert all(map(Path.exists, kept))
        assert not any(map(Path.exists, obsolete))

    def test_second_names_and_files_of_others_are_kept(self, tmp_path: Path) -> None:
        kept = self.fill(tmp_path / "folder", "as-a", "as-b", content="")
        os.link(kept[0], tmp_path / "second")
        try:
            os.chown(kept[1], 65534, 65534)
        except PermissionError:
            kept.pop()
        state_files._delete_expired_markers(str(tmp_path / "folder"), 1.0)
        assert all(map(Path.exists, kept))


@pytest.mark.skipif(os.name == "nt", reason="XDG folders")
@pytest.mark.parametrize("path", ["state", "./state", "", "/proc/self/cwd/state"])
def test_relative_xdg_folder_is_not_used(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.delenv("TOOLI_STATE_DIR", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_STATE_HOME", path)
    assert state_files.get_state_dir() == "/home/ada/.local/state/tooli"


@pytest.mark.parametrize("path", ["state", "./state", "/proc/self/cwd/state", "/dev/fd/3/state"])
@pytest.mark.parametrize("variable", ["TOOLI_STATE_DIR", "HOME"])
def test_state_folder_does_not_depend_on_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, variable: str, path: str
) -> None:
    for name in ("TOOLI_STATE_DIR", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, path)
    if os.name == "nt" and variable == "HOME":
        monkeypatch.setenv("USERPROFILE", path)
    with pytest.raises(InputError, match=f"{variable} must be an absolute path") as found:
        state_files.get_state_dir()
    assert found.value.code == "E1011"
