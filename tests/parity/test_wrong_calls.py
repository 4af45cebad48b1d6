"""A suggestion for a wrong call means what the caller meant, and keeps what was right.

Each test makes random mistakes in random calls. A stage of the app receives what the function would
receive: the converted arguments and the framework options.
"""

from __future__ import annotations

import datetime
import enum
import json
import re
import shlex
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from tests.example_count import example_count
from tests.parity.wrong_calls import (
    COMMANDS,
    OPTIONS,
    Intention,
    Mistake,
    as_units,
    random_intention,
    random_value,
    wrong_arguments,
    wrong_line,
)

from tooli import Argument, Ok, Option, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces
from tooli.testing.command_runner import invoke_callable
from tooli.text.jsonable import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import TypeAlias

    from tooli.core.call import Call, Outcome
    from tooli.core.protocols import JsonObject
    from tooli.testing.app_interfaces import Interface

    Fill: TypeAlias = Callable[[Any], Any]

COUNT = example_count(1200)
BATCHES = 4
INTERFACES = ("call", "http", "mcp", "mcp-stateless")
Kind = Literal["small", "medium", "large"]
RUN_OPTIONS = ("yes", "dry_run", "timeout", "idempotency_key", "apply")
RECORD_OPTIONS = ("limit", "max_items", "filter", "fields", "cursor")


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


class Received:
    """What the functions of the app would receive."""

    def __init__(self) -> None:
        self.calls: list[JsonObject] = []

    def stage(self, call: Call) -> Generator[Call, Outcome, Outcome]:
        """Record the bound call, and answer it."""
        records = call.options.result_options
        values = {name: getattr(call.options, name) for name in RUN_OPTIONS}
        values |= {name: getattr(records, name, None) for name in RECORD_OPTIONS}
        arguments = call.tool.arguments_by_param(call.arguments)
        received = {
            "command": call.tool.name,
            **{f"argument {name}": value for name, value in arguments.items()},
            **{f"option {name}": value for name, value in values.items()},
        }
        self.calls.append(received)
        return Ok(None)
        yield call

    def take(self) -> JsonObject | None:
        """Return the last call, and forget it."""
        assert len(self.calls) < 2, self.calls
        return self.calls.pop() if self.calls else None


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


class Shop:
    """An app and one of its interfaces."""

    def __init__(self, name: str) -> None:
        self.received = Received()
        self.app = make_app(self.received)
        self.name = name
        self._interface: Interface = next(i for i in interfaces(self.app) if i.name == name)

    def run(self, words: Sequence[str]) -> tuple[JsonObject, JsonObject | None]:
        """Run a command line; return the answer and what the function received."""
        if self.name == "typer":
            from typer.main import get_command

            command = get_command(self.app)
            done = invoke_callable(
                lambda: command.main(list(words), prog_name="shop"), ("shop", *words), mode="json"
            )
        else:
            done = invoke(self.app, *words, mode="json")
        return done.envelope, self.received.take()

    def send(
        self, command: str, arguments: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[JsonObject, JsonObject | None]:
        """Send a call; return the answer and what the function received."""
        envelope = self._interface.send_case(Case(command, arguments, options)).envelope
        return envelope, self.received.take()

    def follow(
        self, suggestion: Mapping[str, Any], command: str, mistake: Mistake, fill: Fill
    ) -> tuple[JsonObject, JsonObject | None] | None:
        """Do what a suggestion says. Return None if it suggests no call."""
        if "argv" in suggestion:
            words = [fill(word) for word in suggestion["argv"][1:]]
            return self.run([json.dumps(w) if isinstance(w, dict) else str(w) for w in words])
        if "arguments" not in suggestion and "command" not in suggestion:
            return None
        arguments = fill(suggestion.get("arguments", mistake.arguments))
        options: Mapping[str, Any] = suggestion.get("query") or suggestion.get("options") or {}
        if "arguments" not in suggestion:
            options = mistake.options
        return self.send(suggestion.get("command", command), arguments, fill(options))


def unchanged(value: Any) -> Any:
    return value


def make_fill(intention: Intention) -> Fill:
    """Return a function that writes a valid value in place of each placeholder."""
    random = Random(0)
    values = {**intention.arguments, **intention.options}
    for part in intention.arguments.values():
        values |= part if isinstance(part, dict) else {}
    kinds = {f.name: f for fields in COMMANDS.values() for f in (*fields, *fields[0].fields)}

    def fill(value: Any) -> Any:
        if is_object(value):
            filled: JsonObject = {name: fill(item) for name, item in value.items()}
            return filled
        if is_list(value):
            return [fill(item) for item in value]
        found = re.fullmatch(r"(.*=)?<([a-z_]+)>", value) if isinstance(value, str) else None
        if found is None:
            return value
        prefix, name = found[1] or "", found[2]
        field = kinds.get(name)
        if name not in values:
            values[name] = random_value(random, field) if field else OPTIONS[name](random)
        new = values[name][0] if isinstance(values[name], list) else values[name]
        if prefix:
            return f"{prefix}{json.dumps(new) if isinstance(new, dict) else new}"
        return new.lstrip("-") if isinstance(new, str) else new

    return fill


def check(
    shop: Shop,
    intention: Intention,
    mistake: Mistake,
    intended: JsonObject,
    wrong: tuple[JsonObject, JsonObject | None],
    counts: Counter[str],
) -> str | None:
    """Return what is wrong with the answer to a wrong call, or None."""
    answer, received = wrong
    if received is not None:
        counts["accepted"] += 1
        return find_differences(intention, intended, received, mistake.touched)
    suggestion = answer["error"].get("suggestion", {})
    applicability = suggestion.get("applicability", "none")
    counts[applicability] += 1
    followed = shop.follow(suggestion, intention.command, mistake, unchanged)
    if followed is None:
        return "no call, but it is certain" if applicability == "machine_applicable" else None
    answer, received = followed
    touched = frozenset[str]() if applicability == "machine_applicable" else mistake.touched
    if applicability == "has_placeholders":
        if received is not None:
            return f"it has placeholders, and runs: {received}"
        fill = make_fill(intention)
        answer, received = shop.follow(suggestion, intention.command, mistake, fill) or followed
    if received is None and "+" in mistake.label and applicability != "machine_applicable":
        return None  # the other mistake is found only now
    if received is None:
        return f"{applicability}, and it fails: {answer['error']['message']}"
    return find_differences(intention, intended, received, touched)


def find_differences(
    intention: Intention, intended: JsonObject, received: JsonObject, touched: frozenset[str]
) -> str | None:
    """Return the differences of two calls, apart from what a mistake touches."""
    if "command" in touched and intended["command"] != received["command"]:
        return None
    arguments = [field.name for field in COMMANDS[intention.command] if field.is_argument]
    kept = [name for name in intention.arguments if name not in arguments]
    found: list[str] = []
    for key in sorted(intended.keys() | received.keys()):
        name = key.rpartition(" ")[2]
        is_hidden = name in touched or (
            "*" in touched and key.startswith("argument") and name not in kept
        )
        if intended.get(key) != received.get(key) and not is_hidden:
            found.append(f"{key}: {intended.get(key)!r} became {received.get(key)!r}")
    return ", ".join(found) or None


def report(found: list[str], counts: Counter[str]) -> None:
    assert not found, f"{len(found)} calls:\n" + "\n\n".join(found[:20])
    assert min(counts["machine_applicable"], counts["maybe_incorrect"]) > 0
    assert counts["has_placeholders"] > 0


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("name", ["cli", "typer"])
def test_suggested_line_means_what_the_caller_meant(name: str, batch: int) -> None:
    shop, random = Shop(name), Random(batch)
    found: list[str] = []
    counts: Counter[str] = Counter()
    for _ in range(COUNT // BATCHES):
        intention = random_intention(random)
        seed = random.random()
        right = [word for unit in as_units(Random(seed), intention) for word in unit.words]
        answer, intended = shop.run(right)
        assert intended is not None, f"{shlex.join(right)} {answer}"
        mistake = wrong_line(Random(seed), intention)
        if mistake is None:
            continue
        wrong = shop.run(mistake.words)
        problem = check(shop, intention, mistake, intended, wrong, counts)
        if problem:
            lines = [f"{shlex.join(right)}", f"{mistake.label}: {shlex.join(mistake.words)}"]
            lines += [json.dumps(wrong[0].get("error", {}), ensure_ascii=False), problem]
            found.append("\n  ".join(lines))
    report(found, counts)


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("name", INTERFACES)
def test_suggested_arguments_mean_what_the_caller_meant(name: str, batch: int) -> None:
    shop, random = Shop(name), Random(100 + batch)
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
            lines = [f"{intention}", f"{mistake.label}: {mistake.arguments} {mistake.options}"]
            lines += [json.dumps(wrong[0].get("error", {}), ensure_ascii=False), problem]
            found.append("\n  ".join(lines))
    report(found, counts)
