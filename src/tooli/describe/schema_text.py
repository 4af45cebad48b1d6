"""Describe JSON Schemas as text.

    describe_type     prose for man pages       list of paths
    describe_limits   a sentence                From 1 to 9.

`tooli.schema.notation` writes types in short notation.
"""

from __future__ import annotations

from json import dumps, loads

from tooli.core.tool import (
    Choice,
    ListOf,
    Scalar,
    Structured,
    TupleOf,
    unwrap_optional,
)
from tooli.schema.notation import classify, without_null
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Shape, Tool


# ------------------------------------------------------------------ parts of a schema


def object_properties(schema: JsonObject) -> dict[str, JsonObject]:
    """Return the properties of an object, or of each object of a list."""
    kind, properties = classify(_object_schema(schema))
    if kind != "record":
        return {}
    return {name: part for name, part in properties.items() if is_object(part)}


def required_properties(schema: JsonObject) -> list[str]:
    """Return the names of the required properties of an object."""
    return list(_object_schema(schema).get("required", ()))


def _object_schema(schema: JsonObject) -> JsonObject:
    """Return the schema of the object: the value itself, or each item of a list."""
    schema = without_null(schema)
    kind, item = classify(schema)
    return without_null(item) if kind == "list" and is_object(item) else schema


def choice_texts(schema: JsonObject) -> list[str]:
    """Return the allowed values as text; an empty list if the schema has no choices."""
    kind, values = classify(schema)
    if kind != "choices":
        return []
    return [value if isinstance(value, str) else _json(value) for value in values]


def _json(value: object) -> str:
    return dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------ prose

_TYPE_WORDS = {
    # singular, plural
    "string": ("text", "texts"),
    "integer": ("integer", "integers"),
    "number": ("number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "null": ("nothing", "nothing"),
    "object": ("object", "objects"),
    "list": ("list", "lists"),
    "any": ("value", "values"),
}
_FORMAT_WORDS = {
    "path": ("path", "paths"),
    "date": ("date", "dates"),
    "time": ("time", "times"),
    "date-time": ("date and time", "dates with times"),
    "duration": ("duration", "durations"),
    "uuid": ("UUID", "UUIDs"),
    "binary": ("binary data", "binary data"),
}
_DATE_FORMATS = {
    "date": "YYYY-MM-DD",
    "date-time": "YYYY-MM-DDTHH:MM:SS",
    "time": "HH:MM:SS",
    "duration": "PT1H30M or HH:MM:SS",
}
_MAX_PROSE_CHOICES = 12


def describe_type(schema: JsonObject, plural: bool = False) -> str:
    """Return the type in plain English: `integer`, `list of paths`."""
    schema = without_null(schema)
    kind, detail = classify(schema)
    if kind == "choices":
        choices = choice_texts(schema)
        if len(choices) <= _MAX_PROSE_CHOICES:
            return " or ".join(choices) if len(choices) < 3 else f"one of {', '.join(choices)}"
        kind, detail = classify({**schema, "enum": None})
    if kind == "union":
        parts = [describe_type(part, plural) for part in detail if is_object(part)]
        return " or ".join(dict.fromkeys(parts))
    if kind == "plain":
        names = _FORMAT_WORDS.get(str(schema.get("format")))
        return (names or _TYPE_WORDS.get(detail, (detail, detail)))[plural]
    name = _TYPE_WORDS[_PROSE_NAMES.get(kind, kind)][plural]
    if kind == "tuple":
        return f"{name} of {len(detail)}: {', '.join([describe_type(item) for item in detail])}"
    if kind == "list" and is_object(detail) and detail:
        return f"{name} of {describe_type(detail, plural=True)}"
    if kind == "dict":
        return f"{name} of {describe_type(detail, plural=True)} by name"
    return name


_PROSE_NAMES = {"tuple": "list", "ref": "object", "record": "object", "dict": "object"}


def describe_limits(schema: JsonObject) -> str:
    """Return the bounds and the pattern of a value, or of a list's items, as a sentence."""
    schema = without_null(schema)
    target = schema.get("items") if schema.get("type") == "array" else schema
    target = without_null(target) if is_object(target) else {}
    low, high = target.get("minimum"), target.get("maximum")
    phrases: list[str] = []
    if low is not None and high is not None:
        phrases.append(f"from {low} to {high}")
    elif low is not None or high is not None:
        phrases.append(f"at least {low}" if high is None else f"at most {high}")
    for key, comparison in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        if key in target:
            phrases.append(f"{comparison} {target[key]}")
    if target.get("format") in _DATE_FORMATS:
        phrases.append(f"in the form {_DATE_FORMATS[target['format']]}")
    if "pattern" in target:
        phrases.append(f"matching {target['pattern']}")
    text = ", ".join(phrases)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def describe_result(schema: JsonObject) -> str:
    """Return the type of a result as the start of a sentence: `A list of objects`."""
    text = describe_type(schema)
    if text.startswith(("true", "nothing", "one of")):
        return text[0].upper() + text[1:]
    article = "An" if text[:1] in "aeio" else "A"
    kind, alternatives = classify(schema)
    is_nullable = kind == "union" and {"type": "null"} in alternatives
    return f"{article} {text}{', or nothing' if is_nullable else ''}"


def describe_default(schema: JsonObject) -> str:
    """Return the default value as text; "" if there is none or it is empty."""
    default = schema.get("default")
    if default is None or default in ("", [], {}):
        return ""
    return default if isinstance(default, str) else _json(default)


# ------------------------------------------------------------------ example arguments


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
    """Return a flag's parameter, the field in `--param.field`, and False if it is a negation."""
    head, _, subfield = flag.partition(".")
    for param in tool.command_params:
        if head in param.flags:
            return param, subfield, True
        if head in param.negations:
            return param, "", False
    raise AmbiguousExampleError


def _assign_positionals(
    tool: Tool, positionals: list[str], texts_by_param: dict[str, list[str]]
) -> None:
    """Assign the tokens without a flag to the positional parameters."""
    positional_params = [param for param in tool.command_params if param.kind == "argument"]
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


def _convert_value(param: Param, texts: list[str]) -> object:
    if param.option_kwargs.keys() & {"parser", "click_type"}:
        return texts[-1]
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf):
        return [_convert_item(shape.item, text) for text in texts]
    if isinstance(shape, TupleOf):
        if len(texts) != len(shape.items):
            raise AmbiguousExampleError
        return [_convert_item(item, text) for item, text in zip(shape.items, texts, strict=True)]
    return _convert_item(shape, texts[-1])


def _convert_item(shape: Shape, text: str) -> object:
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


def build_request_examples(tool: Tool) -> JsonObject:
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
