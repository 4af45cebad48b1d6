"""MCP over HTTP with answers as JSON, written with tooli."""

from http_serving import serve

from tooli import Tooli

app = Tooli(name="shop", version="1.0.0")
tool = app.command()

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
    serve(app.asgi(json_response=True))
