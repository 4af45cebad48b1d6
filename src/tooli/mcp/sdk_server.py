"""AppServer: the SDK's low-level server for an app, with every method of all protocol versions.

    McpService (tools) ──────────────────────────────┐
    ResourceService (resources, prompts, completion) ┼─▶ AppServer ─▶ stdio | HTTP | SSE
    ChangeNotifier (changes) ────────────────────────┘

The SDK handles the protocol; the services return the answers as plain dicts.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from tooli.core.caller_key import caller_key
from tooli.describe.mcp_tools import arguments_schema
from tooli.mcp.change_notifier import (
    TOO_MANY_SUBSCRIPTIONS,
    ChangeNotifier,
    are_too_many,
    connection_state,
)
from tooli.mcp.client_limits import limit_initialize
from tooli.mcp.http_messages import SESSION_DATA
from tooli.mcp.log_limits import limit_sdk_logs
from tooli.mcp.message_limits import MAX_HTTP_MESSAGE_BYTES, MAX_STDIO_MESSAGE_BYTES
from tooli.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    STATELESS_VERSIONS,
    TEXT_ONLY_VERSIONS,
    RpcError,
)
from tooli.mcp.resource_service import ResourceService
from tooli.mcp.sdk_peer import SdkPeer
from tooli.mcp.service import RequestContext, caller_from_client_info
from tooli.serving.caller_limits import CallerLimit, caller_share
from tooli.serving.dispatcher import (
    MAX_CONCURRENT_CALLS,
    too_busy_error,
    too_many_requests_error,
)
from tooli.serving.error_log import log_exception
from tooli.serving.server_request import (
    ServerRequest,
    new_request_id,
    read_trace,
    request_id_of,
)
from tooli.serving.thread_pool import ThreadPool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from typing import TypeAlias

    from mcp.server.context import ServerRequestContext
    from starlette.requests import Request

    from tooli.core.call import Caller
    from tooli.core.protocols import JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.sdk_peer import RequestPeer
    from tooli.mcp.service import McpRequest, McpService
    from tooli.serving.caller_view import CallerView

    Ctx: TypeAlias = ServerRequestContext[JsonObject, Request]
    MethodHandler: TypeAlias = Callable[[Ctx, JsonObject, bool], Awaitable[JsonObject]]
    RequestFactory: TypeAlias = Callable[[JsonObject, RequestContext], McpRequest]

_LIST_METHODS: dict[str, Callable[[AppServer, Ctx], Callable[..., JsonObject]]] = {
    "tools/list": lambda server, ctx: partial(
        server.service.list_tools,
        has_structured_content=ctx.protocol_version not in TEXT_ONLY_VERSIONS,
    ),
    "resources/list": lambda server, _: server.resource_service.list_resources,
    "resources/templates/list": lambda server, _: server.resource_service.list_resource_templates,
    "prompts/list": lambda server, _: server.resource_service.list_prompts,
}
"""List methods, and the functions that return a page of the list."""

_CALL_METHODS: dict[
    str, tuple[type[types.RequestParams], Callable[[AppServer], RequestFactory]]
] = {
    "tools/call": (types.CallToolRequestParams, lambda server: server.service.tool_call_request),
    "resources/read": (
        types.ReadResourceRequestParams,
        lambda server: server.resource_service.read_request,
    ),
    "prompts/get": (
        types.GetPromptRequestParams,
        lambda server: server.resource_service.prompt_request,
    ),
    "completion/complete": (
        types.CompleteRequestParams,
        lambda server: server.resource_service.completion_request,
    ),
}
"""Methods that run a function of the app: the type of their parameters, and the request factory."""

MAX_CALLS_PER_CALLER = caller_share(MAX_CONCURRENT_CALLS)
"""Maximum number of concurrent calls of one caller, also of calls whose client disconnected."""

SHUTDOWN_ERROR = -32000
"""The error code of a call that was stopped because the server shuts down."""


class AppServer(Server[dict[str, Any]]):
    """The SDK's server of one app, and the requests that it runs."""

    def __init__(self, service: McpService, *, has_sessions: bool = True) -> None:
        self.service = service
        self.has_sessions = has_sessions  # False: requests of handshake versions stand alone
        self.resource_service = ResourceService(service)
        self.notifier = ChangeNotifier(service.app)
        self.listeners = AppListenHandler(self)
        self.thread_pool = ThreadPool(MAX_CONCURRENT_CALLS, share=MAX_CALLS_PER_CALLER)
        self._running_jobs: dict[asyncio.Future[JsonObject], RequestPeer] = {}
        self._jobs_by_caller = CallerLimit(MAX_CALLS_PER_CALLER)
        self._is_closing = False
        info = service.info()
        super().__init__(
            info["name"],
            version=info["version"],
            title=info.get("title"),
            description=info.get("description"),
            icons=[types.Icon.model_validate(icon) for icon in info.get("icons", ())] or None,
            instructions=service.instructions(),
            lifespan=_lifespan,
            get_tool_input_schema=self._input_schema,
            on_subscriptions_listen=self.listeners,
        )
        self.middleware += [limit_initialize, self.notifier.track_session]
        self._add_methods()

    def get_capabilities(
        self, *_: Any, protocol_version: str | None = None, **__: Any
    ) -> types.ServerCapabilities:
        """Return the server's capabilities, which are the same on every transport."""
        stateless = protocol_version in STATELESS_VERSIONS
        can_notify = stateless or self.has_sessions
        return types.ServerCapabilities.model_validate(
            self.service.capabilities(stateless=stateless, can_notify=can_notify)
        )

    def _input_schema(self, name: str) -> JsonObject | None:
        tool = self.service.tools.get(name)
        return arguments_schema(tool) if tool is not None else None

    # -------------------------------------------------------------- methods

    def _add_methods(self) -> None:
        for method, get_list in _LIST_METHODS.items():
            self._add_method(method, types.PaginatedRequestParams, partial(self._list, get_list))
        for method, (params_type, get_factory) in _CALL_METHODS.items():
            self._add_method(method, params_type, partial(self.run_request, get_factory))
        subscribe = partial(self._set_subscription, True)
        unsubscribe = partial(self._set_subscription, False)
        self._add_method("resources/subscribe", types.SubscribeRequestParams, subscribe)
        self._add_method("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
        self._add_method("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self._add_method("server/discover", types.RequestParams, self._discover)

    def _add_method(
        self, method: str, params_type: type[types.RequestParams], handler: MethodHandler
    ) -> None:
        """Register the handler of a method. It gets the parameters as the client sent them."""

        async def handle(ctx: Ctx, params: types.RequestParams) -> JsonObject:
            stateless = ctx.protocol_version in STATELESS_VERSIONS
            try:
                return await handler(ctx, dict(ctx.params or {}), stateless)
            except Exception as exc:
                raise to_mcp_error(exc, make_request(ctx, method)) from None

        self.add_request_handler(method, params_type, handle)

    async def _list(
        self,
        get_list: Callable[[AppServer, Ctx], Callable[..., JsonObject]],
        ctx: Ctx,
        params: JsonObject,
        stateless: bool,
    ) -> JsonObject:
        view = self._find_view(ctx)
        if ctx.request is None and not view.is_complete:  # the token of the client is in a file
            view = await asyncio.to_thread(self.service.environment_view)
        return get_list(self, ctx)(params.get("cursor"), stateless=stateless, view=view)

    def _find_view(self, ctx: Ctx) -> CallerView:
        """Return what the caller of a request sees."""
        if ctx.request is None:
            return self.service.dispatcher.view(frozenset())
        return self.service.dispatcher.view(ctx.request.scope.get("tooli.scopes", frozenset()))

    async def _discover(self, ctx: Ctx, params: JsonObject, stateless: bool) -> JsonObject:
        return self.service.discover()

    async def _set_subscription(
        self, is_subscribed: bool, ctx: Ctx, params: JsonObject, stateless: bool
    ) -> JsonObject:
        uri: str = params["uri"]
        if ctx.request is not None and "tooli.stateless" in ctx.request.scope:
            raise MCPError(INVALID_REQUEST, "This server has no sessions, so it cannot notify.")
        if is_subscribed:
            await self.check_subscription(ctx, uri, stateless)
        self.notifier.set_subscription(ctx, uri, is_subscribed=is_subscribed)
        return {}

    async def check_subscription(self, ctx: Ctx, uri: str, stateless: bool) -> None:
        """Raise an RpcError unless the caller may read the resource at a URI."""
        await self.run_request(
            lambda server: server.resource_service.subscription_request,
            ctx,
            {"uri": uri},
            stateless,
        )

    async def _set_level(self, ctx: Ctx, params: JsonObject, stateless: bool) -> JsonObject:
        connection_state(ctx)["level"] = params["level"]
        return {}

    # -------------------------------------------------------------- running

    @property
    def _is_full(self) -> bool:
        """True if the limit of concurrent calls is reached. Abandoned calls count too."""
        return len(self._running_jobs) + self.thread_pool.abandoned >= MAX_CONCURRENT_CALLS

    async def run_request(
        self,
        get_factory: Callable[[AppServer], RequestFactory],
        ctx: Ctx,
        params: JsonObject,
        stateless: bool,
    ) -> JsonObject:
        """Run a request and return its answer."""
        self.check_open()
        peer = SdkPeer(ctx, self.service.dispatcher.name)
        caller = caller_from_context(ctx)
        has_structured_content = ctx.protocol_version not in TEXT_ONLY_VERSIONS
        max_bytes = MAX_STDIO_MESSAGE_BYTES if ctx.request is None else MAX_HTTP_MESSAGE_BYTES
        entry = make_request(ctx, ctx.method)
        entry.exposes_errors = self.service.exposes_errors
        if ctx.request is None:
            entry.session_data = self._connection_data(ctx)
        context = RequestContext(
            caller,
            peer,
            stateless,
            has_structured_content,
            max_bytes,
            find_view=self.service.environment_view
            if ctx.request is None
            else partial(self._find_view, ctx),
            request=entry,
        )
        request = get_factory(self)(params, context)
        if ctx.request is not None:  # over HTTP, whose access control has checked the token
            request.grant(ctx.request.scope.get("tooli.scopes", ()))
        return await self.run_job(request, caller, peer)

    def _connection_data(self, ctx: Ctx) -> dict[str, Any]:
        """Return the session data of a connection that is not HTTP: of stdio, or in memory."""
        if self.service.stdio_session_data is not None:
            return self.service.stdio_session_data
        return connection_state(ctx).setdefault("session_data", {})

    def check_open(self) -> None:
        """Raise an MCPError if the server shuts down."""
        if self._is_closing:
            raise MCPError(SHUTDOWN_ERROR, "The server is shutting down and accepts no more calls.")

    async def run_job(self, request: McpRequest, caller: Caller, peer: RequestPeer) -> JsonObject:
        """Run a request within the limits of the server and of its caller; return its answer."""
        job = self.start_job(request, caller, peer)
        if not isinstance(job, asyncio.Future):
            return job
        try:
            await asyncio.wait({job, peer.shutdown_future}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            end_job(job, peer)
        return job_result(job)

    def start_job(
        self, request: McpRequest, caller: Caller, peer: RequestPeer
    ) -> asyncio.Future[JsonObject] | JsonObject:
        """Start to run a request; return its answer instead if a limit is reached.

        The caller waits for the job or for `peer.shutdown_future`, and then calls `end_job`.
        """
        if self._is_full:
            return request.error_result(too_busy_error())
        key = caller_key(caller.principal, caller.address)
        if not self._jobs_by_caller.acquire(key, self.thread_pool.abandoned_by(key)):
            return request.error_result(too_many_requests_error(MAX_CALLS_PER_CALLER))
        try:
            job = self._start(request, peer, key)
        except BaseException:  # no thread can be started
            self._jobs_by_caller.release(key)
            raise
        self._running_jobs[job] = peer
        job.add_done_callback(partial(self._on_job_done, key))
        return job

    def _start(
        self, request: McpRequest, peer: RequestPeer, key: str
    ) -> asyncio.Future[JsonObject]:
        if not (request.is_async or peer.sends_messages):
            return self.thread_pool.start(request.run, key)
        work = request.arun() if request.is_async else self.thread_pool.run(request.run, key)
        return asyncio.ensure_future(peer.run_and_flush(work))

    def open(self) -> None:
        """Accept calls, also after a shutdown: a mounted server may run again on another loop."""
        self._is_closing = False

    async def close(self, grace: float) -> None:
        """Shut down: reject new calls, wait `grace` seconds for running ones, cancel the rest."""
        self._is_closing = True
        self.listeners.close()
        running = {job for job, peer in self._running_jobs.items() if not peer.cancelled}
        if running:
            await asyncio.wait(running, timeout=grace)
        for peer in list(self._running_jobs.values()):
            peer.stop()

    def _on_job_done(self, key: str, job: asyncio.Future[JsonObject]) -> None:
        """Remove a job that is done. The exception of an abandoned job is ignored."""
        del self._running_jobs[job]
        self._jobs_by_caller.release(key)
        if not job.cancelled():
            job.exception()


def end_job(job: asyncio.Future[JsonObject], peer: RequestPeer) -> None:
    """Cancel a job that is not done: the client has cancelled it, or the server shuts down."""
    peer.shutdown_future.cancel()
    if not job.done():
        peer.cancel()
        job.cancel()


def job_result(job: asyncio.Future[JsonObject]) -> JsonObject:
    """Return the answer of a job that has ended, or raise its error."""
    if not job.done():
        raise MCPError(SHUTDOWN_ERROR, "The server is shutting down; the call was cancelled.")
    return job.result()


@asynccontextmanager
async def _lifespan(server: Server[JsonObject]) -> AsyncGenerator[JsonObject]:
    assert isinstance(server, AppServer)
    server.open()
    server.notifier.start()
    limit_sdk_logs()
    try:
        yield {}
    finally:
        server.listeners.close()
        server.notifier.stop()


def to_mcp_error(exc: Exception, request: ServerRequest) -> MCPError:
    """Return the error for the client. The details of an internal error go to the log only."""
    if isinstance(exc, MCPError):
        return exc
    if isinstance(exc, RpcError):
        return MCPError(exc.code, exc.message, exc.data)
    log_exception(exc, request, request.method or "A request")
    return MCPError(INTERNAL_ERROR, "Internal server error", {"request_id": request.id})


def make_request(ctx: Ctx, method: str) -> ServerRequest:
    """Return the request of a context as the logs see it."""
    scope = None if ctx.request is None else ctx.request.scope
    return describe_request(scope, method, ctx.request_id, ctx.meta)


def describe_request(
    scope: Mapping[str, Any] | None,
    method: str,
    rpc_id: RequestId | None,
    meta: Mapping[str, Any] | None,
) -> ServerRequest:
    """Return a request as the logs see it. Over HTTP it is the one of the HTTP server."""
    found: ServerRequest | None = None if scope is None else scope.get("tooli.request")
    request = found or ServerRequest("mcp", request_id_of(rpc_id or "", _PROCESS_ID))
    request.surface, request.method, request.rpc_id = "mcp", method, rpc_id
    request.session_data = None if scope is None else scope.get(SESSION_DATA)
    trace: object = None if meta is None else meta.get("traceparent")
    if isinstance(trace, str):
        request.trace = read_trace(trace.encode()) or request.trace
    return request


_PROCESS_ID = new_request_id()[:8]


def caller_from_context(ctx: Ctx) -> Caller:
    """Return the caller: the client's name and its session."""
    params = ctx.session.client_params
    info = params.client_info if params is not None else None
    client_info = {"name": info.name, "version": info.version} if info is not None else None
    http_request = ctx.request
    if http_request is None:  # stdio: the client set this process's environment variables
        return caller_from_client_info(client_info)
    session_id = ctx.session._connection.session_id
    known: JsonObject | None = http_request.scope.get("tooli.stateless")
    if known:  # the request stands alone, and its session id tells who the client is
        session_id, client_info = known["session"], known["client"]
    return http_caller(http_request.scope, client_info, session_id)


def http_caller(scope: Mapping[str, Any], client_info: object, session_id: str | None) -> Caller:
    """Return the caller of a request over HTTP."""
    # answers and logs contain the session of the caller, and the id would give access to it
    session = sha256(session_id.encode()).hexdigest()[:16] if session_id else ""
    caller = caller_from_client_info(client_info, {"TOOLI_SESSION_ID": session})
    client = scope.get("client")
    address = str(client[0]) if client else ""
    return caller.replace(address=address or "network", principal=scope.get("tooli.principal"))


class AppListenHandler(ListenHandler):
    """Streams of `subscriptions/listen`, for callers who may read the resources."""

    def __init__(self, server: AppServer) -> None:
        super().__init__(server.notifier.bus)
        self._server = server

    async def __call__(
        self, ctx: Ctx, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Check the access to each resource, then serve the stream."""
        uris = params.notifications.resource_subscriptions or ()
        if are_too_many(uris):
            raise MCPError(INVALID_PARAMS, TOO_MANY_SUBSCRIPTIONS)
        for uri in uris:
            try:
                await self._server.check_subscription(ctx, uri, True)
            except RpcError as error:
                raise MCPError(error.code, error.message, error.data) from None
        return await super().__call__(ctx, params)
