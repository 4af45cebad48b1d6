"""Checks of bound arguments: text from agents, stdin and stdout."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.stages.stage_calls import make_call

from tooli import Output, StdinOr, Verbatim
from tooli.core.call import Call
from tooli.inputs.source import Input
from tooli.pipeline.argument_checks import check_arguments


@dataclass
class Note:
    title: str
    lines: list[str]


@dataclass(slots=True)
class SlottedNote:
    title: str


def problems(call: Call) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.field) for problem in check_arguments(call, call.arguments)]


class TestTextOfAgents:
    def check(self, value: Any, **caller: Any) -> list[Any]:
        def go(value: Any) -> None: ...

        return problems(make_call(go, {"value": value}, caller={"maybe_agent": True, **caller}))

    @pytest.mark.parametrize(
        ("value", "field"),
        [
            ("a\x1b[1mb", "value"),
            (["a", "b\x00"], "value.1"),
            ({"key": ["\x07"]}, "value.key.0"),
            ({"k\x07": 1}, "value"),
            (Path("a\x07"), "value"),
            (Note("t", ["ok", "\x08"]), "value.lines.1"),
            (SlottedNote("\x08"), "value.title"),
        ],
    )
    def test_control_characters_are_problems(self, value: Any, field: str) -> None:
        assert self.check(value) == [("E1030", field)]

    @pytest.mark.parametrize("value", ["größe 😀", "a\nb\tc", 5, None, True, [1, "x"], b"\x00"])
    def test_other_values(self, value: Any) -> None:
        assert self.check(value) == []

    def test_humans_are_not_checked(self) -> None:
        assert self.check("\x07", maybe_agent=False) == []

    def test_value_that_contains_itself(self) -> None:
        loop: list[Any] = ["x\x07"]
        loop.append(loop)
        assert ("E1030", "value.0") in self.check(loop)

    def test_verbatim(self) -> None:
        def go(value: Annotated[str, Verbatim]) -> None: ...

        assert problems(make_call(go, {"value": "\x07"}, caller={"maybe_agent": True})) == []

    def test_location_of_an_input(self) -> None:
        class Source:
            tooli_location = "a\x07"

        assert self.check(Source()) == [("E1030", "value")]

    def test_defaults_are_not_checked(self) -> None:
        def go(value: str = "\x07") -> None: ...

        call = make_call(go, {}, caller={"maybe_agent": True})
        assert list(check_arguments(call, {"value": "\x07"})) == []


def read(first: StdinOr[str], second: StdinOr[str] = "") -> None: ...  # type: ignore[assignment]


def write(target: Output) -> None: ...


class TestStdin:
    def check(self, **call: Any) -> list[str]:
        found = make_call(read, {"first": Input("-")}, **call)
        return [problem.message for problem in check_arguments(found, found.arguments)]

    def test_command_line_may_read_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
        assert self.check() == []

    def test_servers_have_no_stdin(self) -> None:
        (message,) = self.check(surface="http")
        assert "stdin is not available here" in message

    def test_stdin_was_read_already(self) -> None:
        (message,) = self.check(options={"stdin_consumed": True})
        assert "an option reads it" in message

    def test_stdin_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        (message,) = self.check()
        assert "stdin is closed" in message

    def test_terminal_with_no_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stdin", Terminal())
        (message,) = self.check(options={"no_input": True})
        assert "which --no-input does not read" in message

    def test_two_readers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
        call = make_call(read, {"first": Input("-"), "second": Input("-")})
        assert problems(call) == [("E1035", "second")]

    def test_nul_is_passed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
        source = Input("-")
        assert problems(make_call(read, {"first": source}, options={"nul": True})) == []
        assert source.nul


class TestStdout:
    @pytest.mark.parametrize(
        ("call", "is_problem"),
        [
            ({}, False),
            ({"options": {"is_machine_mode": True}}, True),
            ({"options": {"is_machine_mode": True, "dry_run": True}}, False),
            ({"surface": "mcp"}, True),
        ],
    )
    def test_stdout_is_reserved_for_the_answer(
        self, call: dict[str, Any], is_problem: bool
    ) -> None:
        def go(target: Output) -> int:
            return 1

        found = problems(make_call(go, {"target": Output("-")}, **call))
        assert found == ([("E1036", "target")] if is_problem else [])
