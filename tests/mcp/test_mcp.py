"""mcp_endpoint: the MCP server of an app as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Tooli
from tooli.errors import DependencyError
from tooli.mcp import mcp_endpoint
from tooli.serving import dispatcher

LIST_TOOLS = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def buy(item: str) -> str:
        return item

    return app


async def post(api: Any, path: str, message: Any, *headers: tuple[bytes, bytes]) -> AsgiClient:
    client = AsgiClient(api)
    client.send_body(json.dumps(message).encode())
    await asyncio.wait_for(client.start("POST", path, [HOST, JSON, ACCEPT, *headers]), 120)
    return client


async def list_tools(**options: Any) -> set[str]:
    """Return the names of the listed tools, over Streamable HTTP."""
    async with run_lifespan(mcp_endpoint(make_app(), **options)) as api:
        initialized = await post(api, "/mcp", INITIALIZE)
        session = initialized.headers["mcp-session-id"].encode()
        answer = await post(api, "/mcp", LIST_TOOLS, (b"mcp-session-id", session))
    line = next(line for line in answer.body.splitlines() if line.startswith((b"data: {", b"{")))
    tools = json.loads(line.removeprefix(b"data: "))["result"]["tools"]
    return {tool["name"] for tool in tools}


async def test_every_tool_is_listed() -> None:
    assert await list_tools() == {"buy"}


async def test_deferred_tools_are_found_by_search() -> None:
    names = await list_tools(deferred=True)
    assert "buy" not in names
    assert names


async def test_path_of_the_endpoint_can_be_set() -> None:
    async with run_lifespan(mcp_endpoint(make_app(), path="/other")) as api:
        assert (await post(api, "/other", INITIALIZE)).status == 200
        assert (await post(api, "/mcp", INITIALIZE)).status == 404


def test_missing_sdk_is_a_dependency_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "is_installed", lambda package: package != "mcp")
    with pytest.raises(DependencyError, match="needs the MCP SDK") as caught:
        mcp_endpoint(make_app())
    assert caught.value.suggestion is not None
    assert "pip install 'tooli[mcp]>=7.0a1'" in str(caught.value.suggestion)


def test_package_imports_neither_the_sdk_nor_the_transports() -> None:
    code = (
        "import sys, tooli.mcp\n"
        "print([name for name in sys.modules if name.startswith(('mcp', 'tooli.mcp.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
