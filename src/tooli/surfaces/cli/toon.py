"""TOON, Token-Oriented Object Notation: a value in few tokens, and still easy to read.

    {"ok": true, "result": [{"path": "a.py", "size": 1}, {"path": "b.py", "size": 2}]}

    ok: true
    result[2]{path,size}:
      a.py,1
      b.py,2

Version 4 of https://github.com/toon-format/spec, with its defaults: two spaces, commas. Lists of
like objects are tables, and so are objects of like objects; texts have quotes where they would
read as something else without. Integers keep all their digits.
"""

from __future__ import annotations

from tooli.call.cleaning import cleaned, presentable
from tooli.call.envelope import meta_of
from tooli.call.model import Ok
from tooli.contract.jsonable import is_list, is_object, jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from tooli.call.model import Call, Outcome

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
_WORDS = frozenset(("true", "false", "null"))


def document(outcome: Outcome, call: Call, milliseconds: Callable[[], int]) -> bytes:
    """An outcome in its envelope, as JSON has it, in TOON."""
    envelope: dict[str, Any] = {"ok": isinstance(outcome, Ok)}
    if not isinstance(outcome, Ok):
        error = jsonable(outcome.error.to_dict(), call.warnings)
        envelope["error"] = cleaned(error, call, call.warnings, "error")
    elif outcome.value is not None:
        envelope["result"] = presentable(outcome.value, call)
    envelope["meta"] = cleaned(jsonable(meta_of(call, milliseconds()), []), call, [], "")
    text = encode(envelope)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair has no place in TOON, not even escaped
        return encode(_spelled(envelope)).encode()


def encode(value: Any) -> str:
    """A value of JSON's own types as a document, without a newline at its end."""
    writer = _Writer()
    if is_object(value):
        if not writer.keyed("", value, 0):
            writer.fields(value, 0)
    elif is_list(value):
        if value:
            writer.array("", value, 0)
        else:
            writer.lines.append("[]")
    else:
        text = scalar(value)
        # At the very start a byte order mark would be taken for one.
        writer.lines.append(f'"{text}"' if text[0] == "\ufeff" else text)
    return "\n".join(writer.lines)


class _Writer:
    """The lines of a document, one below the other."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def fields(self, value: dict[str, Any], depth: int) -> None:
        """An object's fields, at a depth."""
        pad = "  " * depth
        for name, item in value.items():
            head = pad + key(name)
            if is_object(item):
                if not self.keyed(head, item, depth):
                    self.lines.append(f"{head}:")
                    self.fields(item, depth + 1)
            elif not is_list(item):
                self.lines.append(f"{head}: {scalar(item)}")
            elif item:
                self.array(head, item, depth)
            else:
                self.lines.append(f"{head}: []")

    def keyed(self, head: str, value: dict[str, Any], depth: int) -> bool:
        """An object of like objects as a table, a row for each key; False where it is none."""
        columns = columns_of(list(value.values())) if len(value) > 1 else None
        if columns is None:
            return False
        self.lines.append(f"{head}[{len(value)}:]{{{_names(columns)}}}:")
        pad = "  " * (depth + 1)
        for name, row in value.items():
            self.lines.append(f"{pad}{key(name)}: {','.join(_cells(row, columns))}")
        return True

    def array(self, head: str, items: Sequence[Any], depth: int, *, named: bool = True) -> None:
        """A list: its items on one line, as a table, or one below the other.

        A list that is itself an item of a list has no name, and may not be a table.
        """
        size = len(items)
        if not any([is_object(item) or is_list(item) for item in items]):
            line = f"{head}[{size}]: {','.join([scalar(item) for item in items])}"
            self.lines.append(line if items else line[:-1])
            return
        columns = columns_of(items) if named else None
        if columns is None:
            self.lines.append(f"{head}[{size}]:")
            for item in items:
                self.item(item, depth + 1)
            return
        self.lines.append(f"{head}[{size}]{{{_names(columns)}}}:")
        pad = "  " * (depth + 1)
        self.lines += [pad + ",".join(_cells(row, columns)) for row in items]

    def item(self, item: Any, depth: int) -> None:
        """One item of a list, behind a hyphen."""
        pad = "  " * depth
        if is_list(item):
            self.array(f"{pad}- ", item, depth, named=False)
        elif not is_object(item):
            self.lines.append(f"{pad}- {scalar(item)}")
        elif item:
            first = len(self.lines)
            self.fields(item, depth + 1)  # the hyphen stands where the first one is indented
            self.lines[first] = f"{pad}- {self.lines[first][len(pad) + 2 :]}"
        else:
            self.lines.append(f"{pad}-")


# ------------------------------------------------------------------ tables


def columns_of(rows: Sequence[Any]) -> Columns | None:
    """The columns that rows share, each with the columns in it; None where they are no table."""
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
        inner = columns_of(values)
        if inner is None:
            return None
        columns.append((name, inner))
    return columns


def _names(columns: Columns) -> str:
    return ",".join(
        [
            key(name) if inner is None else f"{key(name)}{{{_names(inner)}}}"
            for name, inner in columns
        ]
    )


def _cells(row: dict[str, Any], columns: Columns) -> list[str]:
    cells: list[str] = []
    for name, inner in columns:
        if inner is None:
            cells.append(scalar(row[name]))
        else:
            cells += _cells(row[name], inner)
    return cells


# ------------------------------------------------------------------ words


def key(name: str) -> str:
    """A key, quoted unless it is a plain name; dots are plain."""
    plain = name.isascii() and name.replace(".", "_").isidentifier() and name[0] != "."
    return name if plain else f'"{name.translate(_ESCAPES)}"'


def scalar(value: Any) -> str:
    """A text, a number, true, false or null."""
    if isinstance(value, str):
        text = str.__str__(value)
        return f'"{text.translate(_ESCAPES)}"' if _reads_otherwise(text) else text
    if value is True or value is False:
        return "true" if value else "false"
    if value is None:
        return "null"
    return _decimal(value) if isinstance(value, float) else int.__repr__(value)


def _reads_otherwise(text: str) -> bool:
    """Whether a text without quotes would be something else."""
    return (
        not text
        or text[0] in " -#"
        or text[-1] == " "
        or not _QUOTED.isdisjoint(text)
        or text in _WORDS
        or (_is_digits(text[-1]) and _is_number(text))
    )


def _is_number(text: str) -> bool:
    mantissa, marked, exponent = text.lower().partition("e")
    if marked and not _is_digits(exponent[1:] if exponent[:1] in ("+", "-") else exponent):
        return False
    whole, dot, fraction = mantissa.removeprefix("+").partition(".")
    return _is_digits(whole) and (not dot or _is_digits(fraction))


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _decimal(number: float) -> str:
    """A float in plain digits, in the range where those are still short."""
    mantissa, marked, exponent = float.__repr__(number).partition("e")
    if not marked:
        return "0" if number == 0 else mantissa.removesuffix(".0")
    power = int(exponent)
    if not -7 < power < 21:
        return f"{mantissa}e{power:+d}"
    sign = "-" if number < 0 else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    if power > 0:
        return f"{sign}{whole}{fraction.ljust(power, '0')}"
    return f"{sign}0.{'0' * (-power - 1)}{whole}{fraction}"


def _spelled(value: Any) -> Any:
    """The value, with what is no Unicode in its texts written out as `\\udcff`."""
    if is_object(value):
        return {_spelled(name): _spelled(item) for name, item in value.items()}
    if is_list(value):
        return [_spelled(item) for item in value]
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value
