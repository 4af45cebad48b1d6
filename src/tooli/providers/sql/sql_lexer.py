"""Split SQL text into tokens: strings, comments, quoted names, parameters, semicolons, words."""

from __future__ import annotations

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Token: TypeAlias = tuple[str, int, int]
    """The kind of a token, its start and its end."""

_COMMON = r"""
    (?P<comment>--[^\n]*)
  | (?P<block>/\*)
  | (?P<string>[xXbBnN]?'(?:[^']|'')*(?:'|\Z))
  | (?P<name>"(?:[^"]|"")*(?:"|\Z))
"""
_TAIL = r"""
  | (?P<cast>::)
  | (?P<param>:[A-Za-z_][A-Za-z0-9_]*)
  | (?P<semicolon>;)
  | (?P<word>[^\W\d]\w*)
"""
_SQLITE = re.compile(
    _COMMON
    + r"""| (?P<tick>`(?:[^`]|``)*(?:`|\Z)) | (?P<bracket>\[[^\]]*(?:\]|\Z))
          | (?P<position>\?\d*|[@$][A-Za-z_]\w*)"""
    + _TAIL,
    re.VERBOSE,
)
_POSTGRES = re.compile(
    r"(?P<escaped>[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)) | (?P<dollar>\$(?:[^\W\d]\w*)?\$) |"
    + _COMMON
    + r"| (?P<position>\$\d+)"
    + _TAIL,
    re.VERBOSE | re.DOTALL,
)


def tokens(sql: str, *, is_postgres: bool) -> Iterator[Token]:
    """Yield the tokens of a text. Numbers and operators are left out.

    The kinds are "comment", "string", "name" (quoted), "param" (`:id`), "position" (`?` and `$1`),
    "semicolon" and "word".
    """
    pattern, at = _POSTGRES if is_postgres else _SQLITE, 0
    while (found := pattern.search(sql, at)) is not None:
        kind, start, at = found.lastgroup or "", found.start(), found.end()
        if kind == "block":
            at = _block_end(sql, at, is_nested=is_postgres)
        elif kind == "dollar":
            after = sql.find(found.group(), at)
            at = len(sql) if after < 0 else after + len(found.group())
        if kind != "cast":
            yield _KINDS.get(kind, kind), start, at


_KINDS = {
    **dict.fromkeys(("escaped", "dollar"), "string"),
    **dict.fromkeys(("tick", "bracket"), "name"),
    "block": "comment",
}


def _block_end(sql: str, at: int, *, is_nested: bool) -> int:
    """Return the end of a block comment. Postgres has comments inside comments, SQLite has not."""
    depth = 1
    for found in re.compile(r"/\*|\*/").finditer(sql, at):
        if found.group() == "*/":
            depth -= 1
        elif is_nested:
            depth += 1
        if depth == 0:
            return found.end()
    return len(sql)


def replace_params(
    sql: str, replacement: Callable[[str], str], *, is_postgres: bool
) -> tuple[str, tuple[str, ...]]:
    """Return the text with every parameter replaced, and the names of the parameters in order."""
    parts: list[str] = []
    names: list[str] = []
    last = 0
    for kind, start, end in tokens(sql, is_postgres=is_postgres):
        if kind == "param":
            name = sql[start + 1 : end]
            names.append(name)
            parts += (sql[last:start], replacement(name))
            last = end
    return "".join((*parts, sql[last:])), tuple(dict.fromkeys(names))


def single_statement(sql: str, *, is_postgres: bool) -> tuple[str, str]:
    """Return a statement without its last semicolon, and what is wrong with it, or ""."""
    found = [token for token in tokens(sql, is_postgres=is_postgres) if token[0] != "comment"]
    end = next((start for kind, start, _ in found if kind == "semicolon"), len(sql))
    rest = list(sql)
    for kind, start, stop in tokens(sql, is_postgres=is_postgres):
        if kind == "comment":
            rest[start:stop] = " " * (stop - start)
    if "".join(rest[end:]).strip("; \t\r\n"):
        return "", "it has several statements; give each one a name of its own"
    if any([kind == "position" for kind, _, _ in found]):
        return "", "its parameters have no names; write :name in place of ? and $1"
    if not "".join(rest[:end]).strip():
        return "", "it has no SQL"
    return sql[:end].strip(), ""


def words(sql: str, *, is_postgres: bool) -> tuple[str, ...]:
    """Return the keywords and names of a statement in lower case."""
    return tuple(
        [
            sql[start:end].strip('"`[]').lower()
            for kind, start, end in tokens(sql, is_postgres=is_postgres)
            if kind in ("word", "name")
        ]
    )
