"""JSON Schemas as text, and example arguments that match them."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest
from tests.parity import sample_apps

from tooli import Argument, Option, Tooli
from tooli.describe import schema_text
from tooli.describe.schema_text import parse_example, sample_argv, sample_value
from tooli.describe.sections import collect_app_info
from tooli.schema.notation import without_null
from tooli.testing import check_line

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NULL = {"type": "null"}
NODE = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"a": TEXT}}}}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (TEXT, "text"),
        (WHOLE, "integer"),
        ({"type": "string", "format": "path"}, "path"),
        ({"type": "string", "format": "unheard-of"}, "text"),
        ({"type": "boolean"}, "true or false"),
        ({"anyOf": [WHOLE, NULL]}, "integer"),
        ({"anyOf": [WHOLE, TEXT, TEXT]}, "integer or text"),
        ({"enum": ["a", "b"]}, "a or b"),
        ({"enum": ["a", 2, None]}, "one of a, 2, null"),
        ({"const": "a"}, "a"),
        ({"enum": [*map(str, range(20))], "type": "string"}, "text"),
        ({"type": "array", "items": WHOLE}, "list of integers"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "array", "items": {"type": "array", "items": TEXT}}, "list of lists of texts"),
        ({"type": "array", "prefixItems": [WHOLE, TEXT]}, "list of 2: integer, text"),
        ({"type": "object", "additionalProperties": WHOLE}, "object of integers by name"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"type": "array", "items": {"$ref": "#/$defs/A"}}, "list of objects"),
        (NODE, "object"),
        ({"$ref": "#/$defs/A"}, "object"),
        ({}, "value"),
    ],
)
def test_types_in_prose(schema: dict[str, Any], text: str) -> None:
    assert schema_text.describe_type(schema) == text


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        ({**WHOLE, "minimum": 1, "maximum": 9}, "From 1 to 9."),
        ({**WHOLE, "minimum": 1}, "At least 1."),
        ({"anyOf": [{**WHOLE, "maximum": 1}, NULL]}, "At most 1."),
        ({"type": "array", "items": {**WHOLE, "exclusiveMinimum": 0}}, "More than 0."),
        ({**TEXT, "pattern": "^a"}, "Matching ^a."),
        ({**TEXT, "format": "date"}, "In the form YYYY-MM-DD."),
        (TEXT, ""),
    ],
)
def test_limits_in_prose(schema: dict[str, Any], limits: str) -> None:
    assert schema_text.describe_limits(schema) == limits


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (WHOLE, "An integer"),
        (TEXT, "A text"),
        ({"anyOf": [WHOLE, NULL]}, "An integer, or nothing"),
        ({"type": "boolean"}, "True or false"),
        ({"enum": ["a", "b", "c"]}, "One of a, b, c"),
    ],
)
def test_results_in_prose(schema: dict[str, Any], text: str) -> None:
    assert schema_text.describe_result(schema) == text


def test_object_and_required_properties() -> None:
    whole = {"type": "object", "properties": {"a": TEXT, "b": True}, "required": ["a"]}
    assert schema_text.object_properties(whole) == {"a": TEXT}
    assert schema_text.required_properties({"type": "array", "items": whole}) == ["a"]
    assert schema_text.object_properties(NODE) == {"a": TEXT}
    assert schema_text.object_properties(WHOLE) == {}


def test_empty_defaults_have_no_text() -> None:
    texts = [
        schema_text.describe_default({"default": default})
        for default in (None, "", [], 0, "x", [1])
    ]
    assert texts == ["", "", "", "0", "x", "[1]"]


def test_a_list_of_types_is_a_union() -> None:
    nullable = {"type": ["integer", "null"], "minimum": 1}
    assert without_null(nullable) == {"type": "integer", "minimum": 1}
    assert schema_text.describe_type(nullable) == "integer"
    assert schema_text.describe_limits(nullable) == "At least 1."


# ------------------------------------------------------------------ example arguments

_WITH_CALLBACK = ("checked",)  # the callback of its parameter rejects sample values


@pytest.mark.parametrize(
    "make",
    [sample_apps.make_app, sample_apps.make_single_command_app, sample_apps.make_callback_app],
)
@pytest.mark.parametrize("every", [True, False])
def test_sample_arguments_are_accepted(make: Any, every: bool) -> None:
    app: Tooli = make()
    wrong: list[str] = []
    for tool in collect_app_info(app).tools:
        argv = list(tool.cli_path)
        for param in tool.command_params:
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
def test_sample_values(schema: dict[str, Any], value: Any) -> None:
    assert sample_value(schema) == value


class Kind(enum.Enum):
    A = "a"
    B = "b"


# ------------------------------------------------------------------ example arguments


def tool_of(fn):
    app = Tooli("one")
    app.command("it")(fn)
    tool = app.find("it")
    assert tool is not None
    return tool


def _many(
    first: str,
    rest: list[int],
    last: str,
    pair: tuple[int, str] = (0, ""),
    kind: Kind = Kind.A,
    word: Literal["x", "y"] = "x",
    user: dict[str, int] = {},  # noqa: B006
    flag: bool = True,
    many: Annotated[list[float] | None, Option("--many", "-m")] = None,
    hexed: Annotated[int, Option(parser=lambda text: int(text, 16))] = 0,
    when: Annotated[str | None, Option()] = None,
) -> None: ...


REQUIRED_ARGV = ["a", "1", "b"]
REQUIRED_ARGUMENTS = {"first": "a", "rest": [1], "last": "b"}


@pytest.mark.parametrize(
    ("argv", "arguments"),
    [
        (["a", "1", "b"], {"first": "a", "rest": [1], "last": "b"}),
        (["a", "1", "2", "b"], {"first": "a", "rest": [1, 2], "last": "b"}),
        (["--", "-a", "1", "b"], {"first": "-a", "rest": [1], "last": "b"}),
        (["a", "1", "-", "--no-flag"], {"first": "a", "rest": [1], "last": "-", "flag": False}),
        (
            ["a", "1", "b", "--pair", "2", "x", "--kind=b", "--word", "y", "-m", "1", "-m", "2.5"],
            {
                "first": "a",
                "rest": [1],
                "last": "b",
                "pair": [2, "x"],
                "kind": "b",
                "word": "y",
                "many": [1.0, 2.5],
            },
        ),
        ([*REQUIRED_ARGV, "--user", '{"x":1}'], {**REQUIRED_ARGUMENTS, "user": {"x": 1}}),
        ([*REQUIRED_ARGV, "--user.x", "1"], {**REQUIRED_ARGUMENTS, "user": {"x": "1"}}),
        ([*REQUIRED_ARGV, "--hexed", "ff"], {**REQUIRED_ARGUMENTS, "hexed": "ff"}),
        *((argv, None) for argv in (["a"], ["a", "x", "b"], [*REQUIRED_ARGV, "--kind", "z"])),
        *((argv, None) for argv in ([*REQUIRED_ARGV, "--zz"], [*REQUIRED_ARGV, "--user", "{"])),
        *((argv, None) for argv in ([*REQUIRED_ARGV, "--word"], [*REQUIRED_ARGV, "--pair", "1"])),
    ],
)
def test_parse_example(argv: list[str], arguments) -> None:
    assert parse_example(tool_of(_many), argv) == arguments


def test_example_with_too_many_arguments_is_not_parsed() -> None:
    assert parse_example(tool_of(lambda: 1), ["x"]) is None

    def one(a: Annotated[str, Argument()]) -> None: ...

    assert parse_example(tool_of(one), ["x", "y"]) is None
