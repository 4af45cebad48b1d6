"""Api: an app's tools over HTTP, as an ASGI application that needs only the standard library.

    scope ─▶ HttpRequest ─▶ AccessControl ─▶ path ─┬▶ tool:  body ▸ PreparedCall ▸ envelope │ stream
                                                   ├▶ page:  /, /health, /tools, /openapi.json
                                                   └▶ mount: /mcp

Every error is answered with an envelope.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from importlib.resources import files
from secrets import token_urlsafe
from traceback import print_exception

from tooli.core import Record
from tooli.core._hot_tables import HTTP_HEADERS
from tooli.core.call import Problem
from tooli.core.options import OPTIONS
from tooli.describe.openapi_document import build_openapi
from tooli.describe.schema_formats import describe_tool
from tooli.errors import (
    DependencyError,
    InputError,
    InternalError,
    Suggestion,
    check_keywords,
)
from tooli.http.access_control import AccessControl, DenialLog
from tooli.http.call_slots import CallSlots
from tooli.http.http_request import (
    ANONYMOUS_CALLER,
    PREFERENCE_APPLIED,
    HttpDisconnect,
    HttpError,
    HttpRequest,
    caller_from_request,
    check_no_body,
    negotiate_stream_format,
    parse_arguments,
    prefers_strict,
    read_json_body,
    read_options,
)
from tooli.http.mounts import Mount
from tooli.http.stream_response import (
    SSE,
    failure_headers,
    send_stream,
    start_stream,
    termination_error,
)
from tooli.pipeline.drivers import is_async
from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.caller_limits import caller_share
from tooli.serving.dispatcher import (
    MAX_CONCURRENT_CALLS,
    ToolDispatcher,
    is_installed,
    present_request_error,
    unknown_tool_error,
)
from tooli.serving.thread_pool import ThreadPool
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias, TypedDict

    from tooli.core.call import Caller
    from tooli.core.protocols import App, JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.http.strict_validation import StrictValidator
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented
    from tooli.serving import AsgiApp, Receive, Scope, Send

    Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

    class HttpSettingsDict(TypedDict, total=False):
        """The keyword arguments of `app.asgi(…)`; `HttpSettings` explains them."""

        token: str | None
        scopes: Iterable[str] | None
        tokens: Mapping[str, Iterable[str] | None] | None
        allowed_hosts: Iterable[str] | None
        any_address: bool
        allowed_origins: Iterable[str]
        max_body: int
        body_timeout: float
        chunk_timeout: float
        heartbeat: float
        stall_timeout: float
        threads: int
        limit: int
        tools: bool
        page: bool
        mounts: Mapping[str, AsgiApp]


_UNREAD_BODY_PROBLEM = Problem("E1008", "body", "The body was not read: send the request again")
"""Prevents a call without its arguments, if a rate limit expires while the call is refused."""

LARGE_BODY_BYTES = 1 << 16
"""A larger body is parsed in the thread that runs the call."""

PUBLIC_PATHS = ("/", "/health")
"""Paths that need no token, because their content is public."""

_PAGE_METHODS, _TOOL_METHODS = b"GET, HEAD, OPTIONS", b"POST, OPTIONS"
_ALLOWED_HEADERS = (
    b"authorization, content-type, accept, tooli-caller, tooli-caller-version, tooli-session-id, "
    b"mcp-session-id, mcp-protocol-version, last-event-id, prefer, " + b", ".join(HTTP_HEADERS)
)


class HttpSettings(Record):
    """Access control and limits of the HTTP server."""

    token: str | None = None  # a token for all callers, which grants `scopes`
    scopes: Iterable[str] | None = None  # None: all scopes
    tokens: Mapping[str, Iterable[str] | None] | None = None  # more tokens, each with its scopes
    allowed_hosts: Iterable[str] | None = None  # None: the loopback names; "*": any
    any_address: bool = False  # also allow an IP address as Host
    allowed_origins: Iterable[str] = ()  # "http://localhost:*": any port
    max_body: int = 4 << 20
    body_timeout: float = 30.0  # seconds for a whole request body
    chunk_timeout: float = 10.0  # seconds for one chunk of it
    heartbeat: float = 15.0  # seconds until an idle event stream sends a comment
    stall_timeout: float = 60.0  # seconds that a stream waits for a client that does not read
    threads: int = 32
    limit: int = MAX_CONCURRENT_CALLS  # concurrent calls; further ones get status 503
    tools: bool = True  # serve the tools and their descriptions
    page: bool = True  # serve the HTML page at /
    mounts: Mapping[str, AsgiApp] = {}  # other ASGI applications, by path; same access control

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
        self.access_control = AccessControl(settings, self.dispatcher.make_verifier())
        self.mounts = [Mount(path, inner) for path, inner in settings.mounts.items()]
        self._pages = InfoPages(self.dispatcher, self.access_control.requires_token, settings)
        self._thread_pool = ThreadPool(settings.threads, share=caller_share(settings.threads))
        self._slots = CallSlots(settings.limit, self._thread_pool)
        self._denial_log = DenialLog(app)
        self._strict_validator: StrictValidator | None = None
        self._restore_stdout: Callable[[], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the lifespan protocol."""
        kind = scope["type"]
        if kind == "http":
            request = HttpRequest(scope, receive, send)
            try:
                await self._handle(request)
            except (Exception, asyncio.CancelledError) as exc:
                await self._handle_exception(request, exc)
        elif kind == "lifespan":
            await self._run_lifespan(scope, receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _handle_exception(self, request: HttpRequest, exc: BaseException) -> None:
        """Answer a request that raised an exception, if the response has not started."""
        if isinstance(exc, HttpError):
            error = exc.error
            await self._send_error(request, error, *exc.headers)
            if self._denial_log.should_record(error):
                record = partial(self._denial_log.record, error, request.address)
                await self._thread_pool.run(record, request.caller_key)
        elif isinstance(exc, asyncio.CancelledError):
            if not request.is_response_started:
                await self._send_error(request, termination_error())
            raise exc
        elif not isinstance(exc, HttpDisconnect):
            print_exception(exc, file=sys.stderr)  # for the operator of the server
            if request.is_response_started:
                raise exc
            await self._send_error(request, InternalError("Internal server error."))

    async def _send_error(
        self, request: HttpRequest, error: ToolError, *headers: tuple[bytes, bytes]
    ) -> None:
        presented = present_request_error(self.dispatcher.app, ANONYMOUS_CALLER, error)
        await request.respond(presented.http_status, presented.envelope_json(), *headers)

    # -------------------------------------------------------------- routing

    @property
    def paths(self) -> Mapping[str, Tool]:
        """The tools by path.

        A tool has three paths: `/tools/users/list`, `/tools/users.list` and `/tools/users_list`.
        """
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
        if method == "OPTIONS" and b"access-control-request-method" in request.headers:
            await self._send_preflight(request)
            return
        mount = next((mount for mount in self.mounts if mount.matches(path)), None)
        if mount is not None or path not in PUBLIC_PATHS:
            self.access_control.identify(request)
        tool = self.paths.get(path)
        if tool is not None and method == "POST":
            await self._call_tool(request, tool)
            return
        if mount is not None:
            check_no_body(request)
            self.access_control.check_site(request)
            caller_key = request.caller_key
            self._slots.enter(caller_key)
            try:
                await mount.respond(request, self.settings, self._wait_for_last_event)
            finally:
                self._slots.leave(caller_key)
            return
        if tool is None and path not in self._pages.paths():
            raise HttpError(self._not_found_error(path))
        allowed = _PAGE_METHODS if tool is None else _TOOL_METHODS
        if method == "OPTIONS":
            await request.respond_empty(204, (b"allow", allowed))
        elif tool is None and method in ("GET", "HEAD"):
            check_no_body(request)
            body, headers = self._pages.get(path)
            await request.respond(200, body, *headers)
        else:
            message = f"{path} does not allow {method}. It allows {allowed.decode()}."
            raise HttpError(InputError(message, code="E1405"), (b"allow", allowed))

    async def _wait_for_last_event(self, request: HttpRequest) -> bytes:
        """Wait until the token of a request is no longer valid; return the event that says so."""
        error = await self.access_control.wait_until_revoked(request)
        presented = present_request_error(self.dispatcher.app, ANONYMOUS_CALLER, error)
        return SSE.failure % presented.envelope_json()

    async def _send_preflight(self, request: HttpRequest) -> None:
        """Answer a CORS preflight request with the methods and headers that a page may send."""
        headers = [
            (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
            (b"access-control-allow-headers", _ALLOWED_HEADERS),
            (b"access-control-max-age", b"600"),
        ]
        if request.headers.get(b"access-control-request-private-network"):
            headers.append((b"access-control-allow-private-network", b"true"))
        await request.respond_empty(204, *headers)

    def _not_found_error(self, path: str) -> ToolError:
        """Return the error for an unknown path; below /tools/ it is an unknown command."""
        if not path.startswith("/tools/"):
            places = ", ".join(["/tools/{command}", *self._pages.paths()])
            return InputError(
                "Unknown path.",
                code="E1404",
                suggestion=Suggestion("retry_with_modified_input", f"Use one of: {places}."),
            )
        return unknown_tool_error(self.dispatcher.app, path[len("/tools/") :][:200])

    # -------------------------------------------------------------- calls

    async def _call_tool(self, request: HttpRequest, tool: Tool) -> None:
        slots = self._slots
        slots.check()  # refuses the request before its body is read
        caller, caller_key = caller_from_request(request, tool), request.caller_key
        slots.enter(caller_key)
        held_bytes = 0
        try:
            is_refused = self.dispatcher.is_refused(tool, caller)
            body = b"" if is_refused else await read_json_body(request, self.settings)
            if len(body) > LARGE_BODY_BYTES:
                slots.hold_body(caller_key, len(body))
                held_bytes = len(body)
            prepared = await self._read_call(request, tool, caller, body, is_refused=is_refused)
            del body
            stream_format = (
                negotiate_stream_format(request.headers.get(b"accept"))
                if tool.is_streaming
                else "json"
            )
            if stream_format == "json":
                slots.start()
                try:
                    status, body, headers = await self._run_call(prepared, tool, caller_key)
                finally:
                    slots.end()
                await request.respond(status, body, *headers)
                return
            slots.check()
            source = start_stream(prepared.prepare(), slots.open_streams, caller_key)
        finally:
            if held_bytes:
                slots.free_body(caller_key, held_bytes)
            slots.leave(caller_key)
        await send_stream(request, source, stream_format, self.settings, self.access_control)

    async def _read_call(
        self, request: HttpRequest, tool: Tool, caller: Caller, body: bytes, *, is_refused: bool
    ) -> _ReceivedCall:
        """Read the options and the body of a request, and return its call.

        The thread that runs the call parses a large body. So calls that wait for a thread keep the
        bytes, which need less memory, and the event loop does not wait for the parser.
        """
        options, problems = read_options(request.query, request.headers)
        arguments: JsonObject | None = None
        if is_refused:
            arguments, problems = {}, (_UNREAD_BODY_PROBLEM,)
        elif len(body) <= LARGE_BODY_BYTES:
            arguments = parse_arguments(body)
        elif tool.is_streaming or is_async(tool.fn) or b"prefer" in request.headers:
            parse = partial(parse_arguments, body)
            arguments = await self._thread_pool.run(parse, request.caller_key)
        if arguments is not None and not is_refused and b"prefer" in request.headers:
            problems += await self._apply_prefer_header(request, tool, arguments)

        def prepare() -> PreparedCall:
            given = parse_arguments(body) if arguments is None else arguments
            return self.dispatcher.prepare(tool, given, caller, options=options, problems=problems)

        return _ReceivedCall(prepare, is_parsed=arguments is not None)

    async def _run_call(
        self, received: _ReceivedCall, tool: Tool, caller_key: str
    ) -> tuple[int, bytes, Headers]:
        if tool.returns_printed_text and self._restore_stdout is None:
            self._redirect_stdout()
        if not received.is_parsed:
            return await self._thread_pool.run(received.run, caller_key)
        prepared = received.prepare()
        if prepared.is_async:
            return await _run_on_loop(prepared)
        return await self._thread_pool.run(partial(_run_in_thread, prepared), caller_key)

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

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self._redirect_stdout()
                    for mount in self.mounts:
                        await mount.start(scope.get("state", {}))
                except Exception as exc:
                    await send({"type": "lifespan.startup.failed", "message": str(exc)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._shut_down()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _shut_down(self) -> None:
        for mount in self.mounts:
            await mount.stop()
        self._thread_pool.shut_down()
        if self._restore_stdout is not None:
            self._restore_stdout()
            self._restore_stdout = None


class _ReceivedCall:
    """A call whose body was received. A large body is not parsed yet."""

    def __init__(self, prepare: Callable[[], PreparedCall], *, is_parsed: bool) -> None:
        self.prepare = prepare
        self.is_parsed = is_parsed

    def run(self) -> tuple[int, bytes, Headers]:
        """Parse the body and run the call in this thread."""
        return _run_in_thread(self.prepare())


def _run_in_thread(prepared: PreparedCall) -> tuple[int, bytes, Headers]:
    """Run a call in this thread; return the status, body and headers of its response.

    Every exception is a failure of the call: a KeyboardInterrupt in a tool does not end the server.
    """
    try:
        presented = prepared.run()
    except BaseException as exc:
        presented = prepared.fail(exc)
    return _response_parts(presented)


async def _run_on_loop(prepared: PreparedCall) -> tuple[int, bytes, Headers]:
    """Run the call of an async function on this event loop.

    Return the status, body and headers of its response.
    """
    try:
        presented = await prepared.arun()
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        presented = prepared.fail(exc)
    return _response_parts(presented)


def _response_parts(presented: Presented) -> tuple[int, bytes, Headers]:
    return presented.http_status, presented.envelope_json(), failure_headers(presented)


# ------------------------------------------------------------------ pages


class InfoPages:
    """Pages about an app. The JSON pages are cached until the app changes."""

    def __init__(
        self, dispatcher: ToolDispatcher, requires_token: bool, settings: HttpSettings
    ) -> None:
        self._dispatcher = dispatcher
        self._requires_token = requires_token
        tool_paths = ("/tools", "/openapi.json") if settings.tools else ()
        self._json_paths = ("/health", *tool_paths)
        self._html_template = _read_page() if settings.page and settings.tools else None

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all pages."""
        return ("/", *self._json_paths) if self._html_template is not None else self._json_paths

    def get(self, path: str) -> tuple[bytes, Headers]:
        """Return the page at a path, and its headers."""
        if path == "/":
            return self._render_page()
        build = self._build_document
        return self._dispatcher.cached(("page", path), lambda: encode(build(path), [])), ()

    def _build_document(self, path: str) -> JsonObject:
        state = self._dispatcher.app._state
        if path == "/health":
            return {"ok": True, "app": state.name, "version": self._dispatcher.version}
        if path == "/tools":
            return {
                "app": state.name,
                "version": self._dispatcher.version,
                "description": state.description or "",
                "prog": state.name,
                "options": describe_options(),
                "commands": [
                    _describe_command(name, tool) for name, tool in self._dispatcher.tools.items()
                ],
            }
        tools = list(self._dispatcher.tools.values())
        return build_openapi(
            state.name, state.version, state.description, tools, secured=self._requires_token
        )

    def _render_page(self) -> tuple[bytes, Headers]:
        """Return the HTML page and its headers.

        Each response has a new nonce. The browser runs only scripts that carry it.
        """
        assert self._html_template is not None
        nonce = token_urlsafe(18).encode()
        policy = (
            b"default-src 'none'; script-src 'nonce-%b'; style-src 'nonce-%b'; "
            b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
            % (nonce, nonce)
        )
        return self._html_template.replace(b"__NONCE__", nonce), (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        )


def _read_page() -> bytes | None:
    """Return the HTML page, or None if it is not installed."""
    try:
        return files("tooli.http").joinpath("page.html").read_bytes()
    except FileNotFoundError:
        return None


def describe_options() -> list[JsonObject]:
    """Return the framework options, in the format from which the page builds command lines."""
    return [
        {
            "name": option.name,
            "help": option.help,
            "flags": list(option.flags),
            "shortcuts": [flag for flag, _ in option.shortcuts],
            "takes_value": bool(option.value_name),
            "choices": list(option.choices),
            "interfaces": list(option.interfaces),
            # True: the option only changes how the command line shows an answer
            "is_display": not option.describes
            and option.group != "input"
            and "http" not in option.interfaces,
        }
        for option in OPTIONS
    ]


def _describe_command(name: str, tool: Tool) -> JsonObject:
    """Return the description of a tool from which the page builds a form and a command line."""
    described = describe_tool(tool, "json")
    described["path"] = list(tool.path)
    described["cli_path"] = list(tool.cli_path)
    described["mcp_name"] = name
    described["positional"] = [p.name for p in tool.command_params if p.kind == "argument"]
    flags = {p.name: max(p.flags, key=len) for p in tool.command_params if p.flags}
    described["flags"] = flags
    described["negations"] = {
        p.name: max(p.negations, key=len) for p in tool.command_params if p.negations
    }
    if tool.is_streaming:
        described["streams"] = True
    return described
