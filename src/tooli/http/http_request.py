"""HttpRequest: one ASGI request and its response, and the functions that read a call from it."""

from __future__ import annotations

import asyncio
from json import JSONDecoder

from tooli.core._hot_tables import HTTP_HEADERS
from tooli.core.call import Caller
from tooli.core.caller_key import caller_key
from tooli.errors import InputError, Suggestion
from tooli.http.response_forms import adapt_response
from tooli.serving.dispatcher import path_without_root
from tooli.serving.server_request import ServerRequest, log_access, new_request_id
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Awaitable, Coroutine, Generator, Iterable
    from typing import Any, NoReturn, TypeVar

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.http.asgi import Headers, HttpSettings
    from tooli.http.response_forms import CachedForm
    from tooli.serving import Message, Receive, Scope, Send

    T = TypeVar("T")

JSON_CONTENT_TYPE = (b"content-type", b"application/json")
NOSNIFF = (b"x-content-type-options", b"nosniff")
NO_STORE = (b"cache-control", b"no-store")
BODY_METHODS = ("POST", "PUT", "PATCH")
"""Methods of requests that can have a body."""

RETRY_AFTER = (b"retry-after", b"1")
"""The header of a response with status 429 or 503 whose error does not say when to retry."""

CONNECTION_CLOSE = (b"connection", b"close")
PREFERENCE_APPLIED = (b"preference-applied", b"handling=strict")

_SINGLE_VALUE_HEADERS = frozenset(
    (
        *(b"host", b"origin", b"authorization", b"content-type", b"content-length"),
        *(b"transfer-encoding", b"mcp-session-id", b"mcp-protocol-version", b"last-event-id"),
        *HTTP_HEADERS,
    )
)
_KNOWN_HEADERS = _SINGLE_VALUE_HEADERS | {
    *(b"accept", b"sec-fetch-site", b"access-control-request-method"),
    *(b"access-control-request-private-network", b"tooli-caller", b"tooli-caller-version"),
    *(b"tooli-session-id", b"prefer", b"x-request-id", b"traceparent"),
    *(b"accept-encoding", b"if-none-match"),
}


MAX_HEADERS = 200
"""Maximum number of headers of a request."""


class HttpError(Exception):
    """An error response to a request that does not reach a tool, with additional headers."""

    def __init__(self, error: ToolError, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(error.message)
        self.error = error
        self.headers = headers


class HttpDisconnect(Exception):  # noqa: N818  a disconnect is not an error
    """The client has disconnected."""


class HttpRequest:
    """An ASGI request: the parts that the server uses, and the methods that send the response."""

    __slots__ = (
        "cached_form",
        "extra_headers",
        "headers",
        "is_response_started",
        "method",
        "path",
        "principal",
        "receive",
        "scope",
        "scopes",
        "send",
        "server_request",
        "url_prefix",
        "verified_token",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.path = path_without_root(scope)
        self.url_prefix = self.root_path  # what clients write before the path
        self.is_response_started = False  # True: status and headers are sent
        self.extra_headers: Headers = ()  # headers that are added to the response
        self.scopes: frozenset[str] | None = frozenset()  # scopes of the caller; None: all
        self.principal: str | None = None  # identity of the caller, from its token
        self.verified_token: bytes | None = None  # a token that may expire or be revoked
        self.headers: dict[bytes, bytes] = {}
        self.server_request = ServerRequest("http", new_request_id())
        self.cached_form: CachedForm | None = None  # set if clients can cache the answer

    def read_headers(self) -> None:
        """Read the headers that the server uses.

        Raises an HttpError if a header that may have only one value is repeated.
        """
        found = self.headers
        received = self.scope["headers"]
        if len(received) > MAX_HEADERS:
            message = f"The request has more than {MAX_HEADERS} headers."
            raise HttpError(InputError(message, code="E1400"), CONNECTION_CLOSE)
        for name, value in received:
            if name in _KNOWN_HEADERS:
                if name not in found:
                    found[name] = value
                elif name in _SINGLE_VALUE_HEADERS:
                    header = name.decode("ascii")
                    message = f"The header {header} is sent more than once."
                    raise HttpError(InputError(message, code="E1400"), CONNECTION_CLOSE)
                else:
                    found[name] += b", " + value
        self.server_request.read_headers(found)
        if b"transfer-encoding" in found and b"content-length" in found:
            # a proxy may have used the other header to find the end of the request
            message = "The request has the headers transfer-encoding and content-length: send one."
            raise HttpError(InputError(message, code="E1400"), CONNECTION_CLOSE)

    @property
    def root_path(self) -> str:
        """The prefix at which another application or a proxy serves the app: `/shop`."""
        root: str = self.scope.get("root_path") or ""
        return root.rstrip("/")

    @property
    def address(self) -> str:
        """The client's address as the server sees it."""
        client = self.scope.get("client")
        return str(client[0]) if client and client[0] else "network"

    @property
    def caller_key(self) -> str:
        """The key under which the open requests and threads of the caller are counted."""
        return caller_key(self.principal, self.address)

    @property
    def query(self) -> bytes:
        """The query string."""
        return self.scope.get("query_string", b"")

    # -------------------------------------------------------------- the response

    def common_headers(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers that every response has: the request id, and when to retry."""
        self.server_request.status = status
        common = ((b"x-request-id", self.server_request.id.encode("ascii")), *self.extra_headers)
        if status in (429, 503) and not any([name == b"retry-after" for name, _ in headers]):
            return (*common, RETRY_AFTER)
        return common

    def log_end(self) -> None:
        """Write the request to the access log, unless the log has the line of its MCP call."""
        entry = self.server_request
        if entry.surface == "http":
            entry.method, entry.path = self.method, self.scope["path"]
            entry.address, entry.principal = self.address, self.principal
            log_access(entry)

    async def respond(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        """Send a complete response. It is JSON unless the first header is a content type."""
        if status != 200 or self.method != "POST":
            status, body, headers = await adapt_response(self, status, body, headers)
            if status == 304:
                await self.respond_empty(304, *headers)
                return
        head = [
            *(() if headers and headers[0][0] == b"content-type" else (JSON_CONTENT_TYPE,)),
            (b"content-length", b"%d" % len(body)),
            NOSNIFF,
            *headers,
            *self.common_headers(status, headers),
        ]
        self.is_response_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": head})
        if self.method == "HEAD":
            body = b""
        await self.send({"type": "http.response.body", "body": body})

    async def respond_empty(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        """Send a response without a body."""
        self.is_response_started = True
        head = [*headers, *self.common_headers(status, headers)]
        await self.send({"type": "http.response.start", "status": status, "headers": head})
        await self.send({"type": "http.response.body", "body": b""})

    async def start_response(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        """Send the status and headers of a response whose body follows in chunks."""
        self.is_response_started = True
        common = self.common_headers(status, headers)
        head: Iterable[tuple[bytes, bytes]] = [*headers, NOSNIFF, NO_STORE, *common]
        await self.send({"type": "http.response.start", "status": status, "headers": head})

    async def write(self, chunk: bytes, *, is_last: bool = False) -> None:
        """Send one chunk of the body; waits for a client that reads slowly."""
        await self.send({"type": "http.response.body", "body": chunk, "more_body": not is_last})


# ------------------------------------------------------------------ the body


_MAX_LENGTH_DIGITS = 19  # `int` raises a ValueError for thousands of digits


async def read_json_body(request: HttpRequest, settings: HttpSettings) -> bytes:
    """Return the body of a call, which must be JSON unless it is empty."""
    content_type = request.headers.get(b"content-type")
    if content_type is not None and content_type != b"application/json":
        _check_content_type(content_type)
    body = await read_body(request, settings)
    if body and content_type is None:
        raise _content_type_error("no type")
    return body


# ------------------------------------------------------------------ bytes


async def read_body(request: HttpRequest, settings: HttpSettings) -> bytes:
    """Return the body. Raises an HttpError if it is too large or arrives too slowly."""
    length = request.headers.get(b"content-length")
    if length is not None:
        if not length.isdigit():
            message = "The header content-length is not a number of bytes."
            raise HttpError(InputError(message, code="E1400"), CONNECTION_CLOSE)
        if len(length) > _MAX_LENGTH_DIGITS or int(length) > settings.max_body:
            raise _body_too_large_error(settings)
    try:
        message = await wait_with_timeout(settings.chunk_timeout, request.receive())
        body = _body_chunk(message)
        if message.get("more_body"):
            body = await _read_remaining(body, request, settings)
    except ClientTimeout:
        raise body_timeout_error() from None
    if len(body) > settings.max_body:
        raise _body_too_large_error(settings)
    return body


def check_no_body(request: HttpRequest) -> None:
    """Raise an HttpError if a request has a body and its method allows none.

    Nothing reads such a body, so a client that does not send it would keep the request open.
    """
    if request.method in BODY_METHODS:
        return
    length = request.headers.get(b"content-length", b"0")
    if length.strip(b"0") or b"transfer-encoding" in request.headers:
        message = f"A {request.method} request cannot have a body. Send it without a body."
        raise HttpError(InputError(message, code="E1400"), CONNECTION_CLOSE)


async def _read_remaining(
    first_chunk: bytes, request: HttpRequest, settings: HttpSettings
) -> bytes:
    """Read the rest of a body and return the body. Stops once it exceeds the size limit."""
    chunks, size, more = [first_chunk], len(first_chunk), True
    now = asyncio.get_running_loop().time
    deadline = now() + settings.body_timeout
    while more and size <= settings.max_body:
        message = await wait_with_timeout(
            min(settings.chunk_timeout, deadline - now()), request.receive()
        )
        chunks.append(_body_chunk(message))
        size += len(chunks[-1])
        more = message.get("more_body")
    return b"".join(chunks)


def _body_chunk(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise HttpDisconnect
    return message.get("body", b"")


def _check_content_type(content_type: bytes) -> None:
    """Raise an HttpError unless the content type is JSON.

    This rejects HTML forms of other sites, because forms cannot send JSON.
    """
    media_type, _, parameters = content_type.decode("latin-1").lower().partition(";")
    media_type = media_type.strip()
    is_json = media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip(' "') not in ("utf-8", "utf8"):
            is_json = False
    if not is_json:
        raise _content_type_error(media_type or "no type")


# ------------------------------------------------------------------ JSON


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


_decode = JSONDecoder(parse_constant=_reject_constant).decode


def parse_arguments(body: bytes) -> JsonObject:
    """Return the arguments in a body; raises an HttpError if it is not a JSON object.

    An empty body means no arguments.
    """
    if not body:
        return {}
    try:
        check_json_limits(body)
        value: object = _decode(body.decode("utf-8"))
    except JsonLimitError as failure:
        raise _invalid_body_error(str(failure)) from None
    except RecursionError:
        raise _invalid_body_error("is nested too deeply") from None
    except ValueError as failure:
        raise _invalid_body_error(f"is not valid JSON: {_describe_decode_error(failure)}") from None
    if not is_object(value):
        raise _invalid_body_error("is not a JSON object")
    return value


def _describe_decode_error(failure: ValueError) -> str:
    if isinstance(failure, UnicodeDecodeError):
        return f"the byte at {failure.start} is not UTF-8"
    return str(failure)


# ------------------------------------------------------------------ errors


def _body_error(code: str, message: str, advice: str, *, field: str | None = None) -> HttpError:
    suggestion = Suggestion("retry_with_modified_input", advice)
    return HttpError(InputError(message, code=code, field=field, suggestion=suggestion))


def _invalid_body_error(problem: str) -> HttpError:
    advice = "Send the arguments as one JSON object."
    return _body_error("E1008", f"The body {problem}.", advice, field="body")


def _content_type_error(media_type: str) -> HttpError:
    message = f"The body must be JSON, but its content type is {media_type}."
    return _body_error("E1415", message, "Send 'Content-Type: application/json'.")


def _body_too_large_error(settings: HttpSettings) -> HttpError:
    message = f"The body is larger than {settings.max_body} bytes."
    return _body_error("E1413", message, "Send a smaller body.")


def body_timeout_error() -> HttpError:
    """Return the error for a body that arrives too slowly."""
    advice = Suggestion("retry_later", "Send the whole body at once.")
    return HttpError(
        InputError("The body was not received in time.", code="E1408", suggestion=advice),
        CONNECTION_CLOSE,
    )


# ------------------------------------------------------------------ options and caller


ANONYMOUS_CALLER = Caller("http", maybe_agent=True)
"""The caller of a request that is refused before its caller is known."""
_MAX_NAME_LENGTH = 200
_MAX_ANONYMOUS_CALLERS = 1000


def caller_from_request(request: HttpRequest, tool: Tool) -> Caller:
    """Return the caller.

    The headers contain its name and session. The token determines its scopes and principal.
    """
    headers = request.headers
    name = _header_text(headers[b"tooli-caller"]) if b"tooli-caller" in headers else None
    session = _header_text(headers[b"tooli-session-id"]) if b"tooli-session-id" in headers else None
    scopes = request.scopes
    if scopes is None:  # all scopes that this tool requires
        scopes = frozenset((*(tool.guard.scopes or ()), *tool.guard.audience))
    address, principal, prefix = request.address, request.principal, request.url_prefix
    if name is None and session is None and principal is None and not scopes and not prefix:
        return _anonymous_callers.get(address) or _anonymous_caller(address)
    version = _header_text(headers.get(b"tooli-caller-version")) if name is not None else None
    return Caller(
        "http",
        name,
        version,
        session,
        scopes,
        maybe_agent=True,
        principal=principal,
        address=address,
        url_prefix=prefix,
    )


_anonymous_callers: dict[str, Caller] = {}
"""Cache of callers, by address. A cached caller has an address and nothing else."""


def _anonymous_caller(address: str) -> Caller:
    if len(_anonymous_callers) >= _MAX_ANONYMOUS_CALLERS:
        _anonymous_callers.clear()
    caller = _anonymous_callers[address] = Caller("http", maybe_agent=True, address=address)
    return caller


def _header_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace").strip()
    return text[:_MAX_NAME_LENGTH] if text and text.isprintable() else None


# ------------------------------------------------------------------ timeouts


class ClientTimeout(Exception):  # noqa: N818  a slow client is not an error of ours
    """The client took too long."""


async def wait_with_timeout(seconds: float, awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable; raise ClientTimeout if it takes longer than `seconds`.

    A coroutine first runs up to its first suspension, and only then a timer is started. Reading a
    short body and writing to a buffer with free space do not suspend, so they need no timer.
    """
    if asyncio.iscoroutine(awaitable):
        try:
            step = awaitable.send(None)
        except StopIteration as stop:
            return stop.value
        awaitable = _ResumedCoroutine(awaitable, step)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task(loop)
    assert task is not None
    expired: list[bool] = []
    timer = loop.call_later(max(seconds, 0), _expire, task, expired)
    try:
        return await awaitable
    except asyncio.CancelledError:
        if not expired:
            raise
        # Since Python 3.11, a task counts its cancellations. This one came from `_expire`.
        if hasattr(task, "uncancel"):
            getattr(task, "uncancel")()  # noqa: B009  Python 3.10 does not have it
        raise ClientTimeout from None
    finally:
        timer.cancel()


def _expire(task: Task[object], expired: list[bool]) -> None:
    expired.append(True)
    task.cancel()


class _ResumedCoroutine:
    """A coroutine that has run up to its first suspension; awaiting it continues from there."""

    __slots__ = ("_coroutine", "_step")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], step: object) -> None:
        self._coroutine = coroutine
        self._step = step

    def __await__(self) -> Generator[object, Any, Any]:
        step, resume = self._step, self._coroutine
        try:
            while True:
                try:
                    sent = yield step
                except BaseException as thrown:
                    step = resume.throw(thrown)
                else:
                    step = resume.send(sent)
        except StopIteration as end:
            return end.value
