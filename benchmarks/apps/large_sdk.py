"""Large results over stdio, written with the server class of the MCP SDK."""

from large_values import ITEMS, TEXT, Item
from mcp.server.mcpserver import MCPServer

app = MCPServer("shop")


@app.tool()
def items(count: int) -> list[Item]:
    """Return items."""
    return ITEMS[:count]


@app.tool()
def text(count: int) -> str:
    """Return a long text."""
    return TEXT


def main() -> None:
    """Serve the app."""
    app.run()
