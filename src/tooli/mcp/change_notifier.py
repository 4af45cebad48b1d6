"""ChangeNotifier: tell the clients of an MCP server about changes in the app.

    app.command(…), app.announce(uri), in any thread
        └─▶ AppState ─▶ ChangeNotifier ─┬▶ streams of `subscriptions/listen` (stateless versions)
                                        └▶ SessionOutbox ─▶ session (handshake versions)

Each session has its own outbox and its own sender task. So a client that does not read its stream
delays its own notifications only. An outbox contains each change once: its size is limited by the
number of resources to which the client subscribes.
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

from tooli.mcp.protocol import INVALID_PARAMS, STATELESS_VERSIONS, RpcError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import ServerEvent
    from starlette.requests import Request

    from tooli.core.protocols import App, JsonObject

    Ctx: TypeAlias = ServerRequestContext[JsonObject, Request]
    Change: TypeAlias = tuple[str, str | None]

MAX_SUBSCRIPTIONS = 1000
"""Maximum number of resources to which one client can subscribe."""

MAX_SUBSCRIBED_CHARS = 100_000
"""Maximum number of characters of the URIs to which one client subscribes."""

TOO_MANY_SUBSCRIPTIONS = (
    f"A client can subscribe to {MAX_SUBSCRIPTIONS} resources at most, "
    f"whose URIs have {MAX_SUBSCRIBED_CHARS} characters at most"
)

_LIST_CHANGED_EVENTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class ChangeNotifier:
    """Notifies clients of changes in the app. Equal changes that are pending are sent once."""

    def __init__(self, app: App) -> None:
        self.bus = InMemorySubscriptionBus()
        self._state = app._state
        self._sessions: WeakSet[Connection] = WeakSet()
        self._pending: dict[Change, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start listening to the app, on this event loop."""
        self._loop = asyncio.get_running_loop()
        self._state.change_listeners.append(self._on_change)

    def stop(self) -> None:
        """Stop listening. Changes that clients have not read are not sent."""
        self._loop = None
        for task in self._tasks:
            task.cancel()
        if self._on_change in self._state.change_listeners:
            self._state.change_listeners.remove(self._on_change)

    async def track_session(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """SDK middleware: remember the sessions of handshake versions, which get notifications."""
        stands_alone = ctx.request is not None and "tooli.stateless" in ctx.request.scope
        if ctx.protocol_version not in STATELESS_VERSIONS and not stands_alone:
            self._sessions.add(ctx.session._connection)
        return await call_next(ctx)

    def set_subscription(self, ctx: Ctx, uri: str, *, is_subscribed: bool) -> None:
        """Subscribe a client of a handshake version to a resource, or unsubscribe it."""
        subscribed_uris: set[str] = connection_state(ctx).setdefault("subscribed", set())
        if is_subscribed:
            if uri not in subscribed_uris and are_too_many([*subscribed_uris, uri]):
                raise RpcError(INVALID_PARAMS, TOO_MANY_SUBSCRIPTIONS)
            subscribed_uris.add(uri)
        else:
            subscribed_uris.discard(uri)

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
                self._notify_session(session, kind, uri)

    def _notify_session(self, session: Connection, kind: str, uri: str | None) -> None:
        state: JsonObject = session.state.setdefault("tooli", {})
        is_wanted = uri is None or uri in state.get("subscribed", ())
        if not is_wanted or not session.initialized.is_set() or self._loop is None:
            return
        outbox: SessionOutbox | None = state.get("outbox")
        if outbox is None:
            outbox = state["outbox"] = SessionOutbox(session)
        if outbox.add((kind, uri)):
            task = self._loop.create_task(outbox.send_all())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


class SessionOutbox:
    """The changes that one session has not been sent. Equal changes are sent once."""

    def __init__(self, session: Connection) -> None:
        self._session = session
        self._changes: dict[Change, None] = {}
        self._is_sending = False

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, change: Change) -> bool:
        """Add a change. Return True if `send_all` must be started."""
        self._changes[change] = None
        is_sending, self._is_sending = self._is_sending, True
        return not is_sending

    async def send_all(self) -> None:
        """Send the changes, as fast as the client reads them."""
        try:
            while self._changes:
                kind, uri = next(iter(self._changes))
                del self._changes[kind, uri]
                if uri is None:
                    await self._session.notify(f"notifications/{kind}/list_changed", None)
                else:
                    await self._session.send_resource_updated(uri)
        finally:
            self._is_sending = False


def are_too_many(uris: Sequence[str]) -> bool:
    """True if one client cannot subscribe to all these resources."""
    return len(uris) > MAX_SUBSCRIPTIONS or sum(map(len, uris)) > MAX_SUBSCRIBED_CHARS


def connection_state(ctx: Ctx) -> JsonObject:
    """Return the data that tooli keeps about a connection, for the lifetime of the connection."""
    return ctx.session._connection.state.setdefault("tooli", {})
