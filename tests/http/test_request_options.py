"""The framework options of a request: query, headers and body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tooli import Tooli
from tooli.http.request_options import read_options, take_body_options

if TYPE_CHECKING:
    from tooli.core.tool import Tool


@pytest.mark.parametrize(
    ("query", "key", "code", "message"),
    [
        (b"timeout=1&timeout=2", None, "E1007", "?timeout= is given twice"),
        (b"idempotency_key=a&idempotency_key=b", None, "E1050", "?idempotency_key= is given twice"),
        (b"idempotency_key=a", b"b", "E1050", "The header Idempotency-Key and"),
        (b"timeout=1&timeout=2", b"b", "E1007", "?timeout= is given twice"),
        (b"dry_run=true&dry_run=false", None, "E1007", "?dry_run= is given twice"),
        (b"yes=false&yes=true", None, "E1007", "?yes= is given twice"),
        (b"limit=1&limit=2", None, "E1007", "?limit= is given twice"),
        (
            b"response_format=concise&response_format=detailed",
            None,
            "E1007",
            "?response_format= is given twice",
        ),
    ],
)
def test_different_values_of_one_option_are_a_problem(
    query: bytes, key: bytes | None, code: str, message: str
) -> None:
    headers = {} if key is None else {b"idempotency-key": key}
    (problem,) = read_options(query, headers)[1]
    assert problem.code == code
    assert problem.message.startswith(message)


def test_same_value_of_one_option_is_no_problem() -> None:
    options, problems = read_options(b"dry_run=true&dry_run=true", {})
    assert options.dry_run
    assert not problems


@pytest.fixture
def tool() -> Tool:
    app = Tooli("app")

    @app.command()
    def take(name: str, limit: int = 1) -> str:
        return f"{name} {limit}"

    found = app.find("take")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("body", "name", "value"),
    [
        ({"yes": "true"}, "yes", True),
        ({"yes": None}, "yes", False),
        ({"dry_run": True}, "dry_run", True),
        ({"timeout": 3}, "timeout", 3.0),
    ],
)
def test_option_in_a_body(tool: Tool, body: dict[str, Any], name: str, value: object) -> None:
    arguments, options, problems = take_body_options(
        tool, {"name": "x", **body}, read_options(b"", {})[0]
    )
    assert arguments == {"name": "x"}
    assert getattr(options, name) == value
    assert problems == ()


def test_query_wins_over_a_body(tool: Tool) -> None:
    in_query, _ = read_options(b"timeout=5&yes=true", {})
    _, options, _ = take_body_options(tool, {"timeout": 3, "yes": False}, in_query)
    assert (options.timeout, options.yes) == (5.0, True)


def test_invalid_option_in_a_body_is_a_problem(tool: Tool) -> None:
    _, options, problems = take_body_options(tool, {"yes": "maybe"}, read_options(b"", {})[0])
    assert not options.yes
    assert [problem.code for problem in problems] == ["E1007"]


def test_parameter_is_not_an_option(tool: Tool) -> None:
    arguments, options, _ = take_body_options(tool, {"limit": 3}, read_options(b"", {})[0])
    assert arguments == {"limit": 3}
    assert options.result_options is None
