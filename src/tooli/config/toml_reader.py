"""`[tool.tooli]` of a pyproject.toml, with the lines that TOML's own reader does not tell.

As with YAML, what settings need is read by a strict reader of our own: tables that are headed
`[tool.tooli]`, and in them names with plain values. The rest of the file is others' and is not
looked at. Whatever is written otherwise is left to `tomllib`, which costs as much as a whole run.
"""

from __future__ import annotations

from tooli.config.file_reader import ConfigSection, UnreadableConfig, UnsupportedSyntax
from tooli.config.setting_definitions import RawSetting

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def read_toml(text: str) -> ConfigSection:
    """The table `tool.tooli`; empty where there is none."""
    try:
        return read_simple_toml(text)
    except UnsupportedSyntax:
        return read_with_tomllib(text)


# ------------------------------------------------------------------ our own reader


def read_simple_toml(text: str) -> ConfigSection:
    """The same of a file that is written plainly; raises Beyond where it is not."""
    if '"""' in text or "'''" in text:  # such a text could hold lines that look like ours
        raise UnsupportedSyntax(0, "a text of several lines")
    root = ConfigSection({})
    table: ConfigSection | None = None
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip(" \t\r")
        if content[:1] == "[":
            table = _open_table(root, content, number)
        elif table is None and "tooli" in content:
            _check_unrelated(content, number)
        elif table is not None and content and content[0] != "#":
            name, value = _parse_setting(content, number)
            if name in table.entries:
                raise UnsupportedSyntax(number, "a name that is there twice")
            table.entries[name] = value
    return root


def _open_table(root: ConfigSection, header: str, number: int) -> ConfigSection | None:
    """The table of ours that a header opens; None for one of others'."""
    head = header.partition("#")[0].rstrip(" ")
    squeezed = head.replace(" ", "").replace("\t", "").replace("'", '"')
    if head == "[tool]" or (squeezed == "[tool]"):
        raise UnsupportedSyntax(number, "settings below [tool]")
    if not squeezed.replace('"', "").startswith(("[tool.tooli]", "[tool.tooli.", "[[tool.tooli")):
        return None
    names = head[1:-1].split(".") if head[-1] == "]" and head[:2] != "[[" else []
    if names[:2] != ["tool", "tooli"] or not all([_is_bare_key(name) for name in names]):
        raise UnsupportedSyntax(number, "a header that is not written plainly")
    block = root
    for name in names[2:]:
        inner = block.entries.setdefault(name, ConfigSection({}, number))
        if not isinstance(inner, ConfigSection):
            raise UnsupportedSyntax(number, "a table that is a value, too")
        block = inner
    if block.entries:  # it is there twice, or was filled from below: TOML has rules for that
        raise UnsupportedSyntax(number, "a table in pieces")
    return block


def _check_unrelated(content: str, number: int) -> None:
    """Refuse to judge a line outside our tables that may still be about them."""
    squeezed = content.translate(dict.fromkeys(map(ord, " \t\"'")))
    if squeezed.startswith(("tool.tooli", "tool=", "tooli.", "tooli=")):
        raise UnsupportedSyntax(number, "settings outside [tool.tooli]")


def _is_bare_key(name: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum() and name.isascii()


def _parse_setting(content: str, number: int) -> tuple[str, RawSetting]:
    """`name = value`, of the plainest kinds."""
    name, _, rest = content.partition("=")
    name, rest = name.rstrip(" "), rest.strip(" ")
    if not _is_bare_key(name) or not rest.isprintable() or not rest:
        raise UnsupportedSyntax(number, "what is no plain setting")
    if rest[0] in "\"'":
        end = rest.find(rest[0], 1)
        after = rest[end + 1 :].lstrip(" ")
        if end < 0 or "\\" in rest[:end] or (after and after[0] != "#"):
            raise UnsupportedSyntax(number, "a text that is not plain")
        return name, RawSetting(rest[1:end], number, "text")
    value = rest.partition("#")[0].rstrip(" ")
    if value in ("true", "false"):
        return name, RawSetting(value, number, "truth")
    integer, dot, fraction = value.partition(".")
    is_plain_number = (
        integer.isascii() and integer.isdigit() and (integer == "0" or integer[0] != "0")
    )
    if (
        not is_plain_number
        or (dot and not (fraction.isascii() and fraction.isdigit()))
        or len(value) > 15
    ):
        raise UnsupportedSyntax(number, "a value that is not plain")
    return name, RawSetting(repr(float(value) if dot else int(value)), number, "number")


# ------------------------------------------------------------------ the library


def read_with_tomllib(text: str) -> ConfigSection:
    """The same of any file."""
    library = _load_library(text)
    try:
        document: dict[str, Any] = library.loads(text)
    except library.TOMLDecodeError as failure:
        raise UnreadableConfig(
            _line_from_message(str(failure)), f"it is no TOML: {failure}"
        ) from None
    except RecursionError:
        raise UnreadableConfig(0, "its tables are too deep") from None
    table: Any = document.get("tool")
    table = table.get("tooli", {}) if isinstance(table, dict) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(table, dict):
        raise UnreadableConfig(_find_line(text, ("tool", "tooli")), "tool.tooli has to be a table")
    return _section_from_table(text, table, ("tool", "tooli"))  # pyright: ignore[reportUnknownArgumentType]


def _load_library(text: str) -> Any:
    try:
        import tomllib  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]

        return tomllib  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        pass
    try:
        import tomli  # pyright: ignore[reportMissingImports]

        return tomli  # pyright: ignore[reportUnknownVariableType]
    except ImportError:
        line = _find_line(text, ("tool", "tooli"))
        hint = "pip install tomli, or move the settings to .tooli.yaml"
        raise UnreadableConfig(line, f"Python 3.10 cannot read TOML by itself: {hint}") from None


def _section_from_table(text: str, table: dict[str, Any], path: tuple[str, ...]) -> ConfigSection:
    entries: dict[str, RawSetting | ConfigSection] = {}
    for name, value in table.items():
        line = _find_line(text, (*path, name))
        if isinstance(value, dict):
            entries[name] = _section_from_table(text, value, (*path, name))  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, bool):
            entries[name] = RawSetting("true" if value else "false", line, "truth")
        elif isinstance(value, (int, float)):
            entries[name] = RawSetting(repr(value), line, "number")
        elif isinstance(value, str):
            entries[name] = RawSetting(value, line, "text")
        else:
            raise UnreadableConfig(line, f"{name!r} is neither text, a number nor a truth")
    return ConfigSection(entries, _find_line(text, path))


def _find_line(text: str, path: tuple[str, ...]) -> int:
    """Where a name is given its value; where it cannot be told, where its table begins."""
    best, depth = 0, 0
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if content[:1] == "[":
            table = _split_key(content.strip("[] "))
            current = table
        else:
            name, equals, _ = content.partition("=")
            current = (*table, *_split_key(name)) if equals else ()
        common = len(current) if current == path[: len(current)] else 0
        if common > depth:
            best, depth = number, common
    return best


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple([name.strip().strip("\"'") for name in dotted.partition("#")[0].split(".")])


def _line_from_message(message: str) -> int:
    """The line that TOML's reader names in its message."""
    _, _, rest = message.partition("line ")
    digits = rest.partition(",")[0].partition(")")[0]
    return int(digits) if digits.isdigit() else 0
