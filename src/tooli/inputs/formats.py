"""What is in an input, as the type that is wanted says: text, bytes, objects, rows.

The format is the one that the input's name ends in (.json, .jsonl, .csv, .tsv, .yaml), else the
one that its server tells, else what it begins with: `[` and `{` are JSON, anything else is rows
of CSV where rows are wanted.
"""

from __future__ import annotations

import sys

from tooli.core.tool import MISSING
from tooli.schema.convert import ConversionError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.errors import FormatError
    from tooli.inputs.source import Input

_FORMATS_BY_EXTENSION = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".yaml": "yaml",
    ".yml": "yaml",
}
LEADING_WHITESPACE = b"\xef\xbb\xbf \t\r\n"
"""What may stand before the first character that tells something: a mark of UTF-8, too."""
_ITERATOR_TYPES = ("Iterator", "Iterable", "Generator")
_COLLECTION_TYPES = (list, tuple, set, frozenset)


def read_content(source: Input, annotation: Any) -> Any:
    """The content of an input; where an iterator is wanted it is read as that is used."""
    if source.content is not MISSING and not isinstance(source.content, bytes):
        return (
            iter(source.content)
            if iterator_item_type(annotation) is not MISSING
            else source.content
        )
    bare_type = (
        getattr(annotation, "__origin__", annotation)
        if hasattr(annotation, "__metadata__")
        else annotation
    )
    if wants_file(bare_type):
        return source
    item = iterator_item_type(bare_type)
    if item is not MISSING:
        source.is_streamed = True
        return _iter_items(source, item)
    if bare_type is str:
        return _validate_content(source, annotation, source.read_text())
    if bare_type is bytes:
        return _validate_content(source, annotation, source.read_bytes())
    return _validate_content(source, annotation, _parse_content(source, annotation))


def wants_file(annotation: Any) -> bool:
    """Whether the input itself is wanted, to be read like a file."""
    pathlib = sys.modules.get("pathlib")
    if annotation is MISSING or getattr(annotation, "__name__", "") == "Input":
        return True
    return (
        pathlib is not None
        and isinstance(annotation, type)
        and issubclass(annotation, pathlib.PurePath)
    )


def iterator_item_type(annotation: Any) -> Any:
    """What comes one by one, where an iterator is wanted; MISSING where none is."""
    origin = getattr(annotation, "__origin__", annotation)
    if (
        getattr(origin, "__module__", "") == "collections.abc"
        and origin.__name__ in _ITERATOR_TYPES
    ):
        return getattr(annotation, "__args__", (str,))[0]
    return MISSING


# ------------------------------------------------------------------ item by item


def _iter_items(source: Input, item: Any) -> Iterator[Any]:
    from tooli.inputs import rows

    if item is str:
        return rows.iter_lines(source)
    if item is bytes:
        return rows.iter_chunks(source)
    return rows.iter_rows(source, item)


def detect_format(source: Input, head: bytes = b"") -> str:
    """The format: by name, by what the server says, by the first bytes; "" where none tells."""
    name = source.source.partition("?")[0].partition("#")[0] if source.is_url else source.source
    dot = name.rfind(".")
    known = _FORMATS_BY_EXTENSION.get(name[dot:].lower()) if dot >= 0 else None
    if known or source.format:
        return known or source.format or ""
    first = head.lstrip(LEADING_WHITESPACE)[:1]
    return {b"[": "json", b"{": "jsonl"}.get(first, "")


# ------------------------------------------------------------------ all of it


def _parse_content(source: Input, annotation: Any) -> Any:
    data = source.read_bytes()
    source.cache_bytes(data)
    kind = detect_format(source, data[:4096])
    is_collection = getattr(annotation, "__origin__", annotation) in _COLLECTION_TYPES
    if kind == "yaml":
        return _parse_yaml(source)
    if is_collection and kind != "json":
        from tooli.errors import FormatError

        if kind == "jsonl" and not _is_jsonl(source):
            try:  # one object over several lines, or one a line
                return _parse_json(source)
            except FormatError:
                pass
        from tooli.inputs import rows

        return list(rows.iter_rows(source, getattr(annotation, "__args__", (dict,))[0]))
    return _parse_json(source)


def _is_jsonl(source: Input) -> bool:
    return source.format == "jsonl" or source.source.lower().endswith((".jsonl", ".ndjson"))


def _parse_json(source: Input) -> Any:
    import json

    try:
        return json.loads(source.read_text())
    except json.JSONDecodeError as failure:
        raise build_format_error(
            source, f"not valid JSON: {failure.msg}", failure.lineno, failure.colno
        ) from None
    except RecursionError:
        raise build_format_error(source, "it is nested too deeply") from None


def _parse_yaml(source: Input) -> Any:
    try:
        import yaml
    except ImportError:
        from tooli.errors import DependencyError, Suggestion

        raise DependencyError(
            f"{source.source!r} is YAML, and PyYAML is not installed.",
            suggestion=Suggestion("fix", "Run: pip install pyyaml, or give JSON."),
        ) from None
    try:
        return yaml.safe_load(source.read_text())
    except yaml.YAMLError as failure:
        mark: Any = getattr(failure, "problem_mark", None)
        problem = getattr(failure, "problem", None) or "it cannot be read"
        line = mark.line + 1 if mark is not None else None
        raise build_format_error(source, f"not valid YAML: {problem}", line) from None


def _validate_content(source: Input, annotation: Any, value: Any) -> Any:
    """The value, if it is what is wanted; pydantic is asked where that is not plain."""
    if is_plain_instance(annotation, value):
        return value
    from tooli.schema.pydantic_bridge import validate

    try:
        return validate(annotation, value)
    except ConversionError as error:
        raise build_validation_error(source, error) from None


def is_plain_instance(annotation: Any, value: Any) -> bool:
    """Whether a value is of a type that needs no pydantic to see it."""
    typing = sys.modules.get("typing")
    if annotation is object or (typing is not None and annotation is typing.Any):
        return True
    if annotation in (dict, list, str, bytes):
        return type(value) is annotation
    if getattr(annotation, "__origin__", None) is list and is_list(value):
        return all([is_plain_instance(annotation.__args__[0], item) for item in value])
    if getattr(annotation, "__origin__", None) is dict and is_object(value):
        key, inner = annotation.__args__
        return key is str and typing is not None and inner is typing.Any
    return False


# ------------------------------------------------------------------ the content itself, given


def fill_with_content(annotation: Any, value: Any, source: Input) -> Input:
    """An input whose content was given instead of its name: a value, bytes, an open file."""
    bare_type = (
        getattr(annotation, "__origin__", annotation)
        if hasattr(annotation, "__metadata__")
        else annotation
    )
    if isinstance(value, (bytes, bytearray)):
        source.content = bytes(value)
        return source
    if hasattr(value, "read"):
        data: Any = value.read()
        source.content = data.encode() if isinstance(data, str) else data
        return source
    item = iterator_item_type(bare_type)
    if wants_file(bare_type) or bare_type in (str, bytes) or item in (str, bytes):
        if not (is_object(value) and list(value) == ["text"] and isinstance(value["text"], str)):
            raise ConversionError('give a path, a URL, or the text itself as {"text": …}')
        source.content = value["text"].encode()
        return source
    target = annotation
    if item is not MISSING:
        target = list.__class_getitem__(item)
        value = list(value) if hasattr(value, "__next__") else value
    if not is_plain_instance(target, value):
        from tooli.schema.pydantic_bridge import validate

        value = validate(target, value)
    source.content = value
    return source


def content_schema(annotation: Any) -> dict[str, Any]:
    """JSON Schema of the content, given in place of its name."""
    bare_type = (
        getattr(annotation, "__origin__", annotation)
        if hasattr(annotation, "__metadata__")
        else annotation
    )
    item = iterator_item_type(bare_type)
    if wants_file(bare_type) or bare_type in (str, bytes) or item in (str, bytes):
        return {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The content itself."}},
            "required": ["text"],
            "additionalProperties": False,
        }
    from tooli.schema.json_schema import annotation_schema

    return annotation_schema(annotation if item is MISSING else list.__class_getitem__(item))


# ------------------------------------------------------------------ data that is not right


def build_format_error(
    source: Input, message: str, line: int | None = None, column: int | None = None
) -> FormatError:
    """The error for data that cannot be read, with the place where it cannot."""
    from tooli.errors import FormatError

    source_name = "stdin" if source.is_stdin else source.display_name
    line_text = f", line {line}" if line is not None else ""
    details: dict[str, Any] = {"source": source.display_name}
    if line is not None:
        details["line"] = line
    if column is not None:
        details["column"] = column
    return FormatError(f"{source_name}{line_text}: {message}", field=source.field, details=details)


def build_validation_error(
    source: Input, error: ConversionError, line: int | None = None
) -> FormatError:
    """The error for data that can be read and is not what is wanted."""
    reasons = [
        (error.location, error.message),
        *[(m.location, m.message) for m in error.other_errors],
    ]
    listing = [
        {"field": ".".join(map(str, location)), "message": message}
        if location
        else {"message": message}
        for location, message in reasons[:20]
    ]
    location, first = reasons[0]
    message_text = f"{'.'.join(map(str, location))!r}: {first}" if location else first
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    format_error = build_format_error(source, message_text + more, line)
    format_error.details = {**(format_error.details or {}), "errors": listing}
    return format_error
