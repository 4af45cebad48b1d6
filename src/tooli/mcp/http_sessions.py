"""HttpSessions: which caller opened which MCP session over HTTP, and how many each caller has.

    request ─▶ SessionCaller ─▶ HttpSessions.find ─┬▶ session of this caller
                                                   └▶ None: unknown, or of another caller

A session belongs to the principal that opened it. A request of the same principal with fewer
scopes cannot use it, because the stream of a session repeats the results of earlier calls.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Any

from tooli.core.caller_key import caller_key

if TYPE_CHECKING:
    from tooli.serving import Scope

MAX_SESSIONS_PER_CALLER = 100
"""Maximum number of sessions of one caller. A new session ends the one that is idle longest."""

MAX_SESSIONS = 1000
"""Maximum number of sessions of a server process."""

PROTECTED_SESSIONS = 10
"""The limit of the process does not end sessions of callers who have no more than this number."""

IDLE_SECONDS = 1800.0
"""Seconds without a request after which the limit of the process may end any session."""


class SessionCaller:
    """The caller of a request: its principal and scopes, and the key that counts its sessions."""

    __slots__ = ("key", "principal", "scopes", "user")

    def __init__(self, scope: Scope) -> None:
        self.principal: str | None = scope.get("tooli.principal")
        self.scopes: frozenset[str] | None = scope.get("tooli.scopes", frozenset())  # None: all
        self.user: object = scope.get("user")  # set by an application that mounts the server
        client = scope.get("client")
        self.key = caller_key(self.principal, str(client[0]) if client else "")

    def includes_scopes_of(self, session: HttpSession) -> bool:
        """True if the caller has every scope that the session was used with."""
        return self.scopes is None or (session.scopes is not None and self.scopes >= session.scopes)


class HttpSession:
    """One session: its owner, its data, and the number of its open requests."""

    __slots__ = ("data", "is_started", "last_used", "open_requests", "owner", "scopes")

    def __init__(self, owner: SessionCaller) -> None:
        self.owner = owner
        self.data: dict[str, Any] = {}  # `ctx.state`
        self.scopes = owner.scopes
        self.open_requests = 0
        self.is_started = False  # SSE only: the first request was received
        self.last_used = monotonic()


class HttpSessions:
    """The sessions of a server by id, the least recently used first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, HttpSession] = OrderedDict()

    def find(self, session_id: str, caller: SessionCaller) -> HttpSession | None:
        """Return the session if it exists and belongs to the caller."""
        session = self._sessions.get(session_id)
        if (
            session is None
            or session.owner.principal != caller.principal
            or not caller.includes_scopes_of(session)
        ):
            return None
        session.scopes = caller.scopes  # at least the scopes that the session had before
        session.last_used = monotonic()
        self._sessions.move_to_end(session_id)
        return session

    def has_room(self, caller: SessionCaller) -> bool:
        """True if the caller may open a session: it has few, or one of them is idle."""
        own = [item for item in self._sessions.values() if item.owner.key == caller.key]
        if len(own) >= MAX_SESSIONS_PER_CALLER:
            return any([session.open_requests == 0 for session in own])
        return len(self._sessions) < MAX_SESSIONS or self._find_idle() is not None

    def add(self, session_id: str, caller: SessionCaller) -> list[tuple[str, HttpSession]]:
        """Add a session, which has one open request. Return the idle sessions that must end."""
        session = self._sessions[session_id] = HttpSession(caller)
        session.open_requests = 1
        ended: list[tuple[str, HttpSession]] = []
        own_count = sum([item.owner.key == caller.key for item in self._sessions.values()])
        if own_count > MAX_SESSIONS_PER_CALLER:
            ended += self._remove_idle(caller.key)
        if len(self._sessions) > MAX_SESSIONS:
            ended += self._remove_idle(None)
        return ended

    def close_request(self, session_id: str) -> None:
        """Count one open request less of a session, if it has not ended."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.open_requests -= 1
            session.last_used = monotonic()

    def remove(self, session_id: str) -> None:
        """Forget a session that has ended."""
        self._sessions.pop(session_id, None)

    def _remove_idle(self, key: str | None) -> list[tuple[str, HttpSession]]:
        session_id = self._find_idle(key)
        return [] if session_id is None else [(session_id, self._sessions.pop(session_id))]

    def _find_idle(self, key: str | None = None) -> str | None:
        """Return the session of a caller that is idle longest, or None.

        Without a key, it is one of the caller who has most sessions, if these are many, or else
        one that was not used for IDLE_SECONDS.
        """
        idle = [item for item in self._sessions.items() if item[1].open_requests == 0]
        if key is None and idle:
            counts = Counter(session.owner.key for _, session in idle)
            key, count = counts.most_common(1)[0]
            if count <= PROTECTED_SESSIONS:
                oldest = monotonic() - IDLE_SECONDS
                return next((name for name, item in idle if item.last_used < oldest), None)
        return next((name for name, session in idle if session.owner.key == key), None)
