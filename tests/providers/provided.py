"""Providers for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tooli.annotations import ReadOnly
from tooli.providers import Provider, described_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tooli.core.tool import Tool

ECHO_SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b"], "description": "The [kind]."},
        "$filter": {"type": "string"},
        "max_results": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "from": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
        "user": {"$ref": "#/definitions/User"},
        "target": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "help": {"type": "string"},
        "timeout": {"type": "integer"},
    },
    "required": ["kind"],
    "definitions": {
        "User": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["name"],
        }
    },
}


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


class ToolList(Provider):
    """A provider of the tools in a list. It counts how often it is asked."""

    name = "listed"
    description = "Listed [tools]."

    def __init__(self, *tools: Tool) -> None:
        self.items: list[Tool] = list(tools)
        self.asked = 0
        self.closed = 0
        self.failure: BaseException | None = None
        self.changed: Callable[[], None] | None = None

    def tools(self) -> Iterable[Tool]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return list(self.items)

    def watch(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def close(self) -> None:
        self.closed += 1


def echo_tool(name: str = "echo", **options: Any) -> Tool:
    """Return a tool that returns its arguments."""
    options = {"annotations": ReadOnly, "input_schema": ECHO_SCHEMA, **options}
    return described_tool(name, echo, **options)
