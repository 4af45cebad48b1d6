r"""Plain output for grep, awk, cut and xargs: no colour, no boxes, one record per line.

    [{"path": "a.py", "size": 1}, …]   a.py⇥1        columns separated by one TAB, no header
    ["a.py", "b.py"]                   a.py          one per line
    {"name": "tooli", "tags": ["x"]}   tags⇥["x"]    key and value
    "any text"                         any text      unchanged
    None, [], {}                                     nothing

There is **no header line**, so that `wc -l` counts records. **Columns** are the keys of the first
record in their order. A key that first appears later gets a new column at the end. A column
therefore has the same key on every line, no value is dropped, and each line is written before the
next record is read. A record that lacks a key has an empty cell. There are at most 1000 columns;
the other keys and values of a record are one JSON object at the end of its line.

**Cells**: None is empty, booleans are `true` and `false`, a nested list or object is compact
JSON. Control characters are escaped as `\n`, `\t`, `\r` or `\xNN` (`\uNNNN` for U+2028, U+2029 and
lone surrogates; a byte of a file name that is not UTF-8 is escaped as `\xNN`). A backslash is not
escaped, so that JSON cells stay JSON. The escapes cannot be reversed: use `--json` to get exact
values.

With **`--print0`** (`end="\0"`), records end with NUL and may contain newlines. Only NUL is
escaped, and TAB within columns.
"""

from __future__ import annotations

import sys

from tooli.errors import PartialFailure
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeGuard

    from tooli.core.call import Call

    Cell = Callable[[object], str]

MAX_COLUMNS = 1000
"""Maximum number of columns of a table of records."""


def write_records(value: object, call: Call, end: str) -> None:
    """Write a result to stdout; the renderer of mode `plain`."""
    write_plain(value, sys.stdout.write, end=end)


def write_plain(value: object, write: Callable[[str], object], *, end: str = "\n") -> None:
    """Call `write` with each record of `value` as soon as it is known, followed by `end`.

    A string that already ends in `end` gets no second one, so the content of a file is unchanged.
    """
    if isinstance(value, str) and value.endswith(end):
        value = value[: -len(end)]
    for line in plain_lines(value, end=end):
        write(line + end)


def plain_lines(value: object, *, end: str = "\n") -> Iterator[str]:
    """Yield the records of `value` as text, without `end`.

    `value` may be an iterator of records: they are read one at a time, and none is kept.
    A string is one record.
    """
    table, text_table = (
        (_NUL_CELL_ESCAPES, _NUL_TEXT_ESCAPES)
        if end == "\0"
        else (_CONTROL_ESCAPES, _CONTROL_ESCAPES)
    )

    def cell(item: object) -> str:
        return _format_cell(item, table)

    if value is None:
        return
    if isinstance(value, str):
        yield value.translate(text_table) if end == "\0" else value
    elif is_object(value):
        for key, item in value.items():
            yield f"{cell(key)}\t{cell(item)}"
    elif is_iterable(value):
        yield from _format_records(value, cell, lambda item: _format_cell(item, text_table))
    else:
        yield cell(value)


def _format_records(records: Iterable[object], cell: Cell, text: Cell) -> Iterator[str]:
    columns: dict[str, None] = {}
    for record in records:
        if is_object(record):
            add_columns(columns, record)
            cells = [cell(record.get(key)) for key in columns]
            if not record.keys() <= columns.keys():
                cells.append(cell({k: v for k, v in record.items() if k not in columns}))
            yield "\t".join(cells)
        elif is_list(record):
            yield "\t".join([cell(item) for item in record])
        else:
            yield text(record)


def add_columns(columns: dict[str, None], record: Mapping[str, object]) -> None:
    """Add the keys of a record to the columns of a table, up to MAX_COLUMNS."""
    if not record.keys() <= columns.keys():
        for key in record:
            if len(columns) >= MAX_COLUMNS:
                return
            columns[key] = None


def _format_cell(value: object, table: dict[int, str]) -> str:
    if isinstance(value, str):
        return value if value.isprintable() else value.translate(table)
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if is_object(value) or is_list(value):
        # Imported here because most output has no nested cells, and json takes milliseconds.
        from json import dumps

        return dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES)
    return str(value)


def humanize(value: object) -> str:
    """Return a value as text for a person: yes, no, a dash for null, `3 items`."""
    if value is None:
        return "–"
    if value is True or value is False:
        return "yes" if value else "no"
    if not is_object(value) and not is_list(value):
        return str(value)
    noun = "field" if is_object(value) else "item"
    return f"{len(value)} {noun}{'s' if len(value) > 1 else ''}" if value else "none"


def summarize(value: object, max_chars: int | None = 40) -> str:
    """Return a nested value on one line: `a, b, +3 more`, `name: x` or `9 items`.

    `max_chars=None` means no limit.
    """
    if is_object(value):
        pairs = [(f"{name}: ", item) for name, item in value.items()]
    elif is_list(value) and not any(is_object(item) or is_list(item) for item in value):
        pairs = [("", item) for item in value]
    else:
        return humanize(value)
    shown: list[str] = []
    for name, item in pairs:
        text = name + ('""' if item == "" else humanize(item))
        if max_chars is None:
            shown.append(text)
            continue
        if shown and len(text) > max_chars:
            return ", ".join([*shown, f"+{len(pairs) - len(shown)} more"])
        shown.append(text if len(text) <= max_chars else text[: max_chars - 1] + "…")
        max_chars -= len(text) + 2
    return ", ".join(shown) or humanize(value)


def is_iterable(value: object) -> TypeGuard[Iterable[object]]:
    """True if `value` can be iterated over."""
    return hasattr(value, "__iter__")


class EscapeTable(dict[int, str]):
    r"""A table for `str.translate` that escapes control characters and keeps the rest.

    Entries are added on first use. `keep` lists control characters that are not escaped. `extra`
    lists other characters that are escaped, which must not be ASCII. With `json`, every escape is
    valid in JSON.
    """

    def __init__(self, *, keep: str = "", extra: str = "", json: bool = False) -> None:
        super().__init__({ord(char): char for char in keep})
        self.extra = extra
        self.json = json

    def __missing__(self, code: int) -> str:
        char = chr(code)
        # `str.splitlines` and some readers take U+2028 and U+2029 for line breaks.
        unsafe = code < 0x20 or 0x7F <= code < 0xA0 or char in "\u2028\u2029"
        if unsafe or 0xD800 <= code <= 0xDFFF or char in self.extra:
            char = self._escape(code)
        self[code] = char
        return char

    def _escape(self, code: int) -> str:
        if self.json:
            return f"\\u{code:04x}"
        if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python represents it
            return f"\\x{code - 0xDC00:02x}"
        return chr(code).encode("unicode_escape").decode()


_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SINGLE_LINE_ESCAPES = EscapeTable(extra=_BIDI_CONTROLS)
MULTILINE_ESCAPES = EscapeTable(keep="\n\t", extra=_BIDI_CONTROLS)
"""Escapes in text for a person. Characters that reorder text (bidi controls) are escaped too."""
_CONTROL_ESCAPES = EscapeTable()
_JSON_ESCAPES = EscapeTable(json=True)
_NUL_TEXT_ESCAPES = {0: "\\x00"}
_NUL_CELL_ESCAPES = {0: "\\x00", 9: "\\t"}


def failed_items(error_code: str, details: object) -> Iterator[tuple[str, str, str]]:
    """Yield the item, the message and the code of each failure of a partial success."""
    if error_code != PartialFailure.code or not is_object(details):
        return
    errors, summary = details.get("errors"), details.get("summary")
    failures = [entry for entry in errors if is_object(entry)] if is_list(errors) else []
    for entry in failures:
        item = entry.get("item")
        text = "" if item is None else summarize(item, None)
        yield text, str(entry.get("message", "")), f"[{entry.get('code')}]"
    count = summary.get("failed") if is_object(summary) else None
    if isinstance(count, int) and count > len(failures):
        yield "", f"and {count - len(failures)} more", ""
