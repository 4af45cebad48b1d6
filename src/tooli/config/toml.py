"""`[tool.tooli]` of a pyproject.toml, with the lines that TOML's own reader does not tell.

As with YAML, what settings need is read by a strict reader of our own: tables that are headed
`[tool.tooli]`, and in them names with plain values. The rest of the file is others' and is not
looked at. Whatever is written otherwise is left to `tomllib`, which costs as much as a whole run.
"""

from __future__ import annotations

from tooli.config.keys import Scalar
from tooli.config.reading import Beyond, Block, Unreadable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def read_toml(text: str) -> Block:
    """The table `tool.tooli`; empty where there is none."""
    try:
        return read_plainly(text)
    except Beyond:
        return read_with_library(text)


# ------------------------------------------------------------------ our own reader


def read_plainly(text: str) -> Block:
    """The same of a file that is written plainly; raises Beyond where it is not."""
    if '"""' in text or "'''" in text:  # such a text could hold lines that look like ours
        raise Beyond(0, "a text of several lines")
    root = Block({})
    table: Block | None = None
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip(" \t\r")
        if words[:1] == "[":
            table = _table(root, words, number)
        elif table is None and "tooli" in words:
            _must_be_others(words, number)
        elif table is not None and words and words[0] != "#":
            name, value = _setting(words, number)
            if name in table.entries:
                raise Beyond(number, "a name that is there twice")
            table.entries[name] = value
    return root


def _table(root: Block, words: str, number: int) -> Block | None:
    """The table of ours that a header opens; None for one of others'."""
    head = words.partition("#")[0].rstrip(" ")
    squeezed = head.replace(" ", "").replace("\t", "").replace("'", '"')
    if head == "[tool]" or (squeezed == "[tool]"):
        raise Beyond(number, "settings below [tool]")
    if not squeezed.replace('"', "").startswith(("[tool.tooli]", "[tool.tooli.", "[[tool.tooli")):
        return None
    names = head[1:-1].split(".") if head[-1] == "]" and head[:2] != "[[" else []
    if names[:2] != ["tool", "tooli"] or not all([_is_bare(name) for name in names]):
        raise Beyond(number, "a header that is not written plainly")
    block = root
    for name in names[2:]:
        inner = block.entries.setdefault(name, Block({}, number))
        if not isinstance(inner, Block):
            raise Beyond(number, "a table that is a value, too")
        block = inner
    if block.entries:  # it is there twice, or was filled from below: TOML has rules for that
        raise Beyond(number, "a table in pieces")
    return block


def _must_be_others(words: str, number: int) -> None:
    """Refuse to judge a line outside our tables that may still be about them."""
    squeezed = words.translate(dict.fromkeys(map(ord, " \t\"'")))
    if squeezed.startswith(("tool.tooli", "tool=", "tooli.", "tooli=")):
        raise Beyond(number, "settings outside [tool.tooli]")


def _is_bare(name: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum() and name.isascii()


def _setting(words: str, number: int) -> tuple[str, Scalar]:
    """`name = value`, of the plainest kinds."""
    name, _, rest = words.partition("=")
    name, rest = name.rstrip(" "), rest.strip(" ")
    if not _is_bare(name) or not rest.isprintable() or not rest:
        raise Beyond(number, "what is no plain setting")
    if rest[0] in "\"'":
        end = rest.find(rest[0], 1)
        after = rest[end + 1 :].lstrip(" ")
        if end < 0 or "\\" in rest[:end] or (after and after[0] != "#"):
            raise Beyond(number, "a text that is not plain")
        return name, Scalar(rest[1:end], number, "text")
    value = rest.partition("#")[0].rstrip(" ")
    if value in ("true", "false"):
        return name, Scalar(value, number, "truth")
    whole, dot, part = value.partition(".")
    plain = whole.isascii() and whole.isdigit() and (whole == "0" or whole[0] != "0")
    if not plain or (dot and not (part.isascii() and part.isdigit())) or len(value) > 15:
        raise Beyond(number, "a value that is not plain")
    return name, Scalar(repr(float(value) if dot else int(value)), number, "number")


# ------------------------------------------------------------------ the library


def read_with_library(text: str) -> Block:
    """The same of any file."""
    library = _library(text)
    try:
        whole: dict[str, Any] = library.loads(text)
    except library.TOMLDecodeError as failure:
        raise Unreadable(_line_in(str(failure)), f"it is no TOML: {failure}") from None
    except RecursionError:
        raise Unreadable(0, "its tables are too deep") from None
    table: Any = whole.get("tool")
    table = table.get("tooli", {}) if isinstance(table, dict) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(table, dict):
        raise Unreadable(_line_of(text, ("tool", "tooli")), "tool.tooli has to be a table")
    return _block(text, table, ("tool", "tooli"))  # pyright: ignore[reportUnknownArgumentType]


def _library(text: str) -> Any:
    try:
        import tomllib  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

        return tomllib  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        pass
    try:
        import tomli  # pyright: ignore[reportMissingImports]

        return tomli  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        line = _line_of(text, ("tool", "tooli"))
        hint = "pip install tomli, or move the settings to .tooli.yaml"
        raise Unreadable(line, f"Python 3.10 cannot read TOML by itself: {hint}") from None


def _block(text: str, table: dict[str, Any], path: tuple[str, ...]) -> Block:
    entries: dict[str, Scalar | Block] = {}
    for name, value in table.items():
        line = _line_of(text, (*path, name))
        if isinstance(value, dict):
            entries[name] = _block(text, value, (*path, name))  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, bool):
            entries[name] = Scalar("true" if value else "false", line, "truth")
        elif isinstance(value, (int, float)):
            entries[name] = Scalar(repr(value), line, "number")
        elif isinstance(value, str):
            entries[name] = Scalar(value, line, "text")
        else:
            raise Unreadable(line, f"{name!r} is neither text, a number nor a truth")
    return Block(entries, _line_of(text, path))


def _line_of(text: str, path: tuple[str, ...]) -> int:
    """Where a name is given its value; where it cannot be told, where its table begins."""
    best, depth = 0, 0
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        if words[:1] == "[":
            table = _names(words.strip("[] "))
            here = table
        else:
            name, equals, _ = words.partition("=")
            here = (*table, *_names(name)) if equals else ()
        common = len(here) if here == path[: len(here)] else 0
        if common > depth:
            best, depth = number, common
    return best


def _names(dotted: str) -> tuple[str, ...]:
    return tuple([name.strip().strip("\"'") for name in dotted.partition("#")[0].split(".")])


def _line_in(message: str) -> int:
    """The line that TOML's reader names in its message."""
    _, _, rest = message.partition("line ")
    digits = rest.partition(",")[0].partition(")")[0]
    return int(digits) if digits.isdigit() else 0
