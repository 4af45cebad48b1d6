"""Sample records and their schema, for the tests of filters, selections and paths."""

from __future__ import annotations

import dataclasses
import enum
from datetime import date
from typing import Any

import pydantic

from tooli.records.fields import RecordFields

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
PERSON = {"type": "object", "properties": {"name": TEXT, "age": NUMBER}}
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "size": NUMBER,
            "name": TEXT,
            "tags": {"type": "array", "items": TEXT},
            "owner": {"anyOf": [{"$ref": "#/$defs/Person"}, {"type": "null"}]},
            "kind": {"enum": ["file", "folder"]},
            "done": {"type": "boolean"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
            "more": {"type": "object", "additionalProperties": True},
            "counts": {"type": "object", "additionalProperties": NUMBER},
            "any": {},
        },
    },
    "$defs": {"Person": PERSON},
}
FIELDS, OPEN = RecordFields(SCHEMA), RecordFields(None)
RECORDS: list[dict[str, Any]] = [
    {
        "size": 1,
        "name": "a",
        "tags": ["x", "y"],
        "owner": {"name": "ada", "age": 36},
        "kind": "file",
        "done": True,
        "kids": [{"name": "k1", "age": 1}, {"name": "k2", "age": 12}],
        "more": {"deep": {"er": 1}},
        "counts": {"a": 1},
        "any": "1",
    },
    {"size": 20, "name": "b", "tags": [], "owner": None, "kind": "folder", "done": False},
    {"size": 3, "name": 'say "hi"', "tags": ["y"], "kids": [], "any": 1},
]


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    color: Color
    day: date


class Model(pydantic.BaseModel):
    x: int
    other: str = pydantic.Field("o", alias="otherName")
