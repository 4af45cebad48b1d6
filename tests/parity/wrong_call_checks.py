"""Send wrong calls to an app, do what the answers suggest, and compare both with the intention.

    wrong call ──▶ error with a suggestion ──▶ suggested call ──▶ what the function would receive

A stage of the app receives what the function would receive: the converted arguments and the
framework options.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

from tests.lanes.generators import is_equal
from tests.parity.wrong_calls import OPTIONS, random_value
from typer.main import get_command

from tooli import Ok
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import interfaces
from tooli.testing.command_runner import invoke_callable
from tooli.text.jsonable import is_list, is_object

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import TypeAlias

    from tests.parity.wrong_calls import Intention, Mistake

    from tooli import Tooli
    from tooli.core.call import Call, Outcome
    from tooli.core.protocols import JsonObject
    from tooli.testing.app_interfaces import Interface

    Fill: TypeAlias = Callable[[Any], Any]

INTERFACES = ("call", "http", "mcp", "mcp-stateless")
RUN_OPTIONS = ("yes", "dry_run", "timeout", "idempotency_key", "apply")
RECORD_OPTIONS = ("limit", "max_items", "filter", "fields", "cursor")


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


class Shop:
    """An app and one of its interfaces. The stage of `received` is part of the app."""

    def __init__(self, name: str, app: Tooli, received: Received) -> None:
        self.received = received
        self.app = app
        self.name = name
        self._typer_command: Any = None
        self._interface: Interface = next(i for i in interfaces(self.app) if i.name == name)

    def run(self, words: Sequence[str]) -> tuple[JsonObject, JsonObject | None]:
        """Run a command line; return the answer and what the function received."""
        if self.name == "typer":
            command = self._typer_command = self._typer_command or get_command(self.app)
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
    """Return a function that writes a valid value in place of each placeholder.

    Several placeholders of one name are the items of a list.
    """
    random = Random(0)
    values = {**intention.options, **intention.arguments}
    for part in intention.arguments.values():
        values |= part if isinstance(part, dict) else {}
    fields = {f.name: f for field in intention.fields for f in (field, *field.fields)}
    counts: dict[str, int] = {}

    def fill(value: Any) -> Any:
        if is_object(value):
            filled: JsonObject = {name: fill(item) for name, item in value.items()}
            return filled
        if is_list(value):
            return [fill(item) for item in value]
        found = re.fullmatch(r"(.*=)?<(\w+)>", value) if isinstance(value, str) else None
        if found is None:
            return value
        prefix, name = found[1] or "", found[2]
        if name not in values:
            field = fields.get(name)
            values[name] = random_value(random, field) if field else OPTIONS[name](random)
        new = values[name]
        if isinstance(new, list):
            counts[name] = counts.get(name, -1) + 1
            new = new[counts[name] % len(new)]
        if prefix:
            return f"{prefix}{json.dumps(new) if isinstance(new, dict) else new}"
        if isinstance(new, str):
            return new.lstrip("-")
        return abs(new) if isinstance(new, (int, float)) and not isinstance(new, bool) else new

    return fill


def check(
    shop: Shop,
    intention: Intention,
    mistake: Mistake,
    intended: JsonObject,
    wrong: tuple[JsonObject, JsonObject | None],
    counts: Counter[str],
    *,
    compares_accepted: bool = True,
) -> str | None:
    """Return what is wrong with the answer to a wrong call, or None.

    A wrong call that is accepted must mean what the caller meant, apart from what the mistake
    touches.
    """
    answer, received = wrong
    if received is not None:
        counts["accepted"] += 1
        if compares_accepted:
            return find_differences(intention, intended, received, mistake.touched)
        return None
    suggestion = answer["error"].get("suggestion", {})
    applicability = suggestion.get("applicability", "none")
    counts[applicability] += 1
    followed = shop.follow(suggestion, intention.command, mistake, unchanged)
    if followed is None:
        return "no call, but it is certain" if applicability == "machine_applicable" else None
    answer, received = followed
    error = wrong[0]["error"]
    is_certain = applicability == "machine_applicable"
    touched = frozenset[str]() if is_certain else mistake.touched | _suggested_names(error)
    if applicability == "has_placeholders":
        if received is not None:
            return f"it has placeholders, and runs: {received}"
        fill = make_fill(intention)
        answer, received = shop.follow(suggestion, intention.command, mistake, fill) or followed
        name = "" if received else answer["error"].get("field") or ""
        if name and ("." in name or f"<{name}>" in json.dumps(suggestion)):
            return None  # the value is not the one that the caller would write
    if received is None and not is_certain and _is_other_error(mistake, error, answer["error"]):
        return None  # the other mistake is found only now
    if received is None:
        return f"{applicability}, and it fails: {answer['error']['message']}"
    return find_differences(intention, intended, received, touched)


def _suggested_names(error: JsonObject) -> frozenset[str]:
    """Return the names that a message suggests: one that is near may not be the right one."""
    names = re.findall(r"did you mean '?-*([\w-]+)", json.dumps(error))
    return frozenset(name.replace("-", "_") for name in names)


def _is_other_error(mistake: Mistake, before: JsonObject, after: JsonObject) -> bool:
    if "+" in mistake.label:
        return True
    where = [(error["code"], error.get("field")) for error in (before, after)]
    return "*" in mistake.touched and where[0] != where[1]


def find_differences(
    intention: Intention, intended: JsonObject, received: JsonObject, touched: frozenset[str]
) -> str | None:
    """Return the differences of two calls, apart from what a mistake touches."""
    if "command" in touched and intended["command"] != received["command"]:
        return None
    arguments = [field.name for field in intention.fields if field.is_argument]
    kept = [name for name in intention.arguments if name not in arguments]
    found: list[str] = []
    for key in sorted(intended.keys() | received.keys()):
        name = key.rpartition(" ")[2]
        is_hidden = name in touched or (
            "*" in touched and key.startswith("argument") and name not in kept
        )
        if not (is_hidden or is_equal(intended.get(key), received.get(key))):
            found.append(f"{key}: {intended.get(key)!r} became {received.get(key)!r}")
    return ", ".join(found) or None
