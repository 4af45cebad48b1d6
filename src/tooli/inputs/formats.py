"""Parse the content of an input as the annotated type: text, bytes, objects or rows.

The format is determined by the file extension (.json, .jsonl, .csv, .tsv, .yaml), then by the
content type that a server sends, then by the first character: `[` and `{` are JSON. Anything else
is CSV if the type is a list of rows. If the content is the JSON answer of a command (the envelope),
its result is used.

If the type is an iterator, lines, JSONL, JSON arrays and CSV are read row by row, in constant
memory.
"""

from __future__ import annotations

import io
import json

from tooli.core import find_loaded
from tooli.core.tool import MISSING
from tooli.errors import FormatError
from tooli.inputs.format_errors import (
    build_format_error,
    build_syntax_error,
    build_validation_error,
    is_envelope,
    result_rows,
    unwrap_envelope,
)
from tooli.schema import ConversionError
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader, TextIOWrapper
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject
    from tooli.inputs.source import Input

    RowValidator: TypeAlias = Callable[[Any, int], Any]

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
"""Bytes that may precede the content: whitespace and the byte order mark of UTF-8."""
_ITERATOR_TYPES = ("Iterator", "Iterable", "Generator")
_COLLECTION_TYPES = (list, tuple, set, frozenset)
_CHUNK_BYTES = 1 << 16
_MAX_OBJECT_BYTES = 1 << 26  # of one object on several lines, where rows are expected


def read_content(source: Input, annotation: object) -> Any:
    """Return the content of an input as the annotated type.

    If the type is an iterator, it reads the content on demand.
    """
    if source.content is not MISSING and not isinstance(source.content, bytes):
        return (
            iter(source.content)
            if iterator_item_type(annotation) is not MISSING
            else source.content
        )
    bare_type = _strip_annotated(annotation)
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


def _strip_annotated(annotation: Any) -> Any:
    """Return the type inside `Annotated`; other annotations are returned unchanged."""
    return annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation


def wants_file(annotation: object) -> bool:
    """True if the function receives the Input itself, which can be read like a file."""
    if annotation is MISSING or getattr(annotation, "__name__", "") == "Input":
        return True
    path_class = find_loaded("pathlib", "PurePath")
    return (
        path_class is not None
        and isinstance(annotation, type)
        and issubclass(annotation, path_class)
    )


def iterator_item_type(annotation: Any) -> Any:
    """Return the item type of an iterator annotation; MISSING for other annotations."""
    origin = getattr(annotation, "__origin__", annotation)
    if (
        getattr(origin, "__module__", "") == "collections.abc"
        and origin.__name__ in _ITERATOR_TYPES
    ):
        return getattr(annotation, "__args__", (str,))[0]
    return MISSING


# ------------------------------------------------------------------ format


def _iter_items(source: Input, item: object) -> Iterator[Any]:
    if item is str:
        return _iter_lines(source)
    if item is bytes:
        return _iter_chunks(source)
    return _iter_rows(source, item)


def detect_format(source: Input, head: bytes = b"") -> str:
    """Return the format by extension, content type or first bytes; "" if it is unknown."""
    name = source.source.partition("?")[0].partition("#")[0] if source.is_url else source.source
    dot = name.rfind(".")
    known = _FORMATS_BY_EXTENSION.get(name[dot:].lower()) if dot >= 0 else None
    if known or source.format:
        return known or source.format or ""
    first = head.lstrip(LEADING_WHITESPACE)[:1]
    return {b"[": "json", b"{": "jsonl"}.get(first, "")


def _check_is_csv(source: Input, head: bytes) -> None:
    """Raise FormatError if data of an unknown format is not CSV.

    It may be the YAML or TOON answer of a command, a table, or one line that is no header of a CSV
    file.
    """
    if head.startswith((b"ok: true\n", b"ok: false\n")):
        raise build_syntax_error(source, "the answer of a command as YAML or TOON is not supported")
    text = head.decode("utf-8-sig", "replace").strip()
    first, _, rest = text.partition("\n")
    if rest.startswith("\u2500") or (first.startswith("|") and rest.startswith(("|-", "| -"))):
        raise build_syntax_error(source, "a table of a command, as text or Markdown, has no rows")
    has_columns = any([character in text for character in ",;\t\n"])
    is_name = text.strip('"').replace("-", "_").isidentifier()
    if text and not (has_columns or is_name):
        raise build_syntax_error(source, "the input is neither JSON nor a CSV file")


# ------------------------------------------------------------------ whole content


def _parse_content(source: Input, annotation: object) -> Any:
    data = source.read_bytes()
    source.cache_bytes(data)
    kind = detect_format(source, data[:4096])
    is_collection = getattr(annotation, "__origin__", annotation) in _COLLECTION_TYPES
    if is_collection and kind not in ("json", "yaml"):
        return list(_iter_rows(source, getattr(annotation, "__args__", (dict,))[0]))
    value = _parse_yaml(source) if kind == "yaml" else _parse_json(source, source.read_text())
    if is_envelope(value):
        value = unwrap_envelope(source, value)
    return result_rows(value) if is_collection and is_object(value) else value


def _parse_json(source: Input, text: str, line: int | None = None) -> Any:
    """Parse a JSON text. `line` is its line number, if it is one line of the input."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as failure:
        raise build_syntax_error(
            source, f"not valid JSON: {failure.msg}", line or failure.lineno, failure.colno
        ) from None
    except (RecursionError, ValueError) as failure:
        raise build_format_error(source, _describe_json_limit(failure), line) from None


def _describe_json_limit(failure: Exception) -> str:
    """Return the message for valid JSON that Python's parser refuses."""
    if isinstance(failure, RecursionError):
        return "the JSON is nested too deeply"
    return "an integer has too many digits"


def _parse_yaml(source: Input) -> Any:
    from tooli.text.yaml_reader import YamlError, read_yaml

    try:
        return read_yaml(source.read_text())
    except YamlError as failure:
        raise build_format_error(source, f"not valid YAML: {failure}", failure.line) from None


def _validate_content(source: Input, annotation: object, value: object) -> Any:
    """Return the value as the annotated type. pydantic validates it unless the type is plain."""
    if is_plain_instance(annotation, value):
        return value
    try:
        return _validate_with_pydantic(annotation, value)
    except ConversionError as error:
        raise build_validation_error(source, error) from None


def _validate_with_pydantic(annotation: object, value: object) -> Any:
    from tooli.schema.pydantic_bridge import validate

    return validate(annotation, value)


def _annotation_schema(
    annotation: object, describe: Callable[[Any], JsonObject] | None = None
) -> JsonObject:
    from tooli.schema.json_schema import annotation_schema

    return annotation_schema(annotation, describe)


def is_plain_instance(annotation: Any, value: Any) -> bool:
    """True if a value is certainly of the annotated type; False if pydantic must validate it."""
    if annotation is object or annotation is (find_loaded("typing", "Any") or object):
        return True
    if annotation in (dict, list, str, bytes):
        return type(value) is annotation
    if getattr(annotation, "__origin__", None) is list and is_list(value):
        return all([is_plain_instance(annotation.__args__[0], item) for item in value])
    if getattr(annotation, "__origin__", None) is dict and is_object(value):
        key, inner = annotation.__args__
        return key is str and inner is (find_loaded("typing", "Any") or object)
    return False


# ------------------------------------------------------------------ content instead of a location


def fill_with_content(annotation: Any, value: Any, source: Input) -> Input:
    """Fill an input with content that was passed directly: a value, bytes, or an open file."""
    bare_type = _strip_annotated(annotation)
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
            raise ConversionError('pass a path, a URL, or the text itself as {"text": …}')
        source.content = value["text"].encode()
        return source
    target = annotation
    if item is not MISSING:
        target = list.__class_getitem__(item)
        value = list(value) if hasattr(value, "__next__") else value
    if not is_plain_instance(target, value):
        value = _validate_with_pydantic(target, value)
    source.content = value
    return source


def content_schema(
    annotation: object, describe: Callable[[Any], JsonObject] | None = None
) -> JsonObject:
    """Return the JSON Schema of content that is passed instead of a location."""
    bare_type = _strip_annotated(annotation)
    item = iterator_item_type(bare_type)
    if wants_file(bare_type) or bare_type in (str, bytes) or item in (str, bytes):
        return {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The content itself."}},
            "required": ["text"],
            "additionalProperties": False,
        }
    content_type = annotation if item is MISSING else list.__class_getitem__(item)
    return _annotation_schema(content_type, describe)


# ------------------------------------------------------------------ rows, in constant memory


def _iter_lines(source: Input) -> Iterator[str]:
    """Yield lines without line ends; with `--null`, records that end with NUL."""
    if source.nul:
        yield from _iter_nul_records(source)
        return
    with source.open() as file:
        try:
            for line in file:
                yield line[:-1] if line[-1:] == "\n" else line
        except UnicodeDecodeError as failure:
            raise source.decode_error(failure) from None


def _iter_nul_records(source: Input) -> Iterator[str]:
    with source.open_bytes() as file:
        remainder = b""
        while data := file.read1(_CHUNK_BYTES):
            *records, remainder = (remainder + data).split(b"\0")
            for record in records:
                yield record.decode("utf-8", "surrogateescape")
        if remainder:
            yield remainder.decode("utf-8", "surrogateescape")


def _iter_chunks(source: Input) -> Iterator[bytes]:
    """Yield the bytes of an input in chunks, as they arrive."""
    with source.open_bytes() as file:
        while data := file.read1(_CHUNK_BYTES):
            yield data


def _iter_rows(source: Input, item: object) -> Iterator[Any]:
    """Yield validated rows of JSONL, of a JSON array, or of CSV."""
    with source.open_bytes() as file:
        head: bytes = file.peek(4096)
        kind = detect_format(source, head)
        if kind == "json" and head.lstrip(LEADING_WHITESPACE)[:1] != b"[":
            kind = "jsonl"
        if kind == "yaml":
            raise build_format_error(source, "YAML has no rows: pass JSONL or CSV")
        try:
            if kind == "json":
                yield from _iter_json_array(source, file, _build_row_validator(source, item))
            elif kind == "jsonl":
                yield from _iter_json_lines(source, file, _build_row_validator(source, item))
            else:
                if not kind:
                    _check_is_csv(source, head)
                yield from _iter_csv(source, file, kind, item)
        except UnicodeDecodeError as failure:
            raise source.decode_error(failure) from None


def _build_row_validator(source: Input, item: Any, skip_empty: bool = False) -> RowValidator:
    """Return a function that validates a row; its errors name the line."""
    optional: frozenset[str] = frozenset()
    if skip_empty and item not in (dict, list) and not is_plain_instance(item, {}):
        optional = _optional_fields(item)

    def check(row: Any, line: int) -> Any:
        if is_plain_instance(item, row):
            return row
        if optional:  # an empty CSV cell is a missing value
            row = {k: v for k, v in row.items() if v != "" or k not in optional}
        try:
            return _validate_with_pydantic(item, row)
        except ConversionError as error:
            raise build_validation_error(source, error, line) from None

    return check


def _field_names(item: Any) -> frozenset[str]:
    """Return the names of the fields of a row; empty if any name is accepted."""
    if item in (dict, list) or is_plain_instance(item, {}):
        return frozenset()
    schema = _annotation_schema(item)
    has_only_these = schema.get("additionalProperties") in (None, False)
    return frozenset(schema.get("properties", ())) if has_only_these else frozenset()


def _optional_fields(item: object) -> frozenset[str]:
    schema = _annotation_schema(item)
    return frozenset(schema.get("properties", ())) - frozenset(schema.get("required", ()))


# ------------------------------------------------------------------ JSON


def _iter_json_lines(source: Input, file: BufferedReader, check: RowValidator) -> Iterator[Any]:
    """Yield the objects of JSONL, the records of a command's answer, or one indented object."""
    is_first = True
    for number, line in enumerate(file, 1):
        if not line.strip(LEADING_WHITESPACE):
            continue
        try:
            value = _parse_json(source, line.decode("utf-8-sig"), number)
        except FormatError as failure:
            if not is_first:
                raise
            value = _parse_indented_object(source, line + file.read(_MAX_OBJECT_BYTES), failure)
        is_first = False
        rows = result_rows(unwrap_envelope(source, value, number)) if is_envelope(value) else None
        for row in [value] if rows is None else rows:
            yield check(row, number)


def _parse_indented_object(source: Input, data: bytes, failure: FormatError) -> Any:
    """Parse one object on several lines; raise `failure`, the error of its first line."""
    try:
        return _parse_json(source, data.decode("utf-8-sig"))
    except FormatError:
        raise failure from None


def _iter_json_array(source: Input, file: BufferedReader, check: RowValidator) -> Iterator[Any]:
    """Yield the items of a JSON array while it is read."""
    with io.TextIOWrapper(file, "utf-8-sig") as text:
        reader = _JsonArrayReader(source, text)
        reader.skip_whitespace()
        reader.position += 1  # the bracket
        separator = "]" if reader.skip_whitespace() == "]" else ","
        reader.position += separator == "]"
        while separator == ",":
            reader.skip_whitespace()
            line = reader.line_number()
            yield check(reader.read_value(), line)
            separator = reader.skip_whitespace()
            reader.position += 1
        if separator != "]":
            raise build_syntax_error(
                source, "not valid JSON: ',' or ']' is missing", reader.line_number()
            )
        if reader.skip_whitespace():
            raise build_syntax_error(
                source, "not valid JSON: there is text after the array", reader.line_number()
            )


class _JsonArrayReader:
    """Reads the items of a JSON array. Keeps only the part of the text that is not decoded yet."""

    def __init__(self, source: Input, file: TextIOWrapper) -> None:
        self.text = ""
        self.position = 0
        self._source = source
        self._file = file
        self._decode = json.JSONDecoder().raw_decode
        self._line_count = 1
        self._counted = 0  # position up to which lines are counted
        self._size = _CHUNK_BYTES

    def line_number(self) -> int:
        """Return the line number of the current position."""
        self._line_count += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line_count

    def _read_more(self) -> bool:
        self.line_number()
        self.text = self.text[self.position :]
        self.position = self._counted = 0
        data = self._file.read(self._size)
        self.text += data
        return bool(data)

    def skip_whitespace(self) -> str:
        """Move to the next character that is not whitespace and return it; "" at the end."""
        while True:
            while self.position < len(self.text) and self.text[self.position] in " \t\r\n":
                self.position += 1
            if self.position < len(self.text):
                return self.text[self.position]
            if not self._read_more():
                return ""

    def read_value(self) -> Any:
        """Read the value at the current position."""
        self._size = _CHUNK_BYTES
        line, problem = self.line_number(), "unexpected end of the text"
        while True:
            failure: Any = None
            try:
                value, end = self._decode(self.text, self.position)
                if end < len(self.text):  # a number may continue in the next chunk
                    self.position = end
                    return value
            except json.JSONDecodeError as error:
                failure, problem = error, error.msg
                line = self.line_number() + self.text.count("\n", self.position, error.pos)
            except (RecursionError, ValueError) as error:
                raise build_format_error(
                    self._source, _describe_json_limit(error), self.line_number()
                ) from None
            self._size *= 2  # so that a long value is decoded only a few times
            if self._is_certain_error(failure) or not self._read_more():
                raise build_syntax_error(self._source, f"not valid JSON: {problem}", line)

    def _is_certain_error(self, failure: Any) -> bool:
        """True if more text cannot fix the error, because it is not at the end of the text."""
        if failure is None or failure.msg.startswith("Unterminated"):
            return False
        return failure.pos < len(self.text) - 16


# ------------------------------------------------------------------ CSV


def _iter_csv(source: Input, file: BufferedReader, kind: str, item: object) -> Iterator[Any]:
    import csv

    head: bytes = file.peek(4096).partition(b"\n")[0]
    delimiter = "\t" if kind == "tsv" else ","
    if not kind and b"," not in head:
        delimiter = "\t" if b"\t" in head else ";" if b";" in head else ","
    has_no_header = getattr(item, "__origin__", item) in (list, tuple)
    check = _build_row_validator(source, item, skip_empty=True)
    fields: frozenset[str] = frozenset() if has_no_header else _field_names(item)
    names: list[str] | None = None
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                if has_no_header:
                    yield check(cells, reader.line_num)
                elif names is None:
                    names = _read_header(source, cells, fields, reader.line_num) if cells else None
                elif cells:
                    yield check(_build_row(source, names, cells, reader.line_num), reader.line_num)
        except csv.Error as failure:
            raise build_syntax_error(source, f"not valid CSV: {failure}", reader.line_num) from None


def _read_header(source: Input, cells: list[str], fields: frozenset[str], line: int) -> list[str]:
    """Return the column names in the first row. At least one must be a field of the rows."""
    names = [cell.strip() for cell in cells]
    if fields and fields.isdisjoint(names):
        expected = ", ".join(sorted(fields))
        message = f"the first row has no column name of the fields {expected}"
        raise build_syntax_error(source, message, line)
    duplicate = next((name for i, name in enumerate(names) if name in names[:i]), MISSING)
    if duplicate is not MISSING:
        raise build_format_error(
            source, f"the column {duplicate!r} occurs twice in the first row", line
        )
    return names


def _build_row(source: Input, names: list[str], cells: list[str], line: int) -> dict[str, str]:
    if len(cells) != len(names):
        message = f"the row has {len(cells)} cells, but the first row has {len(names)}"
        raise build_format_error(source, message, line)
    return dict(zip(names, cells, strict=True))
