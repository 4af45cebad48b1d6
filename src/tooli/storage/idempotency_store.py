"""Ledgers: which calls with an idempotency key have begun, and what became of them.

    begin ─┬─▶ New: run it ──▶ finish(done: its outcome │ broken: it was stopped) │ release
           ├─▶ Replay: it has run, and this is what it gave
           ├─▶ Mismatch: the key stands for another call
           ├─▶ Running: somebody is at it
           └─▶ Indeterminate: somebody was at it, and is gone

The entry is there before the tool runs, and is settled after it: whoever dies in between
leaves it open, and so nothing runs twice unknown. A ledger does not know what it keeps.
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.storage.process_identity import has_boot_id, is_alive, is_from_this_boot, is_verifiable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

RETENTION_SECONDS = 48 * 3600.0
"""Seconds for which what became of a call is kept."""
UNFINISHED_RETENTION_SECONDS = 30 * 24 * 3600.0
"""Seconds for which a call that nobody settled is kept."""
STORE_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for other processes, where nothing else is said."""
OWNER_LEASE_SECONDS = 3600.0
"""Seconds for which an owner that cannot be seen from here is taken to be alive."""
MAX_PURGED_ENTRIES = 64
"""Entries that one call clears away at most."""


class ScopedKey(Record):
    """What a key stands for: it belongs to a tool and to whoever calls it."""

    tool: str
    principal: str  # "": anybody
    key: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """Where a table has it."""
        return self.tool, self.principal, self.key


class AttemptToken(Record):
    """The right to settle an entry, as long as nobody else has taken it over."""

    scoped_key: ScopedKey
    attempt: str
    durable: bool = True
    timeout: float = (
        STORE_TIMEOUT_SECONDS  # how long to wait for other processes, also when it is settled
    )


class NewAttempt(Record):
    """Nobody has begun: run it, then settle the entry."""

    token: AttemptToken
    started_at: float


class StoredReplay(Record):
    """It has run, and this was kept of it."""

    outcome: bytes
    started_at: float


class AlreadyRunning(Record):
    """Somebody runs it now."""

    started_at: float
    owner: str


class KeyMismatch(Record):
    """The key stands for a call with other arguments."""

    started_at: float


class IndeterminateAttempt(Record):
    """Somebody began it and was stopped; `outcome` is what is known of that."""

    started_at: float
    owner: str
    outcome: bytes = b""


class IdempotencyEntry(Record):
    """One line of a ledger."""

    scoped_key: ScopedKey
    fingerprint: str
    state: str  # "running" | "done" | "broken"
    owner: str
    attempt: str
    started: float
    outcome: bytes = b""
    ended: float | None = None
    lease_expired: bool | None = None  # its lease has run out; None: this ledger gives none


if TYPE_CHECKING:
    BeginResult: TypeAlias = (
        NewAttempt | StoredReplay | AlreadyRunning | KeyMismatch | IndeterminateAttempt
    )


class StoreUnavailable(Exception):  # noqa: N818
    """A ledger cannot be used; says why, and what to do about it."""

    def __init__(
        self, reason: str, fix: str, *, damaged_path: str | None = None, is_busy: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self.is_busy = is_busy  # only others are in the way: that may be over in a moment
        self.damaged_path = (
            damaged_path  # where the part of it is kept that cannot be read any more
        )


class KeyStillRunning(Exception):  # noqa: N818
    """A key is not to be forgotten: the call that it was made with is running."""

    def __init__(self, entry: IdempotencyEntry) -> None:
        super().__init__(entry.scoped_key.key)
        self.entry = entry


class IdempotencyStore:
    """What every store of keys can do. Each method is whole: it happens, or it does not."""

    def begin(
        self,
        scoped_key: ScopedKey,
        fingerprint: str,
        *,
        can_rerun: bool,
        durable: bool,
        timeout: float,
        require_intact: bool = True,
    ) -> BeginResult:
        """Enter a call, unless the key is taken; `again` is whether it may be run once more.

        `durable` says whether it must outlast a power cut, `patience` how long to wait for
        other processes, `whole` that a ledger which has lost something will not do.
        """
        raise NotImplementedError

    def finish(self, token: AttemptToken, state: str, outcome: bytes) -> bool:
        """Settle an entry; False where somebody else has taken it over meanwhile."""
        raise NotImplementedError

    def release(self, token: AttemptToken) -> None:
        """Take an entry back: the call is going to be made once more, from its beginning."""
        raise NotImplementedError

    def entries(
        self, app: str, limit: int, *, unfinished_only: bool = False
    ) -> Iterator[IdempotencyEntry]:
        """What is kept for an app, the newest first, without what became of it.

        `unsettled`: only calls that are running, or broke off.
        """
        raise NotImplementedError

    def forget(
        self, app: str, key: str, tool: str | None = None, *, include_running: bool = False
    ) -> int:
        """Drop a key of an app, or of one tool; how many entries there were.

        Raises StillRunning where one of the calls is, and drops nothing; unless `running`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is open; it is opened again when it is needed."""


def evaluate_entry(
    entry: IdempotencyEntry, fingerprint: str, can_rerun: bool, now: float
) -> BeginResult | None:
    """What an entry means for a call with its key; None says that it may be taken over."""
    retention = RETENTION_SECONDS if entry.state == "done" else UNFINISHED_RETENTION_SECONDS
    if now - (entry.ended or entry.started) > retention and not is_running(entry, now):
        return None
    if entry.fingerprint != fingerprint:
        return KeyMismatch(entry.started)
    if entry.state == "done":
        return StoredReplay(entry.outcome, entry.started)
    if is_running(entry, now):
        return AlreadyRunning(entry.started, entry.owner)
    return None if can_rerun else IndeterminateAttempt(entry.started, entry.owner, entry.outcome)


def is_running(entry: IdempotencyEntry, now: float) -> bool:
    """Whether somebody is at it, as far as can be seen from here."""
    if entry.state != "running":
        return False
    if entry.lease_expired is not None and not has_boot_id(entry.owner):
        return not entry.lease_expired  # its number says nothing, not even whether it is ours
    alive = is_alive(entry.owner)
    if alive is False or (alive is True and is_verifiable(entry.owner)):
        return alive
    if entry.lease_expired is not None:
        return not entry.lease_expired
    return is_from_this_boot(entry.owner) and now - entry.started < OWNER_LEASE_SECONDS


def check_not_running(entry: IdempotencyEntry, now: float) -> None:
    """Raise StillRunning where a call is."""
    if is_running(entry, now):
        raise KeyStillRunning(entry)


def generate_attempt_id() -> str:
    """A name that no other attempt has."""
    from os import urandom

    return urandom(12).hex()


_open_stores: dict[
    tuple[int, str], IdempotencyStore
] = {}  # by process: a fork has locks and files of its own


def get_idempotency_store(url: str | None) -> IdempotencyStore:
    """The ledger at an address; without one, that of the user of this machine."""
    from os import getpid

    if url is not None:
        cache_key = getpid(), url
        if cache_key not in _open_stores:
            from tooli.storage.idempotency_postgres import PostgresIdempotencyStore

            _open_stores.setdefault(cache_key, PostgresIdempotencyStore(url))
        return _open_stores[cache_key]
    from tooli.storage.state_files import get_state_dir

    cache_key = getpid(), get_state_dir()
    if cache_key not in _open_stores:
        from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore

        _open_stores.setdefault(cache_key, SqliteIdempotencyStore(cache_key[1]))
    return _open_stores[cache_key]


_pids_with_exit_hook: list[int] = []  # the processes that close their ledgers when they end


def close_at_exit() -> None:
    """Have this process close its ledgers when it ends; a command line does so with its call."""
    from os import getpid

    if getpid() not in _pids_with_exit_hook:
        import atexit

        _pids_with_exit_hook.append(getpid())
        atexit.register(_close_all)


def _close_all() -> None:
    from os import getpid

    for (pid, _), store in list(_open_stores.items()):
        if pid == getpid():
            store.close()
