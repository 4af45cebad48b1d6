"""Error classes, their codes, exit codes and HTTP statuses, and suggestions."""

from __future__ import annotations

import ast
import copy
import pickle
from pathlib import Path

import pytest
from docs.tables import class_of_code

from tooli import errors
from tooli.errors import (
    APPLICABILITY_LEVELS,
    ERROR_CODES,
    EXIT_CODES,
    SUGGESTION_ACTIONS,
    DefinitionError,
    InputError,
    InternalError,
    NotFoundError,
    StateError,
    Suggestion,
    ToolError,
    ToolRuntimeError,
    error_class_for,
)

TREE = [
    # class, base, code, category, exit, HTTP, retryable
    ("ToolError", "Exception", "E5000", "internal", 70, 500, False),
    ("InputError", "ToolError", "E1000", "input", 2, 422, True),
    ("FormatError", "InputError", "E1065", "input", 65, 422, True),
    ("AuthError", "ToolError", "E2000", "auth", 30, 403, False),
    ("ApprovalRequired", "ToolError", "E2101", "human", 101, 428, False),
    ("StateError", "ToolError", "E3000", "state", 20, 409, False),
    ("NotFoundError", "StateError", "E3010", "state", 10, 404, False),
    ("ConflictError", "StateError", "E3020", "state", 20, 409, False),
    ("ToolRuntimeError", "ToolError", "E4000", "runtime", 70, 500, False),
    ("CommandExited", "ToolRuntimeError", "E4001", "runtime", 1, 500, False),
    ("DependencyError", "ToolRuntimeError", "E4040", "runtime", 40, 502, False),
    ("TimeoutExceeded", "ToolRuntimeError", "E4050", "runtime", 50, 504, True),
    ("PartialFailure", "ToolRuntimeError", "E4070", "runtime", 60, 207, False),
    ("TemporaryError", "ToolRuntimeError", "E4075", "runtime", 75, 503, True),
    ("Interrupted", "ToolRuntimeError", "E4130", "runtime", 130, 503, True),
    ("InternalError", "ToolError", "E5000", "internal", 70, 500, False),
]


def tree() -> set[type[ToolError]]:
    """Return every error class of tooli that derives from ToolError."""
    found = {ToolError}
    while more := {sub for cls in found for sub in cls.__subclasses__()} - found:
        found |= more
    return {cls for cls in found if cls.__module__ == "tooli.errors"}


class TestErrorClasses:
    @pytest.mark.parametrize("row", TREE, ids=lambda row: row[0])
    def test_error_class_has_its_base_code_and_exit_code(self, row) -> None:
        name, base, code, category, exit_code, status, is_retryable = row
        cls = getattr(errors, name)
        error = cls("x")
        assert cls.__base__.__name__ == base
        assert (error.code, error.category) == (code, category)
        assert (error.exit_code, error.http_status) == (exit_code, status)
        assert error.is_retryable is is_retryable
        assert ERROR_CODES[code][1:] == (exit_code, status)

    def test_table_lists_every_class(self) -> None:
        assert {cls.__name__ for cls in tree()} == {row[0] for row in TREE}

    def test_docstring_of_the_module_names_every_class(self) -> None:
        for cls in tree():
            assert cls.__name__ in errors.__doc__

    def test_subclasses_define_no_methods(self) -> None:
        for cls in tree() - {ToolError}:
            assert not [name for name, thing in vars(cls).items() if callable(thing)]

    def test_definition_error_is_not_a_tool_error(self) -> None:
        assert DefinitionError not in tree()
        assert issubclass(DefinitionError, TypeError)
        assert not issubclass(DefinitionError, ToolError)


class TestErrorCodes:
    @pytest.mark.parametrize("code", ERROR_CODES)
    def test_code_has_a_meaning_exit_code_and_http_status(self, code) -> None:
        meaning, exit_code, status = ERROR_CODES[code]
        assert meaning
        assert exit_code in EXIT_CODES or code == "E4001"
        assert 400 <= status < 600 or (code, status) == ("E4070", 207)

    def test_exit_code_table_is_complete(self) -> None:
        expected = {0, 2, 10, 20, 30, 40, 50, 60, 65, 70, 75, 101, 130}
        assert expected == EXIT_CODES.keys() - {143}

    @pytest.mark.parametrize(
        ("prefix", "category"),
        [("E1", "input"), ("E2", "auth"), ("E3", "state"), ("E4", "runtime"), ("E5", "internal")],
    )
    def test_first_digit_of_a_code_selects_the_category(self, prefix, category) -> None:
        for code in ERROR_CODES:
            if code[:2] == prefix and code != "E2101":
                assert error_class_for(code, category).category == category

    def test_codes_are_in_order(self) -> None:
        assert list(ERROR_CODES) == sorted(ERROR_CODES)


class TestFields:
    def test_error_with_all_fields_becomes_a_dict(self) -> None:
        error = StateError(
            "no",
            code="E3001",
            field="path",
            suggestion=Suggestion("abort", "Stop."),
            is_retryable=True,
            details={"a": 1},
        )
        assert error.to_dict() == {
            "code": "E3001",
            "category": "state",
            "message": "no",
            "field": "path",
            "suggestion": {"action": "abort", "fix": "Stop.", "applicability": "maybe_incorrect"},
            "is_retryable": True,
            "details": {"a": 1},
        }
        assert list(error.to_dict()) == [
            *("code", "category", "message", "field"),
            *("suggestion", "is_retryable", "details"),
        ]
        assert str(error) == "no"

    def test_empty_fields_are_left_out(self) -> None:
        assert list(ToolError("x", details={}).to_dict()) == [
            *("code", "category", "message", "is_retryable"),
        ]

    def test_code_of_the_table_sets_exit_code_and_status(self) -> None:
        assert InputError("x", code="E1001").http_status == 404
        assert InputError("x", code="E1065").exit_code == 65

    def test_custom_code_keeps_the_exit_code_of_the_class(self) -> None:
        assert NotFoundError("x", code="E3001").exit_code == 10

    def test_exit_code_keyword_is_used(self) -> None:
        assert ToolRuntimeError("x", exit_code=9).exit_code == 9

    def test_custom_error_class_sets_codes_and_status(self) -> None:
        class Quota(ToolRuntimeError):
            exit_code = 44

        class Locked(StateError):
            code, exit_code, http_status = "E3023", 23, 423

        assert Quota("x").exit_code == 44
        locked = Locked("x")
        assert (locked.code, locked.exit_code, locked.http_status) == ("E3023", 23, 423)

    def test_details_are_a_copy(self) -> None:
        details = {"a": 1}
        error = ToolError("x", details=details)
        details["b"] = 2
        assert error.details == {"a": 1}

    @pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
    def test_error_can_be_copied_and_pickled(self, duplicate) -> None:
        error = NotFoundError("x", code="E3001", suggestion=Suggestion("abort", "y"), field="f")
        copied = duplicate(error)
        assert type(copied) is NotFoundError
        assert copied.to_dict() == error.to_dict()
        assert copied.exit_code == error.exit_code

    def test_misspelled_keyword_is_a_warning(self) -> None:
        error = ToolError("x", sugestion=None)
        assert error.warnings == [
            "ToolError() has no keyword 'sugestion'; did you mean 'suggestion'?"
        ]


class TestSuggestion:
    def test_suggestion_with_all_fields_round_trips_as_a_dict(self) -> None:
        found = Suggestion("fix", "Do.", "x y", "machine_applicable", ("x", "y"))
        assert found.to_dict() == {
            "action": "fix",
            "fix": "Do.",
            "example": "x y",
            "argv": ["x", "y"],
            "applicability": "machine_applicable",
        }
        assert list(found.to_dict()) == ["action", "fix", "example", "argv", "applicability"]
        assert Suggestion.from_dict(found.to_dict()) == found

    @pytest.mark.parametrize("action", SUGGESTION_ACTIONS)
    @pytest.mark.parametrize("applicability", APPLICABILITY_LEVELS)
    def test_every_action_and_applicability_level_is_accepted(self, action, applicability) -> None:
        assert Suggestion(action, "x", applicability=applicability).action == action

    def test_actions_and_applicability_levels_are_complete(self) -> None:
        assert set(SUGGESTION_ACTIONS) == {
            *("retry_with_modified_input", "use_different_tool", "retry_later"),
            *("ask_human", "abort", "fix"),
        }
        assert set(APPLICABILITY_LEVELS) == {
            "machine_applicable",
            "maybe_incorrect",
            "has_placeholders",
        }

    @pytest.mark.parametrize(
        ("action", "applicability", "message"),
        [("panic", "maybe_incorrect", "abort"), ("fix", "surely", "machine_applicable")],
    )
    def test_unknown_action_or_applicability_is_a_warning(
        self, action, applicability, message
    ) -> None:
        """The error that contains the suggestion must reach the caller."""
        suggestion = Suggestion(action, "Stop.", applicability=applicability)
        assert (suggestion.action, suggestion.applicability) == ("fix", "maybe_incorrect")
        assert message in suggestion.warnings[0]

    def test_fix_and_action_are_optional(self) -> None:
        assert Suggestion(fix="Stop.").to_dict()["action"] == "fix"
        assert Suggestion(arguments={}).action == "retry_with_modified_input"
        assert Suggestion("List the notes.").fix == "List the notes."

    def test_suggestions_are_compared_by_value(self) -> None:
        assert Suggestion("fix", "a") == Suggestion("fix", "a")
        assert Suggestion("fix", "a") != Suggestion("fix", "b")
        assert Suggestion("fix", "a") != "fix"
        with pytest.raises(TypeError):
            hash(Suggestion("fix", "a"))
        assert copy.deepcopy(Suggestion("fix", "a")) == Suggestion("fix", "a")

    def test_repr(self) -> None:
        assert repr(Suggestion("fix", "a")).startswith("Suggestion({'action': 'fix'")


@pytest.mark.parametrize(
    ("code", "category", "name"),
    [
        ("E1065", "input", "FormatError"),
        ("E1999", "input", "InputError"),
        ("E2101", "human", "ApprovalRequired"),
        ("E4075", "runtime", "TemporaryError"),
        ("E5000", "internal", "InternalError"),
        ("X", "weather", "InternalError"),
    ],
)
def test_error_class_is_found_by_code_and_category(code, category, name) -> None:
    assert error_class_for(code, category).__name__ == name


def test_category_of_an_internal_error_is_internal() -> None:
    assert InternalError("x").category == "internal"


def test_every_code_is_raised_with_its_documented_class() -> None:
    """The class in docs/errors.md is the class that the code is raised with, or a base of it."""
    wrong: list[str] = []
    for path in sorted(Path(errors.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            raised = getattr(errors, node.func.id, None)
            if not (isinstance(raised, type) and issubclass(raised, ToolError)):
                continue
            for keyword in node.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    code = keyword.value.value
                    if not issubclass(raised, class_of_code(code)):
                        wrong.append(f"{path.name}:{node.lineno}: {raised.__name__} with {code}")
    assert wrong == []
