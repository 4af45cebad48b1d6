"""Other spellings of a command line, which Typer rejects.

tooli also accepts `--max_size` for `--max-size`, and an argument by its name: `--pattern
'*.py'`. A line that Typer must decide keeps Typer's rules: see
`CommandLine.is_left_to_typer`.
"""

from __future__ import annotations

from functools import partial

from tooli.cli.argv import (
    ArgumentParser,
    CommandLine,
    convert_with_typer,
    framework_flag,
    parse_command_line,
)
from tooli.core.tool import is_structured
from tooli.schema import RawText

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.core.tool import Param, Tool
    from tooli.providers import CommandGroup


def parse_other_spellings(
    root: CommandGroup, argv: Sequence[str], line: CommandLine
) -> CommandLine:
    """Parse a line with problems again, with other spellings, if Typer need not decide it."""
    if line.tool is None or not line.problems or line.is_left_to_typer(line.tool):
        return line
    takes_name = any([problem.code == "E1005" for problem in line.problems])
    try:
        return parse_command_line(root, argv, partial(_LenientParser, takes_name=takes_name))
    except _NoPositionError:
        return line


class _NoPositionError(Exception):
    """An argument is given by name, but one before it is missing: Typer has no such line."""


class _LenientParser(ArgumentParser):
    """Accepts options with underscores, arguments by name, and the name of an only command."""

    def __init__(self, line: CommandLine, tool: Tool, *, takes_name: bool) -> None:
        super().__init__(line, tool)
        self.takes_name = takes_name
        self.option_words: list[str] = []  # the words of `typer_argv` that are no arguments
        params = [param for param in tool.params if param.kind == "argument"]
        self.arguments = {f"--{param.name.replace('_', '-')}": param for param in params}

    def _take_command_name(self, positional: list[str]) -> None:
        if self.takes_name and self.line.typer_argv[0] == self.tool.name:
            del positional[0], self.line.typer_argv[0]
        else:
            super()._take_command_name(positional)

    def _take_option(self, arg: str, rargs: list[str]) -> None:
        start = len(self.line.typer_argv)
        name, equals, explicit = arg.partition("=")
        if not self._is_known(name):
            name = name.replace("_", "-")
        param = None if self._is_known(name) else self.arguments.get(name)
        if param is not None:
            self._take_named_argument(param, name, explicit if equals else None, rargs)
        else:
            super()._take_option(
                f"{name}{equals}{explicit}" if self._is_known(name) else arg, rargs
            )
        self.option_words += self.line.typer_argv[start:]

    def _is_known(self, name: str) -> bool:
        return name in self.flags or framework_flag(name, self.reserved_flags) is not None

    def _take_named_argument(
        self, param: Param, name: str, explicit: str | None, rargs: list[str]
    ) -> None:
        texts = [] if explicit is None else [explicit]
        while len(texts) < param.nargs and rargs:
            texts.append(self.line.take_value(rargs, name, param.name))
        if len(texts) < param.nargs:
            self._add_problem("E1006", param, f"Option {name} needs a value")
            return
        known = self.named.setdefault(param.name, [])
        if not (param.is_multiple or is_structured(param.shape)):
            known.clear()  # as for options, the last one wins
        known.extend(texts)

    def _assign_positionals(self, positionals: list[str]) -> None:
        super()._assign_positionals(positionals)
        if not self.named:
            return
        arguments = self.line.arguments
        for name, texts in self.named.items():
            arguments[name] = RawText(texts, convert_with_typer, self.line.dotted.get(name))
        by_position = [arguments.get(param.name) for param in self.arguments.values()]
        while by_position and by_position[-1] is None:
            by_position.pop()
        words: list[str] = []
        for raw in by_position:
            if raw is None:
                raise _NoPositionError
            words += raw.texts
        separator = ["--"] if any([word[:1] == "-" for word in words]) else []
        prefix = self.line.typer_argv[: self.line.command_prefix_length]
        self.line.typer_argv[:] = [*prefix, *self.option_words, *separator, *words]
