"""Arguments for example calls: parsed from the examples of a tool, or generated from schemas."""

from __future__ import annotations

from json import dumps, loads
from math import ceil, floor, inf

from tooli.core.tool import (
    Choice,
    Handle,
    ListOf,
    Scalar,
    Structured,
    TupleOf,
    is_structured,
    unwrap_optional,
)
from tooli.describe.schema_text import classify
from tooli.schema.json_schema import param_schema, shape_schema
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Shape, Tool


class AmbiguousExampleError(Exception):
    """The example cannot be read without the command line parser."""


def parse_example(tool: Tool, argv: Iterable[str]) -> JsonObject | None:
    """Return the JSON arguments of an example's argv, or None if it is ambiguous."""
    try:
        texts, subfields = _assign_tokens(tool, [str(token) for token in argv])
        arguments = {
            param.name: _convert_value(param, texts[param.name])
            for param in tool.public_params
            if param.name in texts
        }
        for param in tool.public_params:
            if param.name in subfields:
                arguments[param.name] = subfields[param.name]
    except (AmbiguousExampleError, ValueError):
        return None
    missing = [p.name for p in tool.public_params if p.required and p.name not in arguments]
    return None if missing else arguments


def _assign_tokens(tool: Tool, argv: list[str]) -> tuple[dict[str, list[str]], JsonObject]:
    """Return the texts of each parameter, and the fields passed as `--param.field`."""
    texts: dict[str, list[str]] = {}
    subfields: JsonObject = {}
    positionals: list[str] = []
    while argv:
        token = argv.pop(0)
        if token == "--":
            positionals += argv
            break
        if token[:1] != "-" or len(token) == 1:
            positionals.append(token)
            continue
        name, equals, value = token.partition("=")
        param, subfield, is_set = _find_flag(tool, name)
        if param.is_flag:
            texts[param.name] = ["true" if is_set else "false"]
            continue
        values = [value] if equals else argv[: param.nargs]
        if not equals:
            del argv[: param.nargs]
        if not values:
            raise AmbiguousExampleError
        if subfield:
            subfields.setdefault(param.name, {})[subfield] = values[0]
        else:
            texts.setdefault(param.name, []).extend(values)
    _assign_positionals(tool, positionals, texts)
    return texts, subfields


def _find_flag(tool: Tool, flag: str) -> tuple[Param, str, bool]:
    """Return the parameter of a flag, the field in `--param.field`, and False for a negation."""
    head, _, subfield = flag.partition(".")
    for param in tool.public_params:
        if head in param.flags:
            return param, subfield, True
        if head in param.negations:
            return param, "", False
    raise AmbiguousExampleError


def _assign_positionals(
    tool: Tool, positionals: list[str], texts_by_param: dict[str, list[str]]
) -> None:
    """Assign the tokens without a flag to the positional parameters."""
    positional_params = [param for param in tool.public_params if param.kind == "argument"]
    for i, param in enumerate(positional_params):
        if param.is_multiple:
            reserved = sum([p.nargs for p in positional_params[i + 1 :]])
            count = max(len(positionals) - reserved, 0)
        else:
            count = param.nargs
        if positionals[:count]:
            texts_by_param[param.name] = positionals[:count]
            del positionals[:count]
    if positionals:
        raise AmbiguousExampleError


def _convert_value(param: Param, texts: list[str]) -> Any:
    if param.settings.keys() & {"parser", "click_type"}:
        return texts[-1]
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf):
        return [_convert_item(shape.item, text) for text in texts]
    if isinstance(shape, TupleOf):
        if len(texts) != len(shape.items):
            raise AmbiguousExampleError
        return [_convert_item(item, text) for item, text in zip(shape.items, texts, strict=True)]
    return _convert_item(shape, texts[-1])


def _convert_item(shape: Shape, text: str) -> Any:
    if isinstance(shape, Scalar):
        if shape.type is bool:
            return text == "true"
        return shape.type(text)
    if isinstance(shape, Choice):
        values = [v.value for v in shape.values] if shape.enum is not None else shape.values
        for value in values:
            if str(value) == text:
                return value
        raise AmbiguousExampleError
    if isinstance(shape, Structured):
        return loads(text)
    return text


def build_request_examples(tool: Tool) -> Mapping[str, Any]:
    """Return the tool's examples as an OpenAPI `examples` object."""
    examples: JsonObject = {}
    for i, example in enumerate(tool.guidance.examples, 1):
        arguments = parse_example(tool, example.get("args", ()))
        if arguments is not None:
            examples[f"example{i}"] = {
                "summary": example.get("description", ""),
                "value": arguments,
            }
    return examples


# ------------------------------------------------------------------ sample values

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
    """Return a valid value of a parameter as command line tokens."""
    shape = unwrap_optional(param.shape)
    if isinstance(shape, Handle):  # the token is the name of a file, not its content
        return [shape.metavar.partition("|")[0]]
    has_parser = param.settings.keys() & {"parser", "click_type"}  # its schema allows any text
    schema = shape_schema(param.shape) if has_parser else param_schema(param)
    value = sample_value(schema, param.name.upper())
    if is_list(value) and not (is_structured(param.shape) and not param.is_multiple):
        return [_format_token(item) for item in value]
    return [_format_token(value)]


def sample_value(schema: Any, name: str = "TEXT", depth: int = 0) -> Any:
    """Return a small value for a schema. A string without a format is `name`."""
    if not is_object(schema) or depth > _MAX_DEPTH:
        return name
    if is_object(schema.get("$defs")) and "$ref" in schema:
        return sample_value(schema["$defs"].get(schema["$ref"].rpartition("/")[2]), name, depth + 1)
    kind, detail = classify(schema)
    match kind, detail:
        case "choices", _:
            return detail[0]
        case "union", _:
            non_null = [
                part for part in detail if not is_object(part) or part.get("type") != "null"
            ]
            return sample_value(non_null[0], name, depth) if non_null else None
        case "tuple", _:
            return [sample_value(item, name, depth + 1) for item in detail]
        case "list", _:
            count = 1 if schema.get("uniqueItems") else max(schema.get("minItems", 1), 1)
            return [sample_value(detail, name, depth + 1)] * count
        case (("record" | "dict" | "object"), _):
            return _sample_object(schema, depth)
        case "plain", "integer" | "number":
            return _sample_number(schema, detail)
        case "plain", "boolean":
            return True
        case _:
            return _sample_text(schema, name)


def _sample_number(schema: JsonObject, kind: str) -> float:
    """Return a number within the bounds and a multiple of `multipleOf`; 1 if that is valid."""
    step = schema.get("multipleOf", 1)
    lows, highs = [-inf], [inf]  # how many steps the number has at least, and at most
    if "minimum" in schema:
        lows.append(ceil(schema["minimum"] / step))
    if "exclusiveMinimum" in schema:
        lows.append(floor(schema["exclusiveMinimum"] / step) + 1)
    if "maximum" in schema:
        highs.append(floor(schema["maximum"] / step))
    if "exclusiveMaximum" in schema:
        highs.append(ceil(schema["exclusiveMaximum"] / step) - 1)
    low, high = max(lows), min(highs)
    if low > high:  # no whole number is valid, as for a share between 0 and 1
        return sum([schema[name] for name in schema if name.lower().endswith("imum")]) / 2
    value = min(max(1, low), high) * step
    return int(value) if kind == "integer" else value


def _sample_text(schema: JsonObject, name: str) -> str:
    text = _SAMPLES_BY_FORMAT.get(str(schema.get("format")), name)
    text += "X" * (schema.get("minLength", 0) - len(text))
    return text[: schema["maxLength"]] if "maxLength" in schema else text


def _sample_object(schema: JsonObject, depth: int) -> JsonObject:
    properties: Any = schema.get("properties") or {}
    required: Any = schema.get("required") or ()
    return {name: sample_value(properties.get(name), name.upper(), depth + 1) for name in required}


def _format_token(value: Any) -> str:
    if isinstance(value, str):
        return value
    return dumps(value, ensure_ascii=False, separators=(",", ":"))
