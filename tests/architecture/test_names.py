"""Every public name exists and has a docstring."""

from __future__ import annotations

import tooli
import tooli.annotations

CONTRACT = """
Tooli Annotated Option Argument Context AgentContext TooliResult TooliError ToolError InputError
AuthError StateError ToolRuntimeError InternalError Suggestion detect_execution_context
ExecutionContext CallerCategory StdinOr SecretInput dry_run_support record_dry_action
""".split()


def test_every_name_resolves() -> None:
    for name in tooli.__all__:
        assert getattr(tooli, name) is not None


def test_the_names_of_the_contract() -> None:
    assert set(CONTRACT) <= set(tooli.__all__)


def test_each_says_what_it_is() -> None:
    for name in tooli.__all__:
        thing = getattr(tooli, name)
        if name != "Annotated":
            assert (thing.__doc__ or "").strip(), name


def test_errors_are_the_same_objects() -> None:
    import tooli.errors

    for name in ("ToolError", "InputError", "NotFoundError", "Suggestion", "DefinitionError"):
        assert getattr(tooli, name) is getattr(tooli.errors, name)


def test_agent_context_is_context() -> None:
    assert tooli.AgentContext is tooli.Context


def test_annotations() -> None:
    from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly

    words = (ReadOnly | Idempotent | Destructive | OpenWorld).labels()
    assert words == ("read-only", "idempotent", "destructive", "open-world")


def test_version() -> None:
    from importlib.metadata import version

    assert tooli.__version__ == version("tooli")


def test_dir_lists_them() -> None:
    assert set(tooli.__all__) <= set(dir(tooli))


def test_an_unknown_name_is_an_attribute_error() -> None:
    import pytest

    with pytest.raises(AttributeError, match="Toolie"):
        tooli.Toolie  # noqa: B018
