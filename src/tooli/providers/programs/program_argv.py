"""Turn the arguments of a tool into the words of a command line.

Every value reaches the program as the value of its parameter: a value that begins with `-` never
becomes an option. What cannot be written like that is refused before the program starts.
"""

from __future__ import annotations

from operator import ge, gt, le, lt

from tooli.core import Record
from tooli.core.tool import quote
from tooli.errors import InputError
from tooli.inputs.secret import SecretInput
from tooli.providers.programs.program_commands import EXTRA_ARGUMENTS
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.programs.program_commands import (
        ProgramCommand,
        ProgramLevel,
        ProgramParam,
    )


class ProgramCommandLine(Record):
    """The words of a command line, and variables of its environment."""

    words: tuple[str, ...]
    env: Mapping[str, str]


def build_command_line(command: ProgramCommand, arguments: Mapping[str, Any]) -> ProgramCommandLine:
    """Return the command line for arguments; raise InputError if there is none."""
    words: list[str] = []
    env: dict[str, str] = {}
    for level in command.levels:
        if level.word is not None:
            words.append(level.word)
        is_last = level is command.levels[-1]
        words += _LevelWords(level, arguments, env, is_last=is_last).build()
    return ProgramCommandLine(tuple(words), env)


class _LevelWords:
    """The words of one level: its options, then its arguments."""

    def __init__(
        self,
        level: ProgramLevel,
        arguments: Mapping[str, Any],
        env: dict[str, str],
        *,
        is_last: bool,
    ) -> None:
        self._level = level
        self._arguments = arguments
        self._env = env
        self._is_last = is_last

    def build(self) -> list[str]:
        """Return the words."""
        given = [(p, self._value_of(p)) for p in self._level.params]
        options = [(p, v) for p, v in given if p.flags and v is not None]
        # An option with any number of words ends where the next option begins.
        options.sort(key=lambda item: not _is_open(*item))
        words = [word for param, value in options for word in self._option(param, value)]
        ends_open = bool(options) and _is_open(*options[-1])
        values = self._positional([(p, v) for p, v in given if p.is_argument])
        for param, text in values:
            self._check_file_prefix(text, param)
            if text == "--" and self._level.style == "argparse":
                raise self._no_form_error(text, param)  # argparse removes it
        texts = [text for _, text in values]
        if self._needs_end_of_options(texts) or (ends_open and (texts or not self._is_last)):
            words.append("--")
        words += texts
        if self._level.takes_extra:
            words += [self._text(item, None) for item in self._arguments.get(EXTRA_ARGUMENTS) or ()]
        return words

    def _value_of(self, param: ProgramParam) -> Any:
        value = self._arguments.get(param.name)
        if isinstance(value, SecretInput):
            value = reveal(value)
        if value is None and param.sends_default:
            value = param.default
        if value is None:
            return None
        check_value(param.json_schema(), value, param.name)
        if param.is_secret and param.envvar is not None and param.flags:
            self._env[param.envvar] = self._text(value, param)
            return None
        return value

    # -------------------------------------------------------------- options

    def _option(self, param: ProgramParam, value: Any) -> Iterator[str]:
        flag = param.flags[0]
        if param.action == "flag":
            if value or param.off:
                yield flag if value else max(param.off, key=len)
        elif param.action == "count":
            yield from [flag] * value
        else:
            for item in value if param.multiple else (value,):
                yield from self._option_value(flag, param, item)

    def _option_value(self, flag: str, param: ProgramParam, value: Any) -> Iterator[str]:
        if param.optional_value and value is True:
            yield flag
        elif is_list(value):
            texts = [self._text(item, param) for item in value]
            if self._level.style in ("argparse", "cyclopts"):
                for text in texts:
                    self._check_no_option(text, param)
                    self._check_file_prefix(text, param)
            yield from (flag, *texts)
        else:
            yield from self._joined(flag, self._text(value, param), param)

    def _joined(self, flag: str, text: str, param: ProgramParam) -> Iterator[str]:
        """Yield an option with one value, which the program takes whatever it begins with."""
        is_long = flag.startswith("--") or len(flag) > 2
        if self._level.style == "argparse" or is_long:
            yield f"{flag}={text}"
        elif param.optional_value and self._is_option(text):
            yield f"{flag}{text}"
        else:
            if self._level.style == "cyclopts":
                self._check_no_option(text, param)
            yield from (flag, text)

    # -------------------------------------------------------------- arguments

    def _positional(
        self, given: Sequence[tuple[ProgramParam, Any]]
    ) -> list[tuple[ProgramParam, str]]:
        words: list[tuple[ProgramParam, str]] = []
        missing: ProgramParam | None = None
        for param, value in given:
            if value is None or (is_list(value) and not value):
                missing = missing or (None if param.nargs == "*" else param)
                continue
            if missing is not None and not self._can_skip(missing, param):
                raise InputError(
                    f"{param.name!r} can only be given together with {missing.name!r}, which is "
                    "before it on the command line of the program.",
                    code="E1002",
                    field=missing.name,
                )
            items = value if is_list(value) else (value,)
            words += [(param, self._text(item, param)) for item in items]
        return words

    def _can_skip(self, missing: ProgramParam, param: ProgramParam) -> bool:
        """True if the program does not take a later required argument for the missing one."""
        is_fixed = param.required and param.nargs not in ("?", "*", "+")
        return self._level.style == "argparse" and missing.nargs == "?" and is_fixed

    def _needs_end_of_options(self, texts: Sequence[str]) -> bool:
        if self._level.style == "words":  # the caller writes them as they are
            return False
        checked = texts if self._level.is_interspersed else texts[:1]
        return any([self._is_option(text) for text in checked])

    def _is_option(self, text: str) -> bool:
        return len(text) > 1 and text[0] in self._level.prefixes

    # -------------------------------------------------------------- checks

    def _check_no_option(self, text: str, param: ProgramParam) -> None:
        is_number = _is_negative_number(text) and not self._has_number_flags
        if self._is_option(text) and not is_number:
            raise self._no_form_error(text, param)

    @staticmethod
    def _no_form_error(text: str, param: ProgramParam) -> InputError:
        return InputError(
            f"{param.name!r}: the program would take {quote(text)} for an option, because "
            f"it begins with {text[0]!r}.",
            code="E1003",
            field=param.name,
        )

    @property
    def _has_number_flags(self) -> bool:
        """True if an option looks like a negative number: then argparse reads both as options."""
        flags = [flag for param in self._level.params for flag in (*param.flags, *param.off)]
        return any([flag[1:2].isdecimal() for flag in flags])

    def _check_file_prefix(self, text: str, param: ProgramParam) -> None:
        if text[:1] and text[0] in self._level.file_prefixes:
            raise InputError(
                f"{param.name!r}: the program would read arguments from a file, because "
                f"{quote(text)} begins with {text[0]!r}.",
                code="E1003",
                field=param.name,
            )

    def _text(self, value: Any, param: ProgramParam | None) -> str:
        name = EXTRA_ARGUMENTS if param is None else param.name
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        text = str(value)
        if "\0" in text:
            problem = "a command line cannot contain the character NUL"
        else:
            try:
                text.encode("utf-8")
                return text
            except UnicodeEncodeError:
                problem = "the text is not valid Unicode"
        raise InputError(f"{name!r}: {problem}.", code="E1030", field=name)


def reveal(secret: Any) -> Any:
    """Return the value of a secret."""
    return secret.reveal()


def _is_open(param: ProgramParam, value: object) -> bool:
    """True if an option takes the word that follows it."""
    return param.nargs in ("*", "+") or (param.optional_value and value is True)


def _is_negative_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdigit()


# ------------------------------------------------------------------ values


def check_value(schema: JsonObject, value: Any, field: str) -> None:
    """Raise InputError if a value is not valid. The schemas of programs have few keywords.

    jsonschema, which a plain installation does not have, is not needed for them.
    """
    problem = find_problem(schema, value)
    if problem is not None:
        raise InputError(f"{field!r}: {problem}", code="E1003", field=field)


def find_problem(schema: JsonObject, value: Any) -> str | None:
    """Return what is wrong with a value, or None."""
    if "anyOf" in schema:
        problems = [find_problem(part, value) for part in schema["anyOf"]]
        return None if None in problems else problems[0]
    if "const" in schema:
        return None if value is schema["const"] else f"must be {schema['const']!r}"
    kind = schema.get("type")
    if not _has_type(value, kind):
        return f"{quote(value)} is not of the type {kind!r}"
    if kind == "array":
        return _find_array_problem(schema, value)
    if "enum" in schema and value not in schema["enum"]:
        return f"{quote(value)} is not one of {', '.join(map(str, schema['enum'][:50]))}"
    return _find_number_problem(schema, value) if kind in ("integer", "number") else None


def _has_type(value: object, kind: object) -> bool:
    if kind == "array":
        return is_list(value)
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[object, Any] = {"string": str, "integer": int, "number": (int, float)}
    return isinstance(value, types.get(kind, ()))


def _find_array_problem(schema: JsonObject, value: Sequence[Any]) -> str | None:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < least or (most is not None and len(value) > most):
        expected = str(least) if least == most else f"at least {least}"
        return f"has {len(value)} items, but {expected} are needed"
    parts = schema.get("prefixItems")
    for index, item in enumerate(value):
        problem = find_problem(parts[index] if parts else schema["items"], item)
        if problem is not None:
            return f"item {index}: {problem}"
    return None


def _find_number_problem(schema: JsonObject, value: float) -> str | None:
    checks = (
        ("minimum", "less than the minimum of", lt),
        ("maximum", "greater than the maximum of", gt),
        ("exclusiveMinimum", "not greater than", le),
        ("exclusiveMaximum", "not less than", ge),
    )
    for keyword, text, is_wrong in checks:
        limit = schema.get(keyword)
        if limit is not None and is_wrong(value, limit):
            return f"{value} is {text} {limit}"
    return None
