"""Files of settings, read into scalars that know their line.

YAML is read by a strict reader of our own as long as a file holds what settings need: names,
values, sections by indentation, comments. A config file then costs no library and needs none.
Whatever else YAML can do is PyYAML's, where it is installed; both keep a value as its text, so
they cannot disagree about what `off` or `1_000` is.
"""

from __future__ import annotations

from tooli.config.setting_definitions import RawSetting
from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    SectionValue: TypeAlias = "RawSetting | ConfigSection"

MAX_CONFIG_BYTES = 1 << 20
_MAX_DEPTH, _MAX_NODES = 8, 10_000


class ConfigSection(Record):
    """A section: what stands in it, by name."""

    entries: dict[str, SectionValue]
    line: int = 0


class UnreadableConfig(ValueError):  # noqa: N818
    """A file is not what it should be; says where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class UnsupportedSyntax(Exception):  # noqa: N818
    """The file holds more of YAML than our own reader knows."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def read_config_file(path: str) -> ConfigSection:
    """The settings of a file, by the form that its name tells; raises Unreadable."""
    text = _read_text(path)
    if path.endswith(".toml"):
        from tooli.config.toml_reader import read_toml

        return read_toml(text)
    if path.endswith(".env"):
        return ConfigSection(dict(_parse_dotenv(text)))
    try:
        return read_yaml(text)
    except UnsupportedSyntax as unsupported:
        return _read_with_pyyaml(text, unsupported)


def _read_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as failure:
        raise UnreadableConfig(0, f"it cannot be read: {failure.strerror or failure}") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise UnreadableConfig(0, "it is larger than a megabyte")
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise UnreadableConfig(line, "it is not UTF-8") from None


# ------------------------------------------------------------------ YAML


def read_yaml(text: str) -> ConfigSection:
    """A file of names, values and indented sections; raises Beyond where it is more than that."""
    lines = list(_content_lines(text))
    block, rest = _parse_section(lines, 0, lines[0][1] if lines else 0, 0)
    if rest < len(lines):
        raise UnsupportedSyntax(lines[rest][0], "an indentation that fits no section")
    return block


def _content_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Number, indentation and content of every line that says something."""
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip(" ")
        if not content or content[0] == "#" or (number == 1 and content == "---"):
            continue
        if not content.isprintable():
            raise UnsupportedSyntax(number, "a tab or another control character")
        yield number, len(line) - len(line.lstrip(" ")), content


def _parse_section(
    lines: list[tuple[int, int, str]], start: int, indent: int, depth: int
) -> tuple[ConfigSection, int]:
    """The section that begins at a line, and where the next one does."""
    entries: dict[str, SectionValue] = {}
    first = lines[start][0] if start < len(lines) else 0
    i = start
    while i < len(lines) and lines[i][1] == indent:
        number, _, content = lines[i]
        name, value = _parse_pair(content, number)
        if name in entries:
            raise UnreadableConfig(number, f"{name!r} is there twice")
        i += 1
        if i < len(lines) and lines[i][1] > indent:
            if value is not None:
                raise UnsupportedSyntax(lines[i][0], "a value of several lines")
            if depth >= _MAX_DEPTH:
                raise UnreadableConfig(number, "its sections are too deep")
            entries[name], i = _parse_section(lines, i, lines[i][1], depth + 1)
        else:
            entries[name] = value if value is not None else RawSetting("", number)
    return ConfigSection(entries, first), i


def _parse_pair(content: str, number: int) -> tuple[str, RawSetting | None]:
    """`name: value`, `name:`."""
    name, colon, rest = content.partition(":")
    bare = name[1:-1] if len(name) > 2 and name[0] == name[-1] and name[0] in "\"'" else name
    simple = bare.replace("-", "").replace("_", "").replace(".", "")
    if not colon or not (simple.isascii() and simple.isalnum()) or bare[0] in "-.":
        raise UnsupportedSyntax(number, f"{content[:40]!r}, which is no 'name: value'")
    if rest and rest[0] != " ":
        raise UnsupportedSyntax(number, f"{content[:40]!r}, which has no space after its colon")
    rest = rest.strip(" ")
    if not rest or rest[0] == "#":
        return bare, None
    return bare, _parse_value(rest, number)


def _parse_value(rest: str, number: int) -> RawSetting:
    if rest[0] in "\"'":
        return _parse_quoted(rest, number)
    text = rest.partition(" #")[0].rstrip(" ")
    starts = text[0] in "[]{},&*!|>%@`?:=<" or (text[0] == "-" and not text[1:2].isdigit())
    if starts or ": " in text or text[-1] == ":":
        raise UnsupportedSyntax(number, f"the value {text[:40]!r}")
    return RawSetting(text, number)


def _parse_quoted(rest: str, number: int) -> RawSetting:
    quote = rest[0]
    end = rest.find(quote, 1)
    after = rest[end + 1 :]
    if end < 0 or "\\" in rest[:end] or (after and after[:2] != " #" and after.strip(" ")):
        raise UnsupportedSyntax(number, f"the value {rest[:40]!r}")
    return RawSetting(rest[1:end], number, "text")


def _read_with_pyyaml(text: str, unsupported: UnsupportedSyntax) -> ConfigSection:
    """The same with PyYAML: only its tree is used, so a value stays the text that it is."""
    try:
        import yaml
    except ImportError:
        hint = "write it plainly, or: pip install 'tooli[yaml]'"
        raise UnreadableConfig(
            unsupported.line, f"{unsupported} takes a whole YAML reader; {hint}"
        ) from None
    library: Any = yaml
    try:
        node = library.compose(text, Loader=library.SafeLoader)
    except (library.YAMLError, RecursionError) as failure:
        quote = getattr(failure, "problem_mark", None)
        line = quote.line + 1 if quote is not None else unsupported.line
        reason = getattr(failure, "problem", None) or getattr(failure, "reason", None)
        raise UnreadableConfig(
            line, f"it is no YAML: {reason}" if reason else "it is no YAML"
        ) from None
    if node is None or node.value == "":
        return ConfigSection({})
    found = _NodeConverter(library).convert(node, 0)
    if not isinstance(found, ConfigSection):
        raise UnreadableConfig(1, "it has to be names and values")
    return found


class _NodeConverter:
    """PyYAML's nodes as ours; what is too deep or too much is refused, aliases included."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.count = 0

    def convert(self, node: Any, depth: int) -> SectionValue:
        line = node.start_mark.line + 1
        self.count += 1
        if depth > _MAX_DEPTH or self.count > _MAX_NODES:
            raise UnreadableConfig(line, "its sections are too deep, or too many")
        if isinstance(node, self.library.ScalarNode):
            return RawSetting(node.value, line, "text" if node.style else "any")
        if not isinstance(node, self.library.MappingNode):
            raise UnreadableConfig(line, "a list stands where a value or a section belongs")
        entries: dict[str, SectionValue] = {}
        for name, value in node.value:
            where = name.start_mark.line + 1
            if not isinstance(name, self.library.ScalarNode):
                raise UnreadableConfig(where, "a name has to be a word")
            if name.value in entries:
                raise UnreadableConfig(where, f"{name.value!r} is there twice")
            entries[name.value] = self.convert(value, depth + 1)
        return ConfigSection(entries, line)


# ------------------------------------------------------------------ .env


def _parse_dotenv(text: str) -> Iterator[tuple[str, RawSetting]]:
    """The variables of ours in a `.env`; those of others are nobody's business here."""
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name = name.strip()
        if not equals or not name.startswith("TOOLI_"):
            continue
        value = value.strip()
        if value[:1] in ("'", '"') and value[-1:] == value[:1] and len(value) > 1:
            value = value[1:-1]
        else:
            value = value.partition(" #")[0].rstrip()
        yield name, RawSetting(value, number)
