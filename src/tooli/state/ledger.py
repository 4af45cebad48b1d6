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

from tooli.contract.record import Record
from tooli.state.owners import is_alive, is_certain, is_of_some_boot, is_of_this_boot

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

KEPT = 48 * 3600.0
"""Seconds for which what became of a call is kept."""
KEPT_OPEN = 30 * 24 * 3600.0
"""Seconds for which a call that nobody settled is kept."""
PATIENCE = 10.0
"""Seconds to wait for other processes, where nothing else is said."""
LEASE = 3600.0
"""Seconds for which an owner that cannot be seen from here is taken to be alive."""
SWEPT = 64
"""Entries that one call clears away at most."""


class Slot(Record):
    """What a key stands for: it belongs to a tool and to whoever calls it."""

    tool: str
    principal: str  # "": anybody
    key: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Where a table has it."""
        return self.tool, self.principal, self.key


class Token(Record):
    """The right to settle an entry, as long as nobody else has taken it over."""

    slot: Slot
    attempt: str
    durable: bool = True
    patience: float = PATIENCE  # how long to wait for other processes, also when it is settled


class New(Record):
    """Nobody has begun: run it, then settle the entry."""

    token: Token
    since: float


class Replay(Record):
    """It has run, and this was kept of it."""

    outcome: bytes
    since: float


class Running(Record):
    """Somebody runs it now."""

    since: float
    owner: str


class Mismatch(Record):
    """The key stands for a call with other arguments."""

    since: float


class Indeterminate(Record):
    """Somebody began it and was stopped; `outcome` is what is known of that."""

    since: float
    owner: str
    outcome: bytes = b""


class Entry(Record):
    """One line of a ledger."""

    slot: Slot
    fingerprint: str
    state: str  # "running" | "done" | "broken"
    owner: str
    attempt: str
    started: float
    outcome: bytes = b""
    ended: float | None = None
    lapsed: bool | None = None  # its lease has run out; None: this ledger gives none


if TYPE_CHECKING:
    Found: TypeAlias = New | Replay | Running | Mismatch | Indeterminate


class Unavailable(Exception):  # noqa: N818
    """A ledger cannot be used; says why, and what to do about it."""

    def __init__(
        self, reason: str, fix: str, *, damaged: str | None = None, busy: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix
        self.busy = busy  # only others are in the way: that may be over in a moment
        self.damaged = damaged  # where the part of it is kept that cannot be read any more


class StillRunning(Exception):  # noqa: N818
    """A key is not to be forgotten: the call that it was made with is running."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.slot.key)
        self.entry = entry


class Ledger:
    """What every store of keys can do. Each method is whole: it happens, or it does not."""

    def begin(
        self,
        slot: Slot,
        fingerprint: str,
        *,
        again: bool,
        durable: bool,
        patience: float,
        whole: bool = True,
    ) -> Found:
        """Enter a call, unless the key is taken; `again` is whether it may be run once more.

        `durable` says whether it must outlast a power cut, `patience` how long to wait for
        other processes, `whole` that a ledger which has lost something will not do.
        """
        raise NotImplementedError

    def finish(self, token: Token, state: str, outcome: bytes) -> bool:
        """Settle an entry; False where somebody else has taken it over meanwhile."""
        raise NotImplementedError

    def release(self, token: Token) -> None:
        """Take an entry back: the call is going to be made once more, from its beginning."""
        raise NotImplementedError

    def entries(self, app: str, most: int, *, unsettled: bool = False) -> Iterator[Entry]:
        """What is kept for an app, the newest first, without what became of it.

        `unsettled`: only calls that are running, or broke off.
        """
        raise NotImplementedError

    def forget(self, app: str, key: str, tool: str | None = None, *, running: bool = False) -> int:
        """Drop a key of an app, or of one tool; how many entries there were.

        Raises StillRunning where one of the calls is, and drops nothing; unless `running`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is open; it is opened again when it is needed."""


def judge(entry: Entry, fingerprint: str, again: bool, now: float) -> Found | None:
    """What an entry means for a call with its key; None says that it may be taken over."""
    kept = KEPT if entry.state == "done" else KEPT_OPEN
    if now - (entry.ended or entry.started) > kept and not is_running(entry, now):
        return None
    if entry.fingerprint != fingerprint:
        return Mismatch(entry.started)
    if entry.state == "done":
        return Replay(entry.outcome, entry.started)
    if is_running(entry, now):
        return Running(entry.started, entry.owner)
    return None if again else Indeterminate(entry.started, entry.owner, entry.outcome)


def is_running(entry: Entry, now: float) -> bool:
    """Whether somebody is at it, as far as can be seen from here."""
    if entry.state != "running":
        return False
    if entry.lapsed is not None and not is_of_some_boot(entry.owner):
        return not entry.lapsed  # its number says nothing, not even whether it is ours
    alive = is_alive(entry.owner)
    if alive is False or (alive is True and is_certain(entry.owner)):
        return alive
    if entry.lapsed is not None:
        return not entry.lapsed
    return is_of_this_boot(entry.owner) and now - entry.started < LEASE


def spare_running(entry: Entry, now: float) -> None:
    """Raise StillRunning where a call is."""
    if is_running(entry, now):
        raise StillRunning(entry)


def new_attempt() -> str:
    """A name that no other attempt has."""
    from os import urandom

    return urandom(12).hex()


_open: dict[tuple[int, str], Ledger] = {}  # by process: a fork has locks and files of its own


def ledger_of(store: str | None) -> Ledger:
    """The ledger at an address; without one, that of the user of this machine."""
    from os import getpid

    if store is not None:
        place = getpid(), store
        if place not in _open:
            from tooli.state.ledger_postgres import PostgresLedger

            _open.setdefault(place, PostgresLedger(store))
        return _open[place]
    from tooli.state.home import state_home

    place = getpid(), state_home()
    if place not in _open:
        from tooli.state.ledger_sqlite import SqliteLedger

        _open.setdefault(place, SqliteLedger(place[1]))
    return _open[place]


_tidied: list[int] = []  # the processes that close their ledgers when they end


def close_at_exit() -> None:
    """Have this process close its ledgers when it ends; a command line does so with its call."""
    from os import getpid

    if getpid() not in _tidied:
        import atexit

        _tidied.append(getpid())
        atexit.register(_close_all)


def _close_all() -> None:
    from os import getpid

    for (process, _), ledger in list(_open.items()):
        if process == getpid():
            ledger.close()
