"""Wishes about a run, read for every door: what they take, and what they say about the rest."""

from __future__ import annotations

import pytest

from tooli.cli import argv
from tooli.core.limits import MAX_TIMEOUT_SECONDS
from tooli.pipeline.run_options import (
    RESULT_OPTION_TYPES,
    RUN_OPTIONS,
    read_run_option,
    read_run_options,
)


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
def test_what_is_no_time(value) -> None:
    found, wrong = read_run_option("timeout", value)
    assert (found, wrong) == (None, "a number of seconds above 0")


@pytest.mark.parametrize("name", ["idempotency_key", "apply"])
def test_words(name: str) -> None:
    assert read_run_option(name, "a-b_c.1:2") == ("a-b_c.1:2", None)
    for value in ("", "two words", "käse", "a\tb", 7, None):
        assert read_run_option(name, value)[0] is None


def test_lengths() -> None:
    assert read_run_option("idempotency_key", "k" * 255)[1] is None
    assert (
        read_run_option("idempotency_key", "k" * 256)[1] == "one word of at most 255 ASCII letters"
    )
    assert read_run_option("apply", "k" * 256)[1] is None


def test_all_that_is_wished() -> None:
    found, problems = read_run_options({"timeout": "2", "apply": None, "other": 1})
    assert (found, problems) == ({"timeout": 2.0}, ())
    found, problems = read_run_options({"timeout": "soon", "idempotency_key": "a b"})
    assert [problem.field for problem in problems] == ["timeout", "idempotency_key"]
    assert {problem.code for problem in problems} == {"E1007"}


def test_the_command_line_has_the_same_words() -> None:
    """It keeps its own, which cost an ordinary call nothing; --select is another name there."""
    assert {*RESULT_OPTION_TYPES} - {"select"} == argv.SHAPING_OPTIONS
    assert {*RUN_OPTIONS} == argv.RUN_OPTIONS
