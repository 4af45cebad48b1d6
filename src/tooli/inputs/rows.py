"""Inputs that are read item by item, in constant memory: lines, JSONL, JSON arrays, CSV."""

from __future__ import annotations

from tooli.contract.fit import Misfit
from tooli.contract.tool import MISSING
from tooli.inputs.formats import SPACE, fits_plainly, format_of, malformed, unfit

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader, TextIOWrapper
    from typing import Any, TypeAlias

    from tooli.inputs.source import Input

    Check: TypeAlias = Callable[[Any, int], Any]

_CHUNK = 1 << 16


def lines(source: Input) -> Iterator[str]:
    """The lines of an input, without their ends; what stands between NULs after `--null`."""
    if source.nul:
        yield from _records(source)
        return
    with source.open() as file:
        try:
            for line in file:
                yield line[:-1] if line[-1:] == "\n" else line
        except UnicodeDecodeError as failure:
            raise source.not_text(failure) from None


def _records(source: Input) -> Iterator[str]:
    with source.open_bytes() as file:
        kept = b""
        while data := file.read1(_CHUNK):
            *whole, kept = (kept + data).split(b"\0")
            for record in whole:
                yield record.decode("utf-8", "surrogateescape")
        if kept:
            yield kept.decode("utf-8", "surrogateescape")


def chunks(source: Input) -> Iterator[bytes]:
    """The bytes of an input, some at a time, as they come."""
    with source.open_bytes() as file:
        while data := file.read1(_CHUNK):
            yield data


def rows(source: Input, item: Any) -> Iterator[Any]:
    """The rows of an input, each one checked: objects of JSONL, of a JSON array, or of CSV."""
    with source.open_bytes() as file:
        head: bytes = file.peek(4096)
        kind = format_of(source, head)
        if kind == "json" and head.lstrip(SPACE)[:1] != b"[":
            kind = "jsonl"
        if kind == "yaml":
            raise malformed(source, "YAML does not come row by row: give JSONL or CSV")
        try:
            if kind == "json":
                yield from _array(source, file, _checker(source, item))
            elif kind == "jsonl":
                yield from _json_lines(source, file, _checker(source, item))
            else:
                yield from _csv(source, file, kind, item)
        except UnicodeDecodeError as failure:
            raise source.not_text(failure) from None


def _checker(source: Input, item: Any, sparse: bool = False) -> Check:
    """What checks a row, and says at which line it is not what is wanted."""
    from tooli.contract.models import validate

    optional: frozenset[str] = frozenset()
    if sparse and item not in (dict, list) and not fits_plainly(item, {}):
        optional = _optional_fields(item)

    def check(row: Any, line: int) -> Any:
        if fits_plainly(item, row):
            return row
        if optional:  # an empty cell of CSV says nothing
            row = {k: v for k, v in row.items() if v != "" or k not in optional}
        try:
            return validate(item, row)
        except Misfit as misfit:
            raise unfit(source, misfit, line) from None

    return check


def _optional_fields(item: Any) -> frozenset[str]:
    from tooli.contract.schema import annotation_schema

    schema = annotation_schema(item)
    return frozenset(schema.get("properties", ())) - frozenset(schema.get("required", ()))


# ------------------------------------------------------------------ JSON


def _json_lines(source: Input, file: BufferedReader, check: Check) -> Iterator[Any]:
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
            raise malformed(
                source, f"not valid JSON: {failure.msg}", number, failure.colno
            ) from None
        except RecursionError:
            raise malformed(source, "it is nested too deeply", number) from None
        yield check(row, number)


def _array(source: Input, file: BufferedReader, check: Check) -> Iterator[Any]:
    """The items of one long JSON array, while the rest of it is still to come."""
    import io

    with io.TextIOWrapper(file, "utf-8-sig") as text:
        window = _Window(source, text)
        window.skip()
        window.at += 1  # the bracket
        mark = "]" if window.skip() == "]" else ","
        window.at += mark == "]"
        while mark == ",":
            window.skip()
            line = window.line()
            yield check(window.value(), line)
            mark = window.skip()
            window.at += 1
        if mark != "]":
            raise malformed(source, "not valid JSON: ',' or ']' is missing", window.line())
        if window.skip():
            raise malformed(source, "not valid JSON: something follows the array", window.line())


class _Window:
    """The part of a text that is being read."""

    def __init__(self, source: Input, file: TextIOWrapper) -> None:
        import json

        self.text = ""
        self.at = 0
        self._source = source
        self._file = file
        self._decode = json.JSONDecoder().raw_decode
        self._wrong = json.JSONDecodeError
        self._lines = 1
        self._counted = 0  # how much of the text is in that number
        self._size = _CHUNK

    def line(self) -> int:
        """The number of the line that it is at."""
        self._lines += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._lines

    def _more(self) -> bool:
        self.line()
        self.text = self.text[self.at :]
        self.at = self._counted = 0
        data = self._file.read(self._size)
        self.text += data
        return bool(data)

    def skip(self) -> str:
        """Go to the next character that is no space; "" at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def value(self) -> Any:
        """The value that begins here; as much is read as it needs."""
        self._size = _CHUNK
        line, said = self.line(), "it ends too early"
        while True:
            failure: Any = None
            try:
                value, end = self._decode(self.text, self.at)
                if end < len(self.text):  # a number may go on
                    self.at = end
                    return value
            except self._wrong as wrong:
                failure, said = wrong, wrong.msg
                line = self.line() + self.text.count("\n", self.at, wrong.pos)
            except RecursionError:
                raise malformed(self._source, "it is nested too deeply", self.line()) from None
            self._size *= 2  # so that a long value is not tried too often
            if self._is_plain(failure) or not self._more():
                raise malformed(self._source, f"not valid JSON: {said}", line)

    def _is_plain(self, failure: Any) -> bool:
        """Whether a value is wrong whatever may follow: the mistake is not at the end."""
        if failure is None or failure.msg.startswith("Unterminated"):
            return False
        return failure.pos < len(self.text) - 16


# ------------------------------------------------------------------ CSV


def _csv(source: Input, file: BufferedReader, kind: str, item: Any) -> Iterator[Any]:
    import csv
    import io

    head: bytes = file.peek(4096).partition(b"\n")[0]
    mark = "\t" if kind == "tsv" else ","
    if not kind and b"," not in head:
        mark = "\t" if b"\t" in head else ";" if b";" in head else ","
    listed = getattr(item, "__origin__", item) in (list, tuple)
    check = _checker(source, item, sparse=True)
    names: list[str] | None = None
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=mark, strict=True)
        try:
            for cells in reader:
                if listed:
                    yield check(cells, reader.line_num)
                elif names is None:
                    names = _header(source, cells, reader.line_num) if cells else None
                elif cells:
                    yield check(_row(source, names, cells, reader.line_num), reader.line_num)
        except csv.Error as failure:
            raise malformed(source, f"not valid CSV: {failure}", reader.line_num) from None


def _header(source: Input, cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), MISSING)
    if twice is not MISSING:
        raise malformed(source, f"the column {twice!r} stands twice in the first row", line)
    return names


def _row(source: Input, names: list[str], cells: list[str], line: int) -> dict[str, str]:
    if len(cells) != len(names):
        said = f"{len(cells)} cells where the first row has {len(names)}"
        raise malformed(source, said, line)
    return dict(zip(names, cells, strict=True))
