"""`[tool.tooli]` of a pyproject.toml, with the lines that TOML's own reader does not tell."""

from __future__ import annotations

from tooli.config.keys import Scalar
from tooli.config.reading import Block, Unreadable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def read_toml(text: str) -> Block:
    """The table `tool.tooli`; empty where there is none."""
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
