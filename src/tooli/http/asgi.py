"""Api: an app's tools over HTTP, as an ASGI application that needs only the standard library.

    scope ─▶ HttpRequest ─▶ AccessControl ─▶ path ─┬▶ tool:  body ▸ PreparedCall ▸ envelope │ stream
                                                   ├▶ tool:  GET: the query is the body; /plans/
                                                   ├▶ page:  /, /health, /tools, /openapi.json
                                                   └▶ mount: /mcp

Every error is answered with an envelope.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial

from tooli.config.token_settings import OAUTH_SETTINGS, with_keywords
from tooli.core import Record
from tooli.core.call import Problem
from tooli.errors import (
    DependencyError,
    InternalError,
    Suggestion,
    check_keywords,
)
from tooli.http.access_control import AccessControl, DenialLog
from tooli.http.alias_paths import (
    ALIAS_METHODS,
    check_alias_method,
    find_alias,
    turn_into_plan,
)
from tooli.http.call_events import StreamPeer, has_context
from tooli.http.call_slots import CallSlots
from tooli.http.get_requests import turn_into_post
from tooli.http.http_request import (
    ANONYMOUS_CALLER,
    PREFERENCE_APPLIED,
    HttpDisconnect,
    HttpError,
    HttpRequest,
    caller_from_request,
    check_no_body,
    parse_arguments,
    read_json_body,
)
from tooli.http.info_pages import InfoPages
from tooli.http.mounts import Mount
from tooli.http.negotiation import choose_format, prefers_strict
from tooli.http.path_errors import (
    PAGE_METHODS,
    PLANS_PATH,
    ServerPaths,
    method_error,
    not_found_error,
    tool_methods,
)
from tooli.http.preflight import send_preflight
from tooli.http.protected_resource import WELL_KNOWN_PATH, ProtectedResource
from tooli.http.readiness import Readiness
from tooli.http.received_call import ReceivedCall, run_in_thread, run_on_loop
from tooli.http.request_options import read_options, take_body_options
from tooli.http.response_forms import CachedForm
from tooli.http.script_requests import read_script_request
from tooli.http.served_requests import read_served_request
from tooli.http.stream_response import (
    SSE,
    send_stream,
    start_stream,
    termination_error,
)
from tooli.http.uploaded_form import UploadedForm, UploadSpace, is_form
from tooli.http.version_selection import find_tool
from tooli.inputs.query import allows_get
from tooli.orchestrate.run_tool import runs_script
from tooli.pipeline.drivers import is_async
from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.caller_limits import caller_share
from tooli.serving.dispatcher import (
    MAX_CONCURRENT_CALLS,
    ToolDispatcher,
    check_root_path,
    is_installed,
    present_request_error,
)
from tooli.serving.error_log import log_exception
from tooli.serving.server_request import CANCELLED, DISCONNECTED
from tooli.serving.thread_pool import ThreadPool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from typing import TypeAlias

    from tooli.core.call import Caller
    from tooli.core.protocols import App, JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.http.protected_resource import OAuthSettingsDict
    from tooli.http.strict_validation import StrictValidator
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.serving import AsgiApp, Receive, Scope, Send

    Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

    class HttpSettingsDict(OAuthSettingsDict, total=False):
        """The keyword arguments of `app.asgi(…)`; `HttpSettings` explains them."""

        token: str | None
        scopes: Iterable[str] | None
        tokens: Mapping[str, Iterable[str] | None] | None
        allowed_hosts: Iterable[str] | None
        any_address: bool
        allowed_origins: Iterable[str]
        max_body: int
        max_upload: int
        upload_timeout: float
        body_timeout: float
        chunk_timeout: float
        heartbeat: float
        stall_timeout: float
        threads: int
        limit: int
        queue_timeout: float
        root_path: str
        tools: bool
        page: bool
        orchestrate: bool
        mounts: Mapping[str, AsgiApp]
        expose_errors: bool


_UNREAD_BODY_PROBLEM = Problem("E1008", "body", "The body was not read: send the request again")
"""Prevents a call without its arguments, if a rate limit expires while the call is refused."""

LARGE_BODY_BYTES = 1 << 16
"""A larger body is parsed in the thread that runs the call."""

READY_PATH = "/ready"

PUBLIC_PATHS = ("/", "/health", "/ready")
"""Paths that need no token, because their content is public."""

CACHED_PAGES = ("/tools", "/openapi.json", "/resources", "/prompts")
"""Pages that clients can cache."""


class HttpSettings(Record):
    """Access control and limits of the HTTP server."""

    token: str | None = None  # a token for all callers, which grants `scopes`
    scopes: Iterable[str] | None = None  # the scopes of `token`; None: all
    tokens: Mapping[str, Iterable[str] | None] | None = None  # more tokens, each with its scopes
    allowed_hosts: Iterable[str] | None = None  # the server's names; "*": any; None: loopback
    any_address: bool = False  # also allow an IP address as Host
    allowed_origins: Iterable[str] = ()  # whose pages may call; "http://localhost:*": any port
    max_body: int = 4 << 20  # bytes of a request body
    max_upload: int = 64 << 20  # bytes of the files of a request
    upload_timeout: float = 300.0  # seconds for a request body with files
    body_timeout: float = 30.0  # seconds for a whole request body
    chunk_timeout: float = 10.0  # seconds for one chunk of it
    heartbeat: float = 15.0  # seconds until an idle event stream sends a comment
    stall_timeout: float = 60.0  # seconds that a stream waits for a client that does not read
    threads: int = 32  # sync functions that run at a time
    limit: int = MAX_CONCURRENT_CALLS  # concurrent calls; further ones wait
    queue_timeout: float = 10.0  # seconds that a call waits for others; then it gets status 503
    root_path: str = ""  # the prefix of the server's URLs, if a proxy adds one: "/shop"
    tools: bool = True  # serve the tools and their descriptions
    page: bool = True  # serve the HTML page at /
    orchestrate: bool = True  # run scripts that call the tools: POST /orchestrate
    mounts: Mapping[str, AsgiApp] = {}  # other ASGI applications, by path; same access control
    expose_errors: bool = False  # send the texts of unexpected exceptions to clients (development)
    resource_url: str | None = None  # the URL of the server for clients; tokens are issued for it
    token_issuer: str | None = None  # the authorization server; its metadata names its keys
    token_audience: str | None = None  # the audience of tokens, if it is not `resource_url`
    token_jwks_url: str | None = None  # the URL of the keys, if the metadata does not name it
    token_scopes: str | None = None  # scopes that a client without a token requests; None: all
    introspection_url: str | None = None  # where the authorization server verifies tokens
    introspection_client: str | None = None  # the client id for `introspection_url`
    introspection_secret: str | None = None  # its secret: "env:NAME" or "@FILE"

    def __repr__(self) -> str:
        """Return a text without the tokens, since it may be logged."""
        requires_token = self.token is not None or bool(self.tokens)
        return f"HttpSettings({'secured' if requires_token else 'open'}, max_body={self.max_body})"


def make_api(app: App, kwargs: HttpSettingsDict) -> Api:
    """Return the ASGI application of an app; the settings are keyword arguments."""
    check_keywords("asgi", kwargs, HttpSettings.__match_args__)
    return Api(app, HttpSettings(**kwargs))


class Api:
    """The ASGI application of one app."""

    def __init__(self, app: App, settings: HttpSettings) -> None:
        self.dispatcher = ToolDispatcher(app)
        self.settings = settings
        self.root_path = check_root_path(settings.root_path)
        self.mounts = [Mount(path, inner) for path, inner in settings.mounts.items()]
        keywords = {name: getattr(settings, name) for name in OAUTH_SETTINGS}
        rules = with_keywords(app._state.security_settings, keywords)
        resource = ProtectedResource(
            rules,
            app._state.name,
            self.dispatcher.find_scopes,
            [mount.path for mount in self.mounts],
            self.root_path,
        )
        self.access_control = AccessControl(
            settings, self.dispatcher.make_verifier(rules), resource
        )
        self._pages = InfoPages(self.dispatcher, self.access_control.requires_token, settings)
        self._thread_pool = ThreadPool(settings.threads, share=caller_share(settings.threads))
        self._slots = CallSlots(settings.limit, self._thread_pool, settings.queue_timeout)
        self._upload_space = UploadSpace(settings)
        self._denial_log = DenialLog(app)
        self._readiness = Readiness(app._state, self.mounts)
        self._strict_validator: StrictValidator | None = None
        self._restore_stdout: Callable[[], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the lifespan protocol."""
        kind = scope["type"]
        if kind == "http":
            if self.root_path and not scope.get("root_path"):
                scope = {**scope, "root_path": self.root_path}
            request = HttpRequest(scope, receive, send)
            request.url_prefix = self.root_path or request.url_prefix
            request.server_request.exposes_errors = self.settings.expose_errors
            try:
                await self._handle(request)
            except (Exception, asyncio.CancelledError) as exc:
                await self._handle_exception(request, exc)
            finally:
                request.log_end()
        elif kind == "lifespan":
            await self._run_lifespan(scope, receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _handle_exception(self, request: HttpRequest, exc: BaseException) -> None:
        """Answer a request that raised an exception, if the response has not started."""
        entry = request.server_request
        if isinstance(exc, HttpError):
            error = exc.error
            await self._send_error(request, error, *exc.headers)
            if self._denial_log.should_record(error):
                record = partial(self._denial_log.record, error, request.address)
                await self._thread_pool.run(record, request.caller_key)
        elif isinstance(exc, asyncio.CancelledError):
            entry.code = entry.code or CANCELLED
            if not request.is_response_started:
                await self._send_error(request, termination_error())
            raise exc
        elif isinstance(exc, HttpDisconnect):
            entry.code = DISCONNECTED
        else:
            entry.is_id_shown = True
            log_exception(exc, entry, "A request")
            if request.is_response_started:
                raise exc
            await self._send_error(request, InternalError("Internal server error."))

    async def _send_error(
        self, request: HttpRequest, error: ToolError, *headers: tuple[bytes, bytes]
    ) -> None:
        entry = request.server_request
        entry.code = error.code
        caller = ANONYMOUS_CALLER
        if request.url_prefix:
            caller = caller.replace(url_prefix=request.url_prefix)
        presented = present_request_error(self.dispatcher.app, caller, error, entry)
        await request.respond(presented.http_status, presented.envelope_json(), *headers)

    # -------------------------------------------------------------- routing

    @property
    def paths(self) -> Mapping[str, Tool]:
        """The tools by path: `/tools/users/list`, `/tools/users.list` and `/tools/users_list`."""
        return self.dispatcher.cached("paths", self._build_paths)

    def _build_paths(self) -> Mapping[str, Tool]:
        paths: dict[str, Tool] = {}
        tools: Mapping[str, Tool] = self.dispatcher.tools if self.settings.tools else {}
        for name, tool in tools.items():
            for suffix in ("/".join(tool.path), tool.key, name):
                paths.setdefault(f"/tools/{suffix}", tool)
        for tool in tools.values():  # a tool's own path wins over the name of another tool
            paths[f"/tools/{'/'.join(tool.path)}"] = tool
        return paths

    async def _handle(self, request: HttpRequest) -> None:
        self.access_control.check_request(request)
        path, method = request.path, request.method
        if path[-1:] == "/" and path != "/":
            path = path[:-1]
        if method == "OPTIONS" and b"access-control-request-method" in request.headers:
            await send_preflight(request)
            return
        access_control = self.access_control
        if path.startswith(WELL_KNOWN_PATH) and access_control.resource.has_metadata:
            await access_control.resource.send_document(request, self.dispatcher.app)
            return
        mount = next((mount for mount in self.mounts if mount.matches(path)), None)
        if access_control.requires_token and (mount is not None or path not in PUBLIC_PATHS):
            await access_control.identify(request)
        if path == READY_PATH and method in ("GET", "HEAD"):
            await self._readiness.respond(request)
            return
        served = read_served_request(self, request, path)
        served = served or read_script_request(self, request, path)
        tool = served or find_tool(self, request, path)
        if tool is not None and tool.lifespans:
            await self._readiness.start()  # unless a server has sent `lifespan.startup`
        if served is not None:
            await self._call_tool(request, served)
        elif tool is not None and method == "POST":
            is_json = request.headers.get(b"content-type") == b"application/json"
            call = self._call_tool if is_json or not is_form(request, tool) else self._call_form
            await call(request, tool)
        elif tool is not None and method in ("GET", "HEAD") and allows_get(tool):
            self.access_control.check_site(request)  # a browser has not asked this server first
            turn_into_post(request, tool, request.url_prefix)
            await self._call_tool(request, tool)
        elif (named := find_alias(self, request, path)) is not None:
            if method == "OPTIONS":
                await request.respond_empty(204, (b"allow", ALIAS_METHODS))
                return
            check_alias_method(request, named, request.url_prefix)
            if path.startswith(PLANS_PATH):
                turn_into_plan(request)
                await self._call_tool(request, named)
            else:
                await self._call_form(request, named)
        elif mount is not None:
            await self._pass_to_mount(request, mount)
        else:
            await self._send_page(request, path, tool)

    async def _pass_to_mount(self, request: HttpRequest, mount: Mount) -> None:
        check_no_body(request)
        self.access_control.check_site(request)
        caller_key = request.caller_key
        await self._slots.enter(caller_key)
        try:
            await self._readiness.start()
            if not mount.is_running:
                await mount.start({})
            last_event, challenge = self._wait_for_last_event, self.access_control.challenge
            await mount.respond(request, self.settings, last_event, challenge)
        finally:
            self._slots.leave(caller_key)

    async def _send_page(self, request: HttpRequest, path: str, tool: Tool | None) -> None:
        """Send a page, or the error for a path or method that does not exist."""
        method, root = request.method, request.url_prefix
        if tool is None and path not in self._pages.paths():
            mounts = [mount.path for mount in self.mounts]
            view = self.dispatcher.view(request.scopes)
            known = ServerPaths(root, self.paths, self._pages.paths(), mounts, view)
            raise HttpError(not_found_error(self.dispatcher.app, path, known))
        allowed = PAGE_METHODS if tool is None else tool_methods(tool)
        if method == "OPTIONS":
            await request.respond_empty(204, (b"allow", allowed))
        elif tool is None and method in ("GET", "HEAD"):
            check_no_body(request)
            if path == "/" and not request.scope["path"].endswith("/"):
                # the links of the page are relative to its folder
                location = (b"location", f"{root}/".encode())
                await request.respond_empty(307, location, (b"content-length", b"0"))
                return
            body, headers = self._pages.get(path, self.dispatcher.view(request.scopes), root)
            request.cached_form = CachedForm() if path in CACHED_PAGES else request.cached_form
            await request.respond(200, body, *headers)
        else:
            raise method_error(root + path, method, tool, allowed)

    async def _wait_for_last_event(self, request: HttpRequest) -> bytes:
        """Wait until the token of a request is no longer valid; return the event that says so."""
        error = await self.access_control.wait_until_revoked(request)
        presented = present_request_error(self.dispatcher.app, ANONYMOUS_CALLER, error)
        return SSE.failure % presented.envelope_json()

    # -------------------------------------------------------------- calls

    async def _call_tool(
        self, request: HttpRequest, tool: Tool, form: UploadedForm | None = None
    ) -> None:
        slots = self._slots
        caller, caller_key = caller_from_request(request, tool), request.caller_key
        await slots.enter(caller_key)
        held_bytes = 0
        try:
            await slots.wait_for_room()
            is_refused = self.dispatcher.is_refused(tool, caller)
            body = b""
            if form is not None and not is_refused:
                await form.read()
            elif not is_refused:
                body = await read_json_body(request, self.settings)
            size = len(body) if form is None else form.memory_bytes
            if size > LARGE_BODY_BYTES:
                slots.hold_body(caller_key, size)
                held_bytes = size
            stream_format = choose_format(tool, request.headers.get(b"accept"))
            has_events = stream_format in ("sse", "events") and has_context(tool)
            peer = StreamPeer() if has_events else None
            prepared = await self._read_call(
                request, tool, caller, body, form, is_refused=is_refused, peer=peer
            )
            del body
            if stream_format == "json":
                await slots.start()
                try:
                    status, body, headers = await self._run_call(prepared, tool, caller_key)
                finally:
                    slots.end()
                if status == 403:
                    headers = self.access_control.resource.complete_challenge(request, headers)
                await request.respond(status, body, *headers)
                return
            await slots.start()
            try:
                source = start_stream(
                    prepared.prepare(),
                    slots.open_streams,
                    caller_key,
                    peer,
                    yields_items=tool.is_streaming,
                )
            finally:
                slots.end()  # the open stream counts from here on
        finally:
            if held_bytes:
                slots.free_body(caller_key, held_bytes)
            slots.leave(caller_key)
        await send_stream(request, source, stream_format, self.settings, self.access_control)
        request.server_request.code = request.server_request.code or DISCONNECTED

    async def _call_form(self, request: HttpRequest, tool: Tool) -> None:
        """Answer a request whose body is a form with files. The files are removed at the end."""
        form = UploadedForm(request, tool, self.settings, self._upload_space)
        try:
            await self._call_tool(request, tool, form)
        finally:
            form.remove()

    async def _read_call(
        self,
        request: HttpRequest,
        tool: Tool,
        caller: Caller,
        body: bytes,
        form: UploadedForm | None,
        *,
        is_refused: bool,
        peer: StreamPeer | None,
    ) -> ReceivedCall:
        """Read the options and the body of a request, and return its call.

        The thread that runs the call parses a large body. So calls that wait for a thread keep the
        bytes, which need less memory, and the event loop does not wait for the parser.
        """
        options, problems = read_options(request.query, request.headers)
        arguments: JsonObject | None = None
        if is_refused:
            arguments, problems = {}, (_UNREAD_BODY_PROBLEM,)
        elif form is not None:
            arguments = await asyncio.to_thread(form.arguments)
        elif len(body) <= LARGE_BODY_BYTES:
            arguments = parse_arguments(body)
        elif (
            tool.is_streaming
            or tool.needs_loop
            or is_async(tool.fn)
            or b"prefer" in request.headers
        ):
            parse = partial(parse_arguments, body)
            arguments = await self._thread_pool.run(parse, request.caller_key)
        is_json = arguments is not None and form is None and not is_refused
        if arguments is not None and is_json and b"prefer" in request.headers:
            problems += await self._apply_prefer_header(request, tool, arguments)

        def prepare() -> PreparedCall:
            given = parse_arguments(body) if arguments is None else arguments
            given, all_options, found = take_body_options(tool, given, options)
            return self.dispatcher.prepare(
                *(tool, given, caller),
                options=all_options,
                problems=(*problems, *found),
                request=request.server_request,
                peer=peer,
            )

        receive = request.receive if runs_script(tool) else None
        return ReceivedCall(prepare, is_parsed=arguments is not None, receive=receive)

    async def _run_call(
        self, received: ReceivedCall, tool: Tool, caller_key: str
    ) -> tuple[int, bytes, Headers]:
        if tool.returns_printed_text and self._restore_stdout is None:
            self._redirect_stdout()
        if not received.is_parsed:
            return await self._thread_pool.run(received.run, caller_key)
        prepared = received.prepare()
        if prepared.is_async:
            return await run_on_loop(prepared, received.receive)
        return await self._thread_pool.run(partial(run_in_thread, prepared), caller_key)

    async def _apply_prefer_header(
        self, request: HttpRequest, tool: Tool, arguments: JsonObject
    ) -> tuple[Problem, ...]:
        """Validate the arguments if the header asks for strict handling; return the problems."""
        if not prefers_strict(request.headers[b"prefer"]):
            return ()
        if not is_installed("jsonschema"):
            run = "Run: pip install 'tooli[http]>=7.0a1'"
            fix = f"{run}, or omit the header 'Prefer: handling=strict'."
            message = "Strict handling needs jsonschema, which is not installed."
            raise HttpError(DependencyError(message, suggestion=Suggestion("fix", fix)))
        from tooli.http.strict_validation import StrictValidator

        validator = self._strict_validator = self._strict_validator or StrictValidator()
        problems = await self._thread_pool.run(
            partial(validator.problems, tool, arguments), request.caller_key
        )
        request.extra_headers = (*request.extra_headers, PREFERENCE_APPLIED)
        return problems

    # -------------------------------------------------------------- lifespan

    def _redirect_stdout(self) -> None:
        self._restore_stdout = route_stdout()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Run the server within the lifespan of another application, which mounts it.

        `FastAPI(lifespan=api.lifespan)` passes itself as `app`. Without a lifespan, what the
        server needs starts with the first request, and ends with the event loop.
        """
        del app
        await self._start_up({})
        try:
            yield
        finally:
            await self._shut_down()

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._start_up(scope.get("state", {}))
                except Exception as exc:
                    log_exception(exc, None, "The start of the server")
                    message = f"{type(exc).__name__}; the log has its traceback"
                    await send({"type": "lifespan.startup.failed", "message": message})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                try:
                    await self._shut_down()
                except Exception as exc:
                    log_exception(exc, None, "The end of the server")
                    await send({"type": "lifespan.shutdown.failed", "message": repr(type(exc))})
                    return
                await send({"type": "lifespan.shutdown.complete"})
                return

    def begin_shutdown(self) -> None:
        """Report at `/ready` that the server takes no more calls."""
        self._readiness.is_shutting_down = True

    async def _start_up(self, state: object) -> None:
        self._readiness.is_shutting_down = False
        self._redirect_stdout()
        await self._readiness.start(state)

    async def _shut_down(self) -> None:
        self.begin_shutdown()
        try:
            await self._readiness.stop()
        finally:
            self._thread_pool.shut_down()
            if self._restore_stdout is not None:
                self._restore_stdout()
                self._restore_stdout = None
