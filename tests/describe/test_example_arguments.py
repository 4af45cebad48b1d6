"""Sample values are valid values of their parameters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.parity import zoo

from tooli import Tooli
from tooli.describe.app_info import collect_app_info
from tooli.describe.schema_text import sample_argv, sample_value
from tooli.testing import check_line

_WITH_CALLBACK = ("checked",)  # the callback of its parameter rejects sample values


@pytest.mark.parametrize("make", [zoo.make_app, zoo.make_single, zoo.make_called])
@pytest.mark.parametrize("every", [True, False])
def test_sample_arguments_are_accepted(make: Any, every: bool) -> None:
    app: Tooli = make()
    wrong: list[str] = []
    for tool in collect_app_info(app).tools:
        argv = list(tool.cli_path)
        for param in tool.public_params:
            if (param.required or every) and not param.is_flag:
                argv += [*param.flags[:1], *sample_argv(param)]
        if tool.key not in _WITH_CALLBACK:
            wrong += [f"{argv}: {problem}" for problem in check_line(app, argv)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMaximum": 1}, 0),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "integer", "multipleOf": 5}, 5),
        ({"type": "integer", "maximum": 13, "minimum": 6, "multipleOf": 5}, 10),
        ({"type": "integer", "maximum": -3, "multipleOf": 5}, -5),
        ({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 5}, 10),
        ({"type": "number", "multipleOf": 0.25, "maximum": 0.5}, 0.25),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "string", "minLength": 6}, "TEXTXX"),
        ({"type": "string", "maxLength": 2}, "TE"),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}, [True]),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 3}, 3),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"anyOf": [{"type": "null"}]}, None),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "required": ["b"]}}}, {"b": "B"}),
        ({}, "TEXT"),
    ],
)
def test_values(schema: dict[str, Any], value: Any) -> None:
    assert sample_value(schema) == value
