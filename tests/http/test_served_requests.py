"""Requests for resources and prompts."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from tests.serving.test_served_functions import make_app, send


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/resources/read", 422, "E1002"),
        ("GET", "/resources/read?uri=a:b&uri=c:d", 422, "E1002"),
        ("POST", "/resources/read?uri=notes://7", 405, "E1405"),
        ("DELETE", "/prompts/review", 405, "E1405"),
        ("GET", "/prompts/nope", 404, "E3010"),
        ("GET", "/prompts/review", 422, "E1002"),
    ],
)
async def test_wrong_request(method: str, path: str, status: int, code: str) -> None:
    response = await send(make_app().asgi(), method, path)
    assert (response.status, response.json()["error"]["code"]) == (status, code)


async def test_resource_can_be_cached() -> None:
    api = make_app().asgi()
    first = await send(api, "GET", "/resources/read?uri=" + quote("notes://7"))
    tag = first.headers["etag"].encode()
    again = await send(
        api, "GET", "/resources/read?uri=" + quote("notes://7"), None, (b"if-none-match", tag)
    )
    assert again.status == 304


async def test_server_without_tools_has_no_resources() -> None:
    response = await send(make_app().asgi(tools=False), "GET", "/resources/read?uri=notes://7")
    assert response.status == 404
