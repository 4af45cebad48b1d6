"""An app for tests of scripts. It notes which commands have run."""

from __future__ import annotations

from typing import TypedDict

import pytest

from tooli import NotFoundError, Tooli
from tooli.annotations import Destructive, ReadOnly

pytest.importorskip("pydantic_monty", reason="pydantic-monty has no wheel for this platform")


class Item(TypedDict):
    """An item of the shop."""

    name: str
    cents: int


PRICES = {"gum": 90, "pen": 150, "tea": 300}


class Shop:
    """The app, and the names of the commands that have run."""

    def __init__(self, name: str = "shop", **settings) -> None:
        self.app = app = Tooli(name, version="1.0", **settings)
        self.ran: list[str] = []

        @app.command(annotations=ReadOnly, auth=[])
        def find(text: str = "") -> list[Item]:
            """Find items by a part of their name."""
            self.ran.append("find")
            return [Item(name=name, cents=PRICES[name]) for name in PRICES if text in name]

        @app.command(annotations=ReadOnly, auth=[])
        async def price(name: str) -> Item:
            """Return one item."""
            self.ran.append(f"price {name}")
            if name not in PRICES:
                raise NotFoundError(f"There is no {name}.")
            return Item(name=name, cents=PRICES[name])

        @app.command(annotations=Destructive, auth=[])
        def drop(name: str) -> str:
            """Remove an item."""
            self.ran.append(f"drop {name}")
            return name

        @app.command(requires_approval=True, auth=[])
        def buy(name: str) -> str:
            """Buy an item."""
            self.ran.append(f"buy {name}")
            return name
