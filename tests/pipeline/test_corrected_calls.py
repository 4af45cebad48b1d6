"""`suggest_corrected_call`: what it keeps, what it corrects, and when it is certain."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from tooli import Argument, Option, Tooli
from tooli.annotations import Destructive
from tooli.testing import invoke
from tooli.testing.app_interfaces import Case, interfaces


class Order(BaseModel):
    sku: str
    amount: int = 1


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def add(
        name: str,
        count: Annotated[int, Argument()] = 1,
        kind: Annotated[Literal["small", "large"], Option()] = "small",
        labels: Annotated[list[str] | None, Option()] = None,
        gift: Annotated[bool, Option()] = True,
        order: Annotated[Order | None, Option()] = None,
    ) -> str:
        return f"{name} {count} {kind} {labels} {gift} {order}"

    @app.command()
    def taken(dry_run: Annotated[bool, Option()] = False) -> bool:
        return dry_run

    @app.command()
    def pack(targets: list[str]) -> list[str]:
        return targets

    return app


def suggestion_of(*words: str) -> dict[str, Any]:
    return invoke(make_app(), *words, mode="json").envelope["error"]["suggestion"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add desk -kind large", "add desk --kind large"),
        ("add desk -limit 3", "add desk --limit 3"),
        ("add desk -dry-run", "add desk --dry-run"),
        ("add desk -tooli-limit=3", "add desk --limit 3"),
        ("add desk --lables a --labels b", "add desk --labels a --labels b"),
        ("add desk --labels a --lables b", "add desk --labels a --labels b"),
        ("add --nmae desk 3", "add desk 3"),
        ("add desk --dry-run=true", "add desk --dry-run"),
        ("add desk --ordr.sku a --order.amount 3", "add desk --order.sku a --order.amount 3"),
        ("taken --dry-run=on --tooli-dry-run", "taken --dry-run --tooli-dry-run"),
    ],
)
def test_certain_correction(line: str, expected: str) -> None:
    suggestion = suggestion_of(*line.split())
    assert suggestion["example"] == f"shop {expected}"
    assert suggestion["applicability"] == "machine_applicable"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add desk --no-gfit", "add desk --no-gift"),
        ("add desk --dry-run=maybe", "add desk --dry-run"),
        ("add desk --yes=true", "add desk --yes"),
        ("add desk --yes=maybe", "add desk"),
        ("add desk --limti x", "add desk"),
        ("add desk --limti 3 --limit 4", "add desk --limit 4"),
        ("add desk --limit x", "add desk"),
        ("add desk --filtr size>3", "add desk --filter size>3"),
        ("add desk --orrder.sku=a --order.amout x", "add desk --order.sku a --order.amount x"),
    ],
)
def test_uncertain_correction(line: str, expected: str) -> None:
    suggestion = suggestion_of(*line.split())
    assert suggestion["example"].replace("'", "") == f"shop {expected}"
    assert suggestion["applicability"] == "maybe_incorrect"


@pytest.mark.parametrize("line", ["pack a --zzz b", "pack a -z b", "pack a -zzz b"])
def test_word_after_an_unknown_option_is_not_made_an_argument(line: str) -> None:
    """It may be the value of the option: a line with it as an argument may do something else."""
    suggestion = suggestion_of(*line.split())
    assert "argv" not in suggestion
    assert suggestion["applicability"] != "machine_applicable"


def test_missing_list_is_a_list_of_placeholders() -> None:
    interface = next(i for i in interfaces(make_app()) if i.name == "mcp")
    error = interface.send_case(Case("pack")).envelope["error"]
    assert error["suggestion"]["arguments"] == {"targets": ["<targets>"]}


def test_placeholder_of_an_option_is_not_its_value() -> None:
    error = invoke(make_app(), "add", "x", "--idempotency-key", "<idempotency_key>").envelope
    assert error["error"]["code"] == "E1007"


def test_empty_field_of_an_object() -> None:
    suggestion = suggestion_of("add", "desk", "--order..sku=x")
    assert suggestion["applicability"] == "has_placeholders"
    assert "UnknownField" not in suggestion["example"]
