"""Give each construct to a framework, and print what its model receives.

    python try_constructs.py FRAMEWORK [FOLDER]

The output is `{construct: {"schema": …, "answer": …}}`, or `{construct: {"error": …}}` if the
framework refuses the construct. FOLDER contains a folder with an export per construct. Without it,
the framework is an MCP client of `constructs.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.integration.frameworks.constructs import CONSTRUCTS, arguments_of

SERVER = str(Path(__file__).with_name("constructs.py"))


async def agno(name: str) -> tuple[Any, str]:
    from agno.tools.mcp import MCPTools

    async with MCPTools(f"{sys.executable} {SERVER} {name}") as tools:
        function = tools.functions[name]
        answer = await function.entrypoint(**arguments_of(name))
        return function.parameters, answer.content


async def dspy(name: str) -> tuple[Any, str]:
    import dspy
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=sys.executable, args=[SERVER, name])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        (listed,) = (await session.list_tools()).tools
        tool = dspy.Tool.from_mcp_tool(session, listed)
        answer = await tool.acall(**arguments_of(name))
        return {"type": "object", "properties": tool.args, "required": list(tool.args)}, answer


async def smolagents(name: str) -> tuple[Any, str]:
    from mcp import StdioServerParameters
    from smolagents import MCPClient
    from smolagents.models import get_tool_json_schema

    server = StdioServerParameters(command=sys.executable, args=[SERVER, name])
    with MCPClient(server, structured_output=False) as (tool,):
        answer = tool(**arguments_of(name))
        return get_tool_json_schema(tool)["function"]["parameters"], answer


async def strands(name: str) -> tuple[Any, str]:
    from mcp import StdioServerParameters, stdio_client
    from strands.tools.mcp import MCPClient

    server = StdioServerParameters(command=sys.executable, args=[SERVER, name])
    client = MCPClient(lambda: stdio_client(server))
    with client:
        (tool,) = client.list_tools_sync()
        answer = client.call_tool_sync("1", name, arguments_of(name))
        return tool.tool_spec["inputSchema"]["json"], answer["content"][0]["text"]


CLIENTS = {"agno": agno, "dspy": dspy, "smolagents": smolagents, "strands": strands}


async def exported(target: str, folder: Path, name: str) -> tuple[Any, str]:
    """Run an export that has the construct in the framework of a target."""
    from tests.integration.frameworks.run_exports import DRIVERS

    sys.path.insert(0, str(folder))
    try:
        calls = [(name, arguments_of(name))]
        schemas, _, answers = await DRIVERS[target](folder, calls)
    finally:
        sys.path.remove(str(folder))
        for module in [key for key in sys.modules if "every_thing" in key.partition(".")[0]]:
            del sys.modules[module]
    envelope = json.loads(answers[0][0])
    return schemas[name], json.dumps(envelope["result"])


def main(framework: str, folder: str = "") -> None:
    found: dict[str, Any] = {}
    for name in CONSTRUCTS:
        client = CLIENTS.get(framework)
        run = client(name) if client else exported(framework, Path(folder) / name, name)
        try:
            schema, answer = asyncio.run(run)
            found[name] = {"schema": json.loads(json.dumps(schema)), "answer": answer}
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[:500]}
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
