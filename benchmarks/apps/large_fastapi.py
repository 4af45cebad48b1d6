"""Large results over HTTP, written with FastAPI."""

from fastapi import FastAPI
from http_serving import serve
from large_values import ITEMS, TEXT, Item
from pydantic import BaseModel

app = FastAPI(title="shop", version="1.0.0")


class Count(BaseModel):
    """The arguments of both tools."""

    count: int


@app.post("/tools/items")
def items(arguments: Count) -> list[Item]:
    """Return items."""
    return ITEMS[: arguments.count]


@app.post("/tools/text")
def text(arguments: Count) -> str:
    """Return a long text."""
    return TEXT


def main() -> None:
    """Serve the app."""
    serve(app)
