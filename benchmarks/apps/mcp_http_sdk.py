"""MCP over HTTP with answers as JSON, written with the server class of the MCP SDK."""

from http_serving import serve
from mcp.server.mcpserver import MCPServer

app = MCPServer("shop", log_level="WARNING")
tool = app.tool()

TEXT = "The quick brown fox jumps over the lazy dog, twice a day.\n" * 7_000


@tool
def order(count: int, item: str = "bolt", price: float = 0.5) -> str:
    """Order things."""
    return f"{count} {item} at {price:.2f}"


@tool
def text(count: int) -> str:
    """Return a text of 400 kB."""
    return TEXT


def main() -> None:
    """Serve the app."""
    serve(app.streamable_http_app(json_response=True))
