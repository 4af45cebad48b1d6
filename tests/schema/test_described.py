"""JSON Schemas from elsewhere as parameters, and the check of their arguments."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from tooli.core.tool import MISSING, Choice, ListOf, Maybe, Param, Scalar, Structured
from tooli.errors import DefinitionError, DependencyError
from tooli.schema import described
from tooli.schema.described import (
    JsonSchemaType,
    SchemaCheck,
    checked_output,
    checked_schema,
    clean_text,
    json_kind,
    make_check,
    name_flags,
    python_names,
    read_params,
    resolved_schema,
)
from tooli.schema.shapes import infer_complex_shape

STR, INT, FLOAT, BOOL = Scalar(str), Scalar(int), Scalar(float), Scalar(bool)


def read(schema: dict[str, Any], **options: Any) -> dict[str, Param]:
    params = read_params(checked_schema(schema, "test"), **options)
    return {param.name: param for param in params}


def read_one(schema: dict[str, Any]) -> Param:
    return read({"properties": {"x": schema}})["x"]


# ------------------------------------------------------------------ shapes


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        ({"type": "string"}, STR),
        ({"type": "string", "format": "date", "minLength": 2}, STR),
        ({"type": "integer"}, INT),
        ({"type": "number"}, FLOAT),
        ({"type": "boolean"}, BOOL),
        ({"enum": ["a", "b", "a"]}, Choice(("a", "b"))),
        ({"type": "integer", "enum": [1, 2]}, Choice((1, 2))),
        ({"const": "only"}, Choice(("only",))),
        ({"type": ["string", "null"]}, Maybe(STR)),
        ({"type": ["string", "null"], "enum": ["a", None]}, Maybe(Choice(("a",)))),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, Maybe(INT)),
        ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, Maybe(BOOL)),
        ({"type": "array", "items": {"type": "string"}}, ListOf(STR)),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ListOf(Choice(("a", "b")))),
    ],
)
def test_plain_schemas_have_plain_shapes(schema: dict[str, Any], shape: object) -> None:
    param = read_one(schema)
    assert param.shape == shape
    assert infer_complex_shape(param.annotation) == shape


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({}, set[str]()),
        (True, set[str]()),
        ({"type": "object"}, {"object"}),
        ({"type": "array"}, {"array"}),
        ({"type": "array", "items": {"type": "array"}}, {"array"}),
        ({"type": "array", "items": {"type": "boolean"}}, {"array"}),
        ({"type": "array", "items": {"type": "string"}, "prefixItems": []}, {"array"}),
        ({"type": ["string", "integer"]}, {"string", "integer"}),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, {"string", "object"}),
        ({"oneOf": [{"type": "string"}, {}]}, set[str]()),
        ({"enum": ["a", 1]}, {"string", "integer"}),
        ({"enum": [True, False]}, {"boolean"}),
        ({"const": None}, {"null"}),
        ({"type": "string", "not": {"const": "a"}}, {"string"}),
        ({"type": "string", "enum": []}, {"string"}),
    ],
)
def test_other_schemas_take_json(schema: Any, kinds: set[str]) -> None:
    annotation = read_one(schema).annotation
    if schema == {"type": "string", "enum": []}:
        assert annotation is str
        return
    assert isinstance(annotation, JsonSchemaType)
    assert annotation.kinds == kinds
    assert annotation.tooli_shape() == Structured(annotation)
    assert "JsonSchemaType(" in repr(annotation)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((True, "boolean"), ("a", "string"), (1, "integer"), (1.5, "number")),
        *((None, "null"), ([], "array"), ({}, "object")),
    ],
)
def test_json_kind(value: object, kind: str) -> None:
    assert json_kind(value) == kind


# ------------------------------------------------------------------ parameters


def test_absent_property_has_no_default() -> None:
    params = read({"properties": {"a": {"type": "string"}, "b": {"default": 5}}, "required": ["a"]})
    assert (params["a"].required, params["a"].is_omittable) == (True, False)
    assert (params["b"].required, params["b"].is_omittable) == (False, True)
    assert params["b"].default is MISSING
    assert params["b"].schema == {"default": 5}


def test_defaults_are_filled_in_on_request() -> None:
    params = read(
        {"properties": {"a": {"type": "integer", "default": 5}, "b": {}}}, fill_defaults=True
    )
    assert (params["a"].default, params["a"].has_valid_default) == (5, True)
    assert not params["a"].is_omittable
    assert params["b"].is_omittable


def test_positional_properties_are_arguments_in_their_order() -> None:
    params = read({"properties": {"a": {}, "b": {}, "c": {}}}, positional=("c", "a", "x"))
    assert [(p.name, p.kind) for p in params.values()] == [
        *(("c", "argument"), ("a", "argument"), ("b", "option"))
    ]
    assert params["c"].flags == ()


def test_flags_are_different() -> None:
    names = ["max_size", "max-size", "$filter", "a[b]", "größe", "名", "help", "arg_help", "X-Id"]
    assert name_flags(names) == {
        "max_size": "--max-size",
        "max-size": "--max-size-2",
        "$filter": "--filter",
        "a[b]": "--a-b",
        "größe": "--gr-e",
        "名": "--arg-6",
        "help": "--arg-help",
        "arg_help": "--arg-help-2",
        "X-Id": "--X-Id",
    }


def test_negation_does_not_hide_another_flag() -> None:
    boolean = {"type": "boolean"}
    params = read({"properties": {"cache": boolean, "no_cache": boolean}})
    assert (params["cache"].flags, params["cache"].negations) == (("--cache",), ())
    assert params["no_cache"].negations == ("--no-no-cache",)
    assert params["no_cache"].decls == ("--no-cache/--no-no-cache",)


def test_python_names_are_identifiers() -> None:
    names = ["a", "from", "$a", "1st", "名", "arg_from", "a b"]
    found = python_names(names)
    assert found == {
        "a": "a",
        "from": "arg_from_2",
        "$a": "a_2",
        "1st": "arg_1st",
        "名": "名",
        "arg_from": "arg_from",
        "a b": "a_b",
    }


def test_help_is_clean_and_bounded() -> None:
    param = read_one({"type": "string", "description": "a\x1b[31m[b]x[/b]\u200b" + "y" * 2000})
    assert param.help is not None
    assert param.help.startswith("a[b]x[/b]y")
    assert len(param.help) == 1_000


# ------------------------------------------------------------------ the schema


def test_schema_is_copied_unchanged() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"description": "Grüße, 世界 👩‍👩‍👧", "enum": ["\u200b"]}},
        "required": ["a"],
    }
    copied = checked_schema(schema, "test")
    assert copied == schema
    assert copied is not schema


def test_words_of_a_schema_are_cleaned() -> None:
    schema = {"title": "a\x07", "properties": {"a": {"description": "b\u202e"}}}
    copied = checked_schema(schema, "test")
    assert (copied["title"], copied["properties"]["a"]["description"]) == ("a", "b")
    assert clean_text("x" * 9_000) == "x" * 7_999 + "…"
    assert clean_text(None) == ""


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "must be a JSON object"),
        ({"type": "string"}, "must describe an object"),
        ({"properties": []}, "`properties` must be an object of schemas"),
        ({"properties": {"a": 1}}, "`properties` must be an object of schemas"),
        ({"required": "a"}, "`required` must be a list of names"),
        ({"required": [1]}, "`required` must be a list of names"),
        ({"x": object()}, "is not a JSON value"),
        ({"x": [0] * (described.MAX_SCHEMA_NODES + 1)}, "the schema is too large"),
    ],
)
def test_invalid_schema_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        checked_schema(schema, "test")


def test_too_deep_schema_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(described.MAX_SCHEMA_DEPTH + 1):
        schema = {"properties": {"a": schema}}
    with pytest.raises(DefinitionError, match="too large"):
        checked_schema(schema, "test")


def test_references_are_resolved_for_documents() -> None:
    root = {
        "$defs": {"User": {"properties": {"boss": {"$ref": "#/$defs/User"}}, "type": "object"}},
        "definitions": {"a/b~c": {"type": "integer"}},
    }
    user = resolved_schema({"$ref": "#/$defs/User", "title": "Chef"}, root)
    assert user == {"properties": {"boss": {"type": "object"}}, "type": "object", "title": "Chef"}
    assert resolved_schema({"$ref": "#/definitions/a~1b~0c"}, root) == {"type": "integer"}
    assert resolved_schema({"$ref": "https://example.com/x"}, root) == {}
    assert resolved_schema({"default": {"$ref": "x"}}, root) == {"default": {"$ref": "x"}}
    assert resolved_schema(True, root) == {}


def test_branching_references_stay_small() -> None:
    definitions = {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
        for i in range(40)
    }
    schema = resolved_schema({"$ref": "#/$defs/d0"}, {"$defs": {**definitions, "d40": {}}})
    assert len(repr(schema)) < 1_000_000


# ------------------------------------------------------------------ the check


def check_of(schema: dict[str, Any]) -> SchemaCheck | None:
    checked = checked_schema(schema, "test")
    return make_check(checked, read_params(checked), "test")


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "string", "description": "text", "x-order": 1}},
        {"a": {"type": ["integer", "null"]}},
        {"a": {"type": "array", "items": {"type": "string"}}},
        {"a": {"enum": ["x", "y"], "default": "x"}},
        {"a": {}},
    ],
)
def test_plain_schema_needs_no_check(properties: dict[str, Any]) -> None:
    assert check_of({"properties": properties, "additionalProperties": False}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "format": "date"}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string", "minLength": 1}}}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {}, "additionalProperties": True},
        {"properties": {}, "patternProperties": {"^x": {}}},
        {"properties": {}, "oneOf": [{}]},
    ],
)
def test_other_schema_has_a_check(schema: dict[str, Any]) -> None:
    check = check_of(schema)
    assert check is not None
    copied = pickle.loads(pickle.dumps(check))
    assert copied.takes_extra == check.takes_extra


def test_problems_of_known_parameters_are_left_out() -> None:
    check = check_of(
        {"properties": {"a": {"minimum": 5}, "b": {"properties": {"c": {"type": "string"}}}}}
    )
    assert check is not None
    arguments = {"a": 1, "b": {"c": 1}}
    assert [field for _, field, _ in check.find_problems(arguments, ())] == ["a", "b.c"]
    assert [field for _, field, _ in check.find_problems(arguments, {"b"})] == ["a"]


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "other.json"},
        {"type": "string", "pattern": "(?<a>x)["},
        {"$ref": "#/properties/a"},
    ],
)
def test_invalid_schema_names_the_source(part: dict[str, Any]) -> None:
    check = check_of({"properties": {"a": part}})
    assert check is not None
    with pytest.raises(DependencyError, match="The input schema of test is not valid"):
        list(check.find_problems({"a": "x"}, ()))


def test_missing_jsonschema_names_the_install_command() -> None:
    code = (
        "import sys; sys.modules['jsonschema'] = None\n"
        "from tooli.schema.described import SchemaCheck\n"
        "from tooli.errors import DependencyError\n"
        "try: list(SchemaCheck({}, 'x', False).find_problems({}, ()))\n"
        "except DependencyError as error: print(error.suggestion.fix)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Run: pip install 'tooli[providers]'"


def test_references_of_an_output_schema_name_definitions() -> None:
    schema = {
        "properties": {
            "n": {"properties": {"n": {"$ref": "#/properties/n"}}},
            "root": {"$ref": "#"},
            "far": {"$ref": "https://example.com/x.json", "title": "Far"},
            "known": {"$ref": "#/$defs/d"},
            "data": {"const": {"$ref": "#/properties/n"}},
        },
        "$defs": {"d": {}, "part-1": {}},
    }
    found = checked_output(schema, "test")
    fields = found["properties"]
    assert fields["n"]["properties"]["n"] == {"$ref": "#/$defs/part-1-"}
    assert found["$defs"]["part-1-"] == fields["n"]
    assert fields["root"] == {"$ref": "#/$defs/part-2"}
    assert found["$defs"]["part-2"]["properties"]["n"] == fields["n"]
    assert fields["far"] == {"title": "Far"}
    assert fields["known"] == {"$ref": "#/$defs/d"}
    assert fields["data"] == schema["properties"]["data"]  # type: ignore[index]


def test_number_of_references_of_an_output_schema_is_limited() -> None:
    names = [f"p{i}" for i in range(102)]
    properties = {name: {"items": {"$ref": f"#/properties/{name}"}} for name in names}
    with pytest.raises(DefinitionError, match="too many references"):
        checked_output({"properties": properties}, "test")


@pytest.mark.parametrize("schema", [[], {"items": 1}, {"$ref": "#/$defs/x"}])
def test_invalid_output_schema_is_refused(schema: Any) -> None:
    with pytest.raises(DefinitionError, match="output schema"):
        checked_output(schema, "test")


def test_choices_with_control_characters_are_json() -> None:
    param = read_one({"type": "string", "enum": ["x\x1b[31m"]})
    assert isinstance(param.shape, Structured)
