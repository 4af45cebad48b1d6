"""AppServer: the SDK's low-level server for an app, with every method of all protocol versions.

    McpService (tools) ─┐
    ResourceService (resources, prompts, completion) ─┼─▶ AppServer ─▶ stdio | HTTP | SSE
    ChangeNotifier (changes) ─┘

The SDK handles the protocol; the services return the answers as plain dicts.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from traceback import print_exception
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from tooli.mcp.notifications import ChangeNotifier
from tooli.mcp.protocol import INTERNAL_ERROR, MODERN_VERSIONS, RpcError
from tooli.mcp.resource_service import ResourceService, resource_not_found_error
from tooli.mcp.sdk_peer import SdkPeer, connection_state
from tooli.mcp.service import caller_from_client_info
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS, too_busy_error
from tooli.serving.thread_pool import ThreadPool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from typing import TypeAlias

    from mcp.server.context import ServerRequestContext

    from tooli.core.call import Caller
    from tooli.mcp.service import McpService, ToolCallRequest

    Ctx: TypeAlias = ServerRequestContext[Any, Any]
    Params: TypeAlias = dict[str, Any]
    MethodHandler: TypeAlias = Callable[["AppServer", Ctx, Params, bool], Awaitable[Any]]

SHUTDOWN_ERROR = -32000
"""The error code of a call that was stopped because the server shuts down."""


class AppServer(Server[Any]):
    """The SDK's server of one app, and the requests that it runs."""

    def __init__(self, service: McpService) -> None:
        self.service = service
        self.resource_service = ResourceService(service)
        self.notifier = ChangeNotifier(service.app)
        self.listeners = ListenHandler(self.notifier.bus)
        self.thread_pool = ThreadPool(MAX_CONCURRENT_CALLS)
        self._running_jobs: dict[asyncio.Future[Any], SdkPeer] = {}
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
        modern = protocol_version in MODERN_VERSIONS
        return types.ServerCapabilities.model_validate(self.service.capabilities(modern=modern))

    def _input_schema(self, name: str) -> Any:
        from tooli.describe.mcp_tools import arguments_schema

        tool = self.service.tools.get(name)
        return arguments_schema(tool) if tool is not None else None

    # -------------------------------------------------------------- running

    @property
    def _is_full(self) -> bool:
        """True if the limit of concurrent calls is reached, abandoned ones included."""
        return len(self._running_jobs) + self.thread_pool.abandoned >= MAX_CONCURRENT_CALLS

    async def run_request(
        self, ctx: Ctx, make_request: Callable[[SdkPeer], ToolCallRequest]
    ) -> dict[str, Any]:
        """Run a request and return its answer."""
        if self._is_closing:
            raise MCPError(SHUTDOWN_ERROR, "The server is shutting down; it accepts no more calls.")
        peer = SdkPeer(ctx, self.service.dispatcher.name)
        request = make_request(peer)
        http_request: Any = ctx.request
        if http_request is not None:  # over HTTP, whose access control has checked the token
            scope_get = http_request.scope.get
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

    def _on_job_done(self, job: asyncio.Future[Any]) -> None:
        """Forget a job that is done; the exception of an abandoned one is ignored."""
        del self._running_jobs[job]
        if not job.cancelled():
            job.exception()


@asynccontextmanager
async def _lifespan(server: Any) -> AsyncGenerator[dict[str, Any]]:
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


def _make_sdk_handler(
    server: AppServer, handler: MethodHandler
) -> Callable[[Ctx, Any], Awaitable[Any]]:
    """Return an SDK handler that calls `handler` with the parameters as the client sent them."""

    async def handle(ctx: Ctx, params: Any) -> Any:
        try:
            return await handler(
                server, ctx, dict(ctx.params or {}), ctx.protocol_version in MODERN_VERSIONS
            )
        except RpcError as refused:
            raise MCPError(refused.code, refused.message, refused.data) from None
        except MCPError:
            raise
        except Exception as defect:  # an internal error: details are for the log, not for clients
            print_exception(defect, file=sys.stderr)
            raise MCPError(INTERNAL_ERROR, "Internal server error") from None

    return handle


async def _discover(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    return server.service.discover()


def _make_list_handler(get_list: Callable[[AppServer], Callable[..., Any]]) -> MethodHandler:
    """Return the handler of a list method."""

    async def handle(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
        return get_list(server)(params.get("cursor"), modern=modern)

    return handle


def _make_run_handler(
    get_factory: Callable[[AppServer], Callable[..., ToolCallRequest]],
) -> MethodHandler:
    """Return the handler of a method that runs a function of the app."""

    async def handle(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
        caller = caller_from_context(ctx)
        return await server.run_request(
            ctx, lambda peer: get_factory(server)(params, caller, peer, modern=modern)
        )

    return handle


async def _subscribe(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    if not server.resource_service.has_resource(params["uri"]):
        raise resource_not_found_error(params["uri"], modern)
    server.notifier.set_subscription(ctx, params["uri"], is_subscribed=True)
    return {}


async def _unsubscribe(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    server.notifier.set_subscription(ctx, params["uri"], is_subscribed=False)
    return {}


async def _set_level(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    connection_state(ctx)["level"] = params["level"]
    return {}


_METHODS: dict[str, tuple[Any, MethodHandler]] = {
    "server/discover": (types.RequestParams, _discover),
    "tools/list": (
        types.PaginatedRequestParams,
        _make_list_handler(lambda s: s.service.list_tools),
    ),
    "tools/call": (types.CallToolRequestParams, _make_run_handler(lambda s: s.service.request)),
    "resources/list": (
        types.PaginatedRequestParams,
        _make_list_handler(lambda s: s.resource_service.resources),
    ),
    "resources/templates/list": (
        types.PaginatedRequestParams,
        _make_list_handler(lambda s: s.resource_service.templates),
    ),
    "resources/read": (
        types.ReadResourceRequestParams,
        _make_run_handler(lambda s: s.resource_service.read_request),
    ),
    "resources/subscribe": (types.SubscribeRequestParams, _subscribe),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, _unsubscribe),
    "prompts/list": (
        types.PaginatedRequestParams,
        _make_list_handler(lambda s: s.resource_service.prompts),
    ),
    "prompts/get": (
        types.GetPromptRequestParams,
        _make_run_handler(lambda s: s.resource_service.prompt_request),
    ),
    "completion/complete": (
        types.CompleteRequestParams,
        _make_run_handler(lambda s: s.resource_service.completion_request),
    ),
    "logging/setLevel": (types.SetLevelRequestParams, _set_level),
}


def caller_from_context(ctx: Ctx) -> Caller:
    """Return the caller: the client's name and its session."""
    client = ctx.session.client_params
    info = client.client_info if client is not None else None
    client_info = {"name": info.name, "version": info.version} if info is not None else None
    if ctx.request is None:  # over stdio, the environment comes from the client
        return caller_from_client_info(client_info)
    client = getattr(ctx.request, "client", None)
    caller = caller_from_client_info(
        client_info, {"TOOLI_SESSION_ID": ctx.session._connection.session_id or ""}
    )
    return caller.replace(address=str(client[0]) if client and client[0] else "network")
