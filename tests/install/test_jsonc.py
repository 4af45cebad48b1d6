"""The text of JSON files with comments; tests/install/test_server_formats.py tests whole files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli.install.jsonc import (
    JsonNode,
    MalformedFileError,
    find_insertion,
    find_member,
    parse_jsonc,
    remove_member,
)

TEXT = '{\n  // mine\n  "a": {"list": ["x", /* y */ "z",], "b": {"c": 1}},\n}\n'


def parse(text: str, depth: int = 4) -> JsonNode:
    root = parse_jsonc(text, depth)
    assert root is not None
    return root


def find(root: JsonNode, *path: str) -> JsonNode:
    for name in path:
        member = find_member(root, name)
        assert member is not None
        root = member.node
    return root


def test_members_of_objects_and_arrays_have_positions() -> None:
    root = parse(TEXT)
    items = find(root, "a", "list")
    assert [TEXT[one.start : one.node.end] for one in items.members] == ['"x"', '"z"']
    assert [one.name for one in items.members] == ["", ""]
    inner = find(root, "a", "b")
    assert [(one.name, one.node.value) for one in inner.members] == [("c", 1)]


def test_depth_limits_the_members() -> None:
    assert find(parse(TEXT, 2), "a", "list").members == ()
    assert parse(TEXT, 0).members == ()


@pytest.mark.parametrize("text", ["", " \n", "// only a comment\n", "\ufeff"])
def test_text_without_a_value_has_no_root(text: str) -> None:
    assert parse_jsonc(text) is None


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', '{"a" 1}', "[" * 100_000])
def test_invalid_text_is_malformed(text: str) -> None:
    with pytest.raises(MalformedFileError):
        parse_jsonc(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": []}', ["a"]),
        ('{"a": ["x"]}', ["a"]),
        ('{\n  "a": [\n    "x"\n  ]\n}', ["a"]),
        ('{\n  "a": [\n    "x", // last\n  ]\n}', ["a"]),
        ('{\r\n\t"a": [\r\n\t]\r\n}\r\n', ["a"]),
    ],
)
def test_items_are_appended_to_an_array(text: str, path: list[str]) -> None:
    root = parse(text)
    at, inserted = find_insertion(text, root, find(root, *path), [("", "y"), ("", "z")])
    after = text[:at] + inserted + text[at:]
    before: list[Any] = find(root, *path).value  # type: ignore[assignment]
    assert sorted(find(parse(after), *path).value) == sorted([*before, "y", "z"])  # type: ignore[call-overload]
    assert ("\r\n" in inserted) == ("\r\n" in text)


def test_several_members_are_added_to_an_object() -> None:
    text = '{\n  "a": 1\n}\n'
    root = parse(text)
    at, inserted = find_insertion(text, root, root, [("b", [1]), ("c", {"d": 2})])
    after = text[:at] + inserted + text[at:]
    assert json.loads(after) == {"a": 1, "b": [1], "c": {"d": 2}}
    assert after.startswith('{\n  "a": 1,\n  "b": [')


def test_item_is_removed_with_its_comma() -> None:
    root = parse(TEXT)
    items = find(root, "a", "list")
    after = remove_member(TEXT, items, items.members[0])
    assert find(parse(after), "a", "list").value == ["z"]
    assert "// mine" in after and "/* y */" in after
