"""Send HTTP requests to an API: one deadline, checked addresses, redirects, proxies.

    ApiRequest ─▶ connect (directly or through a proxy) ─▶ ApiAnswer
                     ▲                                        │
                     ╰──── redirect: without credentials, ◀───╯
                           if it leads to another origin

Credentials and headers are sent to the origin of the request only. A request with a body is
repeated at another place of the same origin, and never at another origin.
"""

from __future__ import annotations

import os
import zlib
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import create_connection
from urllib.parse import unquote, urljoin, urlsplit

from tooli.core import Record
from tooli.errors import DependencyError, InputError
from tooli.inputs.constraints import InputLimits
from tooli.inputs.urls import (
    MAX_REDIRECTS,
    RequestDeadline,
    check_url,
    connect,
    display_url,
    failure_reason,
    is_private_address,
    timeout_error,
)
from tooli.schema import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPResponse
    from typing import Any
    from urllib.parse import SplitResult

_CHUNK_BYTES = 1 << 16
_MAX_EXPANDED_RATIO = 200
"""A compressed body may be at most this many times larger when it is decompressed."""
_NO_PROXY = frozenset(("localhost", "127.0.0.1", "::1"))


class ApiRequest(Record):
    """One request. The URL is encoded completely."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    allows_private: bool = False  # True: the host may have an address of a private network


class ApiAnswer:
    """The answer to a request. The body is not read yet; `close` it in any case."""

    def __init__(
        self,
        url: str,
        connection: HTTPConnection,
        response: HTTPResponse,
        deadline: RequestDeadline,
        is_private: bool = False,
    ) -> None:
        self.url = url
        self.is_private = is_private  # the server has an address of a private network
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self._connection = connection
        self._response = response
        self._deadline = deadline

    @property
    def media_type(self) -> str:
        """The media type of the body in lower case, without parameters; "" if there is none."""
        return self.headers.get_content_type() if "content-type" in self.headers else ""

    def read(self, max_bytes: int) -> bytes:
        """Return the body. Raises DependencyError if it is larger than `max_bytes`."""
        body = bytearray()
        for chunk in self.chunks():
            body += chunk
            if len(body) > max_bytes:
                raise DependencyError(
                    f"The answer of {display_url(self.url)} is larger than the limit of "
                    f"{max_bytes:,} bytes."
                )
        return bytes(body)

    def chunks(self) -> Iterator[bytes]:
        """Yield the body in parts, decompressed."""
        encoding = (self.headers.get("content-encoding") or "identity").strip().lower()
        if encoding == "identity" or self.status in (204, 304):
            yield from self._raw_chunks()
            return
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise DependencyError(
                f"{display_url(self.url)} answered with the compression {encoding[:40]!r}, which "
                "was not requested."
            )
        yield from self._expanded_chunks()

    def _expanded_chunks(self) -> Iterator[bytes]:
        expander, received, expanded = zlib.decompressobj(47), 0, 0
        try:
            for chunk in self._raw_chunks():
                received += len(chunk)
                while chunk:
                    part = expander.decompress(chunk, _CHUNK_BYTES)
                    chunk, expanded = expander.unconsumed_tail, expanded + len(part)
                    if expanded > max(_CHUNK_BYTES, received * _MAX_EXPANDED_RATIO):
                        raise DependencyError(
                            f"The answer of {display_url(self.url)} expands to too many bytes."
                        )
                    yield part
            yield expander.flush()
        except zlib.error:
            raise DependencyError(
                f"The answer of {display_url(self.url)} is not validly compressed."
            ) from None

    def _raw_chunks(self) -> Iterator[bytes]:
        while True:
            try:
                self._deadline.timeout()
                chunk = self._response.read1(_CHUNK_BYTES)
                self._deadline.timeout()  # the data may have ended because the time is over
            except TimeoutError:
                raise timeout_error(display_url(self.url)) from None
            except (OSError, HTTPException) as failure:
                if self._deadline.is_over:
                    raise timeout_error(display_url(self.url)) from None
                raise DependencyError(
                    f"The connection to {display_url(self.url)} failed: {failure_reason(failure)}"
                ) from None
            if not chunk:
                missing: Any = self._response.length
                if missing:
                    raise DependencyError(
                        f"The answer of {display_url(self.url)} is incomplete: "
                        f"{missing} bytes are missing."
                    )
                return
            yield chunk

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._connection.close()


def send(request: ApiRequest, deadline: RequestDeadline) -> ApiAnswer:
    """Send a request, follow redirects, and return the answer."""
    for _ in range(MAX_REDIRECTS + 1):
        answer = _exchange(request, deadline)
        location = answer.headers.get("location") if 300 <= answer.status < 400 else None
        if location is None or answer.status in (300, 304):
            return answer
        answer.close()
        request = _redirected(request, answer.status, location)
    raise DependencyError(f"{display_url(request.url)}: more than {MAX_REDIRECTS} redirects")


def origin_of(url: str) -> tuple[str, str, int]:
    """Return the scheme, the host and the port of a URL."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or _default_port(scheme)


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _redirected(request: ApiRequest, status: int, location: str) -> ApiRequest:
    """Return the request that a redirect asks for."""
    shown = display_url(request.url)
    try:
        url = urljoin(request.url, location)
        is_same_origin = origin_of(request.url) == origin_of(url)
        check_url(url, InputLimits(private=is_same_origin and request.allows_private))
    except (ConversionError, ValueError) as failure:
        reason = getattr(failure, "message", None) or "the URL is not valid"
        raise DependencyError(f"{shown} redirects to a URL that is not allowed: {reason}") from None
    if request.url.startswith("https:") and url.startswith("http:"):
        raise DependencyError(f"{shown} redirects from https to http")
    if status == 303 and request.method != "HEAD":
        request = request.replace(method="GET", body=None)
    if request.method not in ("GET", "HEAD") and not (is_same_origin and status in (307, 308)):
        raise DependencyError(
            f"{shown} redirects a {request.method} request to {display_url(url)}. It was not "
            "repeated there."
        )
    if is_same_origin:
        return request.replace(url=url)
    accepted = {k: v for k, v in request.headers.items() if k.lower() in ("accept", "user-agent")}
    return ApiRequest(request.method, url, accepted)


def _exchange(request: ApiRequest, deadline: RequestDeadline) -> ApiAnswer:
    """Send one request and return its answer."""
    limits = InputLimits(private=request.allows_private)
    try:
        parts = check_url(request.url, limits)
    except ConversionError as error:
        raise InputError(f"{display_url(request.url)}: {error.message}", code="E1033") from None
    host, proxy = parts.hostname or "", _find_proxy(parts)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = dict(request.headers)
    connection: HTTPConnection | None = None
    address = host  # a proxy resolves names itself
    try:
        if proxy is None:
            connection = connect(parts, limits, deadline)
            address = connection.sock.getpeername()[0]
        else:
            connection, proxy_headers = _connect_to_proxy(parts, proxy, deadline)
            if parts.scheme == "http":
                target, headers = f"http://{parts.netloc}{target}", headers | proxy_headers
        deadline.track_connection(connection.sock)
        encoded = {name: value.encode() for name, value in headers.items()}
        connection.request(request.method, target, request.body, encoded)
        response = connection.getresponse()
        if deadline.is_over:  # the headers may have ended because the time is over
            response.close()
            raise TimeoutError
    except (OSError, HTTPException, ValueError) as failure:
        if connection is not None:
            connection.close()
        if deadline.is_over or isinstance(failure, TimeoutError):
            raise timeout_error(host) from None
        raise DependencyError(f"{host} did not answer: {failure_reason(failure)}") from None
    return ApiAnswer(request.url, connection, response, deadline, is_private_address(address))


# ------------------------------------------------------------------ proxies


def _find_proxy(parts: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment sets for a URL: `HTTPS_PROXY`, `NO_PROXY`, …"""
    if not any([name.lower().endswith("_proxy") for name in os.environ]):
        return None
    from urllib import request

    proxies: dict[str, str] = request.getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    bypasses: Any = getattr(request, "proxy_bypass_environment")  # noqa: B009  not in typeshed
    if not proxy or parts.hostname in _NO_PROXY or bypasses(parts.netloc, proxies):
        return None
    found = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if found.scheme != "http" or not found.hostname:
        raise DependencyError(
            f"The proxy for {parts.scheme} URLs is not supported: its URL must start with http://"
        )
    return found


def _connect_to_proxy(
    parts: SplitResult, proxy: SplitResult, deadline: RequestDeadline
) -> tuple[HTTPConnection, dict[str, str]]:
    """Connect to a proxy, for https through a tunnel; return the headers for the proxy as well."""
    headers: dict[str, str] = {}
    if proxy.username:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    port = proxy.port or 80
    connection = kind(proxy.hostname or "", port, timeout=deadline.timeout())

    def open_connection(address: tuple[str, int], *rest: Any, **more: Any) -> Any:
        opened = create_connection(address, *rest, **more)
        deadline.track_connection(opened)
        return opened

    vars(connection)["_create_connection"] = open_connection
    if parts.scheme == "https":
        connection.set_tunnel(parts.hostname or "", parts.port or 443, headers)
        headers = {}
    try:
        connection.connect()
    except BaseException:
        connection.close()
        raise
    return connection, headers
