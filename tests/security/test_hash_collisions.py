"""Callers choose integers with equal hashes: no interface builds a set of them."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.schema.json_validation import _json_identity
from tooli.testing import Case
from tooli.testing.app_interfaces import interfaces

NUMBERS = [i * (2**61 - 1) for i in range(1, 3000)]
"""Integers with the hash 0."""

ran: list[str] = []


class Order(pydantic.BaseModel):
    numbers: set[int] = set()
    prices: dict[int, float] = {}


def make_app() -> Tooli:
    app = Tooli("hashed")

    @app.command()
    def count(numbers: set[int]) -> int:
        ran.append("count")
        return len(numbers)

    @app.command()
    def order(order: Order) -> int:
        ran.append("order")
        return len(order.numbers)

    return app


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "set": ("count", {"numbers": NUMBERS}),
    "set in a model": ("order", {"order": {"numbers": NUMBERS}}),
    "dict in a model": ("order", {"order": {"prices": {str(i): 1 for i in NUMBERS}}}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("interface", interfaces(make_app()), ids=lambda item: item.name)
def test_call_is_refused(interface: Any, name: str) -> None:
    if interface.surface == "cli" and name == "set":
        pytest.skip("each item is an argument of the caller's own process")
    ran.clear()
    tool, arguments = CALLS[name]
    answer = interface.send_case(Case(tool, arguments)).envelope
    assert not ran
    assert answer["error"]["code"] == "E1003"
    assert "have the same hash" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("numbers", "is_unique"),
    [
        (NUMBERS, True),
        ([1, 1.0], False),
        ([1, 2, 1], False),
        ([0, True], True),
    ],
)
async def test_strict_handling_finds_duplicates(numbers: list[Any], is_unique: bool) -> None:
    strict = (b"prefer", b"handling=strict")
    client = await post(make_app().asgi(mcp=False), "count", {"numbers": numbers}, strict)
    message = str(client.json().get("error"))
    assert ("not unique" in message) is not is_unique


def test_strict_handling_compares_texts() -> None:
    """`uniqueItems` must not put the numbers of a caller into a set."""
    assert len({hash(_json_identity(number)) for number in NUMBERS}) == len(NUMBERS)
    assert len({hash(_json_identity([number])) for number in NUMBERS}) == len(NUMBERS)
