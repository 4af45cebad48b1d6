"""Read settings files into sections. Each value keeps the number of its line.

YAML files are read by PyYAML, TOML files by tomllib (tomli on Python 3.10). Each library is
loaded only if a file needs it. `.env` files need no library.

PyYAML adds about 20 ms to a call that takes 16 ms without it. So `read_plain_yaml` reads files
that contain only names, values, sections and comments, in 2 ms, with the same result as PyYAML. It
raises NeedsYamlLibrary for any other file, and PyYAML then reads the whole file.

Values are returned as text, and the definition of the setting converts them later. So `off` is a
policy in `security_policy: off` and a boolean in `quiet: off`.
"""

from __future__ import annotations

import os
import sys

from tooli.config.file_trust import open_settings_file
from tooli.config.setting_definitions import RawSetting
from tooli.core import Record
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeAlias

    from yaml import MappingNode, Node, SafeLoader, ScalarNode

    from tooli.core.protocols import JsonObject

    SectionValue: TypeAlias = "RawSetting | ConfigSection"

MAX_CONFIG_BYTES = 1 << 20
_MAX_TOML_BYTES, _MAX_YAML_BYTES = 1 << 18, 1 << 16
_MAX_DEPTH, _MAX_NODES = 8, 10_000
_MAX_KEY_PARTS = 16
_MAX_NUMBER_BITS = 1024
_KEY_PART = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*"""
_LONG_KEY = rf"(?m)(?:^|[\[{{,])[ \t]*(?:{_KEY_PART}\.[ \t]*){{{_MAX_KEY_PARTS}}}"
"""Matches the beginning of a dotted TOML key that is too long."""
_YAML_TAG = "tag:yaml.org,2002:"


class ConfigSection(Record):
    """A section of a file: its values and inner sections by name."""

    entries: dict[str, SectionValue]
    line: int = 0


class UnreadableConfig(ValueError):  # noqa: N818
    """A settings file cannot be read. `line` is the line of the problem, or 0."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class NeedsYamlLibrary(Exception):  # noqa: N818
    """A file uses YAML syntax that `read_plain_yaml` does not support."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def read_config_file(
    path: str, layer: str = "user", trusted_dirs: tuple[str, ...] = ()
) -> ConfigSection:
    """Return the settings of a file. The file name determines the format.

    Raises:
        UnreadableConfig: the file is invalid.
        UntrustedFile: another user may have written the file.
    """
    text = _read_text(path, layer, trusted_dirs)
    if path.endswith(".toml"):
        return read_toml(text)
    if path.endswith(".env"):
        return ConfigSection(dict(_parse_dotenv(text)))
    return read_yaml(text)


def _read_text(path: str, layer: str, trusted_dirs: tuple[str, ...]) -> str:
    try:
        with open(open_settings_file(path, layer, trusted_dirs, os.environ), "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as failure:
        message = f"the file cannot be read: {failure.strerror or failure}"
        raise UnreadableConfig(0, message) from None
    if len(data) > MAX_CONFIG_BYTES:
        raise UnreadableConfig(0, "the file is larger than a megabyte")
    if len(data) > _MAX_TOML_BYTES and path.endswith(".toml"):
        raise UnreadableConfig(0, f"the file is larger than {_MAX_TOML_BYTES >> 10} KiB")
    if len(data) > _MAX_YAML_BYTES and path.endswith(".yaml"):
        raise UnreadableConfig(0, f"the file is larger than {_MAX_YAML_BYTES >> 10} KiB")
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise UnreadableConfig(line, "the file is not UTF-8") from None


# ------------------------------------------------------------------ YAML


def read_yaml(text: str) -> ConfigSection:
    """Return the settings of a YAML file; raise UnreadableConfig if it is invalid."""
    try:
        return read_plain_yaml(text)
    except NeedsYamlLibrary as reason:
        return read_with_pyyaml(text, reason.line)


def read_with_pyyaml(text: str, unknown_line: int) -> ConfigSection:
    """Return the settings of any YAML file as text. No Python objects are constructed.

    Args:
        text: the content of the file.
        unknown_line: the first line that `read_plain_yaml` does not support.
    """
    import yaml

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
    except Exception as failure:  # the library also raises ValueError and OverflowError
        mark = getattr(failure, "problem_mark", None)
        line = mark.line + 1 if mark is not None else unknown_line
        problem = getattr(failure, "problem", None) or getattr(failure, "reason", None)
        message = f"invalid YAML: {problem}" if problem else "invalid YAML"
        raise UnreadableConfig(line, message) from None
    if node is None or node.value == "":
        return ConfigSection({})
    found = _NodeConverter(loader).convert(node, 0)
    if not isinstance(found, ConfigSection):
        raise UnreadableConfig(1, "the file must contain names and values")
    return found


class _NodeConverter:
    """Converts the nodes of PyYAML. Limits their depth and number; each use of an alias counts."""

    def __init__(self, loader: SafeLoader) -> None:
        import yaml

        self._scalar_class, self._mapping_class = yaml.ScalarNode, yaml.MappingNode
        self._sequence_class = yaml.SequenceNode
        self._loader = loader
        self._count = 0

    def convert(self, node: Node, depth: int) -> SectionValue:
        line = node.start_mark.line + 1
        self._count += 1
        if depth > _MAX_DEPTH or self._count > _MAX_NODES:
            raise UnreadableConfig(line, "the file has too many values, or is nested too deeply")
        if isinstance(node, self._scalar_class):
            return RawSetting(node.value, line, self._scalar_kind(node, line))
        if not isinstance(node, self._mapping_class):
            raise UnreadableConfig(line, "a list is not allowed here")
        self._check_tag(node, f"{_YAML_TAG}map", line)
        return ConfigSection(self._convert_entries(node, depth), line)

    def _convert_entries(self, node: MappingNode, depth: int) -> dict[str, SectionValue]:
        entries: dict[str, SectionValue] = {}
        merged: dict[str, SectionValue] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            if not isinstance(name, self._scalar_class):
                raise UnreadableConfig(line, "a name must be plain text")
            if name.tag == f"{_YAML_TAG}merge":
                for inner, part in self._convert_merged(value, depth).items():
                    merged.setdefault(inner, part)
                continue
            self._scalar_kind(name, line)
            if name.value in entries:
                raise UnreadableConfig(line, f"duplicate name {name.value!r}")
            entries[name.value] = self.convert(value, depth + 1)
        return {**merged, **entries}

    def _convert_merged(self, node: Node, depth: int) -> dict[str, SectionValue]:
        """Return the entries of `<<: *section` or `<<: [*section, …]`."""
        is_list = isinstance(node, self._sequence_class)
        merged: dict[str, SectionValue] = {}
        for part in node.value if is_list else [node]:
            section = self.convert(part, depth + 1)
            if not isinstance(section, ConfigSection):
                raise UnreadableConfig(part.start_mark.line + 1, "<< must refer to a section")
            for name, value in section.entries.items():
                merged.setdefault(name, value)
        return merged

    def _scalar_kind(self, node: ScalarNode, line: int) -> str:
        """Return the kind of a value; raise UnreadableConfig if its tag is not allowed."""
        if node.style:
            self._check_tag(node, f"{_YAML_TAG}str", line)
            return "text"
        loader: Any = self._loader  # its methods have no annotations
        implicit = loader.resolve(self._scalar_class, node.value, (True, False))
        if node.tag == implicit:
            return "any"
        self._check_tag(node, f"{_YAML_TAG}str", line)
        return "text"

    def _check_tag(self, node: Node, allowed: str, line: int) -> None:
        if node.tag != allowed:
            tag = "".join([char for char in node.tag if char.isprintable()])[:60]
            raise UnreadableConfig(line, f"the tag {tag!r} is not allowed")


# ------------------------------------------------------------------ plain YAML


def read_plain_yaml(text: str) -> ConfigSection:
    """Return the settings of a file of names, values and indented sections.

    Raises:
        NeedsYamlLibrary: the file has any other syntax.
        UnreadableConfig: the file is invalid.
    """
    lines = list(_content_lines(text))
    if len(lines) > _MAX_NODES:
        raise UnreadableConfig(lines[_MAX_NODES][0], "the file has too many values")
    section, rest = _parse_section(lines, 0, lines[0][1] if lines else 0, 0)
    if rest < len(lines):
        raise NeedsYamlLibrary(lines[rest][0])
    return section


def _content_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the number, indentation and content of every line that is not empty or a comment."""
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip(" ")
        if not content.isprintable():  # also in a comment: YAML has more line ends than "\n"
            raise NeedsYamlLibrary(number)
        if not content or content[0] == "#" or (number == 1 and content == "---"):
            continue
        yield number, len(line) - len(line.lstrip(" ")), content


def _parse_section(
    lines: list[tuple[int, int, str]], start: int, indent: int, depth: int
) -> tuple[ConfigSection, int]:
    """Return the section that starts at a line, and the index of the line after it."""
    entries: dict[str, SectionValue] = {}
    first = lines[start][0] if start < len(lines) else 0
    i = start
    while i < len(lines) and lines[i][1] == indent:
        number, _, content = lines[i]
        name, value = _parse_pair(content, number)
        if name in entries:
            raise UnreadableConfig(number, f"duplicate name {name!r}")
        i += 1
        if i < len(lines) and lines[i][1] > indent:
            if value is not None:
                raise NeedsYamlLibrary(lines[i][0])
            if depth >= _MAX_DEPTH:
                raise UnreadableConfig(number, "the sections are nested too deeply")
            entries[name], i = _parse_section(lines, i, lines[i][1], depth + 1)
        else:
            entries[name] = value if value is not None else RawSetting("", number)
    return ConfigSection(entries, first), i


def _parse_pair(content: str, number: int) -> tuple[str, RawSetting | None]:
    """Parse `name: value` or `name:`."""
    name, colon, rest = content.partition(":")
    bare = name[1:-1] if len(name) > 2 and name[0] == name[-1] and name[0] in "\"'" else name
    simple = bare.replace("-", "").replace("_", "").replace(".", "")
    is_name = simple.isascii() and simple.isalnum() and bare[0] not in "-."
    if not colon or not is_name or rest[:1] not in ("", " "):
        raise NeedsYamlLibrary(number)
    rest = rest.strip(" ")
    if not rest or rest[0] == "#":
        return bare, None
    return bare, _parse_value(rest, number)


def _parse_value(rest: str, number: int) -> RawSetting:
    if rest[0] in "\"'":
        return _parse_quoted(rest, number)
    text = rest.partition(" #")[0].rstrip(" ")
    has_indicator = text[0] in "[]{},&*!|>%@`?:=<" or (text[0] == "-" and not text[1:2].isdigit())
    if has_indicator or ": " in text or text[-1] == ":":
        raise NeedsYamlLibrary(number)
    return RawSetting(text, number)


def _parse_quoted(rest: str, number: int) -> RawSetting:
    quote = rest[0]
    end = rest.find(quote, 1)
    after = rest[end + 1 :]
    if end < 0 or "\\" in rest[:end] or (after and after[:2] != " #" and after.strip(" ")):
        raise NeedsYamlLibrary(number)
    return RawSetting(rest[1:end], number, "text")


# ------------------------------------------------------------------ TOML


def read_toml(text: str) -> ConfigSection:
    """Return the table `tool.tooli` of a pyproject.toml; an empty section if there is none.

    The table `tool.tooli.build` is left out. It configures the build of a package.
    """
    import re  # the TOML library needs it as well

    long_key = re.search(_LONG_KEY, text)  # the library needs quadratic time for such a key
    if long_key is not None:
        line = text.count("\n", 0, long_key.end()) + 1
        raise UnreadableConfig(line, f"a key has more than {_MAX_KEY_PARTS} parts")
    try:
        document = _toml_parser()(text)
    except RecursionError:
        raise UnreadableConfig(0, "the tables are nested too deeply") from None
    except Exception as failure:
        line = _line_from_message(str(failure))
        raise UnreadableConfig(line, f"invalid TOML: {failure}") from None
    tools = document.get("tool")
    table: object = tools.get("tooli", {}) if is_object(tools) else {}
    if not is_object(table):
        line = _TomlLines(text).find(("tool", "tooli"))
        raise UnreadableConfig(line, "tool.tooli must be a table")
    settings = {name: value for name, value in table.items() if name != "build"}
    if not settings:
        return ConfigSection({})
    return _TableConverter(_TomlLines(text)).convert(settings, ("tool", "tooli"))


def _toml_parser() -> Callable[[str], JsonObject]:
    if sys.version_info >= (3, 11):
        from tomllib import loads
    else:
        from tomli import loads  # pyright: ignore
    return loads  # pyright: ignore[reportUnknownVariableType]


class _TableConverter:
    """Converts the tables of a TOML file. Limits their depth and the number of values."""

    def __init__(self, lines: _TomlLines) -> None:
        self._lines = lines
        self._count = 0

    def convert(self, table: Mapping[str, object], path: tuple[str, ...]) -> ConfigSection:
        section_line = self._lines.find(path)
        self._count += len(table)
        if len(path) > _MAX_DEPTH + 2 or self._count > _MAX_NODES:
            message = "the table has too many values, or is nested too deeply"
            raise UnreadableConfig(section_line, message)
        entries: dict[str, SectionValue] = {}
        for name, value in table.items():
            line = self._lines.find((*path, name))
            if is_object(value):
                entries[name] = self.convert(value, (*path, name))
            elif isinstance(value, bool):
                entries[name] = RawSetting("true" if value else "false", line, "boolean")
            elif isinstance(value, (int, float)):
                entries[name] = RawSetting(_format_number(value, line), line, "number")
            elif isinstance(value, str):
                entries[name] = RawSetting(value, line, "text")
            else:
                raise UnreadableConfig(line, f"{name!r} must be text, a number, true or false")
        return ConfigSection(entries, section_line)


def _format_number(value: float, line: int) -> str:
    if isinstance(value, int) and value.bit_length() > _MAX_NUMBER_BITS:
        raise UnreadableConfig(line, "a number is too large")  # Python may refuse to format it
    return repr(value)


class _TomlLines:
    """The lines of a TOML file that set a key or begin a table.

    TOML libraries do not report the lines of keys. The result is used only in messages, so it may
    be wrong for unusual syntax.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(text.split("\n"), 1):
            content = line.partition("#")[0].strip()
            if content[:1] == "[":
                key = table = _split_key(content.strip("[] "))[:_MAX_KEY_PARTS]
            else:
                name, equals, _ = content.partition("=")
                if not equals:
                    continue
                key = (*table, *_split_key(name))[:_MAX_KEY_PARTS]
            self._lines.setdefault(key, number)

    def find(self, path: tuple[str, ...]) -> int:
        """Return the line that sets a key, or else the line of its table; 0 if there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return 0


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple([name.strip().strip("\"'") for name in dotted.split(".")])


def _line_from_message(message: str) -> int:
    """Return the line that a message of the TOML library mentions, or 0."""
    _, _, rest = message.rpartition("(at line ")
    digits = rest.partition(",")[0].partition(")")[0]
    return int(digits) if digits.isdigit() else 0


# ------------------------------------------------------------------ .env


def _parse_dotenv(text: str) -> Iterator[tuple[str, RawSetting]]:
    """Yield the variables of a `.env` file that start with TOOLI_."""
    for number, line in enumerate(text.replace("\r", "\n").split("\n"), 1):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name = name.strip()
        if not equals or not name.startswith("TOOLI_"):
            continue
        yield name, RawSetting(_unquote(value.strip()), number)


def _unquote(value: str) -> str:
    """Return the value of a variable without its quotes and without a comment after it."""
    if value[:1] in ("'", '"'):
        text, end_quote, rest = value[1:].partition(value[0])
        if end_quote and rest.lstrip()[:1] in ("", "#"):
            return text
    return value.partition(" #")[0].rstrip()
