"""JSON Schemas as text."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest

from tooli import Argument, Option, Tooli
from tooli.describe import schema_text
from tooli.describe.schema_text import parse_example
from tooli.schema.notation import without_null

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
