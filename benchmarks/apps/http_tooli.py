"""One validated tool over HTTP, written with tooli."""

from http_serving import serve

from tooli import Tooli

app = Tooli(name="shop", version="1.0.0")


@app.command()
def order(count: int, item: str = "bolt", price: float = 0.5) -> str:
    """Order things."""
    return f"{count} {item} at {price:.2f}"


def main() -> None:
    """Serve it."""
    serve(app.asgi())
