"""Every public name exists and has a docstring."""

from __future__ import annotations

import tooli
import tooli.annotations

DOCUMENTED = """
Tooli Annotated Option Argument Context AgentContext TooliResult TooliError ToolError InputError
AuthError StateError ToolRuntimeError InternalError Suggestion detect_execution_context
ExecutionContext CallerCategory StdinOr SecretInput dry_run_support record_dry_action
""".split()


def test_names_resolve() -> None:
    for name in tooli.__all__:
        assert getattr(tooli, name) is not None


def test_documented_names_are_public() -> None:
    assert set(DOCUMENTED) <= set(tooli.__all__)


def test_names_have_docstrings() -> None:
    for name in tooli.__all__:
        thing = getattr(tooli, name)
        if name != "Annotated":
            assert (thing.__doc__ or "").strip(), name


def test_errors_are_reexported() -> None:
    import tooli.errors

    for name in ("ToolError", "InputError", "NotFoundError", "Suggestion", "DefinitionError"):
        assert getattr(tooli, name) is getattr(tooli.errors, name)


def test_agent_context_is_context() -> None:
    assert tooli.AgentContext is tooli.Context


def test_combined_annotations_have_all_labels() -> None:
    from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly

    labels = (ReadOnly | Idempotent | Destructive | OpenWorld).labels()
    assert labels == ("read-only", "idempotent", "destructive", "open-world")


def test_version_equals_the_package_metadata() -> None:
    from importlib.metadata import version

    assert tooli.__version__ == version("tooli")


def test_dir_lists_names() -> None:
    assert set(tooli.__all__) <= set(dir(tooli))


def test_unknown_name_is_an_attribute_error() -> None:
    import pytest

    with pytest.raises(AttributeError, match="Toolie"):
        tooli.Toolie  # noqa: B018
