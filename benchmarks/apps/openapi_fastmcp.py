"""List the operations of an OpenAPI document with FastMCP: `openapi_fastmcp.py FILE`."""

import asyncio
import json
import sys


def main() -> None:
    """Print the number of operations, and the size of their descriptions."""
    import httpx2
    from fastmcp import FastMCP

    with open(sys.argv[1], "rb") as file:
        document = json.load(file)
    client = httpx2.AsyncClient(base_url="https://api.test")
    server = FastMCP.from_openapi(openapi_spec=document, client=client)
    tools = asyncio.run(server.list_tools())
    size = sum(len(tool.to_mcp_tool().model_dump_json()) for tool in tools)
    print(f"{len(tools)} operations, {size} characters")
