"""The forms of markers, and the variables of all markers."""

from __future__ import annotations

import pytest

from tooli.core._hot_tables import CALLER_VARIABLES
from tooli.detect.markers import all_variables, marker_variables, matches, strong_variables


@pytest.mark.parametrize(
    ("marker", "env", "expected"),
    [
        ("A", {"A": "x"}, True),
        ("A", {"A": "0"}, False),
        ("A=1", {"A": "1"}, True),
        ("A=0|1", {"A": "0"}, True),
        ("A=1", {"A": "2"}, False),
        ("A=1", {}, False),
        ("A~mid", {"A": "a mid b"}, True),
        ("A~mid", {}, False),
        ("!A", {}, True),
        ("!A", {"A": "false"}, True),
        ("!A", {"A": "1"}, False),
        ("A=1 & B & !C", {"A": "1", "B": "x"}, True),
        ("A=1 & B & !C", {"A": "1", "B": "x", "C": "1"}, False),
        ("A=1 & B & !C", {"A": "1"}, False),
    ],
)
def test_marker_matches(marker: str, env: dict[str, str], expected: bool) -> None:
    assert matches(env, marker) is expected


def test_variables_of_a_combination() -> None:
    assert list(marker_variables("A=1 & B~x & !C")) == ["A", "B", "C"]


def test_generated_table_is_current() -> None:
    assert CALLER_VARIABLES == strong_variables()


def test_all_variables_include_strong_ones() -> None:
    assert CALLER_VARIABLES <= all_variables()
    assert not all_variables() & {"HOME", "PATH", "USER", "TERM_PROGRAM"}


def test_common_variables_do_not_start_detection() -> None:
    """They are set in the shells of people, where detection would cost time and find nothing."""
    assert not strong_variables() & {"TERM", "NO_COLOR", "PS1", "TMUX", "PAGER", "PATH"}
