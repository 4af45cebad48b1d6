"""Exports to frameworks that take the schema as a pydantic model."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from tests.export.test_frameworks import MODES, exported

from tooli.export.model_frameworks import MODEL_FRAMEWORKS

TARGETS = [framework.target for framework in MODEL_FRAMEWORKS]


def module_source(target: str, mode: str) -> str:
    files = exported("everything", target, mode)
    (text,) = [text for name, text in files.items() if not name.startswith("test_")]
    return text


def schema_of(source: str, variable: str) -> dict[str, Any]:
    """Return the schema in the statement that creates a tool."""
    (value,) = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable
    ]
    assert isinstance(value, ast.Call)
    return next(ast.literal_eval(word.value) for word in value.keywords if word.arg == "schema")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", TARGETS)
def test_model_has_the_schema_and_accepts_any_arguments(target: str, mode: str) -> None:
    source = module_source(target, mode)
    (function,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "arguments_model"
    ]
    code = f"import copy\nfrom pydantic import BaseModel, ConfigDict\n{ast.unparse(function)}"
    space: dict[str, Any] = {"Any": Any}
    exec(code, space)
    schema = schema_of(source, "structured")
    model = space["arguments_model"](schema)
    described = model.model_json_schema(ref_template="#/x/{model}")
    assert described == schema
    described["properties"].clear()  # CrewAI changes what it gets
    assert model.model_json_schema() == schema
    arguments = {"self": 1, "model_dump": None, "x": {"y": [1]}}
    assert model.model_validate(arguments).model_dump() == arguments


def test_optional_parameters_can_be_null_for_crewai() -> None:
    source = module_source("crewai", "subprocess")
    properties = schema_of(source, "optional")["properties"]
    assert properties["whole"] == {
        "anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}],
        "default": 3,
    }
    assert properties["text"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "default": None,
    }
    assert schema_of(source, "later")["properties"]["n"] == {"type": "integer"}


def test_crewai_runs_every_call() -> None:
    assert "cache_function=never_cache" in module_source("crewai", "import")
