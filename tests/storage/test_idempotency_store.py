"""Both ledgers, held to the same promises."""

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

from tooli.storage import idempotency_store as ledgers
from tooli.storage import process_identity
from tooli.storage.idempotency_postgres import PostgresIdempotencyStore, redact_password
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
    StoreUnavailable,
    evaluate_entry,
)

STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]


@pytest.fixture(params=STORES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty ledger is kept."""
    if request.param == "sqlite":
        yield str(tmp_path / "state")
        return
    import psycopg

    found = request.getfixturevalue("postgres_server")
    with psycopg.connect(found, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS tooli_keys")
    yield found


def opened(address: str, **more: Any) -> IdempotencyStore:
    if address.startswith("postgresql:"):
        return PostgresIdempotencyStore(address, **more)
    return SqliteIdempotencyStore(address)


@pytest.fixture
def ledger(address: str) -> Iterator[IdempotencyStore]:
    made = opened(address)
    yield made
    made.close()


SLOT = ScopedKey("shop.pay", "", "k1")


def begin(
    ledger: IdempotencyStore, slot: ScopedKey = SLOT, print_: str = "f", can_rerun: bool = False
) -> Any:
    return ledger.begin(
        slot, print_, can_rerun=can_rerun, require_intact=not can_rerun, durable=True, timeout=10.0
    )


def test_the_first_call_is_new_and_the_next_gets_what_it_gave(ledger: IdempotencyStore) -> None:
    first = begin(ledger)
    assert isinstance(first, NewAttempt) and abs(first.started_at - time.time()) < 60
    assert ledger.finish(first.token, "done", b"\x00what\xff")
    again = begin(ledger)
    assert isinstance(again, StoredReplay)
    assert again.outcome == b"\x00what\xff"
    assert abs(again.started_at - first.started_at) < 0.001


def test_other_arguments_are_a_mismatch_whatever_became_of_the_first(
    ledger: IdempotencyStore,
) -> None:
    first = begin(ledger)
    assert isinstance(begin(ledger, print_="g"), KeyMismatch)
    ledger.finish(first.token, "done", b"x")
    assert isinstance(begin(ledger, print_="g"), KeyMismatch)


def test_a_call_that_runs_is_running_for_everybody(ledger: IdempotencyStore, address: str) -> None:
    begin(ledger)
    other = opened(address)
    found = begin(other)
    assert isinstance(found, AlreadyRunning) and found.owner == process_identity.current_process()
    assert isinstance(begin(other, can_rerun=True), AlreadyRunning)
    other.close()


def test_tools_principals_and_keys_are_kept_apart(ledger: IdempotencyStore) -> None:
    slots = [SLOT, SLOT.replace(tool="shop.buy"), SLOT.replace(principal="ann")]
    slots.append(SLOT.replace(key="k2"))
    assert all([isinstance(begin(ledger, slot), NewAttempt) for slot in slots])


def test_what_was_stopped_is_indeterminate_unless_it_may_run_again(
    ledger: IdempotencyStore,
) -> None:
    first = begin(ledger)
    ledger.finish(first.token, "broken", b"why")
    found = begin(ledger)
    assert isinstance(found, IndeterminateAttempt)
    assert (found.outcome, found.owner) == (b"why", process_identity.current_process())
    assert isinstance(begin(ledger, can_rerun=True), NewAttempt)


def test_a_late_finisher_does_not_overwrite(ledger: IdempotencyStore) -> None:
    first = begin(ledger)
    ledger.finish(first.token, "broken", b"")
    second = begin(ledger, can_rerun=True)
    assert not ledger.finish(first.token, "done", b"late")
    assert ledger.finish(second.token, "done", b"right")
    assert not ledger.finish(first.token, "done", b"later")
    assert begin(ledger).outcome == b"right"


def test_what_was_released_begins_anew(ledger: IdempotencyStore) -> None:
    ledger.release(begin(ledger).token)
    assert isinstance(begin(ledger, print_="other"), NewAttempt)


def test_who_was_taken_over_cannot_release(ledger: IdempotencyStore) -> None:
    first = begin(ledger)
    ledger.finish(first.token, "broken", b"")
    second = begin(ledger, can_rerun=True)
    ledger.release(first.token)
    assert ledger.finish(second.token, "done", b"x")


def test_entries_are_listed_and_forgotten_by_app(ledger: IdempotencyStore) -> None:
    slots = [SLOT, SLOT.replace(tool="shop.buy"), SLOT.replace(tool="shopping.buy")]
    for slot in (*slots, SLOT.replace(tool="shop", key="only")):
        ledger.finish(begin(ledger, slot).token, "broken", b"")
    listed = list(ledger.entries("shop", 10))
    assert [entry.scoped_key.tool for entry in listed] == ["shop", "shop.buy", "shop.pay"]
    assert len(list(ledger.entries("shop", 1))) == 1
    assert ledger.forget("shop", "k1", "shop.pay") == 1
    ledger.finish(begin(ledger).token, "done", b"x")
    assert ledger.forget("shop", "k1") == 2
    assert ledger.forget("shop", "k1") == 0
    assert [entry.scoped_key.tool for entry in ledger.entries("shopping", 9)] == ["shopping.buy"]


def test_open_ones_are_found_behind_any_number_of_settled_ones(ledger: IdempotencyStore) -> None:
    ledger.finish(begin(ledger, SLOT.replace(key="lost")).token, "broken", b"")
    begin(ledger, SLOT.replace(key="runs"))
    for number in range(5):
        ledger.finish(begin(ledger, SLOT.replace(key=f"k{number}")).token, "done", b"x")
    listed = list(ledger.entries("shop", 3, unfinished_only=True))
    assert [entry.scoped_key.key for entry in listed] == ["runs", "lost"]
    assert len(list(ledger.entries("shop", 3))) == 3


def test_a_running_call_is_not_forgotten_unless_that_is_said(ledger: IdempotencyStore) -> None:
    token = begin(ledger).token
    ledger.finish(begin(ledger, SLOT.replace(tool="shop.buy")).token, "done", b"x")
    with pytest.raises(KeyStillRunning) as caught:
        ledger.forget("shop", "k1")
    assert caught.value.entry.scoped_key == SLOT
    assert isinstance(begin(ledger, SLOT.replace(tool="shop.buy")), StoredReplay)  # all, or nothing
    assert isinstance(begin(ledger), AlreadyRunning)
    assert ledger.forget("shop", "k1", include_running=True) == 2
    assert not ledger.finish(token, "done", b"x")


def test_what_is_old_is_forgotten_and_what_is_open_is_kept_longer(
    ledger: IdempotencyStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.finish(begin(ledger).token, "done", b"x")
    ledger.finish(begin(ledger, SLOT.replace(key="open")).token, "broken", b"x")
    _age(address, ledgers.RETENTION_SECONDS - 60)
    assert isinstance(begin(ledger), StoredReplay)
    _age(address, 120)
    assert isinstance(begin(ledger, print_="other"), NewAttempt)
    assert isinstance(begin(ledger, SLOT.replace(key="open")), IndeterminateAttempt)
    _age(address, ledgers.UNFINISHED_RETENTION_SECONDS)
    assert isinstance(begin(ledger, SLOT.replace(key="open")), NewAttempt)


def test_old_entries_are_swept_away(ledger: IdempotencyStore, address: str) -> None:
    for number in range(20):
        ledger.finish(begin(ledger, SLOT.replace(key=f"old{number}")).token, "done", b"x")
    begin(ledger, SLOT.replace(key="open"))
    _age(address, ledgers.RETENTION_SECONDS + 60)
    for number in range(300):  # Postgres sweeps now and then
        begin(ledger, SLOT.replace(key=f"new{number}"))
    left = [entry.scoped_key.key for entry in ledger.entries("shop", 1000)]
    assert not [key for key in left if key.startswith("old")]
    assert "open" in left


def _age(address: str, seconds: float) -> None:
    """Make all entries older."""
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

OPENING = """
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
DYING = OPENING + "os.kill(os.getpid(), signal.SIGKILL)"
RACING = OPENING + "print(type(found).__name__)"


def _die(address: str) -> None:
    done = subprocess.run([sys.executable, "-c", DYING, address], stdin=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process was started")
def test_a_killed_owner_is_found_out_at_once(ledger: IdempotencyStore, address: str) -> None:
    _die(address)
    found = begin(ledger)
    assert isinstance(found, IndeterminateAttempt)
    assert found.owner != process_identity.current_process()
    taken = begin(ledger, can_rerun=True)
    assert isinstance(taken, NewAttempt)
    assert isinstance(begin(ledger), AlreadyRunning)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process was started")
def test_a_killed_owner_that_nobody_has_buried_is_dead(
    ledger: IdempotencyStore, address: str
) -> None:
    words = [sys.executable, "-c", DYING, address]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, cwd=Path(__file__).parents[2]
    ) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie from now on
        assert isinstance(begin(ledger), IndeterminateAttempt)
    assert process.returncode == -signal.SIGKILL


def test_an_owner_of_another_namespace_is_believed_for_the_time_of_a_lease(
    ledger: IdempotencyStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = process_identity.current_process().partition(":")[0]
    with monkeypatch.context() as patch:
        elsewhere = f"{boot}:12345:77:99"
        patch.setattr("tooli.storage.idempotency_store.current_process", lambda: elsewhere)
        token = begin(ledger).token
    assert isinstance(begin(ledger), AlreadyRunning)
    _let_lapse(address)
    assert isinstance(begin(ledger), IndeterminateAttempt)
    assert ledger.finish(token, "done", b"it lives")  # after all
    assert begin(ledger).outcome == b"it lives"


def _let_lapse(address: str) -> None:
    if address.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(address, autocommit=True) as base:
            base.execute("UPDATE tooli_keys SET lease = clock_timestamp() - interval '1 second'")
    else:
        _age(address, ledgers.OWNER_LEASE_SECONDS + 1)


def test_of_many_threads_one_is_new(ledger: IdempotencyStore) -> None:
    found: list[Any] = []
    gate = threading.Barrier(8)

    def race() -> None:
        gate.wait()
        found.append(begin(ledger))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted([type(one).__name__ for one in found]) == ["AlreadyRunning"] * 7 + ["NewAttempt"]


def test_many_processes_may_come_first(address: str) -> None:
    """The table, the file and its journal are made by whoever comes; nobody fails over it."""
    words = [sys.executable, "-c", RACING, address]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(words, **pipes) for _ in range(8)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    said: list[bytes] = []
    for process in processes:
        with process:
            assert process.stdout is not None
            said.append(process.stdout.read().strip())
    assert said.count(b"NewAttempt") == 1
    assert set(said) <= {b"NewAttempt", b"AlreadyRunning", b"IndeterminateAttempt"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_opens_its_own(ledger: IdempotencyStore) -> None:
    begin(ledger)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = begin(ledger, SLOT.replace(key="child"))
            os.write(writing, type(found).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b"NewAttempt"
    os.close(reading)
    os.waitpid(child, 0)
    assert isinstance(begin(ledger, SLOT.replace(key="parent")), NewAttempt)
    assert isinstance(begin(ledger, SLOT.replace(key="child")), IndeterminateAttempt)


def test_where_no_machine_has_a_name_only_the_lease_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without /proc a number may be that of a process on any machine, ours as well."""
    process_identity._identity_by_pid.clear()
    monkeypatch.setattr(process_identity, "read_boot_id", lambda: "")
    monkeypatch.setattr(process_identity, "_pid_namespace", lambda: "")
    monkeypatch.setattr(process_identity, "_state_and_start_time", lambda _: ("", ""))
    try:
        assert process_identity.current_process() == f"::{os.getpid()}:"
        for owner in ("::999999:", f"::{os.getpid()}:"):
            entry = IdempotencyEntry(SLOT, "f", "running", owner, "a", 1000.0, lease_expired=False)
            for again in (False, True):
                assert isinstance(evaluate_entry(entry, "f", again, 1001.0), AlreadyRunning)
                gone = evaluate_entry(entry.replace(lease_expired=True), "f", again, 1001.0)
                assert gone is None if again else isinstance(gone, IndeterminateAttempt)
    finally:
        process_identity._identity_by_pid.clear()


# ------------------------------------------------------------------ SQLite alone


def test_only_its_user_reads_the_database(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "state"
    ledger = SqliteIdempotencyStore(str(home))
    before = os.umask(0)
    try:
        begin(ledger)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()}
    assert len(modes) == 3 and set(modes.values()) == {0o600}
    assert home.stat().st_mode & 0o777 == 0o700
    ledger.close()


def test_what_must_last_is_synced(tmp_path: Path) -> None:
    ledger = SqliteIdempotencyStore(str(tmp_path))
    begin(ledger)
    assert ledger._connection is not None
    assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    ledger.begin(SLOT.replace(key="r"), "f", can_rerun=True, durable=False, timeout=1.0)
    assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (1,)
    ledger.close()


@pytest.mark.parametrize("kind", ["noise", "torn"])
def test_a_damaged_database_is_set_aside_and_not_forgotten(tmp_path: Path, kind: str) -> None:
    ledger = SqliteIdempotencyStore(str(tmp_path))
    for number in range(50):
        token = begin(ledger, SLOT.replace(key=f"k{number}")).token
        ledger.finish(token, "done", b"x" * 3000)
    ledger.close()
    data = bytearray(Path(ledger.path).read_bytes())
    if kind == "noise":
        data[:4096] = b"no database at all" + b"\0" * 4078
    else:
        data[4096:] = os.urandom(len(data) - 4096)
    Path(ledger.path).write_bytes(data)
    with pytest.raises(StoreUnavailable) as caught:
        begin(ledger)
    aside = caught.value.damaged_path
    assert aside is not None and Path(aside).read_bytes() == data
    assert aside in caught.value.fix
    with pytest.raises(
        StoreUnavailable
    ) as caught:  # the new one knows nothing of the old one's keys
        begin(ledger)
    assert caught.value.damaged_path == aside
    assert isinstance(begin(ledger, can_rerun=True), NewAttempt)
    os.unlink(aside)
    assert isinstance(begin(ledger, SLOT.replace(key="k7")), NewAttempt)
    ledger.close()


def test_a_database_in_the_place_of_the_old_one_is_noticed(tmp_path: Path) -> None:
    ledger = SqliteIdempotencyStore(str(tmp_path))
    begin(ledger)
    for path in tmp_path.iterdir():
        path.unlink()
    assert isinstance(begin(ledger), NewAttempt)
    assert (tmp_path / "idempotency.db").exists()
    ledger.close()


def test_a_database_of_another_version_is_left_alone(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "idempotency.db")
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(StoreUnavailable, match="another version"):
        begin(SqliteIdempotencyStore(str(tmp_path)))


def test_a_lock_that_is_never_given_up_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    ledger = SqliteIdempotencyStore(str(tmp_path))
    begin(ledger, SLOT.replace(key="first"))
    base = sqlite3.connect(ledger.path, isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="in use"):
        ledger.begin(SLOT, "f", can_rerun=False, durable=True, timeout=0.2)
    base.execute("ROLLBACK")
    base.close()
    assert isinstance(begin(ledger), NewAttempt)
    ledger.close()


# ------------------------------------------------------------------ Postgres alone


@pytest.mark.xdist_group("postgres")
def test_a_lease_is_renewed_while_the_call_runs(postgres_server: str) -> None:
    import psycopg

    ledger = PostgresIdempotencyStore(postgres_server, lease=0.6)
    slot = SLOT.replace(key=os.urandom(4).hex())
    token = begin(ledger, slot).token
    with psycopg.connect(postgres_server, autocommit=True) as base:
        leases: set[Any] = set()
        while len(leases) < 4:
            leases |= set(
                base.execute("SELECT lease FROM tooli_keys WHERE key = %s", (slot.key,)).fetchall()
            )
        beating = ledger._renewal_thread
        assert ledger.finish(token, "done", b"x")
    beating.join(10)
    assert not beating.is_alive()
    ledger.close()


def test_who_enters_while_the_leases_thread_ends_is_renewed_too() -> None:
    ledger = PostgresIdempotencyStore("postgresql://127.0.0.1:1/none", lease=0.003)
    renewed, wait = threading.Event(), 60
    ledger._execute = lambda work, patience: renewed.set()  # type: ignore[method-assign]

    class Held(set[str]):
        """Empty when it is looked at; just then another thread enters its call."""

        entering: threading.Thread | None = None

        def __iter__(self) -> Iterator[str]:
            found = list(set.__iter__(self))
            if not found and self.entering is None:
                entering = threading.Thread(target=ledger._start_lease, args=("second",))
                entering.start()
                self.entering = entering
                while "second" not in self and not ledger._renewal_lock.locked():
                    pass
            return iter(found)

    held = ledger._leased_attempts = Held()
    ledger._start_lease("first")
    held.discard("first")
    while held.entering is None:
        threading.Event().wait(0.001)
    held.entering.join(wait)
    renewed.clear()
    assert renewed.wait(wait)
    beating = ledger._renewal_thread
    held.discard("second")
    beating.join(wait)
    assert not beating.is_alive()


def test_a_network_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    asked: list[dict[str, Any]] = []

    def connect(address: str, **said: Any) -> None:
        asked.append(said)
        raise psycopg.OperationalError("no")

    monkeypatch.setattr(psycopg, "connect", connect)
    for more in ("", "?tcp_user_timeout=500&connect_timeout=3"):
        with pytest.raises(StoreUnavailable):
            begin(PostgresIdempotencyStore(f"postgresql://127.0.0.1:1/none{more}"))
    assert asked[0]["connect_timeout"] == "10" and asked[0]["tcp_user_timeout"] == "10000"
    assert asked[1]["keepalives"] == asked[0]["keepalives"] == "1"
    assert not {"connect_timeout", "tcp_user_timeout"} & asked[1].keys()


@pytest.mark.xdist_group("postgres")
def test_a_connection_that_was_cut_is_made_anew(postgres_server: str) -> None:
    import psycopg

    ledger = PostgresIdempotencyStore(postgres_server)
    slot = SLOT.replace(key=os.urandom(4).hex())
    token = begin(ledger, slot).token
    with psycopg.connect(postgres_server, autocommit=True) as base:
        cut = "SELECT pg_terminate_backend(%s)"
        base.execute(cut, (ledger._connection.info.backend_pid,))
        assert ledger.finish(token, "done", b"x")
        base.execute(cut, (ledger._connection.info.backend_pid,))
    assert isinstance(begin(ledger, slot), StoredReplay)
    ledger.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://tooli:pa%24word@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=tooli&password=pa%24word",
        "postgresql://tooli:pa%24word@[bad/db",
        "postgresql://tooli:pa%24word@127.0.0.1:1/db?nonsense=1",
    ],
)
def test_a_server_that_is_not_there_is_said_without_the_password(address: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        begin(PostgresIdempotencyStore(address))
    told = f"{caught.value.reason} {caught.value.fix} {caught.value.__cause__}"
    assert "pa%24word" not in told and "pa$word" not in told
    assert caught.value.reason.startswith("The idempotency store cannot be used: ")


def test_a_password_in_a_message_is_taken_out() -> None:
    address = "postgresql://u:s%40crt@h/db?sslpassword=hush"
    said = redact_password(f"bad {address}: s@crt s%40crt hush", address)
    assert said == "bad postgresql://u:…@h/db?sslpassword=…: … … …"


def test_without_psycopg_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnavailable) as caught:
        begin(PostgresIdempotencyStore("postgresql://h/db"))
    assert "pip install 'tooli[postgres]'" in caught.value.fix
