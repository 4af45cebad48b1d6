"""A document is scanned once, and decoded part by part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli.errors import DefinitionError
from tooli.providers.openapi import document as module
from tooli.providers.openapi.document import Document, scan_sections

CONTENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {"/ü/{id}": {"get": {"summary": "größe 😀"}}, "/a~b": {"get": {}}},
    "components": {
        "schemas": {
            "User": {"type": "object", "properties": {"na/me": {"type": "string"}}},
            "Ü": {"enum": ["\u00e9", 'a"b\\']},
            "Alias": {"$ref": "#/components/schemas/User"},
            "Loop": {"$ref": "#/components/schemas/Loop"},
            "List": {"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/Ü"}]},
        },
        "parameters": {},
    },
    "empty": {},
}


@pytest.fixture(params=["compact", "indented", "escaped", "bom"])
def document(request: pytest.FixtureRequest) -> Document:
    text = json.dumps(CONTENT, ensure_ascii=False)
    if request.param == "indented":
        text = json.dumps(CONTENT, ensure_ascii=False, indent="\t\r\n")
    elif request.param == "escaped":
        text = json.dumps(CONTENT)
    return Document(text.encode("utf-8-sig" if request.param == "bom" else "utf-8"), "api.json")


def test_find_returns_the_parts(document: Document) -> None:
    schemas = CONTENT["components"]["schemas"]
    assert document.find("#/components/schemas/User") == schemas["User"]
    assert document.find("#/components/schemas/%C3%9C") == schemas["Ü"]
    assert document.find("#/components/schemas/Ü/enum/1") == 'a"b\\'
    assert document.find("#/components/schemas/User/properties/na~1me") == {"type": "string"}
    assert document.find("#/paths/~1a~0b/get") == {}
    assert document.item("/paths", "/ü/{id}") == {"get": {"summary": "größe 😀"}}
    assert list(document.names("/paths")) == ["/ü/{id}", "/a~b"]
    assert document.get("openapi") == "3.1.0"
    assert document.get("nothing") is None
    assert document.whole() == CONTENT


@pytest.mark.parametrize(
    "reference",
    [
        *("#/components/schemas/Nobody", "#/nothing", "#", "#/components/schemas/Ü/enum/7"),
        *("#/components/schemas/User/nothing", "other.json#/User"),
    ],
)
def test_references_to_nothing_are_errors(document: Document, reference: str) -> None:
    with pytest.raises(DefinitionError, match=r"does not exist|not allowed"):
        document.find(reference)


def test_resolve_follows_references(document: Document) -> None:
    alias = document.find("#/components/schemas/Alias")
    assert document.resolve(alias)["type"] == "object"
    assert document.resolve({**alias, "description": "Mine."})["description"] == "Mine."
    assert document.resolve(7) == 7
    with pytest.raises(DefinitionError, match="refers to itself"):
        document.resolve(document.find("#/components/schemas/Loop"))


def test_few_decoded_parts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CACHED_BYTES", 100)
    document = Document(json.dumps(CONTENT).encode(), "api.json")
    for name in ("User", "Ü", "List", "User"):
        assert (
            document.find(f"#/components/schemas/{name}") == CONTENT["components"]["schemas"][name]
        )
    assert len(document._cached) <= 2


def test_parts_of_other_files_keep_their_references() -> None:
    common = {
        "User": {"$ref": "#/Name"},
        "Name": {"type": "string"},
        "Far": [{"$ref": "deep/more.json#/X"}, {"$ref": "back.json"}],
    }
    opened: list[str] = []

    def open_other(file: str) -> Document:
        opened.append(file)
        return Document(json.dumps(common).encode(), file)

    document = Document(b"{}", "api.json", open_other=open_other)
    assert document.find("sub/common.json#/User") == {"$ref": "sub/common.json#/Name"}
    assert document.resolve({"$ref": "sub/common.json#/User"}) == {"type": "string"}
    assert document.find("sub/common.json#/Far") == [
        {"$ref": "sub/deep/more.json#/X"},
        {"$ref": "sub/back.json"},
    ]
    assert document.find("sub/common.json")["Name"] == {"type": "string"}
    assert opened == ["sub/common.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a JSON object"),
        ("", "must be a JSON object"),
        ('{"a": }', "line 1, column 7"),
        ('{"a": 1', "not valid JSON"),
        ('{"a" 1}', "not valid JSON"),
        ('{"a": 1 "b": 2}', "not valid JSON"),
        ('{"a": 1} x', "not valid JSON"),
        ("{1: 2}", "not valid JSON"),
        ('{"paths": {"a": 1, }}', "not valid JSON"),
        ('{"x": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_invalid_json_is_an_error(text: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        scan_sections(text.encode(), "api.json")
