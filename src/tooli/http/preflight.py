"""CORS preflight requests: what a page of an allowed origin may send."""

from __future__ import annotations

from tooli.core._hot_tables import HTTP_HEADERS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.http.http_request import HttpRequest

_ALLOWED_HEADERS = (
    b"authorization, content-type, accept, tooli-caller, tooli-caller-version, tooli-session-id, "
    b"mcp-session-id, mcp-protocol-version, last-event-id, prefer, x-request-id, traceparent, "
    b"if-none-match, " + b", ".join(HTTP_HEADERS)
)


async def send_preflight(request: HttpRequest) -> None:
    """Answer a CORS preflight request with the methods and headers that a page may send."""
    headers = [
        (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", b"600"),
    ]
    if request.headers.get(b"access-control-request-private-network"):
        headers.append((b"access-control-allow-private-network", b"true"))
    await request.respond_empty(204, *headers)
