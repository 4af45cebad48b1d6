"""One validated tool over HTTP, written with tooli, and served in the same way as `api serve`."""

import socket
import sys

from tooli import Tooli
from tooli.serving.uvicorn_server import run_server

app = Tooli(name="shop", version="1.0.0")


@app.command()
def order(count: int, item: str = "bolt", price: float = 0.5) -> str:
    """Order things."""
    return f"{count} {item} at {price:.2f}"


async def close_nothing(grace: float) -> None:
    """Return at once: the app has no mounted applications."""


def main() -> None:
    """Serve the app; the first argument is the file descriptor of the socket."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    run_server(app.asgi(), listener, 1.0, on_shutdown=close_nothing)
