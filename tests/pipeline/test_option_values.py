"""Values of framework options: what is accepted, and the problems with the rest."""

from __future__ import annotations

import pytest

from tooli.core.call import Options
from tooli.core.tool import MAX_TIMEOUT_SECONDS
from tooli.pipeline.option_values import build_options, read_run_option, read_run_options
from tooli.records.result_options import ResultOptions


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("0.25", 0.25),
        (3, 3.0),
        (1.5, 1.5),
        (".5", 0.5),
        (MAX_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
    ],
)
def test_seconds(value, seconds) -> None:
    assert read_run_option("timeout", value) == (seconds, None)


@pytest.mark.parametrize(
    "value",
    ["", "0", 0, -1, "-1", "1s", "1e3", "1.2.3", "٣", "nan", float("inf"), True, None, [], "9" * 16]
    + [MAX_TIMEOUT_SECONDS + 1, 10**400],
)
def test_invalid_timeouts(value) -> None:
    found, wrong = read_run_option("timeout", value)
    assert (found, wrong) == (None, "a number of seconds above 0")


@pytest.mark.parametrize("name", ["idempotency_key", "apply"])
def test_valid_and_invalid_tokens(name: str) -> None:
    assert read_run_option(name, "a-b_c.1:2") == ("a-b_c.1:2", None)
    for value in ("", "two words", "käse", "a\tb", 7, None):
        assert read_run_option(name, value)[0] is None


def test_lengths() -> None:
    assert read_run_option("idempotency_key", "k" * 255)[1] is None
    assert (
        read_run_option("idempotency_key", "k" * 256)[1]
        == "at most 255 printable ASCII characters without spaces"
    )
    assert read_run_option("apply", "k" * 256)[1] is None


def test_read_run_options() -> None:
    found, problems = read_run_options({"timeout": "2", "apply": None, "other": 1})
    assert (found, problems) == ({"timeout": 2.0}, ())
    found, problems = read_run_options({"timeout": "soon", "idempotency_key": "a b"})
    assert [problem.field for problem in problems] == ["timeout", "idempotency_key"]
    assert {problem.code for problem in problems} == {"E1007"}


def test_options_are_built_from_values_of_all_kinds() -> None:
    options, problems = build_options(
        {"yes": True, "verbose": 2, "timeout": "5", "apply": None, "limit": "3", "select": ["a"]}
    )
    assert problems == ()
    assert options == Options(
        yes=True, verbose=2, timeout=5.0, result_options=ResultOptions(limit=3, fields="a")
    )


@pytest.mark.parametrize(
    ("value", "detailed", "concise"), [("detailed", True, False), ("concise", False, True)]
)
def test_the_response_format_fills_two_fields(value: str, detailed: bool, concise: bool) -> None:
    options, _ = build_options({"response_format": value})
    assert (options.detailed, options.concise) == (detailed, concise)


def test_an_invalid_value_is_a_problem_and_is_not_used() -> None:
    options, (problem,) = build_options({"timeout": "soon", "dry_run": True})
    assert options == Options(dry_run=True)
    assert (problem.code, problem.field) == ("E1007", "timeout")
    options, problems = build_options({"limit": "many"})
    assert problems == ()
    assert options.result_options is not None
    assert [problem.field for problem in options.result_options.problems] == ["limit"]


def test_no_values_give_the_default_options() -> None:
    assert build_options({}) == (Options(), ())
