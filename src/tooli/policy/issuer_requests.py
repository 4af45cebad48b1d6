"""Requests to an authorization server: its metadata, its keys and token introspection.

    URL ─▶ https, or http on this machine ─▶ one deadline ─▶ size limit ─▶ JSON object

A redirect to another origin is not followed. The operator of the server configures the URLs, so
they may have private addresses, unlike the URLs that callers pass (inputs/urls.py).
"""

from __future__ import annotations

from http.client import HTTPException
from ipaddress import ip_address
from json import loads
from urllib.parse import urljoin, urlsplit

from tooli.errors import ToolError
from tooli.inputs.constraints import InputLimits
from tooli.inputs.urls import RequestDeadline, connect, display_url, send_request
from tooli.policy.jwt_tokens import IssuerError
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPConnection, HTTPResponse
    from urllib.parse import SplitResult

    from tooli.core.protocols import JsonObject

REQUEST_SECONDS = 5.0
"""Limit for a whole request, in seconds."""
MAX_RESPONSE_BYTES = 256 << 10
"""Maximum size of a response."""
_MAX_REDIRECTS = 3
_HEADERS = {"User-Agent": "tooli", "Accept": "application/json"}
_LIMITS = InputLimits(private=True)


class NotPublished(IssuerError):  # noqa: N818
    """The authorization server has no document at a URL."""


class RequestRefused(IssuerError):  # noqa: N818
    """The authorization server does not accept the content of one request."""


_NOT_PUBLISHED = frozenset((404, 405, 410))
_REFUSED = frozenset((400, 406, 413, 414, 415, 422, 431))


def check_issuer_url(url: str) -> SplitResult:
    """Return the parts of a URL; raise an IssuerError unless it is https, or http on loopback."""
    if any([ord(char) <= 0x20 or ord(char) >= 0x7F for char in url]):
        raise IssuerError("the URL has a space or a character that is not ASCII")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise IssuerError("the URL is not valid") from None
    if "@" in parts.netloc:
        raise IssuerError("the URL must not contain a user name or password")
    if not host or port == 0 or parts.fragment:
        raise IssuerError("the URL has no host, or has a fragment")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback_host(host)):
        raise IssuerError("the URL must begin with https://, or name this machine")
    return parts


def is_loopback_host(host: str) -> bool:
    """True if a host in a URL is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def request_json(
    url: str, form: bytes | None = None, headers: Mapping[str, str] | None = None
) -> JsonObject:
    """Return the JSON object at a URL. With a form, it is sent in a POST request."""
    return parse_object(url, request_bytes(url, form, headers))


def parse_object(url: str, data: bytes) -> JsonObject:
    """Return the JSON object in the answer of a URL."""
    try:
        check_json_limits(data)
        value: object = loads(data)
    except JsonLimitError as failure:
        raise IssuerError(f"the answer of {display_url(url)} {failure}") from None
    except (ValueError, RecursionError):
        raise IssuerError(f"{display_url(url)} did not answer with JSON") from None
    if not is_object(value):
        raise IssuerError(f"{display_url(url)} did not answer with a JSON object")
    return value


def request_bytes(
    url: str, form: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """Return the body at a URL. Redirects are followed only within the origin of the URL."""
    deadline = RequestDeadline(REQUEST_SECONDS)
    try:
        for _ in range(_MAX_REDIRECTS + 1):
            target = _request(url, form, {**_HEADERS, **(headers or {})}, deadline)
            if isinstance(target, bytes):
                return target
            url = _check_redirect(url, target, is_form=form is not None)
        raise IssuerError(f"{display_url(url)} redirects too often")
    except ToolError as error:  # from tooli.inputs.urls
        raise IssuerError(error.message) from None
    except TimeoutError:
        raise IssuerError(f"{display_url(url)} took too long to answer") from None
    except (OSError, HTTPException) as failure:
        reason = "it took too long" if deadline.is_over else type(failure).__name__
        raise IssuerError(f"the request to {display_url(url)} failed: {reason}") from None
    finally:
        deadline.cancel()


def _request(
    url: str, form: bytes | None, headers: Mapping[str, str], deadline: RequestDeadline
) -> bytes | str:
    """Send one request. Return the body of the response, or the location of a redirect."""
    parts = check_issuer_url(url)
    connection = connect(parts, _LIMITS, deadline)
    try:
        _check_peer(parts, connection)
        if form is not None:
            headers = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        method = "GET" if form is None else "POST"
        response = send_request(
            connection, parts, deadline, method=method, body=form, headers=headers
        )
        with response:
            location = response.headers.get("location")
            if 300 <= response.status < 400 and location is not None:
                return location
            if response.status != 200:
                raise _error_class(response.status)(
                    f"{display_url(url)} answered {response.status}"
                )
            return _read_body(url, response, deadline)
    finally:
        connection.close()


def _error_class(status: int) -> type[IssuerError]:
    if status in _NOT_PUBLISHED:
        return NotPublished
    return RequestRefused if status in _REFUSED else IssuerError


def _check_peer(parts: SplitResult, connection: HTTPConnection) -> None:
    """Raise an IssuerError if a plain connection leaves this machine, whatever localhost is."""
    peer: str = connection.sock.getpeername()[0]
    if parts.scheme == "http" and not is_loopback_host(peer.partition("%")[0]):
        raise IssuerError(f"{parts.hostname} is not this machine")


def _read_body(url: str, response: HTTPResponse, deadline: RequestDeadline) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise IssuerError(f"{display_url(url)} sent a compressed answer")
    body = b""
    while len(body) <= MAX_RESPONSE_BYTES:
        deadline.timeout()
        chunk = response.read1(MAX_RESPONSE_BYTES)
        if not chunk:
            deadline.timeout()  # the data may have ended because the time is over
            if response.length:
                raise IssuerError(f"the answer of {display_url(url)} is incomplete")
            return body
        body += chunk
    raise IssuerError(f"the answer of {display_url(url)} has more than {MAX_RESPONSE_BYTES} bytes")


def _check_redirect(url: str, location: str, *, is_form: bool) -> str:
    """Return the URL of a redirect; raise an IssuerError unless it may be followed."""
    if is_form:  # it contains a token
        raise IssuerError(f"{display_url(url)} redirects")
    target = urljoin(url, location)
    origins = [(p.scheme, p.hostname, p.port) for p in map(check_issuer_url, (url, target))]
    if origins[0] != origins[1]:
        raise IssuerError(f"{display_url(url)} redirects to another origin")
    return target
