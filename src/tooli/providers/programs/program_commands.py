"""The commands of a program: read from the description of its parser, and as JSON Schema.

    JSON of the reader ─▶ parse_program ─▶ Program ─▶ ProgramCommand ─▶ input_schema()

The description comes from a process that ran code of the program, so every part of it is checked.
"""

from __future__ import annotations

from collections import Counter

from tooli.core import Record
from tooli.schema.described import clean_text, to_ascii_word
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject

MAX_COMMANDS = 5_000
MAX_PARAMS = 2_000
"""Maximum number of parameters of one command or group."""
MAX_ITEMS = 2_000
"""Maximum number of values in a list, such as the choices of a parameter."""
MAX_HELP_CHARS = 2_000
"""Maximum length of the help of one parameter."""
MAX_COUNT = 100
"""How often an option that is counted can be given."""

EXTRA_ARGUMENTS = "extra_arguments"
STDIN = "stdin"

_STYLES = ("click", "argparse", "optparse", "cyclopts", "words")
_ACTIONS = ("value", "flag", "count")
_SECRET_ENDINGS = (
    *("password", "passwd", "passphrase", "secret", "token", "credentials", "credential"),
    *("apikey", "api_key", "secret_key", "access_key", "private_key"),
)
_TYPES = ("string", "integer", "number", "boolean")
_SCHEMA_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class InvalidDescription(Exception):  # noqa: N818
    """The description of a program is not one. The message says what is wrong."""


class ProgramParam(Record):
    """An option or an argument of a program."""

    name: str  # the name of the property
    flags: tuple[str, ...]  # the longest one first; empty: an argument
    off: tuple[str, ...]  # the flags that switch it off
    action: str  # "value" | "flag" | "count"
    nargs: int | str  # how many words the value has: a number, "?", "*" or "+"
    multiple: bool  # the option is repeated for each value
    schema: JsonObject  # of one word
    items: tuple[JsonObject, ...]  # of the words, if they differ
    required: bool
    sends_default: bool  # without a value, the program would ask for it
    default: Any
    help: str
    hidden: bool
    is_secret: bool
    envvar: str | None
    optional_value: bool
    is_remainder: bool
    reads_stdin: bool

    @property
    def is_argument(self) -> bool:
        """True if it has no flag."""
        return not self.flags

    def json_schema(self) -> JsonObject:
        """Return the schema of the property."""
        schema: JsonObject = self._value_schema()
        if self.multiple:
            item, schema = schema, {"type": "array"}
            schema["items"] = item
        if self.required and self.is_argument and self.nargs == "*":
            schema["minItems"] = 1
        text = self.help
        if self.default is not None and not self.is_secret:
            schema["default"] = self.default
        if text:
            schema["description"] = text
        if self.is_secret:
            schema["writeOnly"] = True
        return schema

    def _value_schema(self) -> JsonObject:
        if self.action == "flag":
            return {"type": "boolean"}
        if self.action == "count":
            return {"type": "integer", "minimum": 0, "maximum": MAX_COUNT}
        if self.items:
            count = len(self.items)
            fixed: JsonObject = {"type": "array", "prefixItems": [dict(i) for i in self.items]}
            return {**fixed, "minItems": count, "maxItems": count}
        word = dict(self.schema)
        if isinstance(self.nargs, int) and self.nargs > 1:
            size = self.nargs
            return {"type": "array", "items": word, "minItems": size, "maxItems": size}
        if self.nargs == "*":
            return {"type": "array", "items": word}
        if self.nargs == "+":
            return {"type": "array", "items": word, "minItems": 1}
        return {"anyOf": [word, {"const": True}]} if self.optional_value else word


class ProgramLevel(Record):
    """The parameters of the program itself, of a group, or of a command."""

    word: str | None  # None: the program itself
    style: str
    prefixes: str  # the characters that options begin with
    file_prefixes: str  # the characters that make a word the name of a file with arguments
    is_interspersed: bool  # options may follow arguments
    takes_extra: bool  # takes arguments that it does not declare
    params: tuple[ProgramParam, ...]


class ProgramCommand(Record):
    """One command of a program. It becomes a tool."""

    words: tuple[str, ...]
    levels: tuple[ProgramLevel, ...]
    help: str
    hidden: bool
    deprecated: bool
    is_group: bool  # the group itself, called without a command

    def params(self) -> Iterator[ProgramParam]:
        """Yield the parameters: those of the command before those of its groups."""
        for level in reversed(self.levels):
            yield from level.params

    def takes_stdin(self) -> bool:
        """True if a parameter can name the standard input."""
        return any([param.reads_stdin for param in self.params()])

    def input_schema(self, *, takes_stdin: bool = False) -> JsonObject:
        """Return the JSON Schema of the arguments."""
        properties = {p.name: p.json_schema() for p in self.params()}
        if any([level.takes_extra for level in self.levels]):
            properties[EXTRA_ARGUMENTS] = {
                "type": "array",
                "items": {"type": "string"},
                "description": "Other arguments, which the program passes on.",
            }
        if takes_stdin or self.takes_stdin():
            properties[STDIN] = {"type": "string", "description": "The text on standard input."}
        required = [p.name for p in self.params() if p.required and not p.sends_default]
        schema: JsonObject = {"type": "object", "properties": properties}
        return {**schema, "required": required} if required else schema

    def positional(self) -> list[str]:
        """Return the properties that are positional arguments on our command line as well."""
        names: list[str] = []
        was_optional = False
        for param in self.levels[-1].params if self.levels else ():
            if not param.is_argument:
                continue
            is_list = param.nargs != 1 and param.nargs != "?"
            if param.is_secret or (param.required and was_optional):
                break
            names.append(param.name)
            was_optional = was_optional or not param.required
            if is_list:
                break
        return names


class Program(Record):
    """A program: its commands, and the files that the description depends on."""

    kind: str
    prog: str
    help: str
    commands: tuple[ProgramCommand, ...]
    skipped: tuple[str, ...]
    files: tuple[str, ...]
    folders: tuple[str, ...]


# ------------------------------------------------------------------ parse


def parse_program(data: object) -> Program:
    """Return the program that a description describes; raise InvalidDescription."""
    fields = _object(data, "the description")
    levels = [_parse_level(item) for item in _list(fields, "levels", MAX_COMMANDS)]
    commands = [_parse_command(item, levels) for item in _list(fields, "commands", MAX_COMMANDS)]
    return Program(
        kind=_text(fields, "kind", 40),
        prog=_text(fields, "prog", 200),
        help=clean_text(_text(fields, "help", 30_000)),
        commands=tuple(commands),
        skipped=tuple([clean_text(text, 300) for text in _texts(fields, "skipped")]),
        files=tuple(_texts(fields, "files", 20_000)),
        folders=tuple(_texts(fields, "folders")),
    )


def _parse_command(data: object, levels: Sequence[ProgramLevel]) -> ProgramCommand:
    fields = _object(data, "a command")
    used: list[ProgramLevel] = []
    for index in _list(fields, "levels", 100):
        if type(index) is not int or not 0 <= index < len(levels):
            raise InvalidDescription("a command has an unknown level")
        used.append(levels[index])
    return ProgramCommand(
        words=tuple(_texts(fields, "words")),
        levels=_with_different_names(used),
        help=clean_text(_text(fields, "help", 30_000)),
        hidden=_flag(fields, "hidden"),
        deprecated=_flag(fields, "deprecated"),
        is_group=_flag(fields, "is_group"),
    )


def _with_different_names(levels: Sequence[ProgramLevel]) -> tuple[ProgramLevel, ...]:
    """Return levels whose parameters have different names. The last level keeps its names."""
    used = {EXTRA_ARGUMENTS, STDIN}
    renamed: list[ProgramLevel] = []
    for level in reversed(levels):
        params: list[ProgramParam] = []
        for param in level.params:
            name, count = param.name, 1
            if name in used:
                prefix = to_ascii_word(level.word or "global", "_") or "global"
                name = f"{prefix}_{name}" if level is not levels[-1] else f"{name}_2"
            base = name
            while name in used:
                count += 1
                name = f"{base}_{count}"
            used.add(name)
            params.append(param if name == param.name else param.replace(name=name))
        renamed.insert(0, level.replace(params=tuple(params)))
    return tuple(renamed)


def _parse_level(data: object) -> ProgramLevel:
    fields = _object(data, "a level")
    raw = [_object(item, "a parameter") for item in _list(fields, "params", MAX_PARAMS)]
    raw_names = Counter([_text(item, "name", 200) for item in raw])
    params = [_parse_param(item, raw_names) for item in raw]
    params = list(_with_groups(params, fields))
    style = _text(fields, "style", 40)
    if style not in _STYLES:
        raise InvalidDescription(f"{style!r} is not a known kind of parser")
    word = fields.get("word")
    return ProgramLevel(
        word=word if isinstance(word, str) else None,
        style=style,
        prefixes=_text(fields, "prefixes", 20) or "-",
        file_prefixes=_text(fields, "file_prefixes", 20),
        is_interspersed=fields.get("is_interspersed") is not False,
        takes_extra=_flag(fields, "takes_extra"),
        params=_merge_pairs(params),
    )


def _with_groups(params: Sequence[ProgramParam], fields: JsonObject) -> Iterator[ProgramParam]:
    """Yield parameters. The help says which of them exclude each other."""
    notes: dict[int, str] = {}
    for item in _list(fields, "exclusive", MAX_ITEMS):
        group = _object(item, "a group of options")
        indexes = [i for i in _list(group, "params", MAX_PARAMS) if type(i) is int]
        names = [params[i].name for i in indexes if 0 <= i < len(params)]
        word = "Exactly one" if _flag(group, "required") else "At most one"
        notes.update({i: f"{word} of: {', '.join(names[:20])}." for i in indexes})
    for index, param in enumerate(params):
        note = notes.get(index)
        yield param if note is None else param.replace(help=f"{param.help} {note}".strip())


def _parse_param(fields: JsonObject, raw_names: Mapping[str, int]) -> ProgramParam:
    flags = sorted(_texts(fields, "flags"), key=lambda flag: (-len(flag.rstrip("-")), flag))
    raw_name = _text(fields, "name", 200)
    action, nargs = _text(fields, "action", 20), fields.get("nargs", 1)
    if action not in _ACTIONS:
        raise InvalidDescription(f"{raw_name}: {action!r} is not a known action")
    if not (nargs in ("?", "*", "+") or (type(nargs) is int and 0 <= nargs <= 100)):
        raise InvalidDescription(f"{raw_name}: {nargs!r} is not a number of words")
    is_ambiguous = raw_names[raw_name] > 1 or _flag(fields, "is_const")
    source = flags[0] if flags and is_ambiguous else raw_name
    name = to_ascii_word(source, "_") or "argument"
    raw_schema, notes = fields.get("schema"), str(fields.get("help") or "")
    schema, note = _parse_schema(raw_schema)
    raw_items = fields.get("items")
    items = [_parse_schema(item)[0] for item in raw_items] if is_list(raw_items) else []
    envvar = fields.get("envvar")
    return ProgramParam(
        name=name,
        flags=tuple(flags),
        off=tuple(_texts(fields, "off")),
        action=action,
        nargs=len(items) if items else nargs,
        multiple=_flag(fields, "multiple"),
        schema=schema,
        items=tuple(items),
        required=_flag(fields, "required"),
        sends_default=_flag(fields, "sends_default"),
        default=_parse_default(fields.get("default")),
        help=clean_text(f"{notes} {note}".strip(), MAX_HELP_CHARS),
        hidden=_flag(fields, "hidden"),
        is_secret=_flag(fields, "secret") or _has_secret_name(name, action, nargs, schema),
        envvar=envvar if isinstance(envvar, str) and envvar.isidentifier() else None,
        optional_value=_flag(fields, "optional_value"),
        is_remainder=_flag(fields, "is_remainder"),
        reads_stdin=is_object(raw_schema) and raw_schema.get("x-stdin") is True,
    )


def _has_secret_name(name: str, action: str, nargs: object, schema: JsonObject) -> bool:
    is_text = action == "value" and nargs == 1 and schema == {"type": "string"}
    return is_text and name.lower().endswith(_SECRET_ENDINGS)


def _parse_schema(data: object) -> tuple[JsonObject, str]:
    """Return the schema of one word, with known keywords only, and a note for the help."""
    fields = data if is_object(data) else {}
    kind = fields.get("type")
    schema: JsonObject = {"type": kind if kind in _TYPES else "string"}
    choices = fields.get("enum")
    if is_list(choices) and choices:
        plain: list[Any] = [c for c in choices[:MAX_ITEMS] if type(c) in (str, int, float)]
        schema["enum"] = [clean_text(c, 500) if isinstance(c, str) else c for c in plain]
    for keyword in _SCHEMA_KEYWORDS:
        if type(fields.get(keyword)) in (int, float):
            schema[keyword] = fields[keyword]
    note = fields.get("x-note")
    return schema, note if isinstance(note, str) else ""


def _parse_default(value: object, depth: int = 0) -> Any:
    if type(value) in (int, float, bool):
        return value
    if isinstance(value, str):
        return clean_text(value, 1_000)
    if is_list(value) and depth < 3:
        return [_parse_default(item, depth + 1) for item in value[:100]]
    return None


def _merge_pairs(params: Sequence[ProgramParam]) -> tuple[ProgramParam, ...]:
    """Return parameters in which `--color` and `--no-color` are one."""
    flags = {flag: p for p in params for flag in p.flags if p.action == "flag" and not p.off}
    merged: dict[str, ProgramParam] = {}
    dropped: set[str] = set()
    for flag, param in flags.items():
        negative = flags.get(f"--no-{flag[2:]}") if flag[:2] == "--" else None
        if negative is not None and negative is not param and param.name not in merged:
            text = param.help or negative.help
            default = True if param.default is True else None
            merged[param.name] = param.replace(off=negative.flags, help=text, default=default)
            dropped.add(negative.name)
    kept = [merged.get(p.name, p) for p in params if p.name not in dropped]
    return tuple(kept)


# ------------------------------------------------------------------ checks


def _object(value: object, what: str) -> JsonObject:
    if not is_object(value):
        raise InvalidDescription(f"{what} is not a JSON object")
    return value


def _list(fields: JsonObject, name: str, max_items: int = MAX_ITEMS) -> list[Any]:
    value = fields.get(name, [])
    if not is_list(value):
        raise InvalidDescription(f"{name!r} is not a list")
    if len(value) > max_items:
        raise InvalidDescription(f"{name!r} has more than {max_items:,} items")
    return list(value)


def _texts(fields: JsonObject, name: str, max_items: int = MAX_ITEMS) -> Iterable[str]:
    values = _list(fields, name, max_items)
    if not all([isinstance(value, str) and "\0" not in value for value in values]):
        raise InvalidDescription(f"{name!r} is not a list of texts")
    return values


def _text(fields: JsonObject, name: str, max_chars: int) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise InvalidDescription(f"{name!r} is not a text")
    return value[:max_chars]


def _flag(fields: JsonObject, name: str) -> bool:
    return fields.get(name) is True
