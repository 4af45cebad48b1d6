r"""The value for grep, awk, cut and xargs: no colour, no boxes, one record per line.

    [{"path": "a.py", "size": 1}, …]   a.py⇥1        columns separated by one TAB, no head
    ["a.py", "b.py"]                   a.py          one per line
    {"name": "tooli", "tags": ["x"]}   tags⇥["x"]    key and value
    "any text"                         any text      untouched
    None, [], {}                                     nothing at all

**No head line**, as in `gh` when it is piped: `wc -l` counts records and nothing needs
skipping. **Columns** are the keys of the first record in their order; a key that first turns
up later takes the next column at the end and keeps it. So column 3 means the same thing on
every line, nothing is dropped, and the first line is out before the last record is made.
A record that lacks a key has an empty cell there.

**Cells**: None is empty, booleans are `true` and `false`, a nested list or object is compact
JSON. What would break a line or a terminal is written `\n`, `\t`, `\r` or `\xNN` (`\uNNNN` for
U+2028, U+2029 and lone surrogates; a byte of a file name that is not UTF-8 is its `\xNN`).
A backslash is left alone, so that patterns can be grepped and JSON cells stay JSON: the
escapes keep lines whole, they are not made to be undone. That is what `--json` is for.

**`--print0`** (`end="\0"`): newlines are harmless there, so values stay as they are, byte for
byte, apart from NUL, and TAB within columns.
"""

from __future__ import annotations

from tooli.contract.jsonable import is_list, is_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeGuard

    from tooli.surfaces.cli.main import Session

    Cell = Callable[[object], str]


def line_end(session: Session) -> str:
    """What ends a record: a newline, or NUL after `--print0`."""
    return "\0" if session.line.options.get("print0") else "\n"


def write_plain(value: object, write: Callable[[str], object], *, end: str = "\n") -> None:
    """Hand each record of `value` to `write` as soon as it is known, finished by `end`.

    A text that already ends in `end` gets no second one: a file's content comes out as it is.
    """
    if isinstance(value, str) and value.endswith(end):
        value = value[: -len(end)]
    for line in plain_lines(value, end=end):
        write(line + end)


def plain_lines(value: object, *, end: str = "\n") -> Iterator[str]:
    """The records of `value` as text, without their `end`.

    `value` may also be an iterator of records: they are taken one at a time, and none is kept.
    A bare string is one record, whatever is in it.
    """
    table, bare = (_NUL_CELL, _NUL_BARE) if end == "\0" else (_VISIBLE, _VISIBLE)

    def cell(item: object) -> str:
        return _cell(item, table)

    if value is None:
        return
    if isinstance(value, str):
        yield value.translate(bare) if end == "\0" else value
    elif is_object(value):
        for key, item in value.items():
            yield f"{cell(key)}\t{cell(item)}"
    elif is_iterable(value):
        yield from _rows(value, cell, lambda item: _cell(item, bare))
    else:
        yield cell(value)


def _rows(records: Iterable[object], cell: Cell, bare: Cell) -> Iterator[str]:
    columns: dict[str, None] = {}
    for record in records:
        if is_object(record):
            if not record.keys() <= columns.keys():
                columns.update(dict.fromkeys(record))
            yield "\t".join([cell(record.get(key)) for key in columns])
        elif is_list(record):
            yield "\t".join([cell(item) for item in record])
        else:
            yield bare(record)


def _cell(value: object, table: dict[int, str]) -> str:
    if isinstance(value, str):
        return value if value.isprintable() else value.translate(table)
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if is_object(value) or is_list(value):
        # Only here, because most output has no nested cells and json costs milliseconds.
        from json import dumps

        return dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_IN_JSON)
    return str(value)


def in_words(value: object) -> str:
    """A value as a person says it: yes, no, a dash for null, `3 items`, or its text."""
    if value is None:
        return "–"
    if value is True or value is False:
        return "yes" if value else "no"
    if not is_object(value) and not is_list(value):
        return str(value)
    noun = "field" if is_object(value) else "item"
    return f"{len(value)} {noun}{'s' if len(value) > 1 else ''}" if value else "none"


def summary(value: object, room: int | None = 40) -> str:
    """A nested value in words, as many as there is room: `a, b, +3 more`, `name: x` or `9 items`.

    `room` is in characters; None is as much as it takes.
    """
    if is_object(value):
        pairs = [(f"{name}: ", item) for name, item in value.items()]
    elif is_list(value) and not any(is_object(item) or is_list(item) for item in value):
        pairs = [("", item) for item in value]
    else:
        return in_words(value)
    words: list[str] = []
    for name, item in pairs:
        word = name + ('""' if item == "" else in_words(item))
        if room is None:
            words.append(word)
            continue
        if words and len(word) > room:
            return ", ".join([*words, f"+{len(pairs) - len(words)} more"])
        words.append(word if len(word) <= room else word[: room - 1] + "…")
        room -= len(word) + 2
    return ", ".join(words) or in_words(value)


def is_iterable(value: object) -> TypeGuard[Iterable[object]]:
    """Whether there are records to be taken from `value`, one after the other."""
    return hasattr(value, "__iter__")


class Escapes(dict[int, str]):
    r"""A table for `str.translate` that shows control characters and leaves the rest alone.

    It fills itself with the characters it meets. `keep` and `more` are characters that are not
    to be, or also to be, shown; with `json` every escape is one that JSON knows.
    """

    def __init__(self, *, keep: str = "", more: str = "", json: bool = False) -> None:
        super().__init__({ord(char): char for char in keep})
        self.more = more
        self.json = json

    def __missing__(self, code: int) -> str:
        char = chr(code)
        # Str's own idea of a line break is wider than Unix's, and some readers share it.
        unsafe = code < 0x20 or 0x7F <= code < 0xA0 or char in "\u2028\u2029"
        if unsafe or 0xD800 <= code <= 0xDFFF or char in self.more:
            char = self._show(code)
        self[code] = char
        return char

    def _show(self, code: int) -> str:
        if self.json:
            return f"\\u{code:04x}"
        if 0xDC80 <= code <= 0xDCFF:  # how Python spells a byte that is not UTF-8
            return f"\\x{code - 0xDC00:02x}"
        return {9: "\\t", 10: "\\n", 13: "\\r"}.get(
            code, f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
        )


_REORDERING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ONE_LINE = Escapes(more=_REORDERING)
MANY_LINES = Escapes(keep="\n\t", more=_REORDERING)
"""What a person sees of a text: marks that reorder it are shown, as well."""
_VISIBLE = Escapes()
_IN_JSON = Escapes(json=True)
_NUL_BARE = {0: "\\x00"}
_NUL_CELL = {0: "\\x00", 9: "\\t"}
