"""Suggestions in the form of each interface."""

from __future__ import annotations

import datetime as dt
import enum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from tooli import InputError, NotFoundError, Option, SecretInput, Suggestion, Tooli
from tooli.annotations import Destructive
from tooli.core.call import Call, Caller, Options, SuggestedCall
from tooli.pipeline.suggestions import localize_error, localize_suggestion, suggest_call
from tooli.schema.tool_reader import read_tool
from tooli.testing import invoke


class Colour(enum.Enum):
    RED = "red"


def paint(what: str, coats: int = 2, dry: bool = False, tags: list[str] | None = None): ...


def call_of(surface: str, fn: Any = paint, arguments: Any = None, **options: Any) -> Call:
    tool = read_tool(fn, app="app", path=("tool",), kwargs={})
    return Call(tool, arguments or {}, Caller(surface), [], Options(**options))


def localized(suggestion: Suggestion, surface: str, fn: Any = paint) -> dict[str, Any]:
    found = localize_suggestion(suggestion, call_of(surface, fn)).to_dict()
    return {name: found[name] for name in found if name not in ("action", "fix", "applicability")}


class TestSuggestedCall:
    def test_options_are_kept_except_those_that_were_read(self) -> None:
        given = {"dry_run": True, "input": "-", "null": True, "detailed": False, "limit": 0}
        call = call_of("cli", given=given)
        found = suggest_call(call, {}, without=("limit",), yes=True)
        assert found.options == {"dry_run": True, "yes": True}

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (Path("a/b"), "a/b"),
            (dt.date(2026, 1, 2), "2026-01-02"),
            (Colour.RED, "red"),
            ([Path("a")], ["a"]),
            ({"a": 1}, {"a": 1}),
        ],
    )
    def test_values_are_json(self, value, expected) -> None:
        suggestion = Suggestion(fix="x")
        suggestion.target = suggest_call(call_of("mcp"), {"what": value})
        assert localized(suggestion, "mcp")["arguments"] == {"what": expected}

    def test_secret_is_a_placeholder(self) -> None:
        def login(token: SecretInput[str]): ...

        suggestion = Suggestion(fix="x")
        suggestion.target = suggest_call(call_of("mcp", login), {"token": SecretInput("hunter2")})
        found = localize_suggestion(suggestion, call_of("mcp", login))
        assert found.arguments == {"token": "<token>"}
        assert found.applicability == "has_placeholders"

    def test_long_values_are_placeholders(self) -> None:
        suggestion = Suggestion(fix="x", applicability="machine_applicable")
        target = suggest_call(call_of("mcp"), {"what": "x" * 5000, "coats": 3})
        suggestion.target = target
        found = localize_suggestion(suggestion, call_of("mcp"))
        assert found.arguments == {"what": "<what>", "coats": 3}
        assert found.applicability == "has_placeholders"

    def test_defaults_are_left_out(self) -> None:
        suggestion = Suggestion(fix="x")
        suggestion.target = suggest_call(call_of("mcp"), {"what": "x", "coats": 2, "dry": False})
        assert localized(suggestion, "mcp")["arguments"] == {"what": "x"}

    def test_another_command_is_named(self) -> None:
        suggestion = Suggestion(fix="x")
        suggestion.target = SuggestedCall(
            ("users", "list"), None, words=("users", "list", "--json")
        )
        assert localized(suggestion, "http") == {
            "command": "users.list",
            "example": "POST /tools/users/list",
        }
        assert localized(suggestion, "cli")["argv"] == ["app", "users", "list", "--json"]

    def test_query_is_quoted(self) -> None:
        suggestion = Suggestion(fix="x")
        suggestion.target = suggest_call(call_of("http"), {"what": "x"}, filter="a > 1", yes=True)
        found = localized(suggestion, "http")
        assert found["query"] == {"filter": "a > 1", "yes": True}
        assert found["example"] == 'POST /tools/tool?filter=a%20%3E%201&yes=true {"what":"x"}'


class TestSuggestionsOfAnApp:
    @pytest.mark.parametrize(
        ("words", "arguments"),
        [
            (["gate"], {"what": "gate"}),
            (["gate", "--coats", "3", "--dry"], {"what": "gate", "coats": 3, "dry": True}),
            (["--coats=3", "--", "-x"], {"what": "-x", "coats": 3}),
            (["gate", "--tags", "a", "--tags", "b"], {"what": "gate", "tags": ["a", "b"]}),
            (
                ["gate", "--yes", "--json", "--limit", "3"],
                {"what": "gate", "yes": True, "limit": "3"},
            ),
        ],
    )
    def test_command_line_becomes_arguments(self, words, arguments) -> None:
        suggestion = Suggestion(fix="x", argv=["app", "tool", *words])
        assert localized(suggestion, "mcp") == {"arguments": arguments}

    def test_line_of_another_program_stays_in_the_example(self) -> None:
        found = localized(Suggestion(fix="x", argv=["pip", "install", "x"]), "http")
        assert found == {"example": "pip install x"}

    @pytest.mark.parametrize("surface", ["http", "mcp", "python"])
    @pytest.mark.parametrize(
        "argv",
        [
            ["app", "other", "x"],
            ["app", "tool", "x", "--zzz"],
            ["app", "tool", "x", "y"],
            ["app", "tool", "x", "--coats", "many"],
            ["app", "tool", "x", "--coats"],
        ],
    )
    def test_line_that_is_no_call_of_the_interface_is_left_out(self, argv, surface) -> None:
        line = " ".join(argv)
        assert localized(Suggestion(fix="x", argv=argv), surface) == {}
        assert localized(Suggestion(fix="x", example=line), surface) == {}
        assert localized(Suggestion(fix="x", example=line), "cli") == {"example": line}

    @pytest.mark.parametrize("surface", ["http", "mcp", "python"])
    def test_line_in_the_example_becomes_arguments(self, surface) -> None:
        found = localized(Suggestion(fix="x", example="app tool 'a b' --coats 3"), surface)
        assert found["arguments"] == {"what": "a b", "coats": 3}
        assert not found.get("example", "").startswith("app tool")

    @pytest.mark.parametrize("example", ["app", "app tool 'x", "Use app tool x.", "*.py"])
    def test_other_text_in_the_example(self, example) -> None:
        expected = {} if example == "app tool 'x" else {"example": example}
        assert localized(Suggestion(fix="x", example=example), "mcp") == expected

    def test_arguments_become_a_command_line(self) -> None:
        suggestion = Suggestion(fix="x", arguments={"what": "a b", "coats": 3, "yes": True})
        assert localized(suggestion, "cli") == {
            "argv": ["app", "tool", "a b", "--coats", "3", "--yes"],
            "example": "app tool 'a b' --coats 3 --yes",
        }

    def test_argv_and_arguments_are_shown_where_they_belong(self) -> None:
        suggestion = Suggestion(fix="x", argv=["app", "tool", "a"], arguments={"what": "b"})
        assert localized(suggestion, "cli") == {
            "argv": ["app", "tool", "a"],
            "example": "app tool a",
        }
        assert localized(suggestion, "mcp") == {"arguments": {"what": "b"}}

    def test_suggestion_without_a_call_stays_as_it_is(self) -> None:
        suggestion = Suggestion("abort", "Stop.", example="see the manual")
        for surface in ("cli", "mcp", "http", "python"):
            assert localize_suggestion(suggestion, call_of(surface)) is suggestion


class TestError:
    def test_error_of_the_app_is_not_changed(self) -> None:
        error = NotFoundError("x", suggestion=Suggestion(fix="x", argv=["app", "tool", "a"]))
        found = localize_error(error, call_of("mcp"))
        assert found is not error and type(found) is NotFoundError
        assert error.suggestion is not None and error.suggestion.argv == ["app", "tool", "a"]

    def test_error_of_a_class_with_other_parameters_is_copied(self) -> None:
        class Missing(NotFoundError):
            def __init__(self, number: int, place: str) -> None:
                super().__init__(f"{number} is not in {place}", suggestion="Try 3.")
                self.number = number
                assert self.suggestion is not None
                self.suggestion.arguments = {"what": "3"}

        found: Any = localize_error(Missing(2, "x"), call_of("cli"))
        assert (type(found), found.number, str(found)) == (Missing, 2, "2 is not in x")
        assert found.suggestion.argv == ["app", "tool", "3"]

    def test_warnings_of_an_error_are_added_once(self) -> None:
        call = call_of("mcp")
        error = InputError("x")
        error.warnings = ["details: must be a dict"]
        localize_error(error, call)
        localize_error(error, call)
        assert call.warnings == ["details: must be a dict"]


def make_passing_app() -> Tooli:
    app = Tooli("app")
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.callback()
    def main(ctx: typer.Context, env: str = "dev", limit: int = 0) -> None:
        ctx.obj = env

    @app.command(annotations=Destructive, context_settings=settings)
    def run(
        ctx: typer.Context, target: str, count: Annotated[int, Option(max=5)] = 1
    ) -> list[object]:
        """Pass arguments on."""
        return [ctx.obj, target, count, *ctx.args]

    @app.command(annotations=Destructive)
    def drop(ctx: typer.Context, name: str, count: int = 1) -> list[object]:
        """Drop."""
        return [ctx.obj, name, count]

    @app.command(paginated=True)
    def rows(ctx: typer.Context) -> list[str]:
        """List rows."""
        return [ctx.obj] * 9

    return app


class TestSuggestedLine:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["--env", "prod", "drop", "x"], ["prod", "x", 1]),
            (["--env=prod", "drop", "x", "--count", "3"], ["prod", "x", 3]),
            (["run", "x", "-f", "--yes", "--json"], ["dev", "x", 1, "-f", "--yes", "--json"]),
            (["--env", "prod", "run", "x", "y"], ["prod", "x", 1, "y"]),
            (["run", "--count=2", "x", "--", "--count", "y"], ["dev", "x", 2, "--count", "y"]),
        ],
    )
    def test_confirmed_call_has_the_same_arguments(self, words, expected) -> None:
        app = make_passing_app()
        found = invoke(app, *words, mode="json").envelope["error"]
        assert found["code"] == "E1010"
        done = invoke(app, *found["suggestion"]["argv"][1:], mode="json")
        assert done.result == expected

    def test_text_names_the_flags_that_work(self) -> None:
        error = invoke(make_passing_app(), "run", "x", mode="json").envelope["error"]
        fix = "Check the effects with --tooli-dry-run, then repeat the call with --tooli-yes."
        assert error["suggestion"]["fix"] == fix

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (
                ["run", "x", "--count", "9", "y", "--tooli-yes"],
                ["run", "--tooli-yes", "x", "--count", "<count>", "y"],
            ),
            (
                ["run", "x", "--count=9", "y", "--tooli-yes"],
                ["run", "--tooli-yes", "x", "--count=<count>", "y"],
            ),
            (
                ["--env", "p", "run", "--tooli-yes"],
                ["--env", "p", "run", "--tooli-yes", "<target>"],
            ),
            (
                ["run", "x", "y", "--tooli-limit", "z", "--tooli-yes"],
                ["run", "--tooli-yes", "x", "y"],
            ),
            (
                ["run", "x", "--tooli-dryrun", "y", "--tooli-yes"],
                ["run", "--tooli-yes", "--tooli-dry-run", "x", "y"],
            ),
            (
                ["run", "x", "--tooli-tmeout", "5", "y"],
                ["run", "--tooli-timeout", "5", "x", "y"],
            ),
            (
                ["--env", "p", "drop", "--count", "2"],
                ["--env", "p", "drop", "<name>", "--count", "2"],
            ),
            (["--env", "drp", "drp", "x"], ["--env", "drp", "drop", "x"]),
            (["--limit", "3", "--yes", "drp", "x"], ["--limit", "3", "--yes", "drop", "x"]),
        ],
    )
    def test_corrected_line_keeps_the_rest(self, words, expected) -> None:
        error = invoke(make_passing_app(), *words, mode="json").envelope["error"]
        assert error["suggestion"]["argv"][1:] == expected

    def test_flag_of_a_callback_is_not_suggested_for_the_framework(self) -> None:
        app = make_passing_app()
        words = ["rows", "--tooli-limit", "2", "--filter", "nonsense ="]
        suggestion = invoke(app, *words, mode="json").envelope["error"]["suggestion"]
        assert "--tooli-limit" in suggestion["argv"]

    @pytest.mark.parametrize("flag", ["--tooli-dryrun", "--tooli-xyz=1"])
    def test_unknown_framework_flag_is_never_an_argument(self, flag: str) -> None:
        done = invoke(make_passing_app(), "run", "x", flag, "--tooli-yes", mode="json")
        assert done.envelope["error"]["code"] == "E1007"
        assert flag.partition("=")[0] in done.envelope["error"]["message"]
