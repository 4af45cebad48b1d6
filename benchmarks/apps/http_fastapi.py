"""One validated tool over HTTP, written with FastAPI."""

from fastapi import FastAPI
from http_serving import serve
from pydantic import BaseModel

app = FastAPI(title="shop", version="1.0.0")


class Order(BaseModel):
    """The arguments of an order."""

    count: int
    item: str = "bolt"
    price: float = 0.5


@app.post("/tools/order")
def order(order: Order) -> str:
    """Order things."""
    return f"{order.count} {order.item} at {order.price:.2f}"


def main() -> None:
    """Serve the app."""
    serve(app)
