"""An app whose HTTP API is mounted back through its own OpenAPI document.

python -m tests.integration.providers.openapi_round_trip      serves it on a free port
"""

from __future__ import annotations

from typing import Literal, TypedDict

from tooli import NotFoundError, Suggestion, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.http.http_server import serve_http

app = Tooli("shop", version="1.0")


class Item(TypedDict):
    """An item of the shop."""

    name: str
    price: float


ITEMS = [Item(name="bolt", price=0.5), Item(name="nüt", price=0.25), Item(name="cog", price=2)]


@app.command(annotations=ReadOnly)
def find(pattern: str, kind: Literal["exact", "part"] = "part") -> list[Item]:
    """Find items by name."""
    found = [item for item in ITEMS if pattern in item["name"]]
    if not found:
        raise NotFoundError(
            f"No item is called {pattern}.",
            field="pattern",
            suggestion=Suggestion("retry_with_modified_input", "Try bolt."),
            details={"pattern": pattern},
        )
    return found


@app.command()
def total(names: list[str], rates: dict[str, float] | None = None) -> float:
    """Add the prices of items."""
    factors = rates or {}
    return sum(i["price"] * factors.get(i["name"], 1) for i in ITEMS if i["name"] in names)


@app.command()
def store(item: Item, count: int = 1) -> dict[str, int]:
    """Store an item."""
    return {item["name"]: count}


@app.command(annotations=Destructive)
def remove(name: str) -> str:
    """Remove an item."""
    return f"removed {name}"


if __name__ == "__main__":
    serve_http(app, port=0)
