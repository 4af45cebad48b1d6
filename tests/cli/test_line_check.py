"""Check command lines without running them."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
import typer

from tooli import Option, StdinOr, Tooli
from tooli.cli.line_check import find_line_problems


@pytest.fixture
def app() -> Tooli:
    app = Tooli("t")

    @app.command()
    def find(pattern: str, count: int = 3, level: Literal["low", "high"] = "low") -> list[str]:
        raise AssertionError("it must not run")

    @app.command()
    def load(source: StdinOr[str], name: Annotated[str, Option(prompt=True)]) -> str:
        raise AssertionError("it must not run")

    @app.command(
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def run(ctx: typer.Context, name: str) -> None:
        raise AssertionError("it must not run")

    @app.callback()
    def main(verbose: bool = False) -> None:
        raise AssertionError("it must not run")

    return app


@pytest.mark.parametrize(
    "line",
    [
        "find *.py --count 4 --json",
        "find --pattern *.py --json",
        "find *.py --level high --dry-run --json",
        "load --json",
        "load - --name x",
        "run x --anything 3",
    ],
)
def test_valid_lines(app: Tooli, line: str) -> None:
    assert find_line_problems(app, line.split()) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("find *.py --cuont 4 --json", "There is no parameter 'cuont'; did you mean 'count'?"),
        ("find --json", "'pattern' is missing"),
        ("find a b --json", "Too many arguments: b"),
        ("find a --count many --json", "'count': "),
        ("find a --level mid --json", "'level': "),
        ("nothing --json", "There is no command 'nothing --json'"),
    ],
)
def test_invalid_lines(app: Tooli, line: str, problem: str) -> None:
    found = find_line_problems(app, line.split())
    assert len(found) == 1
    assert found[0].startswith(problem)
