"""Paths that name one use of a command."""

from __future__ import annotations

from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient

from tooli import Tooli
from tooli.http.alias_paths import find_alias
from tooli.http.http_request import HttpRequest


def find(api: Any, path: str) -> Any:
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
    return find_alias(api, HttpRequest(scope, None, None), path)  # type: ignore[arg-type]


def test_alias_of_a_command() -> None:
    app = Tooli("shop")
    app.command("load")(lambda data: 1)
    app.command("drop")(lambda name: 1)
    app.command("take")(_take)
    api = app.asgi(mcp=False)
    assert find(api, "/plans/drop") is app.find("drop")
    assert find(api, "/uploads/take") is app.find("take")
    for path in ("/uploads/drop", "/plans/none", "/plans/", "/tools/drop", "/uploads"):
        assert find(api, path) is None


@pytest.mark.parametrize(
    ("path", "version"),
    [("/plans/add", "2.0"), ("/plans/add@1.0", "1.0"), ("/plans/add?version=1.0", "1.0")],
)
async def test_plan_of_a_version(path: str, version: str) -> None:
    app = Tooli("calc")
    app.command("add", version="1.0")(_take)
    app.command("add", version="2.0")(lambda number: 1)
    client = AsgiClient(app.asgi(mcp=False))
    client.send_body(b'{"data": "eA=="}' if version == "1.0" else b'{"number": "1"}')
    path, _, query = path.partition("?")
    await client.start("POST", path, [HOST, JSON], query.encode())
    assert client.json()["meta"]["version"] == version
    assert client.json()["meta"]["dry_run"] is True


def _take(data: bytes) -> int:
    return len(data)
