"""A suggestion for a wrong call means what the caller meant, and keeps what was right.

Each test makes random mistakes in random calls. A stage of the app receives what the function would
receive: the converted arguments and the framework options.
"""

from __future__ import annotations

import datetime
import enum
import json
import shlex
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from pydantic import BaseModel
from tests.example_count import example_count
from tests.parity.wrong_call_checks import INTERFACES, Received, Shop, check
from tests.parity.wrong_calls import as_units, random_intention, wrong_arguments, wrong_line

from tooli import Argument, Option, Tooli
from tooli.annotations import Destructive, ReadOnly

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject

COUNT = example_count(1200)
BATCHES = 4
Kind = Literal["small", "medium", "large"]


class Color(enum.Enum):
    CRIMSON = "crimson"
    TURQUOISE = "turquoise"
    VIOLET = "violet"


class Row(BaseModel):
    name: str
    size: int


class Order(BaseModel):
    sku: str
    amount: int
    express: bool = False
    kind: Kind = "small"


class Shipment(BaseModel):
    street: str
    parcels: int
    kind: Kind = "small"
    insured: bool = False


def make_app(received: Received) -> Tooli:
    app = Tooli("shop")
    app.use(received.stage, before="approval")

    @app.command(annotations=Destructive)
    def add(
        name: str,
        count: Annotated[int, Argument()] = 1,
        price: Annotated[float, Option()] = 1.0,
        kind: Annotated[Kind, Option()] = "small",
        labels: Annotated[list[str] | None, Option()] = None,
        gift: Annotated[bool, Option()] = False,
        until: Annotated[datetime.date | None, Option()] = None,
    ) -> None:
        """Add."""

    @app.command(annotations=Destructive)
    def move(
        sources: list[Path],
        target: Annotated[Path, Option()],
        color: Annotated[Color, Option()] = Color.VIOLET,
        depth: Annotated[int, Option(min=1, max=99)] = 3,
        force: Annotated[bool, Option()] = False,
    ) -> None:
        """Move."""

    @app.command(annotations=ReadOnly, paginated=True)
    def rows(
        pattern: Annotated[str, Argument()] = "*",
        kind: Annotated[Kind, Option()] = "small",
        maximum: Annotated[int, Option(min=1)] = 5,
    ) -> list[Row]:
        """List rows."""
        return []

    @app.command()
    def pair(left: int, right: int, scale: Annotated[float, Option()] = 1.0) -> None:
        """Take a pair."""

    @app.command()
    def order(
        order: Annotated[Order, Option()], priority: Annotated[int, Option(min=1)] = 2
    ) -> None:
        """Order."""

    @app.command(input_model=Shipment)
    def ship(shipment: Shipment) -> None:
        """Ship."""

    @app.command(annotations=Destructive)
    def taken(
        word: Annotated[str, Argument()] = "w",
        limit: Annotated[int, Option()] = 3,
        dry_run: Annotated[bool, Option()] = False,
        filter: Annotated[str, Option()] = "",
    ) -> None:
        """Take parameters with the names of options."""

    return app


def make_shop(name: str) -> Shop:
    received = Received()
    return Shop(name, make_app(received), received)


def report(found: list[str], counts: Counter[str]) -> None:
    assert not found, f"{len(found)} calls:\n" + "\n\n".join(found[:20])
    assert min(counts["machine_applicable"], counts["maybe_incorrect"]) > 0
    assert counts["has_placeholders"] > 0


def describe(right: object, mistake: str, wrong: object, answer: JsonObject, problem: str) -> str:
    error = json.dumps(answer.get("error", {}), ensure_ascii=False)
    return "\n  ".join([f"{right}", f"{mistake}: {wrong}", error, problem])


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("name", ["cli", "typer"])
def test_suggested_line_means_what_the_caller_meant(name: str, batch: int) -> None:
    shop, random = make_shop(name), Random(batch)
    found: list[str] = []
    counts: Counter[str] = Counter()
    for _ in range(COUNT // BATCHES):
        intention = random_intention(random)
        units = as_units(random, intention)
        right = [word for unit in units for word in unit.words]
        answer, intended = shop.run(right)
        assert intended is not None, f"{shlex.join(right)} {answer}"
        mistake = wrong_line(random, units)
        if mistake is None:
            continue
        wrong = shop.run(mistake.words)
        problem = check(shop, intention, mistake, intended, wrong, counts)
        if problem:
            lines = shlex.join(right), mistake.label, shlex.join(mistake.words)
            found.append(describe(*lines, wrong[0], problem))
    report(found, counts)


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("name", INTERFACES)
def test_suggested_arguments_mean_what_the_caller_meant(name: str, batch: int) -> None:
    shop, random = make_shop(name), Random(100 + batch)
    found: list[str] = []
    counts: Counter[str] = Counter()
    for _ in range(COUNT // BATCHES):
        intention = random_intention(random)
        answer, intended = shop.send(intention.command, intention.arguments, intention.options)
        assert intended is not None, f"{intention} {answer}"
        mistake = wrong_arguments(random, intention)
        if mistake is None:
            continue
        wrong = shop.send(intention.command, mistake.arguments, mistake.options)
        problem = check(shop, intention, mistake, intended, wrong, counts)
        if problem:
            sent = f"{mistake.arguments} {mistake.options}"
            found.append(describe(intention, mistake.label, sent, wrong[0], problem))
    report(found, counts)
