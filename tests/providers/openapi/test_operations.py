"""Operations of all versions are resolved to one form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.openapi.api_server import openapi, operation, parameter

from tooli.errors import DefinitionError
from tooli.providers.openapi.document import Document
from tooli.providers.openapi.operation_index import check_version, read_index
from tooli.providers.openapi.operations import Operation, is_json_type, is_readable, read_operation


def resolve(document: dict[str, Any], **options: Any) -> Operation:
    """Return the first operation of a document."""
    opened = Document(json.dumps(document).encode(), "api.json")
    entry = read_index(opened, {})[0]
    return read_operation(opened, check_version(opened), entry, **options)


def single(path: str = "/", method: str = "get", version: str = "3.0.3", **more: Any) -> Operation:
    return resolve(openapi({path: {method: operation(**more)}}, version))


def swagger(method: str = "get", **more: Any) -> Operation:
    root = {k: more.pop(k) for k in ("consumes", "produces") if k in more}
    paths = {"/": {method: {"responses": {"200": {"description": "OK"}}, **more}}}
    return resolve({"swagger": "2.0", "info": {}, "paths": paths, **root})


def body(schema: Any, media_type: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {media_type: {"schema": schema}}, **more}}


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


def test_parameters_of_operations_replace_those_of_paths() -> None:
    item = {
        "parameters": [
            parameter("id", "path", schema={"type": "string"}),
            parameter("q", description="Of the path."),
        ],
        "get": operation(parameters=[parameter("q", description="Own.", deprecated=True)]),
    }
    found = resolve(openapi({"/{id}": item}))
    assert [p.name for p in found.parameters] == ["id", "q"]
    own = found.input_schema["properties"]["q"]
    assert own == {"type": "string", "description": "Own.", "deprecated": True}
    assert found.input_schema["required"] == ["id"]


def test_undeclared_path_parameters_are_strings() -> None:
    found = single("/a/{one}/{two}", parameters=[parameter("two", "path")])
    assert found.input_schema["required"] == ["one", "two"]


def test_names_that_model_providers_refuse_are_changed() -> None:
    names = ["$filter", "a[b]", "ok.name-1", "x" * 80, "filter", "日本", "id"]
    declared = [parameter(name) for name in names] + [parameter("id", "header")]
    found = single(parameters=declared)
    assert [p.name for p in found.parameters] == [
        *("filter", "a_b", "ok.name-1", "x" * 60, "filter_query", "query", "id", "id_header"),
    ]
    assert [p.wire_name for p in found.parameters] == [*names, "id"]
    assert "`$filter`" in found.input_schema["properties"]["filter"]["description"]
    many = [parameter(f"a{char}") for char in "!?*+="]
    assert len({p.name for p in single(parameters=many).parameters}) == 5


def test_headers_that_callers_cannot_set_are_left_out() -> None:
    declared = [parameter(n, "header") for n in ("Accept", "authorization", "Host", "X-A")]
    declared += [parameter(n, "header") for n in ("authorization ", "Host:", "X\r\nY", "", "é")]
    found = single(parameters=[*declared, parameter("x", "body"), {"in": "query"}, 7])
    assert [p.name for p in found.parameters] == ["X-A"]
    hidden = resolve(
        openapi({"/": {"get": operation(parameters=[parameter("key"), parameter("b")])}}),
        credentials=frozenset([("key", "query")]),
    )
    assert [p.name for p in hidden.parameters] == ["b"]


@pytest.mark.parametrize(
    ("location", "declared", "style", "explode"),
    [
        ("query", {}, "form", True),
        ("query", {"style": "form", "explode": False}, "form", False),
        ("query", {"style": "deepObject"}, "deepObject", True),
        ("query", {"style": "pipeDelimited"}, "pipeDelimited", False),
        ("query", {"style": "simple"}, "form", True),
        ("path", {"style": "matrix", "explode": True}, "matrix", True),
        ("path", {}, "simple", False),
        ("header", {"explode": "yes"}, "simple", False),
        ("cookie", {}, "form", True),
    ],
)
def test_styles(location: str, declared: dict[str, Any], style: str, explode: bool) -> None:
    (found,) = single(
        "/{p}" if location == "path" else "/", parameters=[parameter("p", location, **declared)]
    ).parameters
    assert (found.style, found.explode) == (style, explode)


def test_parameters_with_content_are_json() -> None:
    content = {"application/json": {"schema": {"type": "object"}}}
    (found,) = single(parameters=[{"name": "f", "in": "query", "content": content}]).parameters
    assert found.is_json
    assert found.schema == {"type": "object"}


# ------------------------------------------------------------------ bodies


def test_the_properties_of_a_body_are_arguments() -> None:
    found = single("/{name}", "post", **body(PERSON, required=True))
    assert found.body is not None
    assert found.body.fields == {"name_body": "name", "age": "age"}
    assert found.input_schema["required"] == ["name", "name_body"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"oneOf": [PERSON, {"type": "string"}]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object"},
        {**PERSON, "minProperties": 1},
        {**PERSON, "required": ["other"]},
        {"type": "string"},
    ],
)
def test_other_bodies_are_one_argument(schema: dict[str, Any]) -> None:
    found = single("/", "post", **body(schema, description="What to send."))
    assert found.body is not None
    assert (found.body.fields, found.body.argument) == (None, "body")
    assert found.input_schema["properties"]["body"]["description"] == "What to send."
    assert "required" not in found.input_schema


def test_a_body_that_may_be_left_out_is_one_argument() -> None:
    found = single("/", "post", **body(PERSON, required=False))
    assert found.body is not None
    assert found.body.fields is None
    assert single("/", "post", **body({"properties": {"a": {}}}, required=False)).body.fields == {  # type: ignore[union-attr]
        "a": "a"
    }


@pytest.mark.parametrize(
    ("types", "kind", "chosen"),
    [
        (["application/xml", "application/json"], "json", "application/json"),
        (["text/plain", "application/vnd.a+json"], "json", "application/vnd.a+json"),
        (["application/x-www-form-urlencoded"], "form", "application/x-www-form-urlencoded"),
        (["multipart/form-data"], "multipart", "multipart/form-data"),
        (["*/*"], "json", "application/json"),
        (["text/csv"], "text", "text/csv"),
        (["application/xml"], "text", "application/xml"),
        (["application/octet-stream"], "binary", "application/octet-stream"),
        (["image/png"], "binary", "image/png"),
    ],
)
def test_media_types_of_bodies(types: list[str], kind: str, chosen: str) -> None:
    content = {media_type: {"schema": {"type": "string"}} for media_type in types}
    found = single("/", "post", requestBody={"content": content, "required": True}).body
    assert found is not None
    assert (found.kind, found.media_type) == (kind, chosen)
    assert found.uploads == ({"body"} if kind == "binary" else set())


def test_bodies_without_content_are_left_out() -> None:
    for declared in (None, {}, {"content": {}}, {"content": 7}, {"content": {"a/b": 7}}, 7):
        found = single("/", "post", requestBody=declared)
        assert (found.body is None) == (declared != {"content": {"a/b": 7}})


def test_files_of_forms() -> None:
    part = {"allOf": [{"properties": {"scan": {"type": "string", "format": "binary"}}}]}
    schema = {
        "type": "object",
        "properties": {
            "photo": {"type": "string", "format": "binary", "description": "A photo."},
            "all": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "icon": {"type": "string", "contentMediaType": "image/png"},
            "coded": {"contentMediaType": "image/png", "contentEncoding": "base64"},
            "note": {"type": "string"},
            "odd": True,
        },
        **part,
    }
    found = single("/", "post", version="3.1.0", **body(schema, "multipart/form-data"))
    assert found.body is not None
    assert found.body.uploads == {"photo", "all", "icon", "scan"}
    properties = found.input_schema["properties"]
    assert properties["photo"]["description"] == "A photo. A file: a path, or an http(s) URL."
    assert properties["all"]["items"]["type"] == "string"


# ------------------------------------------------------------------ Swagger 2


def test_swagger_parameters() -> None:
    found = swagger(
        parameters=[
            {"name": "a", "in": "query", "type": "array", "items": {"type": "string"}},
            {"name": "b", "in": "query", "type": "array", "collectionFormat": "multi"},
            {"name": "c", "in": "query", "type": "array", "collectionFormat": "pipes"},
            {"name": "d", "in": "header", "type": "integer", "x-nullable": True},
        ]
    )
    assert [(p.style, p.explode) for p in found.parameters] == [
        *(("form", False), ("form", True), ("pipeDelimited", False), ("simple", False)),
    ]
    assert found.parameters[0].schema == {"type": "array", "items": {"type": "string"}}
    assert found.parameters[3].schema == {"type": ["integer", "null"]}


def test_swagger_bodies() -> None:
    declared = {"name": "user", "in": "body", "required": True, "schema": PERSON}
    found = swagger("post", parameters=[declared]).body
    assert found is not None
    assert (found.kind, found.fields) == ("json", {"name": "name", "age": "age"})
    assert swagger("post", parameters=[declared], consumes=["text/csv"]).body.kind == "text"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("consumes", "kind", "expected"),
    [
        ([], "string", "form"),
        ([], "file", "multipart"),
        (["multipart/form-data"], "string", "multipart"),
        (["multipart/form-data", "application/x-www-form-urlencoded"], "string", "form"),
        (["application/x-www-form-urlencoded"], "file", "multipart"),
    ],
)
def test_swagger_forms(consumes: list[str], kind: str, expected: str) -> None:
    fields = [
        {"name": "f", "in": "formData", "type": kind, "required": True},
        {"name": "l", "in": "formData", "type": "array", "items": {"type": "string"}},
    ]
    found = swagger("post", parameters=fields, consumes=consumes)
    assert found.body is not None
    assert (found.body.kind, found.body.uploads) == (expected, {"f"} if kind == "file" else set())
    assert found.body.encodings["l"] == {"style": "form", "explode": False}
    assert found.input_schema["required"] == ["f"]


# ------------------------------------------------------------------ answers


@pytest.mark.parametrize(
    ("responses", "types", "has_schema", "is_file"),
    [
        (
            {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}},
            ("application/json",),
            True,
            False,
        ),
        ({"201": {"content": {"*/*": {"schema": {"type": "array"}}}}}, ("*/*",), True, False),
        ({"default": {"content": {"text/plain": {}}}}, ("text/plain",), False, False),
        ({"200": {"content": {"image/png": {}}}}, ("image/png",), False, True),
        ({"2XX": {"content": {"application/pdf": 7}}}, ("application/pdf",), False, True),
        ({"204": {"description": "x"}}, (), False, False),
        ({"404": {"content": {"image/png": {}}}}, (), False, False),
        ({"200": 7}, (), False, False),
        (None, (), False, False),
    ],
)
def test_answers(responses: Any, types: tuple[str, ...], has_schema: bool, is_file: bool) -> None:
    found = single(responses=responses)
    assert found.response_types == types
    assert (found.output_schema is not None, found.returns_file) == (has_schema, is_file)


def test_swagger_answers() -> None:
    answer = {"200": {"schema": {"type": "array"}}}
    assert swagger(responses=answer, produces=["application/json"]).output_schema == {
        "type": "array"
    }
    assert swagger(responses=answer, produces=["application/xml"]).output_schema is None
    assert swagger(responses={"200": {"schema": {"type": "file"}}}).returns_file


def test_security_and_servers() -> None:
    found = resolve(
        openapi(
            {"/": {"servers": [{"url": "https://path.test"}], "get": operation()}},
            security=[{"key": []}],
        )
    )
    assert found.security == [{"key": []}]
    assert found.servers == [{"url": "https://path.test"}]
    own = single(security=[], servers=[])
    assert (own.security, own.servers) == ([], None)
    assert single().security is None


def test_broken_references_are_errors() -> None:
    with pytest.raises(DefinitionError, match="does not exist"):
        single(parameters=[{"$ref": "#/components/parameters/gone"}])


def test_media_types() -> None:
    assert is_json_type("application/problem+json; charset=utf-8")
    assert not is_json_type("text/plain")
    assert is_readable("text/csv")
    assert not is_readable("application/zip")
