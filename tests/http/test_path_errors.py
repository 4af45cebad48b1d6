"""Wrong paths and methods: the error names the right ones of the server."""

from __future__ import annotations

from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient

from tooli import Tooli

app = Tooli("shop")
users = Tooli("users")
app.add_typer(users, name="users")


@app.command()
def hello(name: str = "you") -> str:
    """Greet someone."""
    return f"hello {name}"


@users.command()
def create() -> int:
    """Create a user."""
    return 1


async def mounted(scope: Any, receive: Any, send: Any) -> None:
    """Stand for an MCP server."""


async def request(api: Any, method: str, path: str, root: str = "") -> AsgiClient:
    client = AsgiClient(api)
    client.send_body(b"{}" if method == "POST" else b"")
    await client.start(method, path, [HOST, *([JSON] if method == "POST" else [])], root=root)
    return client


@pytest.mark.parametrize("path", ["/tools/hello/", "/tools/users/create/", "/tools/users.create/"])
async def test_slash_after_a_command_is_ignored(path: str) -> None:
    assert (await request(app.asgi(mcp=False), "POST", path)).status == 200


@pytest.mark.parametrize(
    ("path", "settings", "fix"),
    [
        ("/hello", {}, "Send POST /tools/hello."),
        ("/hello/", {}, "Send POST /tools/hello."),
        ("/users/create", {}, "Send POST /tools/users/create."),
        ("/api/v1/tools/hello", {}, "Send POST /tools/hello."),
        ("/tool/hello", {}, "Send POST /tools/hello."),
        ("/api/users/create", {}, "Send POST /tools/users/create."),
        ("/openapi.jsn", {}, "Send GET /openapi.json."),
        ("/healthz", {}, "Send GET /health."),
        ("/readyz", {}, "Send GET /ready."),
        ("/docs", {}, "Send GET /."),
        ("/openapi", {}, "Send GET /openapi.json."),
        ("/docs", {"page": False}, "/tools, /openapi.json, /resources, /prompts."),
        ("/sse", {"mounts": {"/mcp": mounted}}, "Send POST /mcp."),
        ("/messages/", {"mounts": {"/mcp": mounted}}, "Send POST /mcp."),
        ("/tools/hello", {"mounts": {"/mcp": mounted}, "tools": False}, "/health, /ready, /mcp."),
        ("/nothing", {"mounts": {"/mcp": mounted}}, "/openapi.json, /resources, /prompts, /mcp."),
        ("/mcp", {"page": False}, "/tools, /openapi.json, /resources, /prompts."),
    ],
)
async def test_unknown_path_names_the_right_one(path: str, settings: Any, fix: str) -> None:
    client = await request(app.asgi(mcp=False, **settings), "POST", path)
    assert (client.status, client.code) == (404, "E1404")
    error = client.json()["error"]
    assert error["message"] == f"This server has no path {path.removesuffix('/')}."
    assert error["suggestion"]["fix"].endswith(fix)


@pytest.mark.parametrize("root", ["/shop", "/a/b"])
async def test_right_path_has_the_prefix_of_the_server(root: str) -> None:
    client = await request(app.asgi(mcp=False), "POST", f"{root}/hello", root)
    assert client.json()["error"]["suggestion"]["fix"] == f"Send POST {root}/tools/hello."
    client = await request(app.asgi(mcp=False, root_path=root), "GET", "/tools/hello")
    error = client.json()["error"]
    assert error["message"] == f"{root}/tools/hello does not allow GET. It allows POST, OPTIONS."
    assert error["suggestion"]["fix"].startswith(f"Send POST {root}/tools/hello with")


async def test_wrong_method_names_the_right_one() -> None:
    api = app.asgi(mcp=False)
    wrong = await request(api, "GET", "/tools/hello/")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST, OPTIONS")
    assert "Send POST /tools/hello with the arguments" in wrong.json()["error"]["suggestion"]["fix"]
    wrong = await request(api, "POST", "/openapi.json")
    assert wrong.json()["error"]["suggestion"]["fix"] == "Send GET /openapi.json."


async def test_path_with_control_characters_is_cut_and_sanitized() -> None:
    client = await request(app.asgi(mcp=False), "POST", "/\x1b[31m" + "a" * 5000)
    assert client.status == 404
    assert b"\x1b" not in client.body
    assert len(client.body) < 1000


@pytest.mark.parametrize("body", [b'{"nam": "ada"}', b'{"name": 7, "limit": 3}'])
async def test_suggested_request_contains_the_prefix(body: bytes) -> None:
    for api, root in ((app.asgi(mcp=False), "/shop"), (app.asgi(mcp=False, root_path="/shop"), "")):
        client = AsgiClient(api)
        client.send_body(body)
        await client.start("POST", "/tools/hello", [HOST, JSON], root=root)
        example = client.json()["error"]["suggestion"]["example"]
        assert example.startswith("POST /shop/tools/hello")


async def test_suggested_command_contains_the_prefix() -> None:
    client = await request(app.asgi(mcp=False), "POST", "/tools/helo", root="/shop")
    assert client.json()["error"]["suggestion"]["example"] == "POST /shop/tools/hello"
