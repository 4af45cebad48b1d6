"""Problems with options, and the closest names."""

from __future__ import annotations

import pytest

from tooli import Tooli
from tooli.cli.option_problems import choice_problem, unknown_option_problem
from tooli.testing import invoke


def test_choice_with_a_close_value() -> None:
    problem = choice_problem("-o", "output", "jsn", ("json", "text"))
    assert problem.message == "-o: 'jsn' is not one of json, text; did you mean json?"
    assert (problem.code, problem.field, problem.suggested_value) == ("E1007", "output", "json")


def test_choice_without_a_close_value_suggests_all() -> None:
    assert choice_problem("-o", "output", "zzz", ("a", "b")).suggested_value == ("a", "b")


@pytest.mark.parametrize(
    ("name", "message", "suggested"),
    [
        ("--jsn", "There is no option --jsn; did you mean --json?", "--json"),
        ("--zzz", "There is no option --zzz", None),
    ],
)
def test_unknown_option(name: str, message: str, suggested: str | None) -> None:
    problem = unknown_option_problem(name, ["--json", "--yes"])
    assert (problem.message, problem.suggested_value) == (message, suggested)


def test_value_of_an_unknown_option_goes_to_the_closest_parameter() -> None:
    app = Tooli("shop")

    @app.command()
    def price(item: str, count: int = 1, round_up: bool = False) -> int:
        return count

    app.command("other")(lambda: None)
    error = invoke(app, "price", "pear", "--cuont", "3", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "price", "pear", "--count", "3"]
    error = invoke(app, "price", "pear", "--roundup", "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "price", "pear", "--round-up"]
