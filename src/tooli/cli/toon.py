"""TOON, Token-Oriented Object Notation: the data model of JSON in fewer tokens.

    {"ok": true, "result": [{"path": "a.py", "size": 1}, {"path": "b.py", "size": 2}]}

    ok: true
    result[2]{path,size}:
      a.py,1
      b.py,2

The output follows version 4 of https://github.com/toon-format/spec, with its defaults: an indent of
two spaces, and commas as delimiters. A list of objects with equal keys is written as a table. So is
an object whose values are objects with equal keys. A string is quoted if it would be read as
something else without quotes. Integers keep all their digits.
"""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject

    Columns: TypeAlias = "list[tuple[str, Columns | None]]"

_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in range(32)},
    9: "\\t",
    10: "\\n",
    13: "\\r",
    34: '\\"',
    92: "\\\\",
}
_QUOTED = frozenset(':"\\[]{},').union(map(chr, range(32)))
_KEYWORDS = frozenset(("true", "false", "null"))


def encode(value: object) -> str:
    """Return a value of JSON types as a TOON document, without a newline at its end."""
    writer = _Writer()
    if is_object(value):
        if not writer.write_keyed_table("", value, 0):
            writer.write_fields(value, 0)
    elif is_list(value):
        if value:
            writer.write_array("", value, 0)
        else:
            writer.lines.append("[]")
    else:
        text = format_scalar(value)
        # At the start of a document, U+FEFF would be read as a byte order mark.
        writer.lines.append(f'"{text}"' if text[0] == "\ufeff" else text)
    return "\n".join(writer.lines)


class _Writer:
    """Collects the lines of a document."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_fields(self, value: JsonObject, depth: int) -> None:
        """Write the fields of an object."""
        pad = "  " * depth
        for name, item in value.items():
            head = pad + quote_key(name)
            if is_object(item):
                if not self.write_keyed_table(head, item, depth):
                    self.lines.append(f"{head}:")
                    self.write_fields(item, depth + 1)
            elif not is_list(item):
                self.lines.append(f"{head}: {format_scalar(item)}")
            elif item:
                self.write_array(head, item, depth)
            else:
                self.lines.append(f"{head}: []")

    def write_keyed_table(self, head: str, value: JsonObject, depth: int) -> bool:
        """Write an object as a table if its values have equal keys; otherwise return False."""
        columns = shared_columns(list(value.values())) if len(value) > 1 else None
        if columns is None:
            return False
        self.lines.append(f"{head}[{len(value)}:]{{{_format_columns(columns)}}}:")
        pad = "  " * (depth + 1)
        for name, row in value.items():
            self.lines.append(f"{pad}{quote_key(name)}: {','.join(_row_cells(row, columns))}")
        return True

    def write_array(
        self, head: str, items: Sequence[Any], depth: int, *, named: bool = True
    ) -> None:
        """Write a list: on one line, as a table, or one item per line.

        A list within a list has no name, and is never a table.
        """
        size = len(items)
        if not any([is_object(item) or is_list(item) for item in items]):
            line = f"{head}[{size}]: {','.join([format_scalar(item) for item in items])}"
            self.lines.append(line if items else line[:-1])
            return
        columns = shared_columns(items) if named else None
        if columns is None:
            self.lines.append(f"{head}[{size}]:")
            for item in items:
                self.write_item(item, depth + 1)
            return
        self.lines.append(f"{head}[{size}]{{{_format_columns(columns)}}}:")
        pad = "  " * (depth + 1)
        self.lines += [pad + ",".join(_row_cells(row, columns)) for row in items]

    def write_item(self, item: object, depth: int) -> None:
        """Write one item of a list, after a hyphen."""
        pad = "  " * depth
        if is_list(item):
            self.write_array(f"{pad}- ", item, depth, named=False)
        elif not is_object(item):
            self.lines.append(f"{pad}- {format_scalar(item)}")
        elif item:
            first = len(self.lines)
            self.write_fields(item, depth + 1)  # the hyphen replaces the indentation
            self.lines[first] = f"{pad}- {self.lines[first][len(pad) + 2 :]}"
        else:
            self.lines.append(f"{pad}-")


# ------------------------------------------------------------------ tables


def shared_columns(rows: Sequence[Any]) -> Columns | None:
    """Return the columns that all rows share, nested ones included; None if they differ."""
    first = rows[0]
    if not is_object(first) or not first:
        return None
    if not all([is_object(row) and row.keys() == first.keys() for row in rows]):
        return None
    columns: Columns = []
    for name in first:
        values = [row[name] for row in rows]
        if not any([is_object(value) or is_list(value) for value in values]):
            columns.append((name, None))
            continue
        inner = shared_columns(values)
        if inner is None:
            return None
        columns.append((name, inner))
    return columns


def _format_columns(columns: Columns) -> str:
    return ",".join(
        [
            quote_key(name) if inner is None else f"{quote_key(name)}{{{_format_columns(inner)}}}"
            for name, inner in columns
        ]
    )


def _row_cells(row: JsonObject, columns: Columns) -> list[str]:
    cells: list[str] = []
    for name, inner in columns:
        if inner is None:
            cells.append(format_scalar(row[name]))
        else:
            cells += _row_cells(row[name], inner)
    return cells


# ------------------------------------------------------------------ keys and scalars


def quote_key(name: str) -> str:
    """Return a key, quoted unless it is a plain name; dots are allowed."""
    plain = name.isascii() and name.replace(".", "_").isidentifier() and name[0] != "."
    return name if plain else f'"{name.translate(_ESCAPES)}"'


def format_scalar(value: object) -> str:
    """Return a string, a number, true, false or null as TOON."""
    if isinstance(value, str):
        text = str.__str__(value)
        return f'"{text.translate(_ESCAPES)}"' if _needs_quotes(text) else text
    if value is True or value is False:
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int):
        return int.__repr__(value)
    return _format_float(value) if isinstance(value, float) else str(value)


def _needs_quotes(text: str) -> bool:
    """True if a string would be read as something else without quotes."""
    return (
        not text
        or text[0] in " -#"
        or text[-1] == " "
        or not _QUOTED.isdisjoint(text)
        or text in _KEYWORDS
        or (_is_digits(text[-1]) and _is_number(text))
    )


def _is_number(text: str) -> bool:
    mantissa, has_exponent, exponent = text.lower().partition("e")
    if has_exponent and not _is_digits(exponent[1:] if exponent[:1] in ("+", "-") else exponent):
        return False
    integer, dot, fraction = mantissa.removeprefix("+").partition(".")
    return _is_digits(integer) and (not dot or _is_digits(fraction))


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _format_float(number: float) -> str:
    """Return a float without an exponent, unless that would be long."""
    mantissa, has_exponent, exponent = float.__repr__(number).partition("e")
    if not has_exponent:
        return "0" if number == 0 else mantissa.removesuffix(".0")
    power = int(exponent)
    if not -7 < power < 21:
        return f"{mantissa}e{power:+d}"
    sign = "-" if number < 0 else ""
    integer, _, fraction = mantissa.removeprefix("-").partition(".")
    if power > 0:
        return f"{sign}{integer}{fraction.ljust(power, '0')}"
    return f"{sign}0.{'0' * (-power - 1)}{integer}{fraction}"
