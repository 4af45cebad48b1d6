"""Read http and https URLs: public addresses only, with limits for time and redirects.

    URL ─▶ check ─▶ resolve ─▶ every address public? ─▶ connect to a checked address ─▶ UrlBody
             ▲                                                     │
             ╰────────────── redirect, at most five ───────────────╯

The connection goes to an address that was checked, which prevents DNS rebinding. Proxy settings in
the environment are ignored, because a proxy would resolve the host itself.

`inputs/source.py` imports this module only for a URL, because the network libraries are slow to
import.
"""

from __future__ import annotations

import os
import socket
from contextvars import copy_context
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Thread, Timer
from time import monotonic
from urllib.parse import quote, urljoin, urlsplit

from tooli.errors import (
    AuthError,
    DependencyError,
    InputError,
    NotFoundError,
    TemporaryError,
    TimeoutExceeded,
    ToolError,
)
from tooli.schema import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPResponse
    from typing import Any
    from urllib.parse import SplitResult

    from tooli.inputs.constraints import InputLimits

MAX_REDIRECTS = 5
READ_TIMEOUT_SECONDS = 30.0
"""Maximum number of seconds without data."""
TOTAL_TIMEOUT_SECONDS = 300.0
"""Default limit for a whole request, in seconds."""
_REQUEST_HEADERS = {"User-Agent": "tooli", "Accept": "*/*"}
_JSON_HEADERS = {**_REQUEST_HEADERS, "Content-Type": "application/json"}
MAX_ANSWER_BYTES = 4_000_000
"""Maximum size of the answer to a POST request."""
_FORMATS_BY_CONTENT_TYPE = {
    "application/json": "json",
    "text/json": "json",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "text/yaml": "yaml",
}


def check_url(url: str, limits: InputLimits) -> SplitResult:
    """Return the parts of a URL. Raises ConversionError if it is invalid or not allowed.

    It does not resolve the host; `fetch` checks the addresses.
    """
    if any([ord(char) <= 0x20 or ord(char) == 0x7F for char in url]):
        raise ConversionError("the URL contains a space or a control character", code="E1033")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConversionError("the URL is not valid", code="E1033") from None
    if parts.scheme not in ("http", "https"):
        raise ConversionError(f"the URL must be http or https, not {parts.scheme}", code="E1033")
    if "@" in parts.netloc:
        raise ConversionError("the URL must not contain a user name or password", code="E1033")
    if not host or port == 0:
        raise ConversionError("the URL has no host", code="E1033")
    if _is_ip_address(host) and not (_is_public(host) or allows_private_addresses(limits)):
        raise ConversionError(_PRIVATE_ADDRESS_MESSAGE.format(host), code="E1033")
    return parts


_PRIVATE_ADDRESS_MESSAGE = (
    "{} is an address of a private network; TOOLI_ALLOW_PRIVATE_URLS=1 allows it"
)


def allows_private_addresses(limits: InputLimits) -> bool:
    """True if URLs with addresses of this machine and its network are allowed."""
    return limits.private or os.environ.get("TOOLI_ALLOW_PRIVATE_URLS") == "1"


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_private_address(host: str) -> bool:
    """True for an IP address that is not public; False for a name."""
    return _is_ip_address(host) and not _is_public(host)


def _is_public(host: str) -> bool:
    """True if an address is public. An IPv4 address embedded in it must be public as well."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return _is_public(str(address.ipv4_mapped))
        teredo = address.teredo
        embedded = address.sixtofour or (teredo and teredo[1])
        if embedded is None and address.packed[:12] == bytes.fromhex("0064ff9b0000000000000000"):
            embedded = ip_address(address.packed[12:])
        if embedded is not None and not _is_public(str(embedded)):
            return False
    if any([address in network for network in _SPECIAL_NETWORKS]):
        return False
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not is_special


_SPECIAL_NETWORKS = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "64:ff9b:1::/48", "5f00::/16"))
)
"""Special-purpose networks that some versions of Python take for public ones."""


# ------------------------------------------------------------------ fetching


class RequestDeadline:
    """The time limit of a whole request.

    The timeout of a socket limits each operation, but a server can send one byte at a time. So a
    timer shuts the current connection down when the time is over.
    """

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds
        self._socket: socket.socket | None = None
        self._timer = Timer(seconds, self._shut_down)
        self._timer.daemon = True
        self._timer.start()

    @property
    def is_over(self) -> bool:
        """True if no time is left."""
        return monotonic() >= self._end

    def timeout(self) -> float:
        """Return the timeout in seconds for the next operation; raises TimeoutError if it is 0."""
        remaining = self._end - monotonic()
        if remaining <= 0:
            raise TimeoutError
        return min(READ_TIMEOUT_SECONDS, remaining)

    def track_connection(self, connection: socket.socket) -> None:
        """Set the connection to shut down."""
        self._socket = connection
        if self.is_over:
            self._shut_down()

    def stop(self) -> None:
        """End the request now: the time is over."""
        self._end = monotonic()
        self._shut_down()

    def cancel(self) -> None:
        """Stop the timer."""
        self._timer.cancel()
        self._socket = None

    def _shut_down(self) -> None:
        connection = self._socket
        if connection is not None:
            try:
                # the method of the base class: the one for TLS would make plain reads possible
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            except OSError:
                return


class UrlBody:
    """The body of a response, with a deadline."""

    def __init__(
        self,
        url: str,
        connection: HTTPConnection,
        response: HTTPResponse,
        deadline: RequestDeadline,
    ) -> None:
        self.url = url
        content_type = (
            response.headers.get_content_type() if "content-type" in response.headers else ""
        )
        self.format = _FORMATS_BY_CONTENT_TYPE.get(content_type)
        self._connection = connection
        self._response = response
        self._deadline = deadline

    def read(self, count: int) -> bytes:
        """Return available bytes; empty at the end."""
        try:
            self._deadline.timeout()
            data = self._response.read1(count)
            self._deadline.timeout()  # the data may have ended because the time is over
        except TimeoutError:
            raise timeout_error(self.url) from None
        except (OSError, HTTPException) as failure:
            if self._deadline.is_over:
                raise timeout_error(self.url) from None
            reason = failure_reason(failure)
            raise DependencyError(f"The connection to {self.url} failed: {reason}") from None
        missing_bytes: Any = getattr(self._response, "length", None)
        if not data and missing_bytes:
            raise DependencyError(f"{self.url} is incomplete: {missing_bytes} bytes are missing")
        return data

    def close(self) -> None:
        """Close the connection."""
        self._deadline.cancel()
        self._response.close()
        self._connection.close()


def fetch(url: str, limits: InputLimits, field: str | None = None) -> UrlBody:
    """Return the response body of a URL. Redirects are followed, and every URL is checked."""
    deadline = RequestDeadline(limits.timeout or TOTAL_TIMEOUT_SECONDS)
    try:
        return _fetch(url, limits, deadline, field)
    except BaseException:
        deadline.cancel()
        raise


def _fetch(url: str, limits: InputLimits, deadline: RequestDeadline, field: str | None) -> UrlBody:
    is_https = False
    for _ in range(MAX_REDIRECTS + 1):
        try:
            parts = check_url(url, limits)
        except ConversionError as error:
            raise InputError(
                f"{display_url(url)}: {error.message}", code="E1033", field=field
            ) from None
        if is_https and parts.scheme == "http":
            raise DependencyError(f"{display_url(url)}: the server redirects from https to http")
        is_https = parts.scheme == "https"
        connection = connect(parts, limits, deadline, field)
        response = send_request(connection, parts, deadline)
        location = response.headers.get("location") if 300 <= response.status < 400 else None
        if location is None:
            body = UrlBody(display_url(url), connection, response, deadline)
            encoding = response.headers.get("content-encoding", "").lower()
            if response.status == 200 and encoding in ("", "identity"):
                return body
            body.close()
            raise _status_error(display_url(url), response)
        response.close()
        connection.close()
        try:
            url = urljoin(url, location)
        except ValueError:
            raise DependencyError(f"{display_url(url)} redirects to an invalid URL") from None
        if deadline.is_over:
            raise timeout_error(display_url(url))
    raise DependencyError(f"{display_url(url)}: more than {MAX_REDIRECTS} redirects")


def connect(
    parts: SplitResult, limits: InputLimits, deadline: RequestDeadline, field: str | None = None
) -> HTTPConnection:
    """Connect to a checked address of the host."""
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    addresses = _resolve(host, port, deadline)
    if not allows_private_addresses(limits):
        for address in addresses:
            if not _is_public(address):
                raise InputError(_PRIVATE_ADDRESS_MESSAGE.format(host), code="E1033", field=field)
    connection_class = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    last_error: ToolError = DependencyError(f"{host} has no address")
    for address in addresses:
        try:
            connection = connection_class(host, port, timeout=deadline.timeout())
        except TimeoutError:
            raise timeout_error(host) from None
        vars(connection)["_create_connection"] = _connect_to(address, deadline)
        try:
            connection.connect()
        except TimeoutError:
            last_error = timeout_error(host)
        except OSError as failure:
            message = f"{host} cannot be reached: {failure_reason(failure)}"
            last_error = timeout_error(host) if deadline.is_over else DependencyError(message)
        else:
            return connection
        connection.close()
    raise last_error


def _resolve(host: str, port: int, deadline: RequestDeadline) -> list[str]:
    """Return the addresses of a host. The resolver has no timeout, so it runs in a thread."""
    found: list[Any] = []

    def resolve() -> None:
        try:
            found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as failure:
            found.append(failure)

    resolver = Thread(target=copy_context().run, args=(resolve,), daemon=True)
    try:
        timeout = deadline.timeout()
        resolver.start()
        resolver.join(timeout)
        if resolver.is_alive():
            raise TimeoutError
    except TimeoutError:
        raise timeout_error(host) from None
    failure = found[0] if found else None
    if isinstance(failure, (OSError, UnicodeError)):
        raise DependencyError(f"{host} cannot be resolved: {failure_reason(failure)}")
    if isinstance(failure, Exception):
        raise failure
    return [str(entry[4][0]) for entry in found]


def _connect_to(address: str, deadline: RequestDeadline) -> Any:
    """Return a function for `http.client` that connects to the address, not to the host name."""

    def connect(to: tuple[str, int], *rest: Any, **more: Any) -> Any:
        connection = socket.create_connection((address, to[1]), *rest, **more)
        deadline.track_connection(connection)  # before the TLS handshake
        return connection

    return connect


def send_request(
    connection: HTTPConnection,
    parts: SplitResult,
    deadline: RequestDeadline,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] = _REQUEST_HEADERS,
) -> HTTPResponse:
    """Send a request over a connection and return the response, whose body is not read yet."""
    target = quote(parts.path or "/", safe="%/:=&~+!$,;'@()*[]")
    if parts.query:
        target += "?" + quote(parts.query, safe="%/:=&?~+!$,;'@()*[]")
    try:
        deadline.track_connection(connection.sock)
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        if not deadline.is_over:
            return response
        response.close()  # the headers may have ended because the time is over
        raise TimeoutError
    except TimeoutError:
        connection.close()
        raise timeout_error(parts.hostname or "") from None
    except (OSError, HTTPException) as failure:
        connection.close()
        if deadline.is_over:
            raise timeout_error(parts.hostname or "") from None
        raise DependencyError(
            f"{parts.hostname} did not answer: {failure_reason(failure)}"
        ) from None


def post_json(url: str, data: bytes, limits: InputLimits) -> bytes:
    """Send JSON to a URL and return the body of the response. Redirects are not followed."""
    seconds = limits.timeout or TOTAL_TIMEOUT_SECONDS
    deadline = RequestDeadline(seconds)
    try:
        parts = check_url(url, limits)
        connection = connect(parts, limits, deadline)
        connection.sock.settimeout(seconds)  # a model may need longer than a server of files
        response = send_request(
            connection, parts, deadline, method="POST", body=data, headers=_JSON_HEADERS
        )
        body = UrlBody(display_url(url), connection, response, deadline)
        try:
            if response.status != 200:
                raise _status_error(display_url(url), response)
            return _read_answer(body)
        finally:
            body.close()
    except ConversionError as error:
        raise InputError(f"{display_url(url)}: {error.message}", code="E1033") from None
    finally:
        deadline.cancel()


def _read_answer(body: UrlBody) -> bytes:
    answer = bytearray()
    while chunk := body.read(1 << 16):
        answer += chunk
        if len(answer) > MAX_ANSWER_BYTES:
            raise DependencyError(f"{body.url} answered with more than {MAX_ANSWER_BYTES} bytes.")
    return bytes(answer)


def display_url(url: str) -> str:
    """Return a URL for messages, without its query, which may contain a key."""
    head, question_mark, _ = url.partition("?")
    scheme, slashes, rest = head.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}" + (
        "?…" if question_mark else ""
    )


def failure_reason(failure: BaseException) -> str:
    """Return why a connection failed, for messages."""
    return str(getattr(failure, "strerror", None) or failure or type(failure).__name__)


def timeout_error(subject: str) -> ToolError:
    """Return the error for a host that takes too long."""
    return TimeoutExceeded(f"{subject} took too long to answer.")


def _status_error(url: str, response: HTTPResponse) -> ToolError:
    """Return the error for a status other than 200, or for a compressed response."""
    message = f"{url} answered {response.status} {response.reason}".rstrip()
    if response.status in (404, 410):
        return NotFoundError(message)
    if response.status in (401, 403):
        return AuthError(message)
    if response.status in (408, 425, 429) or response.status >= 500:
        return TemporaryError(message)
    if response.status == 200:
        return DependencyError(f"{url} is compressed, although no compression was requested")
    return DependencyError(message)
