"""Python source, written: literals, docstrings and names, laid out as `ruff format` would.

Whatever an app says about itself goes through here, so nothing that it says can end a string.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

WIDTH = 100
"""The longest line."""

_INDENT = "    "
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Raw(str):
    """Source that is already written: it stands as it is among literals."""

    __slots__ = ()


# ------------------------------------------------------------------ texts


def text(value: str) -> str:
    """A string literal on one line."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join([_escaped(char, quote) for char in value]) + quote


def _escaped(char: str, quote: str = "") -> str:
    if char == quote:
        return f"\\{char}"
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)  # controls, marks that turn text around, halves of surrogate pairs
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def docstring(value: str, indent: str = "") -> str:
    """A docstring, with its quotes; what it says comes out again as it went in."""
    written = [_in_docstring(line.rstrip()) for line in value.strip().split("\n")]
    if len(written) == 1:
        last = written[0][-2:]
        if last[-1:] == '"' and last != '\\"':
            written[0] = f'{written[0][:-1]}\\"'
        return f'{indent}"""{written[0]}"""'
    rest = [f"{indent}{line}" if line else "" for line in written[1:]]
    return "\n".join([f'{indent}"""{written[0]}', *rest, f'{indent}"""'])


def _in_docstring(line: str) -> str:
    line = line.encode("utf-8", "replace").decode()  # half a surrogate pair cannot stand there
    return "".join([_escaped(char) for char in line]).replace('"""', '\\"\\"\\"')


def wrapped(value: str, indent: str = "", width: int = WIDTH) -> str:
    """Prose in lines; its own paragraphs stay."""
    from textwrap import fill

    paragraphs = value.split("\n")
    return "\n".join(
        [
            fill(line, width, initial_indent=indent, subsequent_indent=indent) if line else ""
            for line in paragraphs
        ]
    )


# ------------------------------------------------------------------ values


def literal(value: Any, depth: int = 0, before: int = 0, after: int = 1) -> str:
    """A value of JSON's types as source.

    It stands `depth` levels deep, with `before` characters in front of it on its line and
    `after` behind it.
    """
    flat = _flat(value)
    room = WIDTH - depth * len(_INDENT) - before - after
    if flat is not None and len(flat) <= room:
        return flat
    inner = _INDENT * (depth + 1)
    end = _INDENT * depth
    if isinstance(value, dict):
        rows = [_row(key, item, depth + 1) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return "{\n" + "".join([f"{inner}{row},\n" for row in rows]) + end + "}"
    if isinstance(value, (list, tuple)):
        items = [literal(item, depth + 1) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        opening, closing = "[]" if isinstance(value, list) else "()"
        return f"{opening}\n" + "".join([f"{inner}{item},\n" for item in items]) + end + closing
    if isinstance(value, str) and not isinstance(value, Raw):
        parts = _split(value, WIDTH - len(inner))
        if len(parts) > 1 or (parts and len(parts[0]) <= WIDTH - len(inner)):
            return "(\n" + "".join([f"{inner}{part}\n" for part in parts]) + end + ")"
    return flat or repr(value)


def _row(key: Any, item: Any, depth: int) -> str:
    name = literal(key)
    if isinstance(key, Raw):  # `**more`: it stands for pairs of its own
        return name
    return f"{name}: {literal(item, depth, len(name) + 2)}"


def _flat(value: Any) -> str | None:
    """The value on one line."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        parts = [
            str(key) if isinstance(key, Raw) else f"{_flat(key)}: {_flat(item)}"
            for key, item in value.items()  # pyright: ignore[reportUnknownVariableType]
        ]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([str(_flat(item)) for item in value]) + "]"  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple):
        inside = ", ".join([str(_flat(item)) for item in value])  # pyright: ignore[reportUnknownVariableType]
        return f"({inside},)" if len(value) == 1 else f"({inside})"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, float) and value - value != 0:  # not a number, or not a finite one
        return f'float("{value}")'
    return repr(value)


def _split(value: str, room: int) -> list[str]:
    """A long text as several literals, broken behind its spaces and newlines."""
    parts: list[str] = []
    rest = value
    while rest:
        count = _fitting(rest, room)
        parts.append(text(rest[:count]))
        rest = rest[count:]
    return parts


def _fitting(value: str, room: int) -> int:
    """How much of a text goes into one literal."""
    taken = 2
    last = 0
    for i, char in enumerate(value):
        taken += len(_escaped(char, '"'))
        if taken > room and last:
            return last
        if char in " \n":
            last = i + 1
            if char == "\n" and value[i + 1 : i + 2] != "\n":
                return last
    return len(value)


# ------------------------------------------------------------------ calls and signatures


def call(name: str, *values: Any, depth: int = 0, before: int = 0, **keywords: Any) -> str:
    """A call, one argument a line where it does not fit into one."""
    return _within(f"{name}(", ")", _arguments(values, keywords), depth, before)


def _arguments(values: Iterable[Any], keywords: Mapping[str, Any]) -> list[Callable[[int], str]]:
    found: list[Callable[[int], str]] = []
    for value in values:
        found.append(lambda depth, value=value: literal(value, depth))
    for key, value in keywords.items():
        found.append(
            lambda depth, key=key, value=value: f"{key}={literal(value, depth, len(key) + 1)}"
        )
    return found


def _within(
    opening: str, closing: str, parts: list[Callable[[int], str]], depth: int, before: int
) -> str:
    flat = opening + ", ".join([part(-1000) for part in parts]) + closing
    if "\n" not in flat and len(_INDENT) * depth + before + len(flat) <= WIDTH:
        return flat
    inner = _INDENT * (depth + 1)
    rows = [f"{inner}{part(depth + 1)},\n" for part in parts]
    return f"{opening}\n{''.join(rows)}{_INDENT * depth}{closing}"


def signature(name: str, params: list[str], returns: str) -> str:
    """The head of a function."""
    flat = f"def {name}({', '.join(params)}) -> {returns}:"
    if len(flat) <= WIDTH:
        return flat
    if params and len(_INDENT + ", ".join(params)) <= WIDTH:
        return f"def {name}(\n{_INDENT}{', '.join(params)}\n) -> {returns}:"
    return f"def {name}(\n" + "".join([f"{_INDENT}{p},\n" for p in params]) + f") -> {returns}:"


# ------------------------------------------------------------------ names


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """The name as Python can have it, unlike any that is taken; where it is one, itself."""
    from keyword import iskeyword, issoftkeyword

    made = "".join([char if char.isalnum() or char == "_" else "_" for char in name]) or "_"
    made = made if made.isidentifier() else f"_{made}"
    used = frozenset(taken)
    while made in used or iskeyword(made) or issoftkeyword(made):
        made += "_"
    return made


def camel(*names: str) -> str:
    """Names as one name of a class."""
    words = [word for name in names for word in identifier(name).split("_") if word]
    return "".join([word[:1].upper() + word[1:] for word in words]) or "Value"
