"""One validated tool over HTTP, written with Litestar."""

from dataclasses import dataclass

from http_serving import serve
from litestar import Litestar, post


@dataclass
class Order:
    """The arguments of an order."""

    count: int
    item: str = "bolt"
    price: float = 0.5


@post("/tools/order", status_code=200, sync_to_thread=True)
def order(data: Order) -> str:
    """Order things."""
    return f'"{data.count} {data.item} at {data.price:.2f}"'


app = Litestar([order], openapi_config=None, logging_config=None)


def main() -> None:
    """Serve the app."""
    serve(app)
