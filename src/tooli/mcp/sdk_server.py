"""AppServer: the SDK's low-level server for an app, with every method of all protocol versions.

    McpService (tools) ──────────────────────────────┐
    ResourceService (resources, prompts, completion) ┼─▶ AppServer ─▶ stdio | HTTP | SSE
    ChangeNotifier (changes) ────────────────────────┘

The SDK handles the protocol; the services return the answers as plain dicts.

    tool (in a thread or on the loop) ── progress, log ──▶ SdkPeer ──▶ sender task ──▶ client
    tool ◀── answers ◀──────────────────── ask ──────────────────────────────────────▶ client

A tool can send messages from any thread. One task on the event loop sends them in order. All
messages are sent before the answer of the call.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from traceback import print_exception
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tooli.core.caller_key import caller_key
from tooli.core.peer import UNANSWERED_TEXT, Peer
from tooli.describe.mcp_tools import arguments_schema
from tooli.errors import DependencyError, Interrupted, TimeoutExceeded
from tooli.mcp.change_notifier import (
    TOO_MANY_SUBSCRIPTIONS,
    ChangeNotifier,
    are_too_many,
    connection_state,
)
from tooli.mcp.client_limits import limit_initialize
from tooli.mcp.log_limits import limit_sdk_logs
from tooli.mcp.message_limits import MAX_HTTP_MESSAGE_BYTES, MAX_STDIO_MESSAGE_BYTES
from tooli.mcp.protocol import (
    DEFAULT_LOG_LEVEL,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    STATELESS_VERSIONS,
    TEXT_ONLY_VERSIONS,
    RpcError,
    client_supports,
)
from tooli.mcp.resource_service import ResourceService
from tooli.mcp.service import RequestContext, caller_from_client_info
from tooli.serving.caller_limits import CallerLimit, caller_share
from tooli.serving.dispatcher import (
    MAX_CONCURRENT_CALLS,
    too_busy_error,
    too_many_requests_error,
)
from tooli.serving.thread_pool import ThreadPool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from concurrent.futures import Future
    from typing import TypeAlias

    from mcp.server.context import ServerRequestContext
    from starlette.requests import Request

    from tooli.core.call import Caller
    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject
    from tooli.mcp.service import McpRequest, McpService

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

QUESTION_TIMEOUT = 300.0
"""Seconds that a client has to answer a question of a call."""

SHUTDOWN_ERROR = -32000
"""The error code of a call that was stopped because the server shuts down."""


class AppServer(Server[dict[str, Any]]):
    """The SDK's server of one app, and the requests that it runs."""

    def __init__(self, service: McpService) -> None:
        self.service = service
        self.resource_service = ResourceService(service)
        self.notifier = ChangeNotifier(service.app)
        self.listeners = AppListenHandler(self)
        self.thread_pool = ThreadPool(MAX_CONCURRENT_CALLS, share=MAX_CALLS_PER_CALLER)
        self._running_jobs: dict[asyncio.Future[JsonObject], SdkPeer] = {}
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
        return types.ServerCapabilities.model_validate(
            self.service.capabilities(stateless=stateless)
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
            except RpcError as error:
                raise MCPError(error.code, error.message, error.data) from None
            except MCPError:
                raise
            except Exception as exc:  # an internal error: details go to the log, not to the client
                print_exception(exc, file=sys.stderr)
                raise MCPError(INTERNAL_ERROR, "Internal server error") from None

        self.add_request_handler(method, params_type, handle)

    async def _list(
        self,
        get_list: Callable[[AppServer, Ctx], Callable[..., JsonObject]],
        ctx: Ctx,
        params: JsonObject,
        stateless: bool,
    ) -> JsonObject:
        return get_list(self, ctx)(params.get("cursor"), stateless=stateless)

    async def _discover(self, ctx: Ctx, params: JsonObject, stateless: bool) -> JsonObject:
        return self.service.discover()

    async def _set_subscription(
        self, is_subscribed: bool, ctx: Ctx, params: JsonObject, stateless: bool
    ) -> JsonObject:
        uri: str = params["uri"]
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
        if self._is_closing:
            raise MCPError(SHUTDOWN_ERROR, "The server is shutting down and accepts no more calls.")
        peer = SdkPeer(ctx, self.service.dispatcher.name)
        caller = caller_from_context(ctx)
        has_structured_content = ctx.protocol_version not in TEXT_ONLY_VERSIONS
        max_bytes = MAX_STDIO_MESSAGE_BYTES if ctx.request is None else MAX_HTTP_MESSAGE_BYTES
        context = RequestContext(caller, peer, stateless, has_structured_content, max_bytes)
        request = get_factory(self)(params, context)
        if ctx.request is not None:  # over HTTP, whose access control has checked the token
            request.grant(ctx.request.scope.get("tooli.scopes", ()))
        if self._is_full:
            return request.error_result(too_busy_error())
        key = caller_key(caller.principal, caller.address)
        if not self._jobs_by_caller.acquire(key, self.thread_pool.abandoned_by(key)):
            return request.error_result(too_many_requests_error(MAX_CALLS_PER_CALLER))
        work = request.arun() if request.is_async else self.thread_pool.run(request.run, key)
        job = asyncio.ensure_future(peer.run_and_flush(work))
        self._running_jobs[job] = peer
        job.add_done_callback(partial(self._on_job_done, key))
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

    def _on_job_done(self, key: str, job: asyncio.Future[JsonObject]) -> None:
        """Remove a job that is done. The exception of an abandoned job is ignored."""
        del self._running_jobs[job]
        self._jobs_by_caller.release(key)
        if not job.cancelled():
            job.exception()


@asynccontextmanager
async def _lifespan(server: Server[JsonObject]) -> AsyncGenerator[JsonObject]:
    assert isinstance(server, AppServer)
    server.notifier.start()
    limit_sdk_logs()
    try:
        yield {}
    finally:
        server.listeners.close()
        server.notifier.stop()


def caller_from_context(ctx: Ctx) -> Caller:
    """Return the caller: the client's name and its session."""
    params = ctx.session.client_params
    info = params.client_info if params is not None else None
    client_info = {"name": info.name, "version": info.version} if info is not None else None
    http_request = ctx.request
    if http_request is None:  # stdio: the client set this process's environment variables
        return caller_from_client_info(client_info)
    session_id = ctx.session._connection.session_id
    # answers and logs contain the session of the caller, and the id would give access to it
    session = sha256(session_id.encode()).hexdigest()[:16] if session_id else ""
    caller = caller_from_client_info(client_info, {"TOOLI_SESSION_ID": session})
    address = http_request.client.host if http_request.client is not None else ""
    principal = http_request.scope.get("tooli.principal")
    return caller.replace(address=address or "network", principal=principal)


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


# ------------------------------------------------------------------ the client of a call


MAX_QUEUED_MESSAGES = 1000
"""Maximum number of messages that wait for a slow client. Further messages are dropped."""

_REQUEST_TYPES: dict[str, tuple[Any, Any]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class SdkPeer(Peer):
    """The client of one request, through the SDK's session."""

    def __init__(self, ctx: Ctx, logger: str) -> None:
        self.ctx = ctx
        self.cancelled = False
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._outbox: deque[Callable[[], Awaitable[object]] | None] = deque()
        self._outbox_event = asyncio.Event()
        self._open_questions: set[Future[Mapping[str, JsonObject] | Exception]] = set()
        self._min_log_level = _min_log_level(ctx)
        self.shutdown_future: asyncio.Future[None] = self._loop.create_future()

    # -------------------------------------------------------------- messages of the tool

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification; the SDK drops it if the client gave no token."""
        self._enqueue(lambda: self.ctx.session.report_progress(done, total, message))

    def log(self, level: str, data: Any) -> None:
        """Send a log message if its level is at least the minimum level for the client."""
        if level in LOG_LEVELS and LOG_LEVELS.index(level) >= self._min_log_level:
            self._enqueue(lambda: self._send_log(level, data))

    async def _send_log(self, level: Any, data: Any) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=self._logger)
        notification = types.LoggingMessageNotification(params=params)
        await self.ctx.session.send_notification(notification, self.ctx.request_id)

    def disconnect_client(self) -> None:
        """Close the stream to a client that can reconnect to get the answer."""
        close = self.ctx.close_sse_stream
        if close is not None:
            self._enqueue(close)

    def _enqueue(self, message: Callable[[], Awaitable[object]]) -> None:
        if not self.cancelled and len(self._outbox) < MAX_QUEUED_MESSAGES:
            self._outbox.append(message)
            self._loop.call_soon_threadsafe(self._outbox_event.set)

    # -------------------------------------------------------------- questions of the tool

    def supports(self, method: str) -> bool:
        """True if the client can answer this kind of question while the call waits."""
        session = self.ctx.session
        declared = session.client_capabilities
        if not session.can_send_request or declared is None:
            return False
        declared_json = declared.model_dump(by_alias=True, exclude_none=True)
        return client_supports(declared_json, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, JsonObject]:
        """Ask the client; wait for its answers until QUESTION_TIMEOUT or the call's deadline."""
        future = asyncio.run_coroutine_threadsafe(self._try_to_ask(questions), self._loop)
        self._open_questions.add(future)
        try:
            answers = future.result(self.remaining_time())
        except FutureTimeout:
            future.cancel()
            raise TimeoutExceeded(UNANSWERED_TEXT) from None
        except CancelledError:
            raise Interrupted("The client cancelled the call or did not answer it.") from None
        finally:
            self._open_questions.discard(future)
        if isinstance(answers, Exception):
            raise answers
        return answers

    async def _try_to_ask(
        self, questions: Mapping[str, Question]
    ) -> Mapping[str, JsonObject] | Exception:
        """Return the answers or the error.

        asyncio logs the error of a task if nobody waits for it, as after a cancelled call.
        """
        try:
            return await self.ask_async(questions)
        except Exception as error:
            return error

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, JsonObject]:
        """Ask the client from the event loop and return its answers."""
        return {key: await self._send_question(question) for key, question in questions.items()}

    async def _send_question(self, question: Question) -> JsonObject:
        request_type, result_type = _REQUEST_TYPES[question.method]
        message = {"method": question.method, "params": question.params()}
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            result = await asyncio.wait_for(
                self.ctx.session.send_request(
                    request_type.model_validate(message), result_type, metadata=metadata
                ),
                QUESTION_TIMEOUT,
            )
        except asyncio.TimeoutError:
            raise DependencyError(
                f"The client did not answer {question.method} within {QUESTION_TIMEOUT:g} seconds."
            ) from None
        except Exception as failure:  # the client refused, disconnected, or sent an invalid answer
            raise DependencyError(
                f"The client did not answer {question.method}: {failure}"
            ) from failure
        return result.model_dump(by_alias=True, exclude_none=True, mode="json")

    # -------------------------------------------------------------- sending

    async def run_and_flush(self, work: Awaitable[JsonObject]) -> JsonObject:
        """Return the answer of a call after all its messages are sent."""
        sender = asyncio.ensure_future(self._send_outbox())
        try:
            try:
                return await work
            finally:
                self._outbox.append(None)  # marks the end of the outbox
                self._outbox_event.set()
                if not self.cancelled:
                    await sender
        except BaseException:
            self.cancel()
            sender.cancel()
            raise

    async def _send_outbox(self) -> None:
        while True:
            await self._outbox_event.wait()
            self._outbox_event.clear()
            while self._outbox:
                message = self._outbox.popleft()
                if message is None:
                    return
                try:
                    await message()
                except Exception:  # a lost message does not fail the call
                    continue

    def stop(self) -> None:
        """End the request because the server shuts down before the call ends."""
        if not self.shutdown_future.done():
            self.shutdown_future.set_result(None)

    def cancel(self) -> None:
        """Mark the call as cancelled; the tool sees it in `ctx.cancelled`."""
        self.cancelled = True
        for question in list(self._open_questions):
            question.cancel()


def _min_log_level(ctx: Ctx) -> int:
    """Return the index of the lowest log level that the client wants."""
    if ctx.protocol_version in STATELESS_VERSIONS:
        level = (ctx.meta or {}).get(LOG_LEVEL_KEY)
        return LOG_LEVELS.index(level) if level in LOG_LEVELS else len(LOG_LEVELS)
    return LOG_LEVELS.index(connection_state(ctx).get("level", DEFAULT_LOG_LEVEL))
