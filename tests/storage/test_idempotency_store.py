"""The idempotency store. Every test runs on SQLite and on Postgres."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tooli.storage import idempotency_store
from tooli.storage.idempotency_postgres import PostgresIdempotencyStore
from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore
from tooli.storage.idempotency_store import (
    AlreadyRunning,
    IdempotencyEntry,
    IdempotencyStore,
    IndeterminateAttempt,
    KeyMismatch,
    KeyStillRunning,
    NewAttempt,
    ScopedKey,
    StoredReplay,
    current_process,
    evaluate_entry,
    is_alive,
    is_running,
)
from tooli.storage.state_files import read_boot_id

STORES = ["sqlite", "postgres"]


@pytest.fixture(params=STORES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The state directory or the URL of an empty store."""
    if request.param == "sqlite":
        yield str(tmp_path / "state")
        return
    import psycopg

    found = request.getfixturevalue("postgres_server")
    with psycopg.connect(found, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS tooli_keys")
    yield found


def open_store(address: str, **more: Any) -> IdempotencyStore:
    if address.startswith("postgresql:"):
        return PostgresIdempotencyStore(address, **more)
    return SqliteIdempotencyStore(address)


@pytest.fixture
def store(address: str) -> Iterator[IdempotencyStore]:
    opened = open_store(address)
    yield opened
    opened.close()


KEY = ScopedKey("shop.pay", "", "k1")


def begin(
    store: IdempotencyStore, key: ScopedKey = KEY, fingerprint: str = "f", can_rerun: bool = False
) -> Any:
    return store.begin(
        key,
        fingerprint,
        can_rerun=can_rerun,
        require_intact=not can_rerun,
        durable=True,
        timeout=10.0,
    )


def test_second_call_replays_first(store: IdempotencyStore) -> None:
    first = begin(store)
    assert isinstance(first, NewAttempt) and abs(first.started_at - time.time()) < 60
    assert store.finish(first.token, "done", b"\x00what\xff")
    again = begin(store)
    assert isinstance(again, StoredReplay)
    assert again.outcome == b"\x00what\xff"
    assert abs(again.started_at - first.started_at) < 0.001


def test_other_arguments_are_a_mismatch(
    store: IdempotencyStore,
) -> None:
    first = begin(store)
    assert isinstance(begin(store, fingerprint="g"), KeyMismatch)
    store.finish(first.token, "done", b"x")
    assert isinstance(begin(store, fingerprint="g"), KeyMismatch)


def test_running_call_is_seen_by_other_processes(store: IdempotencyStore, address: str) -> None:
    begin(store)
    other = open_store(address)
    found = begin(other)
    assert isinstance(found, AlreadyRunning) and found.owner == idempotency_store.current_process()
    assert isinstance(begin(other, can_rerun=True), AlreadyRunning)
    other.close()


def test_keys_are_scoped_by_tool_and_principal(store: IdempotencyStore) -> None:
    keys = [KEY, KEY.replace(tool="shop.buy"), KEY.replace(principal="ann")]
    keys.append(KEY.replace(key="k2"))
    assert all([isinstance(begin(store, key), NewAttempt) for key in keys])


def test_stopped_call_is_indeterminate(
    store: IdempotencyStore,
) -> None:
    first = begin(store)
    store.finish(first.token, "broken", b"why")
    found = begin(store)
    assert isinstance(found, IndeterminateAttempt)
    assert (found.outcome, found.owner) == (b"why", idempotency_store.current_process())
    assert isinstance(begin(store, can_rerun=True), NewAttempt)


def test_late_finish_is_ignored(store: IdempotencyStore) -> None:
    first = begin(store)
    store.finish(first.token, "broken", b"")
    second = begin(store, can_rerun=True)
    assert not store.finish(first.token, "done", b"late")
    assert store.finish(second.token, "done", b"right")
    assert not store.finish(first.token, "done", b"later")
    assert begin(store).outcome == b"right"


def test_released_key_starts_a_new_attempt(store: IdempotencyStore) -> None:
    store.release(begin(store).token)
    assert isinstance(begin(store, fingerprint="other"), NewAttempt)


def test_replaced_attempt_cannot_release_key(store: IdempotencyStore) -> None:
    first = begin(store)
    store.finish(first.token, "broken", b"")
    second = begin(store, can_rerun=True)
    store.release(first.token)
    assert store.finish(second.token, "done", b"x")


def test_entries_are_scoped_by_app(store: IdempotencyStore) -> None:
    keys = [KEY, KEY.replace(tool="shop.buy"), KEY.replace(tool="shopping.buy")]
    for key in (*keys, KEY.replace(tool="shop", key="only")):
        store.finish(begin(store, key).token, "broken", b"")
    listed = list(store.entries("shop", 10))
    assert [entry.scoped_key.tool for entry in listed] == ["shop", "shop.buy", "shop.pay"]
    assert len(list(store.entries("shop", 1))) == 1
    assert store.forget("shop", "k1", "shop.pay") == 1
    store.finish(begin(store).token, "done", b"x")
    assert store.forget("shop", "k1") == 2
    assert store.forget("shop", "k1") == 0
    assert [entry.scoped_key.tool for entry in store.entries("shopping", 9)] == ["shopping.buy"]


def test_unfinished_entries_can_be_listed_alone(store: IdempotencyStore) -> None:
    store.finish(begin(store, KEY.replace(key="lost")).token, "broken", b"")
    begin(store, KEY.replace(key="runs"))
    for number in range(5):
        store.finish(begin(store, KEY.replace(key=f"k{number}")).token, "done", b"x")
    listed = list(store.entries("shop", 3, unfinished_only=True))
    assert [entry.scoped_key.key for entry in listed] == ["runs", "lost"]
    assert len(list(store.entries("shop", 3))) == 3


def test_running_call_is_forgotten_only_if_included(store: IdempotencyStore) -> None:
    token = begin(store).token
    store.finish(begin(store, KEY.replace(tool="shop.buy")).token, "done", b"x")
    with pytest.raises(KeyStillRunning) as caught:
        store.forget("shop", "k1")
    assert caught.value.entry.scoped_key == KEY
    assert isinstance(
        begin(store, KEY.replace(tool="shop.buy")), StoredReplay
    )  # nothing was deleted
    assert isinstance(begin(store), AlreadyRunning)
    assert store.forget("shop", "k1", include_running=True) == 2
    assert not store.finish(token, "done", b"x")


def test_entries_are_kept_for_their_retention_time(
    store: IdempotencyStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.finish(begin(store).token, "done", b"x")
    store.finish(begin(store, KEY.replace(key="open")).token, "broken", b"x")
    _age(address, idempotency_store.RETENTION_SECONDS - 60)
    assert isinstance(begin(store), StoredReplay)
    _age(address, 120)
    assert isinstance(begin(store, fingerprint="other"), NewAttempt)
    assert isinstance(begin(store, KEY.replace(key="open")), IndeterminateAttempt)
    _age(address, idempotency_store.UNFINISHED_RETENTION_SECONDS)
    assert isinstance(begin(store, KEY.replace(key="open")), NewAttempt)


def test_expired_entries_are_purged(store: IdempotencyStore, address: str) -> None:
    for number in range(20):
        store.finish(begin(store, KEY.replace(key=f"old{number}")).token, "done", b"x")
    begin(store, KEY.replace(key="open"))
    _age(address, idempotency_store.RETENTION_SECONDS + 60)
    for number in range(300):  # one in sixteen purges
        begin(store, KEY.replace(key=f"new{number}"))
    left = [entry.scoped_key.key for entry in store.entries("shop", 1000)]
    assert not [key for key in left if key.startswith("old")]
    assert "open" in left


def _age(address: str, seconds: float) -> None:
    """Make all entries older by some seconds."""
    if address.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(address, autocommit=True) as base:
            shift = "- make_interval(secs => %s)"
            base.execute(
                f"UPDATE tooli_keys SET started = started {shift}, ended = ended {shift}",
                (seconds, seconds),
            )
        return
    base = sqlite3.connect(os.path.join(address, "idempotency.db"))
    with base:
        base.execute("UPDATE keys SET started = started - ?, ended = ended - ?", (seconds,) * 2)
    base.close()


# ------------------------------------------------------------------ other processes

BEGIN_PROGRAM = """
import os, signal, sys
from tooli.storage.idempotency_store import ScopedKey
from tooli.storage.idempotency_postgres import PostgresIdempotencyStore
from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore
kind = PostgresIdempotencyStore if "://" in sys.argv[1] else SqliteIdempotencyStore
store = kind(sys.argv[1])
sys.stdin.read()
key = ScopedKey("shop.pay", "", "k1")
found = store.begin(key, "f", can_rerun=False, durable=True, timeout=10.0)
"""
KILLED_PROGRAM = BEGIN_PROGRAM + "os.kill(os.getpid(), signal.SIGKILL)"
RACING_PROGRAM = BEGIN_PROGRAM + "print(type(found).__name__)"


def _run_killed(address: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_PROGRAM, address], stdin=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(
    sys.platform != "linux", reason="needs /proc to read the start time of a process"
)
def test_killed_owner_is_detected(store: IdempotencyStore, address: str) -> None:
    _run_killed(address)
    found = begin(store)
    assert isinstance(found, IndeterminateAttempt)
    assert found.owner != idempotency_store.current_process()
    second = begin(store, can_rerun=True)
    assert isinstance(second, NewAttempt)
    assert isinstance(begin(store), AlreadyRunning)


@pytest.mark.skipif(
    sys.platform != "linux", reason="needs /proc to read the start time of a process"
)
def test_zombie_owner_is_dead(store: IdempotencyStore, address: str) -> None:
    command = [sys.executable, "-c", KILLED_PROGRAM, address]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, cwd=Path(__file__).parents[2]
    ) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # now it is a zombie
        assert isinstance(begin(store), IndeterminateAttempt)
    assert process.returncode == -signal.SIGKILL


def test_owner_in_other_namespace_is_alive_until_lease_expires(
    store: IdempotencyStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = idempotency_store.current_process().partition(":")[0]
    with monkeypatch.context() as patch:
        other_owner = f"{boot}:12345:77:99"
        patch.setattr("tooli.storage.idempotency_store.current_process", lambda: other_owner)
        token = begin(store).token
    assert isinstance(begin(store), AlreadyRunning)
    _expire_leases(address)
    assert isinstance(begin(store), IndeterminateAttempt)
    assert store.finish(token, "done", b"late")
    assert begin(store).outcome == b"late"


def _expire_leases(address: str) -> None:
    if address.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(address, autocommit=True) as base:
            base.execute("UPDATE tooli_keys SET lease = clock_timestamp() - interval '1 second'")
    else:
        _age(address, idempotency_store.OWNER_LEASE_SECONDS + 1)


def test_concurrent_threads_start_one_attempt(store: IdempotencyStore) -> None:
    results: list[Any] = []
    gate = threading.Barrier(8)

    def race() -> None:
        gate.wait()
        results.append(begin(store))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted([type(result).__name__ for result in results]) == ["AlreadyRunning"] * 7 + [
        "NewAttempt"
    ]


def test_concurrent_processes_start_one_attempt(address: str) -> None:
    """Any process may create the table, the file and its journal. None of them fails."""
    command = [sys.executable, "-c", RACING_PROGRAM, address]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, **pipes) for _ in range(8)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    results: list[bytes] = []
    for process in processes:
        with process:
            assert process.stdout is not None
            results.append(process.stdout.read().strip())
    assert results.count(b"NewAttempt") == 1
    assert set(results) <= {b"NewAttempt", b"AlreadyRunning", b"IndeterminateAttempt"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_reconnects(store: IdempotencyStore) -> None:
    begin(store)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = begin(store, KEY.replace(key="child"))
            os.write(writing, type(found).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b"NewAttempt"
    os.close(reading)
    os.waitpid(child, 0)
    assert isinstance(begin(store, KEY.replace(key="parent")), NewAttempt)
    assert isinstance(begin(store, KEY.replace(key="child")), IndeterminateAttempt)


def test_owner_without_boot_id_is_alive_until_lease_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without /proc the boot ID is unknown, so a PID may belong to any machine."""
    idempotency_store._identity_by_pid.clear()
    monkeypatch.setattr(idempotency_store, "read_boot_id", lambda: "")
    monkeypatch.setattr(idempotency_store, "_pid_namespace", lambda: "")
    monkeypatch.setattr(idempotency_store, "_state_and_start_time", lambda _: ("", ""))
    try:
        assert idempotency_store.current_process() == f"::{os.getpid()}:"
        for owner in ("::999999:", f"::{os.getpid()}:"):
            entry = IdempotencyEntry(KEY, "f", "running", owner, "a", 1000.0, lease_expired=False)
            for can_rerun in (False, True):
                assert isinstance(evaluate_entry(entry, "f", can_rerun, 1001.0), AlreadyRunning)
                result = evaluate_entry(entry.replace(lease_expired=True), "f", can_rerun, 1001.0)
                assert result is None if can_rerun else isinstance(result, IndeterminateAttempt)
    finally:
        idempotency_store._identity_by_pid.clear()


# ------------------------------------------------------------------ owners

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")


OLD = 1000.0 + idempotency_store.OWNER_LEASE_SECONDS


def entry_of(owner: str) -> IdempotencyEntry:
    return IdempotencyEntry(KEY, "f", "running", owner, "a", 1000.0)


@pytest.fixture
def _without_proc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    idempotency_store._identity_by_pid.clear()
    monkeypatch.setattr(idempotency_store, "read_proc_file", lambda _: "")
    monkeypatch.setattr(idempotency_store, "read_boot_id", lambda: "")
    monkeypatch.setattr(idempotency_store, "_pid_namespace", lambda: "")
    yield
    idempotency_store._identity_by_pid.clear()


def test_current_process_is_alive() -> None:
    assert is_alive(current_process()) is True
    assert is_running(entry_of(current_process()), OLD)


@linux_only
def test_process_identity_on_linux_has_boot_namespace_pid_and_start() -> None:
    boot, namespace, pid, start = current_process().split(":")
    assert boot == read_boot_id() and boot.isalnum() and namespace.isdigit()
    assert (pid, start.isdigit()) == (str(os.getpid()), True)


@linux_only
def test_child_process_is_alive_until_it_exits() -> None:
    boot, namespace, _, _ = current_process().split(":")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = idempotency_store._state_and_start_time(child.pid)[1]
    owner = f"{boot}:{namespace}:{child.pid}:{start}"
    assert is_alive(owner) is True
    assert is_alive(f"{boot}:{namespace}:{child.pid}:{int(start) + 1}") is False, (
        "the PID was reused"
    )
    assert is_alive(f"{boot}:{namespace}:{child.pid}:") is True
    child.communicate(b"\n")
    assert is_alive(owner) is False
    assert is_alive(f"{boot}:{namespace}:{child.pid}:") is False


@pytest.mark.parametrize("owner", ["other-boot:1:7:9", "", "x", "::abc:", ":::"])
def test_liveness_of_unknown_owner_is_unknown(owner: str) -> None:
    assert is_alive(owner) is None
    assert not is_running(entry_of(owner), 1001.0)


@pytest.mark.usefixtures("_without_proc")
def test_process_identity_without_proc_has_only_pid() -> None:
    assert current_process() == f"::{os.getpid()}:"
    assert is_alive(current_process()) is True
    assert is_alive(f"::{os.getppid()}:") is True
    parent = entry_of(f"::{os.getppid()}:")
    assert is_running(parent, 1001.0) and not is_running(parent, OLD), "the PID may be reused"


@pytest.mark.usefixtures("_without_proc")
@pytest.mark.parametrize(
    ("error", "alive"), [(ProcessLookupError(), False), (PermissionError(), True)]
)
def test_liveness_without_proc_is_checked_with_a_signal(
    monkeypatch: pytest.MonkeyPatch, error: OSError, alive: bool
) -> None:
    def kill(pid: int, signal: int) -> None:
        raise error

    monkeypatch.setattr(os, "kill", kill)
    assert is_alive("::7:") is alive


@pytest.mark.usefixtures("_without_proc")
def test_liveness_is_unknown_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency_store.os, "name", "nt")
    try:
        assert is_alive("::7:") is None
    finally:
        monkeypatch.undo()


def test_unreadable_namespace_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> str:
        raise OSError

    monkeypatch.setattr(os, "readlink", fail)
    assert idempotency_store._pid_namespace() == ""
