"""Serialize parameters: the styles of OpenAPI and the collection formats of Swagger 2.

    style           array [a, b]            object {"x": 1}
    simple          a,b                     x,1          explode: x=1
    label           .a,b  explode: .a.b     .x,1         explode: .x=1
    matrix          ;n=a,b  ;n=a;n=b        ;n=x,1       explode: ;x=1
    form            n=a,b   n=a&n=b         n=x,1        explode: x=1
    spaceDelimited  n=a%20b                 n=x%201
    pipeDelimited   n=a%7Cb                 n=x%7C1
    deepObject      n[]=a                   n[x]=1

Values are encoded so that they cannot add a path segment, a parameter or a header.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from tooli.errors import InputError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNRESERVED = "-._~"
_RESERVED = ":/?@!$'()*,;"
"""The reserved characters that cannot end a query or one of its parameters."""
_SEPARATORS = {
    "form": ",",
    "simple": ",",
    "spaceDelimited": "%20",
    "pipeDelimited": "%7C",
    "tabDelimited": "%09",
}
COLLECTION_FORMATS = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
"""Style and `explode` of the collection formats of Swagger 2."""


def to_text(value: object) -> str:
    """Return a value as text: an object or a list inside a parameter is written as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode(text: str, *, allow_reserved: bool = False) -> str:
    """Return a text for a URL."""
    return quote(text, safe=_UNRESERVED + (_RESERVED if allow_reserved else ""), errors="replace")


def path_text(name: str, value: object, style: str = "simple", explode: bool = False) -> str:
    """Return a parameter as a part of a path."""
    if style == "matrix":
        return _matrix_text(name, value, explode=explode)
    lead, separator = ("", ",") if style != "label" else (".", "." if explode else ",")
    return lead + separator.join(_flat(value, explode=explode))


def _matrix_text(name: str, value: object, *, explode: bool) -> str:
    if is_object(value) and explode:
        return "".join([f";{item}" for item in _flat(value, explode=True)])
    if is_list(value) and explode:
        return "".join([f";{encode(name)}={item}" for item in _flat(value, explode=True)])
    return f";{encode(name)}=" + ",".join(_flat(value, explode=False))


def _flat(value: object, *, explode: bool) -> list[str]:
    """Return the encoded parts of a value: items, or names and values."""
    if is_list(value):
        return [encode(to_text(item)) for item in value]
    if is_object(value):
        pairs = [(encode(str(k)), encode(to_text(v))) for k, v in value.items()]
        return [f"{k}={v}" for k, v in pairs] if explode else [t for pair in pairs for t in pair]
    return [encode(to_text(value))]


def query_parts(
    name: str,
    value: object,
    style: str = "form",
    explode: bool = True,
    *,
    allow_reserved: bool = False,
) -> list[str]:
    """Return the parts `name=value` of a query or a form."""
    key = encode(name)

    def text(item: object) -> str:
        return encode(to_text(item), allow_reserved=allow_reserved)

    if style == "deepObject" and (is_object(value) or is_list(value)):
        return [f"{encode(k)}={text(v)}" for k, v in _deep(name, value)]
    separator = _SEPARATORS.get(style, ",")
    if is_list(value):
        if not value:
            return []
        items = [text(item) for item in value]
        return (
            [f"{key}={item}" for item in items] if explode else [f"{key}={separator.join(items)}"]
        )
    if is_object(value):
        if explode:
            return [
                part
                for k, v in value.items()
                for part in query_parts(
                    str(k), to_text(v) if is_object(v) else v, allow_reserved=allow_reserved
                )
            ]
        flat = [part for k, v in value.items() for part in (encode(str(k)), text(v))]
        return [f"{key}={separator.join(flat)}"] if flat else []
    return [f"{key}={text(value)}"]


def _deep(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the names and values of a nested object: `filter[user][name]`."""
    if is_object(value):
        for key, inner in value.items():
            yield from _deep(f"{name}[{key}]", inner)
    elif is_list(value):
        for index, inner in enumerate(value):
            is_nested = is_object(inner) or is_list(inner)
            yield from _deep(f"{name}[{index}]" if is_nested else f"{name}[]", inner)
    else:
        yield name, value


def header_text(value: object, explode: bool = False) -> str:
    """Return a parameter as the value of a header."""
    if is_list(value):
        return ",".join([to_text(item) for item in value])
    if is_object(value):
        joint = "=" if explode else ","
        return ",".join([f"{k}{joint}{to_text(v)}" for k, v in value.items()])
    return to_text(value)


def cookie_parts(name: str, value: object, explode: bool = True) -> list[str]:
    """Return the parts `name=value` of the header `Cookie`."""
    return query_parts(name, value, "form", explode)


def check_header(name: str, text: str, field: str) -> str:
    """Return the value of a header; raise an InputError if it has a control character."""
    if any([ord(char) < 0x20 or ord(char) == 0x7F for char in text]):
        raise InputError(
            f"{field!r} must not contain line breaks and control characters: it is the header "
            f"{name}.",
            code="E1030",
            field=field,
        )
    return text.strip()
