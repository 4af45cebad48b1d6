"""AppServer: the SDK's low-level server for an app, with every method of all protocol versions.

    McpService (tools) ──────────────────────────────┐
    ResourceService (resources, prompts, completion) ┼─▶ AppServer ─▶ stdio | HTTP | SSE
    ChangeNotifier (changes) ────────────────────────┘

    app.command(…), app.announce(uri), in any thread
        └─▶ AppState ─▶ ChangeNotifier ─┬▶ streams of `subscriptions/listen` (stateless versions)
                                        └▶ sessions and their subscriptions (handshake versions)

The SDK handles the protocol; the services return the answers as plain dicts.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from traceback import print_exception
from typing import Any
from weakref import WeakSet

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from tooli.describe.mcp_tools import arguments_schema
from tooli.mcp.protocol import INTERNAL_ERROR, STATELESS_VERSIONS, RpcError
from tooli.mcp.resource_service import ResourceService, resource_not_found_error
from tooli.mcp.sdk_peer import SdkPeer, connection_state
from tooli.mcp.service import RequestContext, caller_from_client_info
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS, too_busy_error
from tooli.serving.thread_pool import ThreadPool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from typing import Protocol, TypeAlias

    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import ServerEvent
    from starlette.requests import Request

    from tooli.core.call import Caller
    from tooli.core.protocols import App, JsonObject
    from tooli.mcp.service import McpRequest, McpService

    Ctx: TypeAlias = ServerRequestContext[JsonObject, Request]
    MethodHandler: TypeAlias = Callable[["AppServer", Ctx, JsonObject, bool], Awaitable[JsonObject]]
    MethodRow: TypeAlias = tuple[type[types.RequestParams], MethodHandler]
    SdkHandler: TypeAlias = Callable[[Ctx, types.RequestParams], Awaitable[JsonObject]]
    RequestFactory: TypeAlias = Callable[[JsonObject, RequestContext], McpRequest]

    class ListMethod(Protocol):
        """A method that returns one page of a list."""

        def __call__(self, cursor: str | None, *, stateless: bool) -> JsonObject: ...


SHUTDOWN_ERROR = -32000
"""The error code of a call that was stopped because the server shuts down."""


class AppServer(Server[dict[str, Any]]):
    """The SDK's server of one app, and the requests that it runs."""

    def __init__(self, service: McpService) -> None:
        self.service = service
        self.resource_service = ResourceService(service)
        self.notifier = ChangeNotifier(service.app)
        self.listeners = ListenHandler(self.notifier.bus)
        self.thread_pool = ThreadPool(MAX_CONCURRENT_CALLS)
        self._running_jobs: dict[asyncio.Future[JsonObject], SdkPeer] = {}
        self._is_closing = False
        info = service.info()
        super().__init__(
            info["name"],
            version=info["version"],
            description=info.get("description"),
            instructions=service.instructions(),
            lifespan=_lifespan,
            get_tool_input_schema=self._input_schema,
            on_subscriptions_listen=self.listeners,
        )
        self.middleware.append(self.notifier.track_session)
        for method, (params, handler) in _METHODS.items():
            self.add_request_handler(method, params, _make_sdk_handler(self, handler))

    def get_capabilities(
        self, *_: Any, protocol_version: str | None = None, **__: Any
    ) -> types.ServerCapabilities:
        """Return the server's capabilities, which are the same on every transport."""
        stateless = protocol_version in STATELESS_VERSIONS
        return types.ServerCapabilities.model_validate(
            self.service.capabilities(stateless=stateless)
        )

    def _input_schema(self, name: str) -> JsonObject | None:
        tool = self.service.tools.get(name)
        return arguments_schema(tool) if tool is not None else None

    # -------------------------------------------------------------- running

    @property
    def _is_full(self) -> bool:
        """True if the limit of concurrent calls is reached, abandoned ones included."""
        return len(self._running_jobs) + self.thread_pool.abandoned >= MAX_CONCURRENT_CALLS

    async def run_request(
        self, ctx: Ctx, params: JsonObject, make_request: RequestFactory, stateless: bool
    ) -> JsonObject:
        """Run a request and return its answer."""
        if self._is_closing:
            raise MCPError(SHUTDOWN_ERROR, "The server is shutting down and accepts no more calls.")
        peer = SdkPeer(ctx, self.service.dispatcher.name)
        request = make_request(params, RequestContext(caller_from_context(ctx), peer, stateless))
        if ctx.request is not None:  # over HTTP, whose access control has checked the token
            scope_get = ctx.request.scope.get
            request.grant(scope_get("tooli.scopes", ()), scope_get("tooli.principal"))
        if self._is_full:
            return request.error_result(too_busy_error())
        work = request.arun() if request.is_async else self.thread_pool.run(request.run)
        job = asyncio.ensure_future(peer.run_and_flush(work))
        self._running_jobs[job] = peer
        job.add_done_callback(self._on_job_done)
        try:
            await asyncio.wait({job, peer.shutdown_future}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            peer.shutdown_future.cancel()
            if not job.done():  # the client has cancelled, or the server shuts down
                peer.cancel()
                job.cancel()
        if not job.done():
            raise MCPError(SHUTDOWN_ERROR, "The server is shutting down; the call was cancelled.")
        return job.result()

    async def close(self, grace: float) -> None:
        """Shut down: reject new calls, wait `grace` seconds for running ones, cancel the rest."""
        self._is_closing = True
        self.listeners.close()
        running = {job for job, peer in self._running_jobs.items() if not peer.cancelled}
        if running:
            await asyncio.wait(running, timeout=grace)
        for peer in list(self._running_jobs.values()):
            peer.stop()

    def _on_job_done(self, job: asyncio.Future[JsonObject]) -> None:
        """Remove a job that is done. The exception of an abandoned job is ignored."""
        del self._running_jobs[job]
        if not job.cancelled():
            job.exception()


@asynccontextmanager
async def _lifespan(server: Server[JsonObject]) -> AsyncGenerator[JsonObject]:
    assert isinstance(server, AppServer)
    server.notifier.start()
    try:
        yield {}
    finally:
        server.listeners.close()
        server.notifier.stop()


def make_server(service: McpService) -> AppServer:
    """Return the SDK's server of an app."""
    return AppServer(service)


# ------------------------------------------------------------------ methods


def _make_sdk_handler(server: AppServer, handler: MethodHandler) -> SdkHandler:
    """Return an SDK handler that calls `handler` with the parameters as the client sent them."""

    async def handle(ctx: Ctx, params: types.RequestParams) -> JsonObject:
        stateless = ctx.protocol_version in STATELESS_VERSIONS
        try:
            return await handler(server, ctx, dict(ctx.params or {}), stateless)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from None
        except MCPError:
            raise
        except Exception as exc:  # an internal error: details go to the log, not to the client
            print_exception(exc, file=sys.stderr)
            raise MCPError(INTERNAL_ERROR, "Internal server error") from None

    return handle


async def _discover(server: AppServer, ctx: Ctx, params: JsonObject, stateless: bool) -> JsonObject:
    return server.service.discover()


def _list_method(get_list: Callable[[AppServer], ListMethod]) -> MethodRow:
    """Return the row of a method that returns a page of a list."""

    async def handle(
        server: AppServer, ctx: Ctx, params: JsonObject, stateless: bool
    ) -> JsonObject:
        return get_list(server)(params.get("cursor"), stateless=stateless)

    return types.PaginatedRequestParams, handle


def _run_method(
    params_type: type[types.RequestParams], get_factory: Callable[[AppServer], RequestFactory]
) -> MethodRow:
    """Return the row of a method that runs a function of the app."""

    async def handle(
        server: AppServer, ctx: Ctx, params: JsonObject, stateless: bool
    ) -> JsonObject:
        return await server.run_request(ctx, params, get_factory(server), stateless)

    return params_type, handle


async def _subscribe(
    server: AppServer, ctx: Ctx, params: JsonObject, stateless: bool
) -> JsonObject:
    if not server.resource_service.has_resource(params["uri"]):
        raise resource_not_found_error(params["uri"], stateless)
    server.notifier.set_subscription(ctx, params["uri"], is_subscribed=True)
    return {}


async def _unsubscribe(
    server: AppServer, ctx: Ctx, params: JsonObject, stateless: bool
) -> JsonObject:
    server.notifier.set_subscription(ctx, params["uri"], is_subscribed=False)
    return {}


async def _set_level(
    server: AppServer, ctx: Ctx, params: JsonObject, stateless: bool
) -> JsonObject:
    connection_state(ctx)["level"] = params["level"]
    return {}


_METHODS: dict[str, MethodRow] = {
    "server/discover": (types.RequestParams, _discover),
    "tools/list": _list_method(lambda s: s.service.list_tools),
    "tools/call": _run_method(types.CallToolRequestParams, lambda s: s.service.tool_call_request),
    "resources/list": _list_method(lambda s: s.resource_service.list_resources),
    "resources/templates/list": _list_method(lambda s: s.resource_service.list_resource_templates),
    "resources/read": _run_method(
        types.ReadResourceRequestParams, lambda s: s.resource_service.read_request
    ),
    "resources/subscribe": (types.SubscribeRequestParams, _subscribe),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, _unsubscribe),
    "prompts/list": _list_method(lambda s: s.resource_service.list_prompts),
    "prompts/get": _run_method(
        types.GetPromptRequestParams, lambda s: s.resource_service.prompt_request
    ),
    "completion/complete": _run_method(
        types.CompleteRequestParams, lambda s: s.resource_service.completion_request
    ),
    "logging/setLevel": (types.SetLevelRequestParams, _set_level),
}


def caller_from_context(ctx: Ctx) -> Caller:
    """Return the caller: the client's name and its session."""
    params = ctx.session.client_params
    info = params.client_info if params is not None else None
    client_info = {"name": info.name, "version": info.version} if info is not None else None
    http_request = ctx.request
    if http_request is None:  # over stdio, the environment comes from the client
        return caller_from_client_info(client_info)
    session_id = ctx.session._connection.session_id or ""
    caller = caller_from_client_info(client_info, {"TOOLI_SESSION_ID": session_id})
    address = http_request.client.host if http_request.client is not None else ""
    return caller.replace(address=address or "network")


# ------------------------------------------------------------------ notifications


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

    async def track_session(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Remember the session of a handshake version for notifications; an SDK middleware."""
        if ctx.protocol_version not in STATELESS_VERSIONS:
            self._sessions.add(ctx.session._connection)
        return await call_next(ctx)

    def set_subscription(self, ctx: Ctx, uri: str, *, is_subscribed: bool) -> None:
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
