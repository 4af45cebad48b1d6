"""Messages about values that pydantic rejects, in the wording of tooli's own converters.

    Input should be less than or equal to 5         ──▶  9 is more than 5, the largest allowed
    Field required                                  ──▶  a value is required
    Input should be a valid dictionary or instance  ──▶  an object is required: {sku:str,count:int}

A message never repeats a text: it may be a secret.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.tool import quote
from tooli.schema.notation import format_input
from tooli.similar_names import closest_match
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject

FORMAT_TEXTS = {
    "date": "a date (YYYY-MM-DD)",
    "datetime": "a date and time (YYYY-MM-DDTHH:MM:SS)",
    "time": "a time (HH:MM:SS)",
    "timedelta": "a duration (PT1H30M)",
    "UUID": "a UUID (123e4567-e89b-12d3-a456-426614174000)",
    "Decimal": "a number",
    "bytes": "text",
    "FileText": "the path of a file",
    "FileTextWrite": "the path of a file",
    "FileBinaryRead": "the path of a file",
    "FileBinaryWrite": "the path of a file",
}
"""What values of a type look like, by the name of the type."""

_EXPECTED = {
    "int_parsing": "a valid integer",
    "int_type": "a valid integer",
    "int_from_float": "a valid integer",
    "float_parsing": "a valid number",
    "float_type": "a valid number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "date_…": FORMAT_TEXTS["date"],
    "datetime_…": FORMAT_TEXTS["datetime"],
    "time_…": FORMAT_TEXTS["time"],
    "time_delta_…": FORMAT_TEXTS["timedelta"],
    "decimal_parsing": "a valid number",
    "decimal_type": "a valid number",
    "uuid_…": FORMAT_TEXTS["UUID"],
    "url_…": "a URL (https://example.com/page)",
    "path_type": "a path",
    "ip_…": "an IP address",
}
"""What a value is not, by type of the error. The message repeats a value of these types."""

MISSING_FIELD = "a value is required"
_TEXTS = {
    "missing": MISSING_FIELD,
    "string_type": "text is required",
    "greater_than": "{value} is not more than {gt}",
    "greater_than_equal": "{value} is less than {ge}, the smallest allowed",
    "less_than": "{value} is not less than {lt}",
    "less_than_equal": "{value} is more than {le}, the largest allowed",
    "multiple_of": "{value} is not a multiple of {multiple_of}",
    "string_too_short": "the text has fewer than {min_length} characters",
    "string_too_long": "the text has more than {max_length} characters",
    "string_pattern_mismatch": "the text does not match {pattern}",
    "too_short": "the number of items is {actual_length}; at least {min_length} are required",
    "too_long": "the number of items is {actual_length}; at most {max_length} are allowed",
    "finite_number": "the number is not finite",
    "decimal_max_digits": "the number has more than {max_digits} digits",
    "decimal_max_places": "the number has more than {decimal_places} decimal places",
    "decimal_whole_digits": "the number has more than {whole_digits} digits before the point",
    "date_past": "the date is not in the past",
    "date_future": "the date is not in the future",
    "datetime_past": "the time is not in the past",
    "datetime_future": "the time is not in the future",
    "timezone_naive": "the time must have no time zone",
    "timezone_aware": "the time needs a time zone (2026-01-31T12:00:00Z)",
    "union_tag_not_found": "the field {discriminator} is required",
    "union_tag_invalid": "{discriminator} is not one of {expected_tags}",
    "list_type": "a list is required",
    "tuple_type": "a list is required",
    "set_type": "a list is required",
    "frozen_set_type": "a list is required",
    "none_required": "null is required",
    "bytes_type": "text is required",
    "literal_error": "the value is not {expected}",
    "enum": "the value is not {expected}",
}
_OBJECT_ERRORS = frozenset(
    ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type")
)


UNKNOWN_FIELD_ERRORS = ("extra_forbidden", "unexpected_keyword_argument")


class UnknownField(Record):
    """The suggested value for a field that an object does not have: the closest field."""

    closest: str | None


def suggest_value(error: Mapping[str, Any], find_schema: Callable[[], JsonObject]) -> object:
    """Return what is probably right in place of a value: a bound, or another name of a field."""
    if error["type"] in UNKNOWN_FIELD_ERRORS:
        known = _known_fields(error, find_schema)
        return UnknownField(closest_match(str(error["loc"][-1]), known))
    context: JsonObject = error.get("ctx") or {}
    names = {"greater_than_equal": "ge", "less_than_equal": "le"}
    bound = context.get(names.get(error["type"], ""))
    return bound if isinstance(bound, (int, float)) else None


def _known_fields(error: Mapping[str, Any], find_schema: Callable[[], JsonObject]) -> list[str]:
    return list(_schema_at(find_schema(), error["loc"][:-1]).get("properties", {}))


def describe_error(error: Mapping[str, Any], find_schema: Callable[[], JsonObject]) -> str:
    """Return the message for one error of pydantic.

    `find_schema` returns the JSON Schema of the whole value.
    """
    kind, location = error["type"], error["loc"]
    value = error.get("input")
    expected = expected_text(kind)
    if expected is not None:
        is_shown = isinstance(value, (str, int, float))
        return f"{quote(value)} is not {expected}" if is_shown else f"{expected} is required"
    if kind in _OBJECT_ERRORS:
        schema = _schema_at(find_schema(), location)
        notation = format_input(schema)
        return f"an object is required{f': {notation}' if notation[:1] == '{' else ''}"
    if kind in UNKNOWN_FIELD_ERRORS:
        known = _known_fields(error, find_schema)
        return describe_unknown_field(closest_match(str(location[-1]), known), known)
    try:
        is_number = isinstance(value, (int, float)) or _is_number(value)
        shown = quote(value).strip("'") if is_number else "the value"
        context: JsonObject = error.get("ctx") or {}
        return _TEXTS[kind].format(value=shown, **context)
    except (KeyError, IndexError):
        return normalize_message(error["msg"])


def expected_text(kind: str) -> str | None:
    """Return what a value must be, by type of the error; None if the type says something else."""
    if kind in _EXPECTED or kind in _TEXTS:
        return _EXPECTED.get(kind)
    prefixes = [key for key in _EXPECTED if key[-1] == "…" and kind.startswith(key[:-1])]
    return _EXPECTED[max(prefixes, key=len)] if prefixes else None


def describe_unknown_field(closest: str | None, known: Sequence[str]) -> str:
    """Return the message for a field that an object does not have, with the closest field."""
    hint = f"; did you mean {closest!r}?" if closest else f": the fields are {', '.join(known)}"
    return f"there is no such field{hint if known else ''}"


def _is_number(value: object) -> bool:
    """True for the text of a number, as on a command line."""
    return isinstance(value, str) and value.lstrip("-").replace(".", "", 1).isdecimal()


def normalize_message(message: str) -> str:
    """Return a message of pydantic without its prefix and without a capital letter."""
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message[:1].lower() + message[1:]


def _schema_at(schema: JsonObject, location: tuple[str | int, ...]) -> JsonObject:
    """Return the schema of a part of a value, with the definitions; {} if it is not known."""
    definitions: JsonObject = schema.get("$defs", {})
    current: JsonObject = schema
    for step in location:
        variants = list(iter_variants(current, schema))
        children = [
            found
            for variant in variants
            for found in (
                variant.get("properties", {}).get(step),
                variant.get("items") if isinstance(step, int) else None,
                variant.get("additionalProperties"),
            )
            if is_object(found)
        ]
        if not children:
            return {}
        current = children[0]
    variants = list(iter_variants(current, schema))
    return {**variants[0], "$defs": definitions} if variants else {}


def iter_variants(
    schema: object, root: JsonObject, parent_references: tuple[str, ...] = ()
) -> Iterator[JsonObject]:
    """Iterate over the schema, or over the members of its union, with references resolved.

    `root` is the schema that contains the definitions.
    """
    if not is_object(schema):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference not in parent_references:
            target = root.get("$defs", {}).get(reference.rpartition("/")[2])
            yield from iter_variants(target, root, (*parent_references, reference))
        return
    members = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if len(schema.get("allOf", ())) == 1:  # older versions of pydantic wrap a reference in it
        members += schema["allOf"]
    for member in members:
        yield from iter_variants(member, root, parent_references)
    if not members:
        yield schema
