"""`ctx.state` in MCP sessions: the SDK's client and servers in other processes."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from tests.integration.mcp_http.http_process import run_server

COUNTER_APP = Path(__file__).with_name("counter_app.py")


async def call(client: Client, tool: str) -> Any:
    result = await client.call_tool(tool, {})
    return result.structured_content


@pytest.mark.parametrize(
    ("flags", "mode", "is_kept"),
    [
        (None, "legacy", True),  # stdio
        (None, "auto", True),
        (("--transport", "sse"), "legacy", True),
        ((), "legacy", True),
        (("--json-response",), "legacy", True),
        (("--stateless",), "legacy", True),
    ],
)
async def test_a_session_keeps_its_state(
    flags: tuple[str, ...] | None, mode: Any, is_kept: bool
) -> None:
    server = nullcontext() if flags is None else run_server(COUNTER_APP, *flags)
    with server as running:

        def connect() -> Client:
            if running is None:
                command = [str(COUNTER_APP), "mcp", "serve"]
                target: Any = stdio_client(
                    StdioServerParameters(command=sys.executable, args=command)
                )
            elif flags and "sse" in flags:
                target = sse_client(running.url)
            else:
                target = running.url
            return Client(target, mode=mode)

        async with connect() as first, connect() as second:
            for client in (first, second):  # the sessions do not see each other
                for number, tool in enumerate(("count", "count_async", "count"), 1):
                    expected = {"calls": number if is_kept else 1, "kept": is_kept}
                    assert await call(client, tool) == expected
                content: Any = (await client.read_resource("counter://calls")).contents[0]
                assert content.text == ("3" if is_kept else "0")
                await client.list_tools()
        async with connect() as third:
            assert (await call(third, "count"))["calls"] == 1
