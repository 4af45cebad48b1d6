"""Input errors, their suggestions, and checks of bound arguments."""

from __future__ import annotations

import enum
import io
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from tests.stages.stage_calls import make_call

from tooli import Argument, Option, Output, StdinOr, Tooli, Verbatim
from tooli.core.call import PYTHON_CALLER, Call, Caller, Problem
from tooli.errors import shell_quote
from tooli.inputs.source import Input
from tooli.pipeline.input_errors import (
    build_input_error,
    check_arguments,
)
from tooli.pipeline.suggestions import localize_suggestion
from tooli.schema import RawText
from tooli.schema.tool_reader import read_tool
from tooli.testing import invoke


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class User(pydantic.BaseModel):
    name: str


CLI_CALLER = Caller("cli")


def tool_of(fn):
    return read_tool(fn, app="app", path=("tool",), kwargs={})


def suggestion(fn, *, problems=(), caller=CLI_CALLER, **arguments):
    from tooli.errors import InputError
    from tooli.pipeline.drivers import bind_arguments

    call = Call(tool_of(fn), arguments, caller, [], problems=problems)
    with pytest.raises(InputError) as caught:
        bind_arguments(call)
    return localize_suggestion(caught.value.suggestion, call)


def paint(
    what: str,
    colour: Colour = Colour.RED,
    coats: Annotated[int, Option(min=1)] = 2,
    dry: bool = True,
): ...


class TestSuggestion:
    def test_suggested_values_are_in_the_command(self) -> None:
        found = suggestion(paint, what="gate", colour="blu", coats=0)
        assert found.argv == ["app", "tool", "gate", "--colour", "blue", "--coats", "1"]
        assert found.applicability == "maybe_incorrect"  # one coat is not none
        assert shlex.split(found.example) == found.argv
        assert found.action == "retry_with_modified_input"

    def test_a_misspelled_name_keeps_its_value(self) -> None:
        found = suggestion(paint, waht="gate", coats=3)
        assert found.argv == ["app", "tool", "gate", "--coats", "3"]
        assert found.fix == "Use 'what' instead of 'waht'."
        assert found.applicability == "machine_applicable"

    def test_a_misspelled_name_with_an_invalid_value_gets_a_placeholder(self) -> None:
        assert suggestion(paint, what="gate", coatz="x").argv == [
            "app",
            "tool",
            "gate",
            "--coats",
            "<coats>",
        ]

    def test_unknown_values_are_placeholders(self) -> None:
        found = suggestion(paint, colour="zzzzz")
        assert found.argv == ["app", "tool", "<what>", "--colour", "<colour>"]
        assert found.applicability == "has_placeholders"

    def test_unknown_parameter_without_a_similar_name_is_omitted(self) -> None:
        found = suggestion(paint, what="gate", zzzzz=1)
        assert found.argv == ["app", "tool", "gate"]
        assert found.applicability == "maybe_incorrect"
        assert "the parameters are: what, colour, coats, dry." in found.fix

    def test_fix_says_that_a_tool_has_no_parameters(self) -> None:
        assert "the parameters are: none." in suggestion(lambda: None, zzzzz=1).fix

    def test_suggestion_starts_with_the_program_of_the_caller(self) -> None:
        caller = Caller("cli", prog=("python", "-m", "app"))
        assert suggestion(paint, caller=caller).argv[:4] == ["python", "-m", "app", "tool"]

    def test_extra_arguments_are_removed(self) -> None:
        problems = (Problem("E1005", None, "too many"),)
        found = suggestion(paint, problems=problems, what="gate")
        assert found.argv == ["app", "tool", "gate"]
        assert found.fix == "Remove the extra arguments, or give them to an option."

    def test_fix_asks_for_the_missing_value_of_an_option(self) -> None:
        found = suggestion(paint, problems=(Problem("E1006", "output", "x"),), what="gate")
        assert found.fix == "Give the option its value."

    def test_one_item_of_a_list_is_corrected(self) -> None:
        def tool(colours: list[Colour], pair: tuple[Colour, int] = (Colour.RED, 1)): ...

        found = suggestion(tool, colours=RawText(["blu", "red"]), pair=RawText(["rde", "2"]))
        assert found.argv == ["app", "tool", "blue", "red", "--pair", "red", "2"]


@pytest.mark.parametrize(
    "word", ["plain", "a/b.c", "", "a b", "it's", "$HOME", "*.py", "ü", "a\nb", "--x=1", '"']
)
def test_shell_quote_matches_shlex(word) -> None:
    assert shlex.split(shell_quote(word)) == [word]
    assert (shell_quote(word) == word) == (shlex.quote(word) == word)


def test_single_problem_of_the_surface_is_the_error() -> None:
    call = Call(
        tool_of(paint), {"what": "x"}, PYTHON_CALLER, [], problems=(Problem("E1007", None, "no"),)
    )
    error = build_input_error(call, [])
    assert (error.message, error.field) == ("no", None)


def test_command_that_omits_an_invalid_option_is_not_machine_applicable() -> None:
    app = Tooli("app")

    @app.command()
    def find(text: str) -> list[str]:
        return [text]

    @app.command()
    def other() -> None:
        pass

    for option in (["-o", "tooon"], ["--limit", "-3"]):
        done = invoke(app, "find", "x", *option)
        assert done.error["code"] == "E1007"
        assert done.error["suggestion"]["applicability"] == "maybe_incorrect"


def test_suggested_value_replaces_an_item() -> None:
    app = Tooli("app")

    @app.command()
    def mix(colours: list[Colour]) -> list[str]:
        return [colour.value for colour in colours]

    @app.command()
    def other() -> None:
        pass

    found = invoke(app, "mix", "red", "bleu", "rad").error["suggestion"]
    assert (found["argv"][-3:], found["applicability"]) == (
        ["red", "blue", "red"],
        "maybe_incorrect",  # `rad` has three letters and may mean something else
    )
    called = app.call("mix", colours=["red", "bleu"]).to_dict()["error"]["suggestion"]
    assert called["arguments"] == {"colours": ["red", "blue"]}
    assert called["applicability"] == "machine_applicable"
    unknown = invoke(app, "mix", "bleu", "nothing-like-it").error["suggestion"]
    assert unknown["applicability"] == "has_placeholders"


# ------------------------------------------------------------------ argument checks


@dataclass
class Note:
    title: str
    lines: list[str]


@dataclass(slots=True)
class SlottedNote:
    title: str


def find_problems(call: Call) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.field) for problem in check_arguments(call, call.arguments)]


class TestControlCharacters:
    def check(self, value: Any, **caller: Any) -> list[Any]:
        def go(value: Any) -> None: ...

        return find_problems(
            make_call(go, {"value": value}, caller={"maybe_agent": True, **caller})
        )

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
    def test_other_values_are_accepted(self, value: Any) -> None:
        assert self.check(value) == []

    def test_arguments_of_human_callers_are_not_checked(self) -> None:
        assert self.check("\x07", maybe_agent=False) == []

    def test_value_that_contains_itself_is_checked(self) -> None:
        loop: list[Any] = ["x\x07"]
        loop.append(loop)
        assert ("E1030", "value.0") in self.check(loop)

    def test_verbatim_parameter_is_not_checked(self) -> None:
        def go(value: Annotated[str, Verbatim]) -> None: ...

        assert find_problems(make_call(go, {"value": "\x07"}, caller={"maybe_agent": True})) == []

    def test_location_of_an_input_is_checked(self) -> None:
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

    def test_command_line_may_read_stdin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
        assert self.check() == []

    def test_servers_have_no_stdin(self) -> None:
        (message,) = self.check(surface="http")
        assert "stdin is not available here" in message

    def test_stdin_that_was_already_read_is_a_problem(self) -> None:
        (message,) = self.check(options={"stdin_consumed": True})
        assert "an option reads it" in message

    def test_closed_stdin_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        (message,) = self.check()
        assert "stdin is closed" in message

    def test_terminal_is_not_read_with_no_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stdin", Terminal())
        (message,) = self.check(options={"no_input": True})
        assert "which --no-input does not read" in message

    def test_second_reader_of_stdin_is_a_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
        call = make_call(read, {"first": Input("-"), "second": Input("-")})
        assert find_problems(call) == [("E1035", "second")]

    def test_nul_option_is_passed_to_the_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
        source = Input("-")
        assert find_problems(make_call(read, {"first": source}, options={"nul": True})) == []
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

        found = find_problems(make_call(go, {"target": Output("-")}, **call))
        assert found == ([("E1036", "target")] if is_problem else [])


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, "a path"),
        ({"dir_okay": False}, "the path of a file"),
        ({"exists": True}, "the path of an existing file or directory"),
        ({"exists": True, "file_okay": False}, "the path of an existing directory"),
    ],
)
def test_fix_describes_the_allowed_paths(kwargs: dict[str, bool], expected: str) -> None:
    def show(path: Any) -> str:
        return str(path)

    show.__annotations__["path"] = Annotated[Path, Argument(**kwargs)]
    app = Tooli("desk")
    app.command()(show)
    app.command("other")(show)
    answer = invoke(app, "show", "--json")
    assert answer.error["suggestion"]["fix"] == f"Give 'path' {expected}."


@pytest.mark.parametrize(
    ("flag", "corrected", "applicability"),
    [
        ("--force=false", [], "machine_applicable"),
        ("--force=yes", ["--force"], "machine_applicable"),
        ("--no-force=true", [], "machine_applicable"),
        ("--force=maybe", [], "maybe_incorrect"),
    ],
)
def test_value_of_a_flag_is_corrected(flag: str, corrected: list[str], applicability: str) -> None:
    app = Tooli("shop")

    @app.command()
    def rm(name: str, force: bool = False) -> str:
        return name

    app.command("other")(lambda: None)
    error = invoke(app, "rm", "x", flag, "--json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["shop", "rm", "x", *corrected, "--json"]
    assert error["suggestion"]["applicability"] == applicability
