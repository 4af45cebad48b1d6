"""Values that fit: for each parameter words that its command takes, made up from its schema."""

from __future__ import annotations

from tooli.core.tool import Handle, is_structured, unwrap_optional
from tooli.schema.json_schema import param_schema, shape_schema
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Param

_SAMPLES_BY_FORMAT = {
    "path": "PATH",
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00",
    "time": "12:00:00",
    "duration": "PT1H",
    "uuid": "12345678-1234-4234-8234-123456789012",
    "email": "name@example.com",
    "uri": "https://example.com/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}
_MAX_DEPTH = 6


def sample_argv(param: Param) -> list[str]:
    """The words of one value, as a command line has them."""
    shape = unwrap_optional(param.shape)
    if isinstance(shape, Handle):  # a line names it, and does not hold it
        return [shape.metavar.partition("|")[0]]
    custom_parser = param.settings.keys() & {
        "parser",
        "click_type",
    }  # what these take, only they know
    value = sample_value(
        shape_schema(param.shape) if custom_parser else param_schema(param), param.name.upper()
    )
    if is_list(value) and not (is_structured(param.shape) and not param.is_multiple):
        return [_format_token(item) for item in value]
    return [_format_token(value)]


def sample_value(schema: Any, name: str = "TEXT", depth: int = 0) -> Any:
    """A value that fits a schema, small and plain; a text without a form of its own is `name`."""
    if not is_object(schema) or depth > _MAX_DEPTH:
        return name
    if is_object(schema.get("$defs")) and "$ref" in schema:
        return sample_value(schema["$defs"].get(schema["$ref"].rpartition("/")[2]), name, depth + 1)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        alternatives: Any = schema.get(key)
        if is_list(alternatives):
            non_null = [
                alternative
                for alternative in alternatives
                if not is_object(alternative) or alternative.get("type") != "null"
            ]
            return sample_value(non_null[0], name, depth) if non_null else None
    match schema.get("type"):
        case "integer" | "number" as kind:
            return _number(schema, kind)
        case "boolean":
            return True
        case "array":
            return _items(schema, name, depth)
        case "object":
            return _object(schema, depth)
        case _:
            return _text(schema, name)


def _number(schema: dict[str, Any], kind: str) -> Any:
    low: Any = schema.get("minimum")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    high: Any = schema.get("maximum")
    if high is None and "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - 1
    step: Any = schema.get("multipleOf", 1)
    value = 1 if low is None or low <= 1 else -(-low // step) * step
    value = min(value, high) if high is not None else value
    return int(value) if kind == "integer" else value


def _text(schema: dict[str, Any], name: str) -> str:
    text = _SAMPLES_BY_FORMAT.get(str(schema.get("format")), name)
    text += "X" * (schema.get("minLength", 0) - len(text))
    return text[: schema["maxLength"]] if "maxLength" in schema else text


def _items(schema: dict[str, Any], name: str, depth: int) -> list[Any]:
    row: Any = schema.get("prefixItems")
    if is_list(row):
        return [sample_value(item, name, depth + 1) for item in row]
    count = max(schema.get("minItems", 1), 1)
    if not schema.get("uniqueItems"):
        return [sample_value(schema.get("items"), name, depth + 1)] * count
    return [sample_value(schema.get("items"), name, depth + 1)]


def _object(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    parts: Any = schema.get("properties") or {}
    needed: Any = schema.get("required") or ()
    return {name: sample_value(parts.get(name), name.upper(), depth + 1) for name in needed}


def _format_token(value: Any) -> str:
    if isinstance(value, str):
        return value
    from json import dumps

    return dumps(value, ensure_ascii=False, separators=(",", ":"))
