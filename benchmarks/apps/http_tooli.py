"""One validated tool over HTTP, written with tooli, and served as `api serve` does it."""

import socket
import sys

from tooli import Tooli
from tooli.serving.uvicorn_server import run_server

app = Tooli(name="shop", version="1.0.0")


@app.command()
def order(count: int, item: str = "bolt", price: float = 0.5) -> str:
    """Order things."""
    return f"{count} {item} at {price:.2f}"


def main() -> None:
    """Serve it."""
    run_server(app.asgi(), socket.socket(fileno=int(sys.argv[1])), 1.0)
