"""Shared memory of the app is private in the sandbox."""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest
from tests.execution.sandbox.sandboxed import sandboxed

from tooli import Tooli
from tooli.execution.sandbox import shared_memory
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.execution.sandbox.syscalls import SandboxUnavailable

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

_MAPS = b"""\
7f00-8f00 rw-s 00001000 fd:01 77                         /tmp/a b\\012c
8f00-9f00 r--s 00000000 00:05 78                         /dev/zero (deleted)
9f00-af00 rw-p 00000000 fd:01 77                         /tmp/private
af00-bf00 r-xs 00000000 00:00 0
"""


def test_parse_shared_mappings() -> None:
    found = list(shared_memory.parse_shared_mappings(_MAPS.splitlines(keepends=True)))
    assert [(one.start, one.size, one.protection, one.path) for one in found] == [
        (0x7F00, 0x1000, 3, "/tmp/a b\nc"),
        (0x8F00, 0x1000, 1, "/dev/zero (deleted)"),
        (0xAF00, 0x1000, 5, ""),
    ]
    assert (found[0].offset, found[0].device, found[0].inode) == (0x1000, os.makedev(0xFD, 1), 77)


def map_file(path: Path, size: int = 8192, **options: int) -> mmap.mmap:
    with path.open("w+b") as file:
        file.write(b"a" * min(size, 8192))
        file.truncate(size)
        file.flush()
        return mmap.mmap(file.fileno(), 0, **options)


def change_and_read(memory: mmap.mmap) -> Callable[[], str]:
    """Return a function that changes the first bytes and returns what is there then."""

    def work() -> str:
        memory[:3] = b"new"
        return memory[:6].decode()

    return work


def test_mapped_file_does_not_change(tmp_path: Path) -> None:
    with map_file(tmp_path / "file") as memory:
        assert sandboxed([], change_and_read(memory)).value == "newaaa"
        assert memory[:6] == b"aaaaaa"
    assert (tmp_path / "file").read_bytes() == b"a" * 8192


def test_read_only_mapping_cannot_be_made_writable(tmp_path: Path) -> None:
    import ctypes

    with map_file(tmp_path / "file") as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        libc = ctypes.CDLL(None)
        libc.mprotect(ctypes.c_void_p(address), 8192, 1)

        def work() -> int:
            result = libc.mprotect(ctypes.c_void_p(address), 8192, 3)
            ctypes.memmove(address, b"new", 3)
            return result

        assert sandboxed([], work).value == 0
        assert (tmp_path / "file").read_bytes() == b"a" * 8192


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_anonymous_memory_does_not_change(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(shared_memory, "MAX_COPIED_BYTES", limit)
    with mmap.mmap(-1, 4096) as memory:
        memory[:6] = b"aaaaaa"
        found = sandboxed([], change_and_read(memory))
        if limit:
            assert found.value == "newaaa"
        else:  # it has no file, so it is inaccessible
            assert found.status == 11
        assert memory[:6] == b"aaaaaa"


def test_large_file_is_mapped_privately(tmp_path: Path) -> None:
    size = 1 << 30  # a sparse file
    with map_file(tmp_path / "large", size) as memory:
        assert sandboxed([], change_and_read(memory)).value == "newaaa"
        assert memory[:6] == b"aaaaaa"


@pytest.mark.parametrize("way", ["replaced", "removed"])
def test_large_file_that_is_gone_is_inaccessible(tmp_path: Path, way: str) -> None:
    with map_file(tmp_path / "large", 1 << 30) as memory:
        if way == "replaced":
            (tmp_path / "other").write_bytes(b"b" * 8192)
            os.replace(tmp_path / "other", tmp_path / "large")
        else:
            (tmp_path / "large").unlink()
        assert sandboxed([], lambda: memory[:3].decode()).status == 11


def test_file_that_is_gone_is_copied(tmp_path: Path) -> None:
    with map_file(tmp_path / "file", 2 << 20) as memory:
        (tmp_path / "file").unlink()
        assert sandboxed([], change_and_read(memory)).value == "newaaa"
        assert memory[:6] == b"aaaaaa"


def test_truncated_file_reads_as_zeros(tmp_path: Path) -> None:
    with map_file(tmp_path / "file", 3 * mmap.PAGESIZE) as memory:
        os.truncate(tmp_path / "file", 100)
        found = sandboxed([], lambda: [memory[0], memory[2 * mmap.PAGESIZE]])
        assert found.value == [ord("a"), 0]


def test_multiprocessing_memory_does_not_change() -> None:
    memory = SharedMemory(create=True, size=4096)
    try:
        assert sandboxed([], lambda: memory.buf.__setitem__(0, 7)).error is None
        assert memory.buf[0] == 0
    finally:
        memory.close()
        memory.unlink()


def test_multiprocessing_value_and_lock_do_not_change() -> None:
    number = multiprocessing.get_context("fork").Value("i", 5)

    def work() -> int:
        number.get_lock().acquire()
        number.value = 6
        return int(number.value)

    assert sandboxed([], work).value == 6
    assert number.get_lock().acquire(timeout=0) and number.value == 5


def test_sqlite_index_does_not_change(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "data.db")) as base:
        base.execute("pragma journal_mode = wal")
        base.execute("create table rows (a)")
        base.execute("insert into rows values (1)")
        base.commit()
        before = (tmp_path / "data.db-shm").read_bytes()

        def work() -> int:
            import ctypes

            with open("/proc/self/maps", "rb") as file:
                lines = [line for line in file if line.rstrip().endswith(b"data.db-shm")]
            for line in lines:
                start, end = [int(part, 16) for part in line.split()[0].split(b"-")]
                ctypes.memset(start, 0, end - start)
            return len(lines)

        sandboxed(["fs:read:/proc"], work)
        assert (tmp_path / "data.db-shm").read_bytes() == before
        assert base.execute("select a from rows").fetchall() == [(1,)]


def test_no_shared_memory_is_left_in_an_isolated_command(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(MAPPED_APP)
    (tmp_path / "file").write_bytes(b"a" * 4096)
    done = subprocess.run(
        [sys.executable, program, "maps", "--json"], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert json.loads(done.stdout)["result"] == [], done
    assert (tmp_path / "file").read_bytes() == b"a" * 4096


MAPPED_APP = """
import mmap
from tooli import Tooli

app = Tooli("mapped")
anonymous = mmap.mmap(-1, 4096)
with open("file", "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)


@app.callback()
def main() -> None:
    pass


@app.command(isolation="required", capabilities=["fs:read:/proc"])
def maps() -> list[str]:
    memory[:3] = b"new"
    with open("/proc/self/maps") as file:
        return [line for line in file if line.split()[1][3] == "s"]


app()
"""


def test_unreadable_list_of_mappings_refuses_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError("not permitted")

    monkeypatch.setattr(shared_memory, "open", fail, raising=False)
    with pytest.raises(SandboxUnavailable, match="maps"):
        shared_memory.make_memory_private()


def test_memory_that_cannot_be_replaced_refuses_the_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> int:
        raise OSError(12, "no memory")

    monkeypatch.setattr(shared_memory, "syscall", fail)
    with mmap.mmap(-1, 4096):
        with pytest.raises(SandboxUnavailable, match="no memory"):
            shared_memory.make_memory_private()


def test_shared_memory_that_is_left_refuses_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_replace_by_copy", lambda mapping: None)
    with mmap.mmap(-1, 4096):
        with pytest.raises(SandboxUnavailable, match="still"):
            shared_memory.make_memory_private()


def test_command_with_a_key_runs_once_if_it_damages_mapped_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "log").touch()
    app = Tooli("keyed")

    @app.command(isolation="required", capabilities=["fs:read:/proc", f"fs:write:{tmp_path}/log"])
    def pay() -> int:
        import ctypes

        with (tmp_path / "log").open("a") as file:
            file.write("paid\n")
        damaged = 0
        for line in Path("/proc/self/maps").read_text().splitlines():
            if line.endswith("-shm"):  # the index of the store of keys
                start, end = [int(part, 16) for part in line.split()[0].split("-")]
                ctypes.memset(start, 0, end - start)
                damaged += 1
        return damaged

    first = app.call("pay", idempotency_key="k")
    second = app.call("pay", idempotency_key="k")
    assert first.result == second.result == 0
    assert (tmp_path / "log").read_text() == "paid\n"
