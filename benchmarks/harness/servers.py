"""Generate the apps that are served over MCP, with twenty similar tools, for each library.

The apps use the fastest form that the libraries document: FastMCP shows no banner, and the
low-level server of the SDK uses one model for all tools and calls the functions without a thread.
"""

from __future__ import annotations

from collections.abc import Iterator

TOOLS = 20
FUNCTION = '''def order_{n}(count: int, item: str = "bolt", price: float = 0.5) -> str:
    """Order things from store {n}."""
    return f"{count} {item} at {price:.2f}"
'''

TOOLI_HEAD = 'from tooli import Tooli\n\napp = Tooli(name="shop", version="1.0.0")\n'
TOOLI_TAIL = "\n\ndef main() -> None:\n    app()\n"

FASTMCP_HEAD = 'from fastmcp import FastMCP\n\napp = FastMCP("shop", version="1.0.0")\n'
FASTMCP_TAIL = "\n\ndef main() -> None:\n    app.run(show_banner=False)\n"

SDK_HEAD = """import asyncio

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, ValidationError


class Order(BaseModel):
    count: int
    item: str = "bolt"
    price: float = 0.5


"""
SDK_TAIL = """

FUNCTIONS = {f"order_{n}": globals()[f"order_{n}"] for n in range(TOOLS)}
SCHEMA = Order.model_json_schema()
RESULT = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name, description=fn.__doc__, input_schema=SCHEMA, output_schema=RESULT
            )
            for name, fn in FUNCTIONS.items()
        ]
    )


async def call_tool(ctx, params) -> types.CallToolResult:
    try:
        order = Order.model_validate(params.arguments or {})
    except ValidationError as wrong:
        content = [types.TextContent(text=str(wrong))]
        return types.CallToolResult(content=content, is_error=True)
    text = FUNCTIONS[params.name](order.count, order.item, order.price)
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"result": text}
    )


app = Server("shop", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve() -> None:
    async with stdio_server() as (reading, writing):
        await app.run(reading, writing, app.create_initialization_options())


def main() -> None:
    asyncio.run(serve())
"""
LIBRARIES = {
    "tooli": (TOOLI_HEAD, "\n@app.command()\n", TOOLI_TAIL),
    "sdk": (SDK_HEAD, "", SDK_TAIL.replace("TOOLS", str(TOOLS))),
    "fastmcp": (FASTMCP_HEAD, "\n@app.tool\n", FASTMCP_TAIL),
}


def served_apps() -> Iterator[tuple[str, str]]:
    """Yield each app: module name and source."""
    for name, (head, decorator, tail) in LIBRARIES.items():
        functions = [decorator + FUNCTION.replace("{n}", str(n)) for n in range(TOOLS)]
        yield f"served_{name}", head + "\n".join(functions) + tail
