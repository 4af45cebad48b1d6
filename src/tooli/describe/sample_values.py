"""Sample values of parameters and schemas, for the calls in documents.

    sample_argv(param)                              ──▶ ["2026-01-31"]
    sample_value({"type": "integer", "minimum": 5}) ──▶ 5

A reader copies a line of a document as it is. Therefore `sample_argv` tries several values, and
returns the first that the parameter itself accepts: an annotation may have rules that its schema
does not show.
"""

from __future__ import annotations

from fractions import Fraction
from json import dumps
from math import ceil, floor, inf

from tooli.core.tool import ConversionError, Handle, is_structured, unwrap_optional
from tooli.describe.pattern_samples import matches, matching_texts
from tooli.schema import NeedsFallback, RawText, convert_text, has_pydantic_metadata
from tooli.schema.json_schema import param_schema, shape_schema
from tooli.schema.notation import classify
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param


_FORMAT_SAMPLES = {
    "path": ("PATH", "PATH-{}"),
    "date": ("2026-01-31", "2026-02-{:02}"),
    "date-time": ("2026-01-31T12:00:00", "2026-01-31T12:00:{:02}"),
    "time": ("12:00:00", "12:00:{:02}"),
    "duration": ("PT1H", "PT{}H"),
    "uuid": ("12345678-1234-4234-8234-123456789012", "12345678-1234-4234-8234-1234567890{:02}"),
    "uuid1": ("12345678-1234-1234-8234-123456789012", "12345678-1234-1234-8234-1234567890{:02}"),
    "uuid3": ("12345678-1234-3234-8234-123456789012", "12345678-1234-3234-8234-1234567890{:02}"),
    "uuid5": ("12345678-1234-5234-8234-123456789012", "12345678-1234-5234-8234-1234567890{:02}"),
    "email": ("name@example.com", "name{}@example.com"),
    "name-email": ("Name <name@example.com>", "Name <name{}@example.com>"),
    "uri": ("https://example.com/", "https://example.com/{}"),
    "hostname": ("example.com", "host{}.example.com"),
    "ipv4": ("192.0.2.1", "192.0.2.{}"),
    "ipv6": ("2001:db8::1", "2001:db8::{}"),
    "ipvanyaddress": ("192.0.2.1", "192.0.2.{}"),
    "ipv4network": ("192.0.2.0/24", "192.0.{}.0/24"),
    "ipv6network": ("2001:db8::/32", "2001:db8:{}::/48"),
    "ipvanynetwork": ("192.0.2.0/24", "192.0.{}.0/24"),
    "ipv4interface": ("192.0.2.1/24", "192.0.2.{}/24"),
    "ipv6interface": ("2001:db8::1/64", "2001:db8::{}/64"),
    "ipvanyinterface": ("192.0.2.1/24", "192.0.2.{}/24"),
    "base64": ("dGV4dA==", "dGV4dA=="),
    "base64url": ("dGV4dA==", "dGV4dA=="),
}
"""The sample of each format, and a template for further ones, which gets a number from 1 on."""
_OTHER_TEXTS = (
    *("text", "a", "1", "Text", "Text-1", "Abcdefg-12!", "en", "EUR", "1.0.0", "#336699"),
    *("2026-01-31", "name@example.com", "https://example.com/", "example.com", "192.0.2.1"),
)
"""Texts for parameters with rules that are not in their schema."""
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_MAX_ATTEMPTS = len(_OTHER_TEXTS) + 2
_MAX_STEPS, _MAX_ITEMS, _MAX_CHARS = 2_000, 100, 10_000
"""The size of an example: the parts of its schema, the items of a list, the length of a text."""


def sample_argv(param: Param) -> list[str]:
    """Return a value of a parameter as command line tokens. The parameter accepts it.

    If no sample is accepted, the first one is returned.
    """
    shape = unwrap_optional(param.shape)
    if isinstance(shape, Handle):  # the token is the name of a file, not its content
        return [shape.metavar.partition("|")[0]]
    # If a parameter has a parser, its `param_schema` allows any text.
    has_parser = not param.option_kwargs.keys().isdisjoint(("parser", "click_type"))
    schema = shape_schema(param.shape) if has_parser else param_schema(param)
    samples = (_to_tokens(param, value) for value in sample_values(schema, param.name.upper()))
    first = next(samples)
    if has_parser or _is_accepted(param, first):
        return first
    return next((tokens for tokens in samples if _is_accepted(param, tokens)), first)


def sample_value(schema: object, name: str = "TEXT") -> object:
    """Return a small example of a schema. The example of a string without a format is `name`."""
    return next(sample_values(schema, name))


def sample_values(schema: object, name: str = "TEXT") -> Iterator[object]:
    """Iterate over examples of a schema, the best first."""
    yield _sample(schema, name, 0)
    if is_object(schema) and is_list(schema.get("examples")):
        yield from schema["examples"]
    for attempt in range(1, _MAX_ATTEMPTS):
        yield _sample(schema, name, attempt)


def _sample(schema: object, name: str, attempt: int) -> object:
    """Return an example of a schema; `name` if the schema allows none, or only very large ones."""
    definitions = schema.get("$defs") if is_object(schema) else None
    try:
        return _Sampler(definitions if is_object(definitions) else {}, attempt).sample(schema, name)
    except _EndlessError:
        return name
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError, StopIteration):
        return name  # an external schema may contradict itself


def _to_tokens(param: Param, value: object) -> list[str]:
    """Return a value as tokens. A single token that is a JSON list is read as the whole list."""
    if not is_list(value) or (is_structured(param.shape) and not param.is_multiple):
        return [_format_token(value)]
    if is_structured(param.shape) and any([is_list(item) for item in value]):
        return [_format_token(value)]
    return [_format_token(item) for item in value]


def _format_token(value: object) -> str:
    if isinstance(value, str):
        return value
    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_accepted(param: Param, tokens: list[str]) -> bool:
    """True if a parameter accepts the tokens, or if only its schema has rules."""
    if not (has_pydantic_metadata(param) or param.constraints or is_structured(param.shape)):
        return True
    try:
        convert_text(param, RawText(tokens))
    except NeedsFallback:  # Typer converts the text
        return True
    except ConversionError:
        return False
    return True


# ------------------------------------------------------------------ schemas


class _EndlessError(Exception):
    """A definition refers to itself, or an example would be very large."""


class _Sampler:
    """Makes one example of a schema. Each attempt makes other choices where there are several."""

    def __init__(self, definitions: JsonObject, attempt: int) -> None:
        self._definitions = definitions
        self._attempt = attempt
        self._open: list[str] = []  # the definitions that contain the current value
        self._steps = 0

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise _EndlessError

    def sample(self, schema: object, name: str, turn: int = 0) -> object:
        """Return an example. The examples of different turns differ, if the schema allows it."""
        if not is_object(schema):
            return name
        self._count_step()
        schema = self._merge(schema)
        kind, detail = classify(schema)
        match kind, detail:
            case "ref", _:
                return self._sample_definition(detail, name, turn)
            case "choices", _:
                return detail[(turn + self._attempt) % len(detail)]
            case "union", _:
                return self._sample_union(detail, name, turn)
            case "tuple", _:
                return [self.sample(item, name, turn) for item in detail]
            case "list", _:
                return self._sample_list(schema, detail, name, turn)
            case (("record" | "dict" | "object"), _):
                return self._sample_object(schema, turn)
            case "plain", "integer" | "number":
                return _sample_number(schema, detail, turn + self._attempt)
            case "plain", "boolean":
                return (turn + self._attempt) % 2 == 0
            case "plain", "null":
                return None
            case _:
                return self._sample_text(schema, name, turn)

    def _merge(self, schema: JsonObject) -> JsonObject:
        """Return the schema with the parts of `allOf` in it."""
        self._count_step()
        parts = schema.get("allOf")
        if not is_list(parts):
            return schema
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            if is_object(part) and "$ref" in part:
                part = self._definitions.get(str(part["$ref"]).rpartition("/")[2])
            merged |= self._merge(part) if is_object(part) else {}
        return merged

    def _sample_definition(self, definition: str, name: str, turn: int) -> object:
        if definition in self._open:
            raise _EndlessError
        self._open.append(definition)
        try:
            return self.sample(self._definitions.get(definition), name, turn)
        finally:
            self._open.pop()

    def _sample_union(self, parts: list[object], name: str, turn: int) -> object:
        """Return an example of an alternative; None if only null is left."""
        non_null = [part for part in parts if not is_object(part) or part.get("type") != "null"]
        start = self._attempt % len(non_null) if non_null else 0
        for part in (*non_null[start:], *non_null[:start]):
            try:
                return self.sample(part, name, turn)
            except _EndlessError:
                continue
        if len(non_null) == len(parts):
            raise _EndlessError
        return None

    def _sample_list(self, schema: JsonObject, item: object, name: str, turn: int) -> object:
        fewest = _limited(schema.get("minItems", 0), _MAX_ITEMS)
        count = min(max(fewest, 1), int(schema.get("maxItems", max(fewest, 1))))
        turns = range(turn, turn + count) if schema.get("uniqueItems") else [turn] * count
        try:
            return [self.sample(item, name, each) for each in turns]
        except _EndlessError:
            if fewest:
                raise
            return []

    def _sample_object(self, schema: JsonObject, turn: int) -> JsonObject:
        properties: JsonObject = schema.get("properties") or {}
        required = schema.get("required") or ()
        sample = {name: self.sample(properties.get(name), name.upper(), turn) for name in required}
        keys: JsonObject = schema.get("propertyNames") or {}
        fewest = _limited(schema.get("minProperties", 0), _MAX_ITEMS)
        for extra in range(fewest - len(sample)):
            key = self.sample({"type": "string", **keys}, "KEY", extra)
            sample[str(key)] = self.sample(schema.get("additionalProperties"), "VALUE", extra)
        return sample

    def _sample_text(self, schema: JsonObject, name: str, turn: int) -> str:
        if "pattern" in schema:
            found = _matching_text(schema, turn + self._attempt)
            if found is not None:
                return found
        if "contentSchema" in schema:  # JSON in a text
            return dumps(self.sample(schema["contentSchema"], name, turn))
        first, template = _FORMAT_SAMPLES.get(str(schema.get("format")), (name, f"{name}{{}}"))
        number = turn + self._attempt
        if self._attempt and first == name:
            text = (name.lower(), *_OTHER_TEXTS)[self._attempt - 1] + (str(turn) if turn else "")
        else:
            text = template.format(number) if number else first
        text += "X" * (_limited(schema.get("minLength", 0), _MAX_CHARS) - len(text))
        if len(text) <= schema.get("maxLength", len(text)):
            return text
        size = schema["maxLength"]
        return (
            text[len(text) - size :] if turn else text[:size]
        )  # turns differ in their last letter


def _limited(size: float, most: int) -> int:
    """Return the least size of a value; raise _EndlessError if an example would be very large."""
    if size > most:
        raise _EndlessError
    return int(size)


def _matching_text(schema: JsonObject, number: int) -> str | None:
    """Return a text that matches the pattern and has a valid length, or None."""
    fewest, most = _limited(schema.get("minLength", 0), _MAX_CHARS), schema.get("maxLength", inf)
    pattern = str(schema["pattern"])
    texts = [text + "X" * (fewest - len(text)) for text in matching_texts(pattern)]
    texts += [text for text in (*matching_texts(pattern), *_OTHER_TEXTS) if len(text) >= fewest]
    found = [text for text in texts if len(text) <= most and matches(pattern, text)]
    found = sorted(dict.fromkeys(found), key=lambda text: not text)  # an empty text is the last
    return found[min(number, len(found) - 1)] if found else None


def _sample_number(schema: JsonObject, kind: str, number: int) -> float:
    """Return a multiple of `multipleOf` that is within the bounds; 1 if that is valid.

    `number` chooses another multiple, if there is one.
    """
    step = Fraction(str(schema.get("multipleOf", 1)))
    bounds = {name: Fraction(str(schema[name])) for name in _BOUNDS if name in schema}
    lows = [ceil(bounds["minimum"] / step)] if "minimum" in bounds else []
    highs = [floor(bounds["maximum"] / step)] if "maximum" in bounds else []
    if "exclusiveMinimum" in bounds:
        lows.append(floor(bounds["exclusiveMinimum"] / step) + 1)
    if "exclusiveMaximum" in bounds:
        highs.append(ceil(bounds["exclusiveMaximum"] / step) - 1)
    low, high = max(lows, default=-inf), min(highs, default=inf)
    if low > high:  # no multiple is within the bounds, such as 0 < x < 1
        least = max(bounds[name] for name in ("minimum", "exclusiveMinimum") if name in bounds)
        most = min(bounds[name] for name in ("maximum", "exclusiveMaximum") if name in bounds)
        return float(least + (most - least) / (2 + number))
    first = int(min(max(1, low), high))
    options = [first + number, first - number, first]
    value = next(option for option in options if low <= option <= high) * step
    return int(value) if kind == "integer" or value.denominator == 1 else float(value)
