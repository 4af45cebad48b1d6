"""Errors for commands, parameters and framework options that do not exist."""

from __future__ import annotations

from typing import Annotated

import pytest

from tooli import Option, Tooli
from tooli.core.option_words import INTERFACE_WORDS
from tooli.pipeline.unknown_names import (
    missing_command_error,
    unknown_command_error,
    unknown_parameter_problem,
    with_option_value,
)
from tooli.schema.tool_reader import read_tool


def tool_of(fn):
    return read_tool(fn, app="app", path=("tool",), kwargs={})


def paint(what: str, coats: int = 2): ...


class TestUnknownParameter:
    def test_misspelled_flag_suggests_the_parameter_name(self) -> None:
        def tool(number: Annotated[int, Option("--count")] = 1): ...

        problem = unknown_parameter_problem("cuont", tool_of(tool), INTERFACE_WORDS["cli"])
        assert problem.suggested_value == "number"

    @pytest.mark.parametrize("surface", ["cli", "mcp", "http", "python"])
    def test_misspelled_framework_option_is_suggested(self, surface) -> None:
        problem = unknown_parameter_problem("dry_rn", tool_of(paint), INTERFACE_WORDS[surface])
        assert problem.message == "There is no parameter 'dry_rn'; did you mean 'dry_run'?"
        assert problem.suggested_option == ("dry_run", True)

    def test_misspelled_output_mode_is_suggested(self) -> None:
        problem = unknown_parameter_problem("jsonn", tool_of(paint), INTERFACE_WORDS["cli"])
        assert problem.suggested_option == ("output", "json")

    def test_flag_that_a_callback_has_is_available_with_a_prefix(self) -> None:
        problem = unknown_parameter_problem("output", tool_of(paint), INTERFACE_WORDS["cli"])
        assert problem.message.endswith("the framework's option is --tooli-output")

    @pytest.mark.parametrize(
        ("name", "value", "expected", "option"),
        [
            ("yes", "true", "true or false", ("yes", True)),
            ("yes", 1, "true or false", None),
            ("limit", "5", "a whole number", ("limit", 5)),
            ("limit", "x", "a whole number", None),
            ("filter", 3, "text", None),
        ],
    )
    def test_option_of_the_wrong_type_is_named(self, name, value, expected, option) -> None:
        problem = unknown_parameter_problem(
            name, tool_of(paint), INTERFACE_WORDS["mcp"], value=value
        )
        assert problem.message == f"The option {name!r} must be {expected}, not {str(value)!r}"
        assert problem.suggested_option == option


class TestOptionValue:
    @pytest.mark.parametrize(
        ("name", "explicit", "rest", "option", "left"),
        [
            ("dry_rn", None, ["x"], ("dry_run", True), ["x"]),
            ("dry_rn", "1", [], ("dry_run", True), []),
            ("dry_rn", "false", [], None, []),
            ("limt", None, ["5"], ("limit", "5"), []),
            ("limt", "5", ["x"], ("limit", "5"), ["x"]),
            ("limt", None, [], None, []),
            ("limt", None, ["--json"], None, ["--json"]),
            ("jsonn", None, ["x"], ("output", "json"), ["x"]),
            ("zzzzzz", None, ["x"], None, ["x"]),
        ],
    )
    def test_misspelled_flag_takes_its_value(self, name, explicit, rest, option, left) -> None:
        problem = unknown_parameter_problem(name, tool_of(lambda: None), INTERFACE_WORDS["cli"])
        assert with_option_value(problem, explicit, rest).suggested_option == option
        assert rest == left


class TestUnknownCommand:
    @pytest.fixture
    def tree(self):
        app, users = Tooli("app"), Tooli("users")
        app.command("find-files")(lambda: 1)
        app.command("secret", hidden=True)(lambda: 1)
        users.command("create")(lambda: 1)
        app.add_typer(users)
        return app.tree()

    def test_similar_command_is_suggested(self, tree) -> None:
        error = unknown_command_error(tree, "find_file", ())
        assert error.message == "There is no command 'find_file'; did you mean 'find-files'?"
        assert error.suggestion.target.path == ("find-files",)
        assert error.details == {"commands": ["find-files", "users.create"]}
        assert (error.code, error.exit_code, error.http_status) == ("E1001", 2, 404)

    def test_similar_command_in_a_group_is_suggested(self, tree) -> None:
        target = unknown_command_error(tree, "users.creat", ()).suggestion.target
        assert target.path == ("users", "create")

    def test_nothing_is_suggested_without_a_similar_command(self, tree) -> None:
        error = unknown_command_error(tree, "zzzzzz", ())
        assert error.suggestion.target is None
        assert error.suggestion.fix == "Name one of the commands."

    def test_rest_of_the_line_is_kept_if_it_is_short(self, tree) -> None:
        def line_of(before, after):
            words = (before, after)
            return unknown_command_error(tree, "find-file", (), words=words).suggestion.target.words

        assert line_of(["--env", "x"], ["y"]) == ("--env", "x", "find-files", "y")
        assert line_of([], ["x" * 3000]) == ("find-files",)

    @pytest.mark.parametrize("name", ["find-files", "users"])
    def test_a_name_is_never_suggested_for_itself(self, tree, name) -> None:
        error = unknown_command_error(tree, name, ())
        assert error.message == f"There is no command {name!r}"

    @pytest.mark.parametrize("name", ["find_files", "Find-Files", "FIND_FILES"])
    def test_other_spellings_of_a_command_are_recognised(self, tree, name) -> None:
        assert unknown_command_error(tree, name, ()).suggestion.target.path == ("find-files",)

    def test_missing_command_lists_the_commands(self, tree) -> None:
        error = missing_command_error(tree)
        assert error.details == {"commands": ["find-files", "users.create"]}
        assert "--" not in error.suggestion.fix


def test_short_name_is_completed() -> None:
    app = Tooli("app")
    app.command("add")(lambda: 1)
    app.command("list")(lambda: 1)
    error = unknown_command_error(app.tree(), "ad", ())
    assert error.message == "There is no command 'ad'; did you mean 'add'?"
    assert unknown_command_error(app.tree(), "rm", ()).suggestion.target is None


def test_argument_that_is_given_by_name() -> None:
    tool = tool_of(lambda name: None)
    words = INTERFACE_WORDS["cli"]
    problem = unknown_parameter_problem("name", tool, words)
    assert problem.message == "'name' is an argument: give it by position, without a name"
    assert unknown_parameter_problem("nam", tool, words, suggest=False).suggested_value is None
