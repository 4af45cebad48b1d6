"""Check a filter or a selection against the records, if no output schema describes them.

The types of the records that pass are collected as a schema. The expression is checked against it
like against an output schema. Once it fits the records that were seen, no more are examined.
"""

from __future__ import annotations

from tooli.records.fields import ExpressionError, RecordFields, to_json_value
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.protocols import JsonObject

_MAX_DEPTH = 6
_MAX_FIELDS = 500
"""Maximum number of fields of one object. An object with more fields is a table of values."""
_MAX_ITEMS = 100
"""How many items of a list are examined."""


class ExpressionObserver:
    """Examines records until the expression fits them.

    `compile_expression` raises an ExpressionError if the expression does not fit the fields.
    """

    def __init__(self, compile_expression: Callable[[RecordFields], object]) -> None:
        self._compile = compile_expression
        self._types = _ObservedTypes()
        self._count = 0
        self._next_check: int = 1
        self.is_done = False  # True: the expression fits

    def observe(self, record: object) -> None:
        """Examine a record."""
        if self.is_done:
            return
        self._types.add(to_json_value(record), 0)
        self._count += 1
        if self._count == self._next_check:  # the number of checks is logarithmic
            self._next_check = 2 * self._count
            self.is_done = self.find_error() is None

    def find_error(self) -> tuple[ExpressionError, RecordFields] | None:
        """Return what is wrong with the expression, and the fields of the observed records."""
        if self.is_done or not self._count:
            return None
        schema: JsonObject = {"type": "array", "items": self._types.to_schema()}
        fields = RecordFields(schema, has_null_fields=True)
        try:
            self._compile(fields)
        except ExpressionError as error:
            return error, fields
        return None


class _ObservedTypes:
    """The types of the values at one place of the records."""

    def __init__(self) -> None:
        self._kinds: dict[str, None] = {}
        self._properties: dict[str, _ObservedTypes] = {}
        self._items: _ObservedTypes | None = None
        self._may_be_anything = False

    def add(self, value: Any, depth: int) -> None:
        """Add the type of a value."""
        if value is None:
            return
        if depth > _MAX_DEPTH or len(self._properties) > _MAX_FIELDS:
            self._may_be_anything = True
        elif is_object(value):
            self._kinds["object"] = None
            self._may_be_anything = self._may_be_anything or len(value) > _MAX_FIELDS
            for name, item in value.items() if not self._may_be_anything else ():
                self._properties.setdefault(str(name), _ObservedTypes()).add(
                    to_json_value(item), depth + 1
                )
        elif is_list(value):
            self._kinds["array"] = None
            self._items = self._items or _ObservedTypes()
            self._may_be_anything = self._may_be_anything or len(value) > _MAX_ITEMS
            for item in value[:_MAX_ITEMS]:
                self._items.add(to_json_value(item), depth + 1)
        else:
            is_text, is_bool = isinstance(value, str), isinstance(value, bool)
            self._kinds["string" if is_text else "boolean" if is_bool else "number"] = None

    def to_schema(self) -> JsonObject:
        """Return the JSON Schema of the values. It is {} if they may have any type."""
        if self._may_be_anything or not self._kinds:
            return {}
        members: list[JsonObject] = []
        for kind in self._kinds:
            member: JsonObject = {"type": kind}
            if kind == "object":
                fields = {name: part.to_schema() for name, part in self._properties.items()}
                member["properties"] = fields
            elif self._items is not None and kind == "array":
                member["items"] = self._items.to_schema()
            members.append(member)
        return members[0] if len(members) == 1 else {"anyOf": members}
