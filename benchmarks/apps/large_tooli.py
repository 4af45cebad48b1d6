"""Large results, written with tooli: over HTTP (with a file descriptor), stdio, or a command."""

import socket
import sys

from large_values import ITEMS, TEXT, Item

from tooli import Tooli
from tooli.mcp.stdio_server import serve_stdio
from tooli.serving.uvicorn_server import run_server

app = Tooli(name="shop", version="1.0.0")


@app.command()
def items(count: int) -> list[Item]:
    """Return items."""
    return ITEMS[:count]


@app.command()
def text(count: int) -> str:
    """Return a long text."""
    return TEXT


async def close_nothing(grace: float) -> None:
    """Return at once: the app has no mounted applications."""


def main() -> None:
    """Serve the app."""
    if sys.argv[2:]:
        app()
    elif sys.argv[1:]:
        listener = socket.socket(fileno=int(sys.argv[1]))
        run_server(app.asgi(), listener, 1.0, on_shutdown=close_nothing)
    else:
        serve_stdio(app)
