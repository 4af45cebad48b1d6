"""Truncation: shortened values, printed text, and the command for the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.stages.stage_calls import make_call

from tooli.core.call import Call, Ok
from tooli.pipeline.truncate import (
    larger_budget_step,
    next_page_step,
    retry_step,
    shorten_value,
    truncate_printed_text,
)
from tooli.records.call_options import ResultOptions, read_result_options


def limited(argv: tuple[str, ...] | None = None, fn: Any = None, **options: Any) -> Call:
    result_options = read_result_options(options, argv)
    return make_call(fn, options={"result_options": result_options, "given": options})


def next_page(call: Call) -> list[str]:
    return next_page_step(call, "c")["argv"]


def shorten(value: Any, max_bytes: int) -> Any:
    return shorten_value(value, lambda data: len(data) <= max_bytes, [])


class TestShortenValue:
    @pytest.mark.parametrize("max_bytes", [20, 60, 200, 1000])
    def test_shortened_value_fits_the_limit(self, max_bytes: int) -> None:
        value = {"text": "x" * 5000, "list": list(range(900)), "deep": [[[["y" * 90]]]]}
        shortened = shorten(value, max_bytes)
        assert len(json.dumps(shortened, separators=(",", ":"), ensure_ascii=False)) <= max_bytes

    def test_types_are_kept(self) -> None:
        shortened = shorten({"text": "x" * 5000, "list": list(range(900))}, 300)
        assert shortened["text"].endswith("…")
        assert shortened["list"] == list(range(len(shortened["list"])))

    def test_small_value_is_not_changed(self) -> None:
        assert shorten({"a": [1, "b"]}, 100) == {"a": [1, "b"]}

    @pytest.mark.parametrize("max_bytes", [0, 2])
    def test_none_is_returned_if_nothing_fits(self, max_bytes: int) -> None:
        assert shorten({"a": 1}, max_bytes) is None

    def test_scalar_that_does_not_fit_becomes_none(self) -> None:
        assert shorten(10**30, 5) is None


class TestPrintedText:
    def test_text_within_the_budget_is_not_changed(self) -> None:
        outcome = Ok("short")
        assert truncate_printed_text(outcome, limited(max_bytes=5000)) is outcome

    def test_text_without_a_budget_is_not_changed(self) -> None:
        outcome = Ok("x" * 9000)
        assert truncate_printed_text(outcome, limited(max_items=3)) is outcome

    def test_long_text_ends_at_a_line(self) -> None:
        call = limited(max_bytes=1000)
        text = "a line of text\n" * 200
        outcome = truncate_printed_text(Ok(text), call)
        assert isinstance(outcome, Ok)
        assert text.startswith(outcome.value)
        assert outcome.value.endswith("\n")
        assert call.meta is not None
        assert call.meta["truncated"]["shown"] == len(outcome.value)


class TestRetryCommand:
    def test_new_option_is_added(self) -> None:
        assert next_page(make_call()) == ["a", "go", "--cursor", "c"]

    def test_value_that_begins_with_a_dash_is_joined_to_its_option(self) -> None:
        assert next_page_step(make_call(), "-c")["argv"] == ["a", "go", "--cursor=-c"]

    def test_requested_options_are_repeated(self) -> None:
        call = limited(limit=5, filter="a > 1", max_bytes=700)
        assert next_page(call) == [
            *("a", "go", "--limit", "5", "--filter", "a > 1", "--max-bytes", "700"),
            *("--cursor", "c"),
        ]

    def test_flags_of_the_call_are_repeated(self) -> None:
        given = {"yes": True, "response_format": "detailed", "timeout": 5.0}
        assert next_page(make_call(options={"given": given})) == [
            *("a", "go", "--yes", "--response-format", "detailed", "--timeout", "5"),
            *("--cursor", "c"),
        ]

    def test_option_with_a_name_conflict_gets_the_prefix(self) -> None:
        def go(cursor: int = 3) -> None: ...

        assert next_page(make_call(go)) == ["a", "go", "--tooli-cursor", "c"]
        assert next_page(limited(("go", "--cursor", "4"), go)) == [
            *("a", "go", "--cursor", "4", "--tooli-cursor", "c")
        ]

    def test_options_of_a_tool_that_passes_arguments_on_get_the_prefix(self) -> None:
        settings = {"allow_extra_args": True, "ignore_unknown_options": True}
        options = {"result_options": read_result_options({}, ("go", "--cursor", "x"))}
        call = make_call(lambda: None, options=options, context_settings=settings)
        assert next_page(call) == ["a", "go", "--cursor", "x", "--tooli-cursor", "c"]

    @pytest.mark.parametrize(
        ("typed", "expected"),
        [
            (("--fields", "a"), ("--fields", "b")),
            (("--select", "a"), ("--select", "b")),
            (("--tooli-select=a",), ("--tooli-select=b",)),
        ],
    )
    def test_other_name_of_the_same_option_is_replaced(
        self, typed: tuple[str, ...], expected: tuple[str, ...]
    ) -> None:
        step = retry_step(limited(("go", *typed), fields="a"), "why", fields="b")
        assert step["argv"] == ["a", "go", *expected]

    def test_flag_with_underscores_is_replaced(self) -> None:
        step = retry_step(limited(("go", "--max_bytes", "5")), "why", max_bytes=9)
        assert step["argv"] == ["a", "go", "--max_bytes", "9"]

    @pytest.mark.parametrize(
        ("surface", "expected"),
        [
            ("http", {"arguments": {}, "query": {"limit": 5, "max_bytes": 900}}),
            ("mcp", {"arguments": {"limit": 5, "max_bytes": 900}}),
            ("python", {"arguments": {"limit": 5, "max_bytes": 900}}),
        ],
    )
    def test_step_is_in_the_form_of_the_interface(self, surface: str, expected: Any) -> None:
        call = make_call(surface=surface, options={"given": {"limit": 5}})
        step = larger_budget_step(call, "max-bytes", 900)
        assert {name: step[name] for name in step if name != "why"} == expected
        assert "--" not in step["why"]

    @pytest.mark.parametrize(
        ("typed", "expected"),
        [
            (("go", "x"), ["go", "x", "--max-bytes", "9"]),
            (("go", "--max-bytes", "5", "x"), ["go", "--max-bytes", "9", "x"]),
            (("go", "--max-bytes=5"), ["go", "--max-bytes=9"]),
            (("go", "--tooli-max-bytes", "5"), ["go", "--tooli-max-bytes", "9"]),
            (("go", "--", "-x"), ["go", "--max-bytes", "9", "--", "-x"]),
            (("--json", "--", "go"), ["--max-bytes", "9", "--json", "--", "go"]),
        ],
    )
    def test_retry_command_contains_the_new_limit(
        self, typed: tuple[str, ...], expected: list[str]
    ) -> None:
        step = larger_budget_step(limited(typed), "max-bytes", 9)
        assert step["argv"] == ["a", *expected]

    def test_larger_budget_for_the_whole_result(self) -> None:
        step = larger_budget_step(make_call(), "max-bytes", 900)
        assert step == {
            "argv": ["a", "go", "--max-bytes", "900"],
            "why": "The whole result needs --max-bytes 900.",
        }

    def test_larger_budget_for_the_first_record(self) -> None:
        step = larger_budget_step(make_call(), "max-tokens", 9, "The first record")
        assert step == {
            "argv": ["a", "go", "--max-tokens", "9"],
            "why": "The first record needs --max-tokens 9.",
        }

    def test_long_values_become_placeholders(self) -> None:
        def go(items: list[str], name: str = "") -> None: ...

        words = [f"word{i}" for i in range(400)]
        call = make_call(go, {"items": words, "name": "n"})
        assert next_page(call) == ["a", "go", "<items>", "--name", "n", "--cursor", "c"]
        step = next_page_step(call, "c")
        assert step["why"] == (
            "The rest of the result. Replace <items> with the values of this call."
        )

    def test_long_command_line_becomes_placeholders(self) -> None:
        def go(items: list[str]) -> None: ...

        words = [f"word{i}" for i in range(400)]
        options = ResultOptions(limit=2, argv=("go", "--json", "--limit", "2", *words))
        given = {"output": "json", "limit": "2"}
        call = make_call(go, {"items": words}, options={"result_options": options, "given": given})
        assert next_page(call) == [
            *("a", "go", "<items>", "--json", "--limit", "2", "--cursor", "c")
        ]
