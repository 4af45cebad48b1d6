"""The types of SQL parameters: their JSON Schema, their check, and their values in a database."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from binascii import Error as Base64Error
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation
from uuid import UUID

from tooli.core import Record
from tooli.core.tool import MISSING
from tooli.schema.described import SchemaCheck
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.schema.json_validation import SchemaProblem

_MAX_INT = 2**63
_ANY = ["string", "number", "boolean", "null"]


class Parameter(Record):
    """A parameter of a statement."""

    name: str
    type: str  # a key of TYPES
    is_list: bool = False
    choices: tuple[str, ...] = ()
    nullable: bool = False
    default: Any = MISSING  # a JSON value
    description: str = ""
    is_declared: bool = True  # False: its type was found by the database

    @property
    def required(self) -> bool:
        """True if every call has to give a value."""
        return self.default is MISSING and not self.nullable

    def schema(self) -> JsonObject:
        """Return the JSON Schema of the values."""
        item: JsonObject = {"type": "string", "enum": list(self.choices)}
        schema: JsonObject = dict(item if self.choices else TYPES[self.type].schema)
        if self.is_list:
            schema = {"type": "array", "items": schema}
        if self.nullable and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
            if self.choices and not self.is_list:
                schema["enum"] = [*self.choices, None]
        if self.default is not MISSING:
            schema["default"] = self.default
        return {**schema, "description": self.description} if self.description else schema

    def convert(self, value: Any) -> Any:
        """Return the Python value of a JSON value; raise ValueError with what it must be."""
        if value is None:
            if self.nullable or self.type in ("any", "json"):
                return None
            raise ValueError("must not be null")
        if not self.is_list:
            return self._convert_item(value)
        if not is_list(value):
            raise ValueError("must be a list")
        return [self._convert_item(item) for item in value]

    def _convert_item(self, value: Any) -> Any:
        if self.choices and value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return TYPES[self.type].convert(value)


class SqlType(Record):
    """A type of parameters."""

    schema: JsonObject
    convert: Callable[[Any], Any]  # raises ValueError: "must be …"
    postgres: str  # the name of the type in Postgres; "" leaves it to the server


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be a text of valid Unicode characters") from None
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


def _integer(value: Any) -> int:
    is_integer = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_integer or not -_MAX_INT <= value < _MAX_INT:
        raise ValueError("must be an integer of at most 64 bits")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _parsed(parse: Callable[[str], Any], expected: str) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            return parse(_text(value))
        except (ValueError, InvalidOperation, Base64Error):
            raise ValueError(f"must be {expected}") from None

    return convert


def _parse_datetime(text: str) -> datetime:
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text[-1:] in "zZ" else text)


def _parse_timestamp(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None:  # Postgres ignores the offset
        raise ValueError
    return found


def _parse_decimal(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError
    return number


def _any(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _number(value)
    raise ValueError("must be a text, a number, true, false or null")


def _json(value: Any) -> Any:
    if "\\u0000" in json.dumps(value):
        raise ValueError("must not contain a NUL character")
    return value


_DECIMAL = _parsed(_parse_decimal, "a decimal number as text, such as 9.90")

TYPES: Mapping[str, SqlType] = {
    "text": SqlType({"type": "string"}, _text, "text"),
    "int": SqlType({"type": "integer"}, _integer, "int8"),
    "float": SqlType({"type": "number"}, _number, "float8"),
    "bool": SqlType({"type": "boolean"}, _boolean, "bool"),
    "date": SqlType(
        {"type": "string", "format": "date"},
        _parsed(date.fromisoformat, "a date such as 2026-01-31"),
        "date",
    ),
    "datetime": SqlType(
        {"type": "string", "format": "date-time"},
        _parsed(_parse_datetime, "a date and time such as 2026-01-31T09:30:00Z"),
        "timestamptz",
    ),
    "timestamp": SqlType(
        {"type": "string"},
        _parsed(_parse_timestamp, "a date and time without offset, such as 2026-01-31T09:30:00"),
        "timestamp",
    ),
    "time": SqlType(
        {"type": "string", "format": "time"},
        _parsed(time.fromisoformat, "a time such as 09:30:00"),
        "time",
    ),
    "uuid": SqlType({"type": "string", "format": "uuid"}, _parsed(UUID, "a UUID"), "uuid"),
    "decimal": SqlType({"type": "string"}, _DECIMAL, "numeric"),
    "bytes": SqlType(
        {"type": "string", "contentEncoding": "base64"},
        _parsed(lambda text: b64decode(text, validate=True), "bytes in base64"),
        "bytea",
    ),
    "json": SqlType({}, _json, "jsonb"),
    "any": SqlType({"type": _ANY}, _any, ""),
}

TYPE_NAMES: Mapping[str, str] = {
    **{name: name for name in TYPES},
    **dict.fromkeys(("string", "str", "varchar", "char", "character"), "text"),
    **dict.fromkeys(("integer", "bigint", "smallint", "int2", "int4", "int8"), "int"),
    **dict.fromkeys(("real", "double", "number", "float4", "float8"), "float"),
    "boolean": "bool",
    "timestamptz": "datetime",
    "numeric": "decimal",
    **dict.fromkeys(("blob", "bytea"), "bytes"),
    "jsonb": "json",
}
"""The types by the names that a `.sql` file may use."""


def to_sqlite(value: Any) -> Any:
    """Return a converted value as SQLite stores it."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        if value.tzinfo is not None:  # the functions of SQLite use UTC
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
        return value.isoformat(" ")
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if is_list(value):
        return json.dumps([to_sqlite(item) for item in value], ensure_ascii=False)
    return value


def to_postgres_text(value: Any) -> Any:
    """Return a converted value as text that Postgres parses; a list of texts for an array."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, (date, time)):
        return value.isoformat()
    if is_list(value):
        return [to_postgres_text(item) for item in value]
    return str(value)


def database_value(parameter: Parameter, value: Any, *, is_postgres: bool) -> Any:
    """Return the value of an argument that is bound to a statement."""
    converted = parameter.convert(value)
    if parameter.type == "json" and converted is not None:
        items = converted if parameter.is_list else [converted]
        texts = [json.dumps(item, ensure_ascii=False) for item in items]
        converted = texts if parameter.is_list else texts[0]
        if parameter.is_list and not is_postgres:
            return f"[{','.join(texts)}]"
    return to_postgres_text(converted) if is_postgres else to_sqlite(converted)


class ParameterCheck(SchemaCheck):
    """Checks the arguments of a statement, without jsonschema."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        schema: JsonObject,
        source: str,
        renamed: Mapping[str, str] | None = None,
        fixed: Mapping[str, object] | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(schema, source, False, renamed, fixed, hidden)
        self._parameters = parameters

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        names = (self._renamed, self._fixed, self.hidden)
        return ParameterCheck, (self._parameters, self._schema, self._source, *names)

    def _copy(
        self, renamed: Mapping[str, str], fixed: Mapping[str, object], hidden: frozenset[str]
    ) -> ParameterCheck:
        return ParameterCheck(self._parameters, self._schema, self._source, renamed, fixed, hidden)

    def _validate(self, arguments: JsonObject) -> Sequence[SchemaProblem]:
        found: list[SchemaProblem] = []
        for parameter in self._parameters:
            name = parameter.name
            if name in arguments:
                try:
                    parameter.convert(arguments[name])
                except ValueError as failure:
                    found.append(("E1003", name, f"{name!r} {failure}"))
        return found
