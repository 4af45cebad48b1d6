"""News: what changes in an app while it is served, told to every client that wants to know.

app.command(…), app.announce(uri), in any thread
    └─▶ House.tell ─▶ News ─▶ the streams of `subscriptions/listen`   (stateless era)
                           └─▶ the sessions and what they subscribed  (handshake era)
"""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from tooli.surfaces.mcp.line import notes_of
from tooli.surfaces.mcp.words import MODERN

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

_LISTS: dict[str, Any] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class News:
    """Carries what has changed from the app to its clients; many changes at once are one piece."""

    def __init__(self, app: Any) -> None:
        self.bus = InMemorySubscriptionBus()
        self._house = app._house
        self._sessions: WeakSet[Connection] = WeakSet()
        self._pending: dict[tuple[str, str | None], None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Listen to the app, from now on and on this event loop."""
        self._loop = asyncio.get_running_loop()
        self._house.watchers.append(self._hear)

    def end(self) -> None:
        """Listen no longer."""
        self._loop = None
        if self._hear in self._house.watchers:
            self._house.watchers.remove(self._hear)

    async def remember(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """A middleware of the SDK's: whoever has shaken hands hears of changes."""
        if ctx.protocol_version not in MODERN:
            self._sessions.add(ctx.session._connection)
        return await call_next(ctx)

    def watch(self, ctx: ServerRequestContext[Any, Any], uri: str, *, on: bool) -> None:
        """A handshake-era client wants to hear of a resource, or does not any more."""
        watched: set[str] = notes_of(ctx).setdefault("watched", set())
        watched.add(uri) if on else watched.discard(uri)

    # -------------------------------------------------------------- telling

    def _hear(self, what: str, uri: str | None) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._note, what, uri)
        except RuntimeError:  # the loop has ended
            self._loop = None

    def _note(self, what: str, uri: str | None) -> None:
        if not self._pending and self._loop is not None:
            task = self._loop.create_task(self._tell())
            self._told.add(task)
            task.add_done_callback(self._told.discard)
        self._pending[what, uri] = None

    async def _tell(self) -> None:
        news, self._pending = list(self._pending), {}
        for what, uri in news:
            event = ResourceUpdated(uri) if uri is not None else _LISTS.get(what)
            if event is None:
                continue
            await self.bus.publish(event)
            for session in list(self._sessions):
                await self._tell_session(session, what, uri)

    async def _tell_session(self, session: Connection, what: str, uri: str | None) -> None:
        if not session.initialized.is_set():
            return
        if uri is None:
            await session.notify(f"notifications/{what}/list_changed", None)
        elif uri in session.state.get("tooli", {}).get("watched", ()):
            await session.send_resource_updated(uri)
