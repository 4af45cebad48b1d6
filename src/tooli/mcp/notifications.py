"""Notifications to clients when an app changes while it is served.

app.command(…), app.announce(uri), in any thread
    └─▶ AppState ─▶ ChangeNotifier ─┬▶ the streams of `subscriptions/listen` (stateless versions)
                                    └▶ the sessions and their subscriptions (handshake versions)
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

from tooli.mcp.protocol import MODERN_VERSIONS
from tooli.mcp.sdk_peer import connection_state

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from tooli.core.protocols import App

_LIST_CHANGED_EVENTS: dict[str, Any] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class ChangeNotifier:
    """Sends changes of the app to its clients. Equal changes that wait together are sent once."""

    def __init__(self, app: App) -> None:
        self.bus = InMemorySubscriptionBus()
        self._state = app._state
        self._sessions: WeakSet[Connection] = WeakSet()
        self._pending: dict[tuple[str, str | None], None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start listening to the app, on this event loop."""
        self._loop = asyncio.get_running_loop()
        self._state.change_listeners.append(self._on_change)

    def stop(self) -> None:
        """Stop listening."""
        self._loop = None
        if self._on_change in self._state.change_listeners:
            self._state.change_listeners.remove(self._on_change)

    async def track_session(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Remember the session of a handshake version for notifications; an SDK middleware."""
        if ctx.protocol_version not in MODERN_VERSIONS:
            self._sessions.add(ctx.session._connection)
        return await call_next(ctx)

    def set_subscription(
        self, ctx: ServerRequestContext[Any, Any], uri: str, *, is_subscribed: bool
    ) -> None:
        """Subscribe a client of a handshake version to a resource, or unsubscribe it."""
        subscribed_uris: set[str] = connection_state(ctx).setdefault("subscribed", set())
        subscribed_uris.add(uri) if is_subscribed else subscribed_uris.discard(uri)

    # -------------------------------------------------------------- publishing

    def _on_change(self, kind: str, uri: str | None) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._queue_change, kind, uri)
        except RuntimeError:  # the loop has ended
            self._loop = None

    def _queue_change(self, kind: str, uri: str | None) -> None:
        if not self._pending and self._loop is not None:
            task = self._loop.create_task(self._publish_changes())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._pending[kind, uri] = None

    async def _publish_changes(self) -> None:
        changes, self._pending = list(self._pending), {}
        for kind, uri in changes:
            event = ResourceUpdated(uri) if uri is not None else _LIST_CHANGED_EVENTS.get(kind)
            if event is None:
                continue
            await self.bus.publish(event)
            for session in list(self._sessions):
                await self._notify_session(session, kind, uri)

    async def _notify_session(self, session: Connection, kind: str, uri: str | None) -> None:
        if not session.initialized.is_set():
            return
        if uri is None:
            await session.notify(f"notifications/{kind}/list_changed", None)
        elif uri in session.state.get("tooli", {}).get("subscribed", ()):
            await session.send_resource_updated(uri)
