"""Write Python source: literals, docstrings, calls and names, in the layout of `ruff format`.

All text of an app is escaped here, so that no description can end a string literal.
"""

from __future__ import annotations

from keyword import iskeyword, issoftkeyword
from textwrap import fill

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LINE_LENGTH = 100
_INDENT = "    "


class SourceText(str):
    """Source code that is inserted unchanged among literals."""

    __slots__ = ()


# ------------------------------------------------------------------ strings


def string_literal(value: str) -> str:
    """Return a string literal on one line."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join([_escape_char(char, quote) for char in value]) + quote


def _escape_char(char: str, quote: str = "") -> str:
    return f"\\{char}" if char == quote else repr(char)[1:-1]


def docstring(value: str, indent: str = "") -> str:
    """Return the source of a docstring, with quotes, whose value is the text."""
    lines = [_escape_docstring(line.rstrip()) for line in value.strip().split("\n")]
    if len(lines) == 1:
        last = lines[0][-2:]
        if last[-1:] == '"' and last != '\\"':
            lines[0] = f'{lines[0][:-1]}\\"'
        return f'{indent}"""{lines[0]}"""'
    rest = [f"{indent}{line}" if line else "" for line in lines[1:]]
    return "\n".join([f'{indent}"""{lines[0]}', *rest, f'{indent}"""'])


def _escape_docstring(line: str) -> str:
    line = line.encode("utf-8", "replace").decode()  # source files cannot contain a lone surrogate
    return "".join([_escape_char(char) for char in line]).replace('"""', '\\"\\"\\"')


def wrap_text(value: str, indent: str = "", width: int = MAX_LINE_LENGTH) -> str:
    """Wrap prose. Existing line breaks are kept."""
    paragraphs = value.split("\n")
    return "\n".join(
        [
            fill(line, width, initial_indent=indent, subsequent_indent=indent) if line else ""
            for line in paragraphs
        ]
    )


# ------------------------------------------------------------------ values


def value_literal(
    value: object, depth: int = 0, columns_before: int = 0, columns_after: int = 1
) -> str:
    """Return a JSON value, tuple or `SourceText` as source.

    `depth` is the indentation level. `columns_before` and `columns_after` are the number of
    characters before it on its first line, and after it on its last line.
    """
    one_line = _one_line(value)
    available = MAX_LINE_LENGTH - depth * len(_INDENT) - columns_before - columns_after
    if len(one_line) <= available:
        return one_line
    inner = _INDENT * (depth + 1)
    end = _INDENT * depth
    if is_object(value):
        rows = [_dict_row(key, item, depth + 1) for key, item in value.items()]
        return "{\n" + "".join([f"{inner}{row},\n" for row in rows]) + end + "}"
    if is_list(value):
        items = [value_literal(item, depth + 1) for item in value]
        opening, closing = "[]" if isinstance(value, list) else "()"
        return f"{opening}\n" + "".join([f"{inner}{item},\n" for item in items]) + end + closing
    if isinstance(value, str) and not isinstance(value, SourceText):
        parts = _split(value, MAX_LINE_LENGTH - len(inner))
        if len(parts) > 1 or (parts and len(parts[0]) <= MAX_LINE_LENGTH - len(inner)):
            return "(\n" + "".join([f"{inner}{part}\n" for part in parts]) + end + ")"
    return one_line


def _dict_row(key: object, item: object, depth: int) -> str:
    name = value_literal(key)
    if isinstance(key, SourceText):  # such as `**more`, which has no value
        return name
    return f"{name}: {value_literal(item, depth, len(name) + 2)}"


def _one_line(value: object) -> str:
    """Return the value on one line."""
    if isinstance(value, SourceText):
        return str(value)
    if isinstance(value, str):
        return string_literal(value)
    if is_object(value):
        parts = [
            str(key) if isinstance(key, SourceText) else f"{_one_line(key)}: {_one_line(item)}"
            for key, item in value.items()
        ]
        return "{" + ", ".join(parts) + "}"
    if is_list(value):
        inside = ", ".join([_one_line(item) for item in value])
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, float) and value - value != 0:  # NaN or infinite
        return f'float("{value}")'
    return repr(value)


def _split(value: str, available: int) -> list[str]:
    """Split a long text into several literals, after spaces and newlines."""
    parts: list[str] = []
    rest = value
    while rest:
        count = _split_point(rest, available)
        parts.append(string_literal(rest[:count]))
        rest = rest[count:]
    return parts


def _split_point(value: str, available: int) -> int:
    """Return how many characters of the text go into one literal."""
    width = 2
    last = 0
    for i, char in enumerate(value):
        width += len(_escape_char(char, '"'))
        if width > available and last:
            return last
        if char in " \n":
            last = i + 1
            if char == "\n" and value[i + 1 : i + 2] != "\n":
                return last
    return len(value)


# ------------------------------------------------------------------ calls and signatures


def call_source(
    name: str, *values: object, depth: int = 0, columns_before: int = 0, **keywords: object
) -> str:
    """Return the source of a call, with one argument per line if it does not fit on one line."""
    arguments = [("", value) for value in values]
    arguments += [(f"{key}=", value) for key, value in keywords.items()]
    one_line = f"{name}({', '.join([prefix + _one_line(value) for prefix, value in arguments])})"
    if len(_INDENT) * depth + columns_before + len(one_line) <= MAX_LINE_LENGTH:
        return one_line
    inner = _INDENT * (depth + 1)
    rows = [
        f"{inner}{prefix}{value_literal(value, depth + 1, len(prefix))},\n"
        for prefix, value in arguments
    ]
    return f"{name}(\n{''.join(rows)}{_INDENT * depth})"


def function_signature(
    name: str, params: list[str], returns: str, *, is_async: bool = False
) -> str:
    """Return the signature of a function, broken into lines if it is too long for one."""
    opening, end = f"{'async ' if is_async else ''}def {name}(", f") -> {returns}:"
    joined = ", ".join(params)
    if len(opening) + len(joined) + len(end) <= MAX_LINE_LENGTH:
        return f"{opening}{joined}{end}"
    if params and len(_INDENT + joined) <= MAX_LINE_LENGTH:
        return f"{opening}\n{_INDENT}{joined}\n{end}"
    return f"{opening}\n" + "".join([f"{_INDENT}{param},\n" for param in params]) + end


# ------------------------------------------------------------------ names


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """Return the name as a valid identifier that is not in `taken`."""
    candidate = "".join([char if char.isalnum() or char == "_" else "_" for char in name]) or "_"
    candidate = candidate if candidate.isidentifier() else f"_{candidate}"
    used = frozenset(taken)
    while candidate in used or iskeyword(candidate) or issoftkeyword(candidate):
        candidate += "_"
    return candidate


def class_name(*names: str) -> str:
    """Return a CamelCase class name that joins several names."""
    words = [word for name in names for word in identifier(name).split("_") if word]
    return "".join([word[:1].upper() + word[1:] for word in words]) or "Value"
