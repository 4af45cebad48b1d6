"""Exchange: one request and the answer to it, in the words of ASGI."""

from __future__ import annotations

from tooli.errors import InputError
from tooli.serving.dispatcher import path_without_root

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.errors import ToolError
    from tooli.http.http_settings import Headers, Receive, Scope, Send

JSON_CONTENT_TYPE = (b"content-type", b"application/json")
NOSNIFF = (b"x-content-type-options", b"nosniff")
NO_STORE = (b"cache-control", b"no-store")

_SINGLE_VALUE_HEADERS = frozenset(
    (
        *(b"host", b"origin", b"authorization", b"content-type", b"content-length"),
        b"idempotency-key",
    )
)
_KNOWN_HEADERS = _SINGLE_VALUE_HEADERS | {
    *(b"accept", b"sec-fetch-site", b"access-control-request-method"),
    *(b"access-control-request-private-network", b"tooli-caller", b"tooli-caller-version"),
    *(b"tooli-session-id", b"prefer"),
}


class HttpError(Exception):
    """A request is answered with an error before any tool is asked; some need headers, too."""

    def __init__(self, error: ToolError, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(error.message)
        self.error = error
        self.headers = headers


class HttpDisconnect(Exception):  # noqa: N818  nothing went wrong here
    """The client has left: nobody waits for an answer."""


class HttpRequest:
    """A request, read as far as the door needs it, and the way back to the client."""

    __slots__ = (
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
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.path = path_without_root(scope)
        self.is_response_started = False  # the head of the answer is out
        self.extra_headers: Headers = ()  # what stands in the head of any answer
        self.scopes: frozenset[str] | None = frozenset()  # what the caller holds; None: all
        self.principal: str | None = None  # who it is, by its token
        self.headers: dict[bytes, bytes] = {}

    def read_headers(self) -> None:
        """Take what matters from the head; one that says two things at once is refused."""
        found = self.headers
        for name, value in self.scope["headers"]:
            if name in _KNOWN_HEADERS:
                if name not in found:
                    found[name] = value
                elif name in _SINGLE_VALUE_HEADERS:
                    header = name.decode("ascii")
                    raise HttpError(
                        InputError(f"The header {header} is there twice.", code="E1400")
                    )
                else:
                    found[name] += b", " + value

    @property
    def address(self) -> str:
        """Where it came from, as the server knows it."""
        client = self.scope.get("client")
        return str(client[0]) if client and client[0] else "network"

    @property
    def query(self) -> bytes:
        """What stands behind the question mark."""
        return self.scope.get("query_string", b"")

    # -------------------------------------------------------------- the answer

    async def respond(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        """All of the answer; a JSON document unless the headers say another type."""
        head = [
            *(() if headers and headers[0][0] == b"content-type" else (JSON_CONTENT_TYPE,)),
            (b"content-length", b"%d" % len(body)),
            NOSNIFF,
            *headers,
            *self.extra_headers,
        ]
        self.is_response_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": head})
        if self.method == "HEAD":
            body = b""
        await self.send({"type": "http.response.body", "body": body})

    async def respond_empty(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        """An answer that is all head."""
        self.is_response_started = True
        head = [*headers, *self.extra_headers]
        await self.send({"type": "http.response.start", "status": status, "headers": head})
        await self.send({"type": "http.response.body", "body": b""})

    async def start_response(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        """The head of an answer that comes in pieces."""
        self.is_response_started = True
        head: Iterable[tuple[bytes, bytes]] = [*headers, NOSNIFF, NO_STORE, *self.extra_headers]
        await self.send({"type": "http.response.start", "status": status, "headers": head})

    async def write(self, chunk: bytes, *, is_last: bool = False) -> None:
        """One piece of it; waits for a client that reads slowly."""
        await self.send({"type": "http.response.body", "body": chunk, "more_body": not is_last})
