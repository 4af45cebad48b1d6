"""Find the command of a line with Typer, where only Typer knows which command a line names.

Custom group classes have aliases, abbreviations and commands that are made when they are named. A
callback may take positional arguments before the command. Typer's own objects then find the
command, and our parser takes only framework flags that are not flags of this command. No callback
runs and no value is converted: only the parser and `resolve_command` of each group are used.
"""

from __future__ import annotations

from tooli.cli.argv import (
    ArgumentParser,
    CommandLine,
    framework_flag,
    read_output_mode,
    take_framework_flag,
    take_group_flag,
)
from tooli.cli.typer_register import build_command, subcommands
from tooli.core._hot_tables import FLAGS
from tooli.schema.tool_reader import passes_arguments

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from typer._click.core import Command, Context
    from typer.core import TyperGroup
    from typing_extensions import TypeIs

    from tooli.core.protocols import App
    from tooli.providers import CommandGroup, Registration


def find_with_typer(app: App, argv: Sequence[str]) -> CommandLine:
    """Parse a line for an app whose commands only Typer can find.

    The word `tooli` leads to the built-in commands, unless it is a command of the app.
    """
    tree = app.tree()
    line = CommandLine(tree)
    line.needs_lookup = True
    line.typer_reason = "only Typer can find the command"
    line.typer_command = command = build_command(app)
    _Lookup(line, tree, [*reversed(argv)]).run(command)
    takes_arguments = any([param.param_type_name == "argument" for param in command.params])
    if line.unknown_command == "tooli" and not line.path and not takes_arguments:
        line.builtin = "tooli"
    return line


class _Lookup:
    """Follows a line through Typer's groups to its command."""

    def __init__(self, line: CommandLine, tree: CommandGroup, rargs: list[str]) -> None:
        self._line = line
        self._tree = tree
        self._rargs = rargs  # the remaining arguments: the next one is rargs.pop()
        self._context: Context | None = None

    def run(self, command: Command) -> None:
        """Take all words of the line."""
        found: Command | None = command
        while found is not None and is_group(found):
            found = self._find_next(found, self._take_group_words(found))
        if found is not None:
            self._take_command(found)

    def _take_group_words(self, group: Command) -> list[str]:
        """Take the framework flags before the next command; return all other words."""
        line = self._line
        flags = flag_widths(group)
        line.parent_flags.update(flags)
        start = len(line.typer_argv)
        if _has_own_parser(group) or _allows_unknown_options(group):
            take_undeclared_arguments(line, self._rargs)
        problem_count = len(line.problems)
        while self._rargs and self._rargs[-1][:1] == "-" and len(self._rargs[-1]) > 1:
            if not take_group_flag(line, flags, self._rargs):
                del line.problems[problem_count:]  # Typer reports an unknown option
                break
            problem_count = len(line.problems)
        words = [*line.typer_argv[start:], *reversed(self._rargs)]
        del line.typer_argv[start:]
        return words

    def _find_next(self, group: TyperGroup, words: list[str]) -> Command | None:
        """Return the command or group that the words name.

        Returns None if they name none, or if Typer does not find it. All words are then passed to
        Typer, which reports what is wrong.
        """
        line = self._line
        rest: list[str] = []
        remaining: list[str] = []
        name, found = None, None
        try:
            self._context = group.context_class(
                group, info_name=group.name, parent=self._context, **_settings(group)
            )
            self._context.resilient_parsing = True
            _, rest, _ = group.make_parser(self._context).parse_args(args=[*words])
            if rest:
                name, found, remaining = group.resolve_command(self._context, [*rest])
        except Exception:  # a class may need what a callback has not set yet
            found = None
        if found is None:
            line.unknown_command = rest[0] if rest else None
            line.typer_argv += words
            read_output_mode(line, words)
            return None
        consumed = len(words) - len(remaining)
        if words[consumed:] != remaining:  # the class replaced the arguments: leave them to Typer
            consumed, remaining = len(words), []
        line.typer_argv += words[:consumed]
        self._rargs = remaining[::-1]
        known = [key for key, command in subcommands(group).items() if command is found]
        path_name = known[0] if known else name or rest[0]
        line.path = (*line.path, path_name)
        line.group = line.group.groups.get(path_name, line.group)
        return found

    def _take_command(self, command: Command) -> None:
        """Take the framework flags among the arguments of a command."""
        line = self._line
        flags = flag_widths(command)
        line.parent_flags.update(flags)
        passes = passes_arguments(_settings(command)) or _has_own_parser(command)
        registration: Registration | None = getattr(command.callback, "tooli_registration", None)
        if registration is not None:
            line.path = line.path or (registration.command_name,)
            tool = registration.tool(line.path, self._tree, after_callbacks=True)
            line.is_ambiguous = not set(flags) <= {
                flag for param in tool.params for flag in (*param.flags, *param.negations)
            }
            line.tool = tool
            line.command_prefix_length = len(line.typer_argv)
        if passes:
            take_undeclared_arguments(line, self._rargs)
        elif line.tool is not None:
            ArgumentParser(line, line.tool).parse(self._rargs)
        else:
            _take_foreign_arguments(line, flags, self._rargs)
        line.is_foreign = registration is None


def is_group(command: Command) -> TypeIs[TyperGroup]:
    """True if a command of Typer has commands."""
    return hasattr(command, "list_commands")


def flag_widths(command: Command) -> dict[str, int]:
    """Return the flags of a command of Typer, with the number of values each takes."""
    widths: dict[str, int] = {}
    for param in command.params:
        takes_no_value = getattr(param, "is_flag", False) or getattr(param, "count", False)
        if param.param_type_name == "option":
            for flag in (*param.opts, *param.secondary_opts):
                widths[flag] = 0 if takes_no_value else param.nargs
    return widths


def _has_own_parser(command: Command) -> bool:
    """True if a custom class reads the arguments itself, so that every flag may be its own."""
    own_classes = [
        cls
        for cls in type(command).__mro__
        if cls.__module__.partition(".")[0] not in ("typer", "click", "tooli", "builtins")
    ]
    return any(["parse_args" in vars(cls) or "make_parser" in vars(cls) for cls in own_classes])


def _allows_unknown_options(command: Command) -> bool:
    is_allowed = getattr(command, "ignore_unknown_options", False)
    return bool(_settings(command).get("ignore_unknown_options", is_allowed))


def _settings(command: Command) -> Mapping[str, Any]:
    return getattr(command, "context_settings", None) or {}


def _take_foreign_arguments(line: CommandLine, flags: Mapping[str, int], rargs: list[str]) -> None:
    """Take the framework flags among the arguments of a command that is no tool.

    Typer shows its help.
    """
    while rargs:
        arg = rargs[-1]
        if arg == "--":
            break
        name, equals, explicit = arg.partition("=")
        flag = framework_flag(name, flags)
        rargs.pop()
        if flag is not None and FLAGS[flag][0] != "help":
            take_framework_flag(line, flag, name, explicit if equals else None, rargs)
            continue
        line.typer_argv.append(arg)
        for _ in range(0 if equals else min(flags.get(name, 0), len(rargs))):
            line.typer_argv.append(rargs.pop())
    line.typer_argv.extend(reversed(rargs))


def take_undeclared_arguments(line: CommandLine, rargs: list[str]) -> None:
    """Leave all arguments to the command; only `--tooli-NAME` is a framework flag."""
    line.is_ambiguous = True
    line.parent_flags.update(FLAGS)
    while rargs:
        arg = rargs.pop()
        if arg == "--":
            line.typer_argv.append(arg)
            break
        name, equals, explicit = arg.partition("=")
        flag = framework_flag(name, ()) if arg.startswith("--tooli-") else None
        if flag is not None:
            take_framework_flag(line, flag, name, explicit if equals else None, rargs)
        elif arg.startswith("--tooli-"):
            from tooli.cli.option_problems import unknown_framework_flag_problem

            line.problems.append(
                unknown_framework_flag_problem(name, explicit if equals else None, rargs)
            )
        else:
            line.typer_argv.append(arg)
    line.typer_argv.extend(reversed(rargs))
    rargs.clear()
