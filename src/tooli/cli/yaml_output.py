r"""YAML output: the document of mode `json`, written as YAML.

    ok: true
    result:
      - path: a.py
        size: 1
    meta:
      tool: files.list

The output is YAML 1.2. Readers of YAML 1.1, such as PyYAML, read it back to the same value: a
string that either version reads as another type (`no`, `1e3`, `2026-01-01`, `~`) is quoted, and a
float has a point and a signed exponent. Quoted strings have double quotes and the escapes of YAML.
A multi-line string is a literal block if readers get exactly the same string from it.
"""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYWORDS = frozenset(
    ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity")
)
"""Words that are not strings in some version of YAML, in lower case."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ ")
"""Characters of a string that needs no quotes, if it starts with a letter."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\x00": "\\0"}
_MAX_SIMPLE_KEY_CHARS = 1000
"""Maximum length of a key before its colon. Readers accept 1024; a longer key needs `? `."""


def encode(value: object) -> str:
    """Return a value of JSON types as a YAML document, without a newline at its end."""
    return "\n".join(_format_block(value, "")) if _is_block(value) else _format_scalar(value)


def _is_block(value: object) -> bool:
    """True if the value takes lines of its own: a list or an object that is not empty."""
    return bool(value) and (is_object(value) or is_list(value))


def _format_block(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a list or an object that is not empty."""
    if is_object(value):
        for key, item in value.items():
            text = _quote(key) if len(key) > _MAX_SIMPLE_KEY_CHARS else _format_scalar(key)
            if len(text) > _MAX_SIMPLE_KEY_CHARS:
                yield f"{indent}? {text}"
                yield from _format_entry(f"{indent}:", item, indent)
            else:
                yield from _format_entry(f"{indent}{text}:", item, indent)
        return
    for item in value if is_list(value) else ():
        if not _is_block(item):
            yield from _format_entry(f"{indent}-", item, indent)
            continue
        lines = _format_block(item, f"{indent}  ")
        yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
        yield from lines


def _format_entry(head: str, value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a key or a dash, with the value after it or below it."""
    if _is_block(value):
        yield head
        yield from _format_block(value, f"{indent}  ")
    elif isinstance(value, str) and _is_literal(value):
        yield f"{head} {'|' if value[-1] == chr(10) else '|-'}"
        for line in value.removesuffix("\n").split("\n"):
            yield f"{indent}  {line}" if line else ""
    else:
        yield f"{head} {_format_scalar(value)}"


def _is_literal(text: str) -> bool:
    """True if the text has several lines and a literal block represents it exactly."""
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and lines[0][:1] not in ("", " ")
        and lines[-1] != ""
        and all([_is_printable(line) and line[-1:] != " " for line in lines])
        and "\ufeff" not in text
    )


def _format_scalar(value: object) -> str:
    if isinstance(value, str):
        return value if _is_plain(value) else _quote(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_float(value)
    return int.__repr__(value) if isinstance(value, int) else "[]" if is_list(value) else "{}"


def _is_plain(text: str) -> bool:
    """True if the text needs no quotes to be read as a string."""
    return (
        _PLAIN.issuperset(text)
        and text[:1].isalpha()
        and text[-1] != " "
        and text.lower() not in _KEYWORDS
    )


def _quote(text: str) -> str:
    text = str.__str__(text)
    if _is_printable(text) and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join([_ESCAPES.get(char) or _escape(char) for char in text]) + '"'


def _is_printable(text: str) -> bool:
    """True if the text can be written without escapes.

    The zero-width joiner and non-joiner are allowed, because emoji and Persian text need them.
    """
    return text.isprintable() or text.replace("\u200c", "").replace("\u200d", "").isprintable()


def _escape(char: str) -> str:
    """Return a character as it is if it is printable, otherwise as an escape."""
    return char if _is_printable(char) else char.encode("unicode_escape").decode()


def _format_float(number: float) -> str:
    """Return a float with a point and a signed exponent, which YAML 1.1 requires."""
    mantissa, has_exponent, exponent = float.__repr__(number).partition("e")
    if not has_exponent:
        return mantissa
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent if exponent[0] in '+-' else f'+{exponent}'}"
