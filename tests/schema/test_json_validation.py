"""Validate JSON values against schemas of several drafts, and describe what is wrong."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tooli.schema.json_validation import FORMAT_CHECKS, build_validator, find_problems


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        (
            "date",
            ["2024-02-29", "0001-01-01"],
            ["2023-02-29", "20240229", "2024-W01-1", "2024-2-9"],
        ),
        (
            "time",
            ["00:00:00Z", "23:59:59.123456789z", "12:00:00+23:59", "12:00:00-00:00"],
            ["24:00:00Z", "12:00:00", "12:00Z", "12:00:00+24:00", "12:00:00+0000", "12:00:00,5Z"],
        ),
        (
            "date-time",
            ["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5z", "2024-02-29T12:00:00+01:00"],
            ["2024-02-29T12:00:00", "2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z", "1700000000"],
        ),
        (
            "duration",
            ["P1D", "P4DT12H30M5S", "PT36H", "P2W", "P1Y2M3D", "PT1H3S", "PT0.5S", "P1YT1S"],
            [
                "P",
                "PT",
                "P1YT",
                "1D",
                "P1D2H",
                "PT1D",
                "P2D1Y",
                "P1Y2W",
                "P1",
                "P-1D",
                "PT.5S",
                "3",
            ],
        ),
        (
            "uuid",
            ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"],
            ["2eb8aa08aa9811eab4aa73b441d16380", "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}", "x"],
        ),
    ],
)
def test_format_checks_accept_only_valid_text(
    name: str, valid: list[str], invalid: list[str]
) -> None:
    is_valid = FORMAT_CHECKS[name]
    assert [text for text in valid if not is_valid(text)] == []
    padded = ["", " ", *[text + "\n" for text in valid], *[f" {text}" for text in valid]]
    other_digits = [
        text.replace("1", "১").replace("0", "٠") for text in valid
    ]  # Unicode digits that are not ASCII
    rejected = [*invalid, *padded, *[text for text in other_digits if text not in valid]]
    assert [text for text in rejected if is_valid(text)] == []


DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, "a", []),
        ({"type": "string"}, 1, [("E1003", None)]),
        ({"required": ["a"]}, {}, [("E1002", "a")]),
        ({"properties": {"a": {"required": ["b"]}}}, {"a": {}}, [("E1003", "a.b")]),
        ({"additionalProperties": False}, {"x": 1}, [("E1004", "x")]),
        # a tuple: `items` of draft 7 is `prefixItems` of draft 2020-12
        ({"$schema": DRAFT_7, "items": [{"type": "integer"}]}, ["x"], [("E1003", "0")]),
        # the problem of a value of the wrong type hides its other problems
        ({"type": "string", "enum": ["a"]}, 1, [("E1003", None)]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 5.5, []),
        ({"oneOf": [{"type": "integer"}, {"type": "boolean"}]}, "x", [("E1003", None)]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 7, [("E1003", None)]),
        ({"anyOf": [{"type": "null"}, {"required": ["a"]}]}, {}, [("E1002", "a")]),
        ({"uniqueItems": False}, [1, 1], []),
        ({"uniqueItems": True}, "aa", []),
        ({"uniqueItems": True}, [1, True, "1", 1.5, None, "a", [1], {"a": 1}], []),
        ({"uniqueItems": True}, [1, 1.0], [("E1003", None)]),
        ({"uniqueItems": True}, ["a", "a"], [("E1003", None)]),
        ({"uniqueItems": True}, [[1, 2], [1.0, 2]], [("E1003", None)]),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [1]}], [("E1003", None)]),
    ],
)
def test_problems_have_codes_and_fields(
    schema: dict[str, Any], value: object, expected: list[tuple[str, str | None]]
) -> None:
    found = find_problems(build_validator(schema), value)
    assert [(code, field) for code, field, _ in found] == expected


def test_invalid_schema_is_refused() -> None:
    with pytest.raises(jsonschema.SchemaError):
        build_validator({"type": "text"})


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    [(_, _, message)] = find_problems(build_validator({"enum": ["a"]}), "x" * 5000)
    assert message.startswith("'xxx")
    assert message.endswith("is not one of ['a']")
    assert "…" in message
    assert len(message) < 1000


def test_a_secret_of_the_wrong_type_is_not_repeated() -> None:
    schema = {"properties": {"key": {"type": "string", "writeOnly": True}}}
    [(_, field, message)] = find_problems(build_validator(schema), {"key": 4711})
    assert field == "key"
    assert message == "'key': a secret must be a string"
