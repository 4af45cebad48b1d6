"""The stages `record_flow`, `filter` and `field_selection`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.stages.stage_calls import make_call, pass_through

from tooli import Tooli
from tooli.core.call import Call, Failed, Ok
from tooli.errors import InternalError
from tooli.records.result_options import read_result_options
from tooli.stages.record_selection import filter_records, open_record_flow, select_fields


def users() -> list[dict[str, Any]]:
    return [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 20}]


def stream_users() -> Iterator[dict[str, Any]]:
    yield from users()


def opened(fn: Any = users, **options: Any) -> Call:
    """Return a call after the stage `record_flow`."""
    call = make_call(fn, options={"result_options": read_result_options(options)})
    return pass_through(open_record_flow, call)[0]


class TestRecordFlow:
    def test_valid_options(self) -> None:
        call = opened(filter="age > 30", fields="name")
        assert call.flow is not None
        assert call.flow.predicate is not None
        assert call.flow.projection is not None
        assert call.problems == ()

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"filter": "age >"}, "E1040"),
            ({"fields": "a..b"}, "E1041"),
            ({"cursor": "forged"}, "E1042"),
            ({"limit": "many"}, "E1007"),
        ],
    )
    def test_invalid_option_is_a_problem(self, options: dict[str, str], code: str) -> None:
        assert [problem.code for problem in opened(**options).problems] == [code]

    def test_result_that_is_not_a_list_cannot_be_filtered(self) -> None:
        def number() -> int:
            return 1

        (problem,) = opened(number, filter="age > 30").problems
        assert problem.message == "The result is not a list and cannot be filtered"

    def test_option_with_the_name_of_a_parameter(self) -> None:
        def find(cursor: str = "") -> list[int]:
            return []

        (problem,) = opened(find, cursor="forged").problems
        assert problem.field == "tooli_cursor"


class TestFilter:
    def test_records_of_a_list(self) -> None:
        call = opened(filter="age > 30")
        assert pass_through(filter_records, call, Ok(users()))[1] == Ok(users()[:1])

    def test_records_of_a_stream(self) -> None:
        app = Tooli("a")
        app.command("users")(stream_users)
        assert app.options(filter="age > 30").call("users").unwrap() == users()[:1]

    def test_no_filter(self) -> None:
        assert pass_through(filter_records, make_call(), Ok([1]))[1] == Ok([1])

    @pytest.mark.parametrize(
        ("value", "warnings"),
        [(7, ["The result is not a list, so it was not filtered."]), (None, [])],
    )
    def test_other_results_are_kept(self, value: Any, warnings: list[str]) -> None:
        call = opened(lambda: None, filter="age > 30")
        assert pass_through(filter_records, call, Ok(value))[1] == Ok(value)
        assert call.warnings == warnings

    def test_failure_is_kept(self) -> None:
        failed = Failed(InternalError("no"))
        assert pass_through(filter_records, opened(filter="age > 30"), failed)[1] is failed


class TestFieldSelection:
    def test_fields_of_records(self) -> None:
        found = pass_through(select_fields, opened(fields="name"), Ok(users()))[1]
        assert found == Ok([{"name": "Ada"}, {"name": "Bob"}])

    def test_fields_of_an_object(self) -> None:
        call = opened(lambda: None, fields="name")
        assert pass_through(select_fields, call, Ok(users()[0]))[1] == Ok({"name": "Ada"})

    def test_fields_of_a_stream(self) -> None:
        app = Tooli("a")
        app.command("users")(stream_users)
        assert app.options(fields="name").call("users").unwrap() == [
            {"name": "Ada"},
            {"name": "Bob"},
        ]

    @pytest.mark.parametrize("outcome", [Ok(None), Failed(InternalError("no"))])
    def test_other_outcomes_are_kept(self, outcome: Any) -> None:
        assert pass_through(select_fields, opened(fields="name"), outcome)[1] is outcome

    def test_no_selection(self) -> None:
        assert pass_through(select_fields, make_call(), Ok([1]))[1] == Ok([1])
