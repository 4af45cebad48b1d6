"""A preflight request is answered with the methods and headers that a page may send."""

from __future__ import annotations

from tests.http.asgi_client import send

from tooli import Tooli


async def test_preflight_allows_what_requests_need() -> None:
    api = Tooli("shop").asgi(mcp=False, allowed_origins=["https://shop.example"])
    asked = [
        (b"origin", b"https://shop.example"),
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-private-network", b"true"),
    ]
    client = await send(api, "OPTIONS", "/tools/find", None, *asked)
    assert client.status == 204
    names = client.headers["access-control-allow-headers"].split(", ")
    assert {"authorization", "if-none-match", "idempotency-key"} <= set(names)
    assert "GET" in client.headers["access-control-allow-methods"]
    assert client.headers["access-control-allow-private-network"] == "true"
    assert client.headers["access-control-allow-origin"] == "https://shop.example"
