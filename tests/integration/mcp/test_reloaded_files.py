"""A folder of Python files that changes while an MCP server serves it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

APP = """
from tooli import Tooli
from tooli.providers import FileSystemProvider

app = Tooli("shop")
app.add_provider(FileSystemProvider("tools", hot_reload=True), namespace="files")
app()
"""
DOUBLE = "def double(n: int) -> int:\n    return n * {}\n"


async def test_client_is_told_and_calls_work(tmp_path: Path) -> None:
    app, tools = tmp_path / "app.py", tmp_path / "tools"
    app.write_text(APP)
    tools.mkdir()
    (tools / "first.py").write_text("print('noise')\ndef first() -> int:\n    return 1\n")
    notices: asyncio.Queue[str] = asyncio.Queue()

    async def handle(message: Any) -> None:
        await notices.put(type(getattr(message, "root", message)).__name__)

    async def wait_for_change() -> list[str]:
        assert await asyncio.wait_for(notices.get(), 60) == "ToolListChangedNotification"
        return [tool.name for tool in (await client.list_tools()).tools]

    async def wait_for_problem() -> None:
        while "double.py" not in log.read_text():
            await asyncio.sleep(0.01)

    server = StdioServerParameters(command=sys.executable, args=[str(app), "mcp", "serve"])
    log = tmp_path / "stderr"
    with log.open("w") as stderr:
        connection = stdio_client(server, errlog=stderr)
        async with Client(connection, mode="legacy", message_handler=handle) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["files_first"]
            (tools / "double.py").write_text(DOUBLE.format(2))
            assert await wait_for_change() == ["files_double", "files_first"]
            (tools / "double.py").write_text(DOUBLE.format("("))  # broken: its last tools are kept
            await asyncio.wait_for(wait_for_problem(), 60)  # the list for clients is the same
            done = await client.call_tool("files_double", {"n": 4})
            assert done.structured_content == {"result": 8}
            (tools / "double.py").write_text(DOUBLE.format(3))
            assert await wait_for_change() == ["files_double", "files_first"]
            done = await client.call_tool("files_double", {"n": 4})
            assert done.structured_content == {"result": 12}
            (tools / "double.py").unlink()
            assert await wait_for_change() == ["files_first"]
    assert notices.empty()
