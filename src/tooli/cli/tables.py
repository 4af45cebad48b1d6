r"""Records as tables: CSV for programs and spreadsheets, Markdown for documents.

    [{"path": "a.py", "size": 1}, …]    path,size⏎ a.py,1⏎ …    | path | size |⏎ …
    ["a.py", "b.py"]                    value⏎ a.py⏎ b.py⏎      | value |⏎ …
    {"name": "tooli", "tags": ["x"]}    a table of one record   | field | value |⏎ …
    "any text", 3, true                 value⏎ any text⏎        the text itself

**Columns** are the keys of all records, in order of appearance. The header of a stream is made from
its first record if the record type has fixed fields, and otherwise from its first 1000 records. A
key that appears later has no column, and a warning reports it. A table has at most 1000 columns: if
each record had its own keys, the size of the table would be the square of the size of the data. If
there is no record, the header has the fields of the record type. An item that is not a record is in
a column `value`. Nested values are JSON.

**CSV** follows RFC 4180: lines end in CRLF, and a value with a comma, a quote or a line break is
quoted. Null is an empty cell, an empty string is `""`. Values are not changed, although
spreadsheets treat a string that begins with `=`, `+`, `-` or `@` as a formula.

**Markdown** shows each string literally: markup is escaped, a line break is `<br>`.
"""

from __future__ import annotations

import sys
from itertools import chain, islice

from tooli.cli.plain_output import EscapeTable, add_columns
from tooli.pipeline.present import ItemPresenter
from tooli.schema.tool_reader import return_annotation
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.tool import Tool

HEADER_SAMPLE_SIZE = 1000
"""Maximum number of records of a stream that are read before its header is written."""
_MAX_NAMED_KEYS = 20  # without a column, in warnings


def csv_writer(call: Call) -> TableWriter:
    """Return the writer of mode `csv` for a call."""
    return TableWriter(call, markdown=False)


def markdown_writer(call: Call) -> TableWriter:
    """Return the writer of mode `md` for a call."""
    return TableWriter(call, markdown=True)


class TableWriter:
    """Formats the records of a call as the lines of a table, in CSV or in Markdown.

    `items` and `value` return redacted lines in bytes, as `core.output_modes` expects them.
    """

    def __init__(self, call: Call, *, markdown: bool) -> None:
        self._call = call
        self._markdown = markdown
        self._keys_without_column: set[str] = set()  # those that a warning names

    def items(self, items: Iterator[object]) -> Iterator[bytes]:
        """Return the lines of a stream of records."""
        return self._encode(self.stream(map(ItemPresenter(self._call).value, items)))

    def value(self, value: object) -> Iterator[bytes]:
        """Return the lines of a whole result."""
        return self._encode(self.lines(ItemPresenter(self._call).value(value)))

    def _encode(self, lines: Iterator[str]) -> Iterator[bytes]:
        end = b"" if self._markdown else b"\r"
        return (line.encode() + end for line in lines)

    def lines(self, value: object) -> Iterator[str]:
        """Return the lines of a value of JSON types."""
        if value is None:
            return iter(())
        if is_list(value):
            return self._records(value, iter(()))
        if not self._markdown:
            return self._records([value], iter(()))
        if is_object(value):
            return self._rows(("field", "value"), value.items())
        return iter((_printable_text(value),))

    def stream(self, items: Iterator[object]) -> Iterator[str]:
        """Return the lines of a stream; the header is made from its first items."""
        sample: list[object] = []
        size = 1 if has_fixed_fields(self._call.tool) else HEADER_SAMPLE_SIZE
        try:
            for item in islice(items, size):
                sample.append(item)  # noqa: PERF402  one by one, so that an interrupt loses none
        except BaseException:  # an interrupt: the items before it are still written
            if sample:
                yield from self._records(sample, iter(()))
            raise
        if sample:
            yield from self._records(sample, items)

    def _records(self, sample: Sequence[object], rest: Iterator[object]) -> Iterator[str]:
        columns: dict[str, None] = {}
        for record in map(_as_record, sample):
            add_columns(columns, record)
        call = self._call
        header = tuple(columns) if sample else record_fields(call.tool, call.options.concise)

        def rows() -> Iterator[list[object]]:
            for record in map(_as_record, chain(sample, rest)):
                unknown = record.keys() - columns.keys()
                if unknown:
                    self._warn_about_keys(unknown)
                yield [record.get(name) for name in header]

        return self._rows(header, rows()) if header else iter(())

    def _rows(self, header: tuple[str, ...], rows: Iterable[Iterable[object]]) -> Iterator[str]:
        yield self._row(header)
        if self._markdown:
            yield f"|{' --- |' * len(header)}"
        for row in rows:
            yield self._row(row)

    def _row(self, values: Iterable[object]) -> str:
        if self._markdown:
            return f"| {' | '.join([_markdown_cell(value) for value in values])} |"
        # Most readers skip an empty line, so a single empty cell is written as `""`.
        return ",".join([_csv_cell(value) for value in values]) or '""'

    def _warn_about_keys(self, unknown: set[str]) -> None:
        """Report keys that have no column, each once and only the first ones by name."""
        named, warnings = self._keys_without_column, self._call.warnings
        if len(named) > _MAX_NAMED_KEYS or unknown <= named:
            return
        new_names = sorted(unknown - named)[: _MAX_NAMED_KEYS + 1 - len(named)]
        named.update(new_names)
        if len(named) > _MAX_NAMED_KEYS:
            *new_names, _ = new_names
            new_names.append("other keys")
        warnings.append(f"the table has no column for {', '.join(new_names)}")


def _as_record(item: object) -> dict[str, object]:
    return item if is_object(item) else {"value": item}


def _cell_text(value: object) -> str:
    """Return the text of a cell: a string as it is, null as nothing, the rest as JSON."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    return repr(value) if type(value) in (int, float) else encode(value, []).decode()


# ------------------------------------------------------------------ CSV

_CSV_QUOTED = frozenset(',"\r\n')


def _csv_cell(value: object) -> str:
    text = _cell_text(value)
    if value is None or (text and _CSV_QUOTED.isdisjoint(text)):
        return text
    return f'"{text.replace(chr(34), chr(34) * 2)}"'


# ------------------------------------------------------------------ Markdown

_PAIRED_MARKUP = "*_~`"
_MARKUP = frozenset(f"{_PAIRED_MARKUP}\\|<[&\r\n")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\n")


def _markdown_cell(value: object) -> str:
    """Return the text of a cell on one line, with markup escaped."""
    text = _printable_text(value)
    if _MARKUP.isdisjoint(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    paired = {char for char in _PAIRED_MARKUP if text.count(char) > 1}
    escaped = [f"\\{char}" if _is_markup(text, i, paired) else char for i, char in enumerate(text)]
    return "".join(escaped).replace("\n", "<br>")


def _is_markup(text: str, i: int, paired: set[str]) -> bool:
    """True if the character at index `i` has to be escaped as markup."""
    char, before, after = text[i], text[i - 1 : i], text[i + 1 : i + 2]
    if char == "_" and before.isalnum() and after.isalnum():
        return False
    if char == "\\":
        return after in _PUNCTUATION
    if char == "<":
        return after.isalpha() or after in ("/", "!", "?")
    if char == "&":
        return after.isalnum() or after == "#"
    return char == "|" or char in paired or (char == "[" and "](" in text[i:])


def _printable_text(value: object) -> str:
    """Return the text of a value, with control characters escaped."""
    text = _cell_text(value)
    if text.isprintable():
        return text
    return text.translate(EscapeTable(keep="\t\n\r"))


# ------------------------------------------------------------------ record types


def has_fixed_fields(tool: Tool) -> bool:
    """True if the record type of a tool gives all records the same fields."""
    record_type = _record_type(tool)
    if record_type in (str, int, float, bool):
        return True
    if hasattr(record_type, "__required_keys__"):
        # `__optional_keys__` does not contain a NotRequired key if its annotation is a string.
        hints = map(str, getattr(record_type, "__annotations__", {}).values())
        return not record_type.__optional_keys__ and not any(
            ["NotRequired" in hint for hint in hints]
        )
    if hasattr(record_type, "model_fields"):
        return record_type.model_config.get("extra") != "allow"
    return hasattr(record_type, "__dataclass_fields__")


def record_fields(tool: Tool, concise: bool) -> tuple[str, ...]:
    """Return the field names of a tool's record type; empty if it declares none."""
    record_type = _record_type(tool)
    if hasattr(record_type, "model_fields") or concise:
        from tooli.schema.detail_fields import is_detail
        from tooli.schema.json_schema import result_schema

        parts = result_schema(record_type).get("properties", {})
        return tuple([name for name in parts if not concise or not is_detail(parts[name])])
    if hasattr(record_type, "__required_keys__"):
        return tuple(record_type.__annotations__)
    if hasattr(record_type, "__dataclass_fields__"):
        return tuple([field.name for field in sys.modules["dataclasses"].fields(record_type)])
    return ()


def _record_type(tool: Tool) -> Any:
    """Return the type of the items in the list or stream that a tool returns."""
    type_arguments = getattr(return_annotation(tool), "__args__", ())
    return type_arguments[0] if type_arguments else None
