"""Inputs that are read item by item, in constant memory: lines, JSONL, JSON arrays, CSV."""

from __future__ import annotations

from tooli.core.tool import MISSING
from tooli.inputs.formats import (
    LEADING_WHITESPACE,
    build_format_error,
    build_validation_error,
    detect_format,
    is_plain_instance,
)
from tooli.schema.convert import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader, TextIOWrapper
    from typing import Any, TypeAlias

    from tooli.inputs.source import Input

    RowValidator: TypeAlias = Callable[[Any, int], Any]

_CHUNK_BYTES = 1 << 16


def iter_lines(source: Input) -> Iterator[str]:
    """The lines of an input, without their ends; what stands between NULs after `--null`."""
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


def iter_chunks(source: Input) -> Iterator[bytes]:
    """The bytes of an input, some at a time, as they come."""
    with source.open_bytes() as file:
        while data := file.read1(_CHUNK_BYTES):
            yield data


def iter_rows(source: Input, item: Any) -> Iterator[Any]:
    """The rows of an input, each one checked: objects of JSONL, of a JSON array, or of CSV."""
    with source.open_bytes() as file:
        head: bytes = file.peek(4096)
        kind = detect_format(source, head)
        if kind == "json" and head.lstrip(LEADING_WHITESPACE)[:1] != b"[":
            kind = "jsonl"
        if kind == "yaml":
            raise build_format_error(source, "YAML does not come row by row: give JSONL or CSV")
        try:
            if kind == "json":
                yield from _iter_json_array(source, file, _build_row_validator(source, item))
            elif kind == "jsonl":
                yield from _iter_json_lines(source, file, _build_row_validator(source, item))
            else:
                yield from _iter_csv(source, file, kind, item)
        except UnicodeDecodeError as failure:
            raise source.decode_error(failure) from None


def _build_row_validator(source: Input, item: Any, skip_empty: bool = False) -> RowValidator:
    """What checks a row, and says at which line it is not what is wanted."""
    from tooli.schema.pydantic_bridge import validate

    optional: frozenset[str] = frozenset()
    if skip_empty and item not in (dict, list) and not is_plain_instance(item, {}):
        optional = _optional_fields(item)

    def check(row: Any, line: int) -> Any:
        if is_plain_instance(item, row):
            return row
        if optional:  # an empty cell of CSV says nothing
            row = {k: v for k, v in row.items() if v != "" or k not in optional}
        try:
            return validate(item, row)
        except ConversionError as error:
            raise build_validation_error(source, error, line) from None

    return check


def _optional_fields(item: Any) -> frozenset[str]:
    from tooli.schema.json_schema import annotation_schema

    schema = annotation_schema(item)
    return frozenset(schema.get("properties", ())) - frozenset(schema.get("required", ()))


# ------------------------------------------------------------------ JSON


def _iter_json_lines(source: Input, file: BufferedReader, check: RowValidator) -> Iterator[Any]:
    import json

    first = True
    for number, line in enumerate(file, 1):
        if first and line[:3] == b"\xef\xbb\xbf":
            line = line[3:]
        first = False
        if line.isspace():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as failure:
            raise build_format_error(
                source, f"not valid JSON: {failure.msg}", number, failure.colno
            ) from None
        except RecursionError:
            raise build_format_error(source, "it is nested too deeply", number) from None
        yield check(row, number)


def _iter_json_array(source: Input, file: BufferedReader, check: RowValidator) -> Iterator[Any]:
    """The items of one long JSON array, while the rest of it is still to come."""
    import io

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
            raise build_format_error(
                source, "not valid JSON: ',' or ']' is missing", reader.line_number()
            )
        if reader.skip_whitespace():
            raise build_format_error(
                source, "not valid JSON: something follows the array", reader.line_number()
            )


class _JsonArrayReader:
    """The part of a text that is being read."""

    def __init__(self, source: Input, file: TextIOWrapper) -> None:
        import json

        self.text = ""
        self.position = 0
        self._source = source
        self._file = file
        self._decode = json.JSONDecoder().raw_decode
        self._decode_error = json.JSONDecodeError
        self._line_count = 1
        self._counted = 0  # how much of the text is in that number
        self._size = _CHUNK_BYTES

    def line_number(self) -> int:
        """The number of the line that it is at."""
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
        """Go to the next character that is no space; "" at the end."""
        while True:
            while self.position < len(self.text) and self.text[self.position] in " \t\r\n":
                self.position += 1
            if self.position < len(self.text):
                return self.text[self.position]
            if not self._read_more():
                return ""

    def read_value(self) -> Any:
        """The value that begins here; as much is read as it needs."""
        self._size = _CHUNK_BYTES
        line, problem = self.line_number(), "it ends too early"
        while True:
            failure: Any = None
            try:
                value, end = self._decode(self.text, self.position)
                if end < len(self.text):  # a number may go on
                    self.position = end
                    return value
            except self._decode_error as error:
                failure, problem = error, error.msg
                line = self.line_number() + self.text.count("\n", self.position, error.pos)
            except RecursionError:
                raise build_format_error(
                    self._source, "it is nested too deeply", self.line_number()
                ) from None
            self._size *= 2  # so that a long value is not tried too often
            if self._is_certain_error(failure) or not self._read_more():
                raise build_format_error(self._source, f"not valid JSON: {problem}", line)

    def _is_certain_error(self, failure: Any) -> bool:
        """Whether a value is wrong whatever may follow: the mistake is not at the end."""
        if failure is None or failure.msg.startswith("Unterminated"):
            return False
        return failure.pos < len(self.text) - 16


# ------------------------------------------------------------------ CSV


def _iter_csv(source: Input, file: BufferedReader, kind: str, item: Any) -> Iterator[Any]:
    import csv
    import io

    head: bytes = file.peek(4096).partition(b"\n")[0]
    delimiter = "\t" if kind == "tsv" else ","
    if not kind and b"," not in head:
        delimiter = "\t" if b"\t" in head else ";" if b";" in head else ","
    is_list = getattr(item, "__origin__", item) in (list, tuple)
    check = _build_row_validator(source, item, skip_empty=True)
    names: list[str] | None = None
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                if is_list:
                    yield check(cells, reader.line_num)
                elif names is None:
                    names = _read_header(source, cells, reader.line_num) if cells else None
                elif cells:
                    yield check(_build_row(source, names, cells, reader.line_num), reader.line_num)
        except csv.Error as failure:
            raise build_format_error(source, f"not valid CSV: {failure}", reader.line_num) from None


def _read_header(source: Input, cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    duplicate = next((name for i, name in enumerate(names) if name in names[:i]), MISSING)
    if duplicate is not MISSING:
        raise build_format_error(
            source, f"the column {duplicate!r} stands twice in the first row", line
        )
    return names


def _build_row(source: Input, names: list[str], cells: list[str], line: int) -> dict[str, str]:
    if len(cells) != len(names):
        message = f"{len(cells)} cells where the first row has {len(names)}"
        raise build_format_error(source, message, line)
    return dict(zip(names, cells, strict=True))
