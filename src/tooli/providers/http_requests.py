"""HTTP requests of providers to one server, with http.client: no other package is needed.

    HttpServer(url, headers).send("POST", …) ──▶ HttpAnswer: status, headers, read(), lines()

Credentials go to one origin only: a redirect to another scheme, host or port is not followed.
Proxies of the environment are ignored. A connection is used again after its answer was read.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Lock
from urllib.parse import urljoin, urlsplit

from tooli.core.call_secrets import ReceivedSecret, record_secret
from tooli.errors import AuthError, DefinitionError, DependencyError, Suggestion, TemporaryError
from tooli.policy.token_introspection import read_client_secret
from tooli.schema.described import clean_text
from tooli.storage.state_files import UnusableFile

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from http.client import HTTPResponse

    from tooli.errors import ToolError

CONNECT_TIMEOUT_SECONDS = 30.0
MAX_REDIRECTS = 3
MAX_IDLE_CONNECTIONS = 4
MAX_RETRY_SECONDS = 10.0
"""Longest pause before a stream is resumed; a server may ask for a longer one."""
_CHUNK_BYTES = 1 << 16
_FORBIDDEN_HEADERS = frozenset(("host", "content-length", "transfer-encoding", "connection"))


class ConnectionFailed(Exception):  # noqa: N818
    """The server cannot be reached, or has closed the connection.

    `was_sent` is True if the server may have received the request.
    """

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class AnswerTooLarge(Exception):  # noqa: N818
    """An answer, or a line of it, is larger than allowed."""


def check_server_url(url: str, source: str) -> str:
    """Return the URL of a server; raise a DefinitionError if it is not valid."""
    try:
        parts = urlsplit(url)
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        has_host, parts = False, urlsplit("")
    if parts.scheme not in ("http", "https") or not has_host:
        raise DefinitionError(f"{source}: {url[:100]!r} is not an http or https URL")
    if "@" in parts.netloc:
        raise DefinitionError(
            f"{source}: the URL contains a user name or a password; use headers= with env:NAME"
        )
    if not url.isascii() or any([ord(char) <= 0x20 or ord(char) == 0x7F for char in url]):
        raise DefinitionError(f"{source}: the URL contains a character that must be encoded")
    return url


def check_headers(headers: Mapping[str, str] | None, source: str) -> dict[str, str]:
    """Return a copy of the headers of a provider; raise a DefinitionError if one is not valid."""
    checked: dict[str, str] = {}
    for name, value in dict(headers or {}).items():
        is_text = isinstance(name, str) and isinstance(value, str)  # pyright: ignore
        token = name.replace("-", "").replace("_", "") if is_text else ""
        if not token.isascii() or not token.isalnum() or name.lower() in _FORBIDDEN_HEADERS:
            raise DefinitionError(f"{source}: {name!r} is not a header that can be set")
        if any([(ord(char) < 0x20 and char != "\t") or ord(char) == 0x7F for char in value]):
            raise DefinitionError(f"{source}: the header {name} contains a control character")
        checked[name] = value
    return checked


def is_reference(value: str) -> bool:
    """True if a value names a secret: `env:NAME` or `@FILE`."""
    return value[:4] == "env:" or value[:1] == "@"


def names_secret(value: str) -> bool:
    """True for `env:NAME`, `@FILE` and `Bearer env:NAME`."""
    return is_reference(value) or is_reference(value.partition(" ")[2])


def read_reference(value: str, source: str) -> str:
    """Return a value, or the secret that it names: `env:NAME`, `@FILE`, or `Bearer env:NAME`.

    The secret is hidden in the output of the current call, because the server may repeat it.
    Raises an AuthError if the secret cannot be read.
    """
    if not names_secret(value):
        return value
    prefix, _, reference = ("", "", value) if is_reference(value) else value.partition(" ")
    try:
        secret = read_client_secret(reference)
    except UnusableFile as failure:
        raise AuthError(
            f"{source}: the secret {reference!r} cannot be used: {failure}",
            suggestion=Suggestion("fix", "Set the variable or the file, then call again."),
        ) from None
    record_secret(ReceivedSecret(secret))
    return f"{prefix} {secret}" if prefix else secret


def read_headers(headers: Mapping[str, str], source: str) -> dict[str, str]:
    """Return headers with the secrets that their values name.

    Raises an AuthError if a secret cannot be read, or cannot be in a header. Its text does not
    contain the secret, as that of `http.client` would.
    """
    values = {name: read_reference(value, source) for name, value in headers.items()}
    for name, value in values.items():
        if any(
            [(char < " " and char != "\t") or char > "\xff" or char == "\x7f" for char in value]
        ):
            raise AuthError(
                f"{source}: the secret in the header {name} contains a line break or another "
                "character that a header cannot have",
                suggestion=Suggestion("fix", "Correct the variable or the file, then call again."),
            )
    return values


class HttpServer:
    """The server at a URL. It can be used by several threads.

    `read_headers` returns the headers of the provider; it is called for each request.
    """

    def __init__(self, url: str, read_headers: Callable[[], Mapping[str, str]]) -> None:
        self.url = url
        self._read_headers = read_headers
        self._idle: list[HTTPConnection] = []
        self._lock = Lock()
        self._pid = os.getpid()

    def send(
        self,
        method: str,
        path: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        on_open: Callable[[socket.socket], object] | None = None,
    ) -> HttpAnswer:
        """Send a request and return the answer, whose body is not read yet.

        `path` is relative to the URL of the server. `timeout` is the longest time without data.
        `on_open` gets the socket before the request is sent, for `abort_connection`. Raises a
        ConnectionFailed if there is no answer.
        """
        url = urljoin(self.url, path) if path else self.url
        sent = {"Accept-Encoding": "identity", "User-Agent": "tooli", **(headers or {})}
        sent.update(self._read_headers())
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._send_once(method, url, body, sent, timeout, on_open)
            location = answer.headers.get("location")
            if answer.status not in (307, 308) or location is None:
                return answer
            target = urljoin(url, location)
            if _origin(target) != _origin(self.url):
                answer.close()
                raise ConnectionFailed(
                    f"it redirects to another server: {clean_text(target, 200)}", was_sent=False
                )
            answer.close()
            url = target
        raise ConnectionFailed("it redirects too often", was_sent=False)

    def _send_once(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float | None,
        on_open: Callable[[socket.socket], object] | None,
    ) -> HttpAnswer:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = self._connect()
        was_sent = False
        try:
            connection.sock.settimeout(timeout)
            if on_open is not None:
                on_open(connection.sock)
            connection.request(method, target, body, dict(headers))
            was_sent = True
            return HttpAnswer(self, connection, connection.getresponse())
        except (OSError, HTTPException, ValueError) as failure:
            connection.close()
            raise ConnectionFailed(_reason(failure), was_sent=was_sent) from None
        except BaseException:
            connection.close()
            raise

    def _connect(self) -> HTTPConnection:
        """Return an idle connection that is still open, or a new one."""
        with self._lock:
            while self._idle and self._pid != os.getpid():  # they belong to the parent process
                self._idle.pop().close()
            self._pid = os.getpid()
            while self._idle:
                connection = self._idle.pop()
                if not _is_readable(connection.sock):
                    return connection
                connection.close()
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = HTTPSConnection(
                host, parts.port, timeout=CONNECT_TIMEOUT_SECONDS, context=context
            )
        else:
            connection = HTTPConnection(host, parts.port, timeout=CONNECT_TIMEOUT_SECONDS)
        try:
            connection.connect()
        except (OSError, HTTPException, ValueError) as failure:
            connection.close()
            raise ConnectionFailed(_reason(failure), was_sent=False) from None
        return connection

    def release(self, connection: HTTPConnection) -> None:
        """Keep a connection whose answer was read for the next request."""
        with self._lock:
            if len(self._idle) < MAX_IDLE_CONNECTIONS and self._pid == os.getpid():
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def abort_connection(sock: socket.socket) -> None:
    """End a request from another thread: the thread that waits for it gets a ConnectionFailed."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass


class HttpAnswer:
    """The answer to a request. Call `release` when it was read, or `close`."""

    def __init__(
        self, server: HttpServer, connection: HTTPConnection, response: HTTPResponse
    ) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._server = server
        self._connection = connection
        self._response = response
        self._is_read = False

    @property
    def content_type(self) -> str:
        """The media type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read(self, max_bytes: int) -> bytes:
        """Return the body. Raises AnswerTooLarge, or ConnectionFailed if it ends too early."""
        chunks: list[bytes] = []
        size = 0
        try:
            while chunk := self._response.read(_CHUNK_BYTES):
                chunks.append(chunk)
                size += len(chunk)
                if size > max_bytes:
                    raise AnswerTooLarge(f"the answer has more than {max_bytes:,} bytes")
        except (OSError, HTTPException, ValueError) as failure:
            self.close()
            raise ConnectionFailed(_reason(failure), was_sent=True) from None
        except BaseException:
            self.close()
            raise
        if self._response.length:  # http.client does not report it
            self.close()
            raise ConnectionFailed("the answer ended too early", was_sent=True)
        self._is_read = True
        return b"".join(chunks)

    def lines(self, max_bytes: int) -> Iterator[bytes]:
        """Yield the lines of the body as they arrive, without their ends."""
        rest = bytearray()
        try:
            while chunk := self._response.read1(_CHUNK_BYTES):
                start = len(rest)
                rest += chunk
                if b"\n" in chunk:
                    *lines, last = bytes(rest).split(b"\n")
                    rest = bytearray(last)
                    for line in lines:
                        yield line.removesuffix(b"\r")
                elif start + len(chunk) > max_bytes:
                    raise AnswerTooLarge(f"a line has more than {max_bytes:,} bytes")
        except (OSError, HTTPException, ValueError, AttributeError) as failure:
            raise ConnectionFailed(_reason(failure), was_sent=True) from None
        finally:
            self.close()
        if rest:
            yield bytes(rest)

    def release(self) -> None:
        """Keep the connection for the next request, if the answer was read to its end."""
        if self._is_read and not self._response.will_close:
            self._server.release(self._connection)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._connection.close()


class EventStream:
    """The server-sent events in the lines of an answer, and what is needed to resume the stream."""

    def __init__(self, max_bytes: int) -> None:
        self.last_event_id: str | None = None
        self.retry_seconds = 1.0
        self._max_bytes = max_bytes

    def read(self, lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the data of each event. An event without data is skipped."""
        name, data, size, event_id = "message", list[bytes](), 0, None
        for line in lines:
            if not line:
                if event_id is not None:
                    self.last_event_id = event_id
                if any(data):
                    yield name, b"\n".join(data)
                name, data, size, event_id = "message", [], 0, None
                continue
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
                size += len(value)
                if size > self._max_bytes:
                    raise AnswerTooLarge(f"an event has more than {self._max_bytes:,} bytes")
            elif field == b"event":
                name = value[:100].decode("ascii", "replace")
            elif field == b"id" and value.isascii() and len(value) < 1_000:
                event_id = value.decode("ascii")
            elif field == b"retry" and value.isdigit():
                self.retry_seconds = min(int(value[:9]) / 1_000, MAX_RETRY_SECONDS)


def _is_readable(sock: socket.socket | None) -> bool:
    """True if an idle connection was closed by the server, or has data that nobody requested."""
    if sock is None:
        return True
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):  # closed, or its number is too large for select
        return True


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    return parts.scheme, (parts.hostname or "").lower(), port


def _reason(failure: BaseException) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {failure.verify_message}"
    text = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    return clean_text(text, 200)


def status_error(source: str, status: int, text: str = "", retry_after: str = "") -> ToolError:
    """Return the error for an HTTP status that is not a success."""
    message = f"{source} answered with HTTP {status}"
    message += f": {clean_text(text, 500)}" if text else "."
    if status in (401, 403):
        return AuthError(
            message,
            suggestion=Suggestion("fix", "Check the credentials in headers= or token=."),
        )
    details: dict[str, object] = {"status": status}
    if status == 429 or status in (502, 503, 504):
        if retry_after.isascii() and retry_after.isdigit():
            details["retry_after"] = int(retry_after[:6])
        return TemporaryError(message, details=details, suggestion=Suggestion("retry_later"))
    return DependencyError(message, details=details)
