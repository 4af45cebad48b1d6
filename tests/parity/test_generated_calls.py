"""A suggestion for a wrong call of any command means what the caller meant.

Every example is one random command, of which random calls with random mistakes are made.

    TOOLI_FUZZ_SEED=7 TOOLI_FUZZ_EXAMPLES=2000 pytest tests/parity/test_generated_calls.py
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lanes.generators import commands, fuzz_example_count, make_files, run_examples
from tests.parity.generated_calls import as_units, is_usual, make_app, random_intention
from tests.parity.wrong_call_checks import INTERFACES, Received, Shop, check
from tests.parity.wrong_calls import wrong_arguments, wrong_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.lanes.generators import Command

    from tooli.core.protocols import JsonObject

EXAMPLES = fuzz_example_count(240)
CALLS = 6
"""Wrong calls of each command."""


@pytest.fixture(autouse=True, scope="module")
def folder_with_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run in a folder with the files that the paths of the commands name."""
    folder = tmp_path_factory.mktemp("calls")
    make_files(folder)
    before = os.getcwd()
    os.chdir(folder)
    yield
    os.chdir(before)


class Tally:
    """Counts what the answers say, and collects the calls with a wrong suggestion."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.found: list[str] = []

    def add(
        self, command: Command, right: Any, label: str, wrong: Any, answer: JsonObject, problem: str
    ) -> None:
        error = json.dumps(answer.get("error", {}), ensure_ascii=False)
        lines = f"{command!r}", f"right: {right}", f"{label}: {wrong}", error, problem
        self.found.append("\n  ".join(lines))

    def report(self) -> None:
        found = self.found
        assert not found, f"{len(found)} calls:\n" + "\n\n".join(found[:20])
        for name in ("machine_applicable", "maybe_incorrect", "has_placeholders"):
            assert self.counts[name] > 0, self.counts


def run_all(name: str, seed: str, check_command: Any) -> None:
    tally = Tally()

    def check_example(example: tuple[Command, Random]) -> None:
        command, random = example
        received = Received()
        with mock.patch.dict(os.environ, dict(command.environment)):
            shop = Shop(name, make_app(command, received), received)
            for _ in range(CALLS):
                check_command(shop, command, random, tally)

    examples = st.tuples(commands().filter(is_usual), st.integers(0, 2**32).map(Random))
    run_examples(EXAMPLES, f"{seed}_{name}", given(examples), check_example)
    tally.report()


def _has_other_name(wrong: Sequence[str], right: Sequence[str], command: Command) -> bool:
    """True if a misspelled name is that of another parameter."""
    known = {flag.lstrip("-").replace("-", "_") for flag in command.flags}
    known.update(parameter.name for parameter in command.parameters)
    new = [word.partition("=")[0] for word in wrong if word not in right and word[:1] == "-"]
    return any(name.lstrip("-").replace("-", "_") in known for name in new)


@pytest.mark.parametrize("name", ["cli", "typer"])
def test_suggested_line_of_any_command(name: str) -> None:
    def check_line(shop: Shop, command: Command, random: Random, tally: Tally) -> None:
        intention = random_intention(random, command)
        units = as_units(random, intention, command)
        right = [word for unit in units for word in unit.words]
        _, intended = shop.run(right)
        mistake = wrong_line(random, units)
        if intended is None or mistake is None or _has_other_name(mistake.words, right, command):
            return
        wrong = shop.run(mistake.words)
        problem = check(
            shop, intention, mistake, intended, wrong, tally.counts, compares_accepted=False
        )
        if problem:
            words = shlex.join(right), mistake.label, shlex.join(mistake.words)
            tally.add(command, *words, wrong[0], problem)

    run_all(name, "lines", check_line)


@pytest.mark.parametrize("name", INTERFACES)
def test_suggested_arguments_of_any_command(name: str) -> None:
    def check_arguments(shop: Shop, command: Command, random: Random, tally: Tally) -> None:
        intention = random_intention(random, command)
        _, intended = shop.send(intention.command, intention.arguments, intention.options)
        mistake = wrong_arguments(random, intention)
        if intended is None or mistake is None:
            return
        wrong = shop.send(intention.command, mistake.arguments, mistake.options)
        problem = check(
            shop, intention, mistake, intended, wrong, tally.counts, compares_accepted=False
        )
        if problem:
            sent = f"{mistake.arguments} {mistake.options}"
            right = f"{intention.arguments} {intention.options}"
            tally.add(command, right, mistake.label, sent, wrong[0], problem)

    run_all(name, "arguments", check_arguments)
