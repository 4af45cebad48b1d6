"""Values that fit: for each parameter words that its command takes, made up from its schema."""

from __future__ import annotations

from tooli.contract.jsonable import is_list, is_object
from tooli.contract.schema import param_schema, shape_schema
from tooli.contract.tool import Handle, is_structured, plain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Param

_TEXTS = {
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
_DEEPEST = 6


def sample_words(param: Param) -> list[str]:
    """The words of one value, as a command line has them."""
    shape = plain(param.shape)
    if isinstance(shape, Handle):  # a line names it, and does not hold it
        return [shape.metavar.partition("|")[0]]
    own = param.settings.keys() & {"parser", "click_type"}  # what these take, only they know
    value = sample(shape_schema(param.shape) if own else param_schema(param), param.name.upper())
    if is_list(value) and not (is_structured(param.shape) and not param.many):
        return [_word(item) for item in value]
    return [_word(value)]


def sample(schema: Any, name: str = "TEXT", depth: int = 0) -> Any:
    """A value that fits a schema, small and plain; a text without a form of its own is `name`."""
    if not is_object(schema) or depth > _DEEPEST:
        return name
    if is_object(schema.get("$defs")) and "$ref" in schema:
        return sample(schema["$defs"].get(schema["$ref"].rpartition("/")[2]), name, depth + 1)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        ways: Any = schema.get(key)
        if is_list(ways):
            given = [way for way in ways if not is_object(way) or way.get("type") != "null"]
            return sample(given[0], name, depth) if given else None
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
    text = _TEXTS.get(str(schema.get("format")), name)
    text += "X" * (schema.get("minLength", 0) - len(text))
    return text[: schema["maxLength"]] if "maxLength" in schema else text


def _items(schema: dict[str, Any], name: str, depth: int) -> list[Any]:
    row: Any = schema.get("prefixItems")
    if is_list(row):
        return [sample(item, name, depth + 1) for item in row]
    count = max(schema.get("minItems", 1), 1)
    if not schema.get("uniqueItems"):
        return [sample(schema.get("items"), name, depth + 1)] * count
    return [sample(schema.get("items"), name, depth + 1)]


def _object(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    parts: Any = schema.get("properties") or {}
    needed: Any = schema.get("required") or ()
    return {name: sample(parts.get(name), name.upper(), depth + 1) for name in needed}


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    from json import dumps

    return dumps(value, ensure_ascii=False, separators=(",", ":"))
