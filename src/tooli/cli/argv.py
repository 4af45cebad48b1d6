"""Read a command line: the framework's flags, the command, its arguments.

    file-tools --json find-files '*.py' --root src -v
               ╰flag╯ ╰command─╯ ╰arguments──────╯ ╰flag

The line is read in one pass. A flag of the command wins over a framework flag of the same name,
which is then `--tooli-NAME`. This parser never guesses: Typer parses `CommandLine.typer_argv`, the
line without the framework flags, if it is not fully understood (`typer_reason` says why).
"""

from __future__ import annotations

import os

from tooli.core import BUILTIN_COMMANDS
from tooli.core._hot_tables import CHOICES, FLAGS, RESULT_OPTIONS, RUN_OPTIONS
from tooli.core.call import Problem
from tooli.core.tool import MAX_PROBLEMS, is_structured
from tooli.schema import RawText
from tooli.schema.tool_reader import varies_between_typer_versions

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from typer._click.core import Command

    from tooli.core.tool import Param, Tool
    from tooli.providers import CommandGroup, Registration

COMPLETION_FLAGS = ("--install-completion", "--show-completion")


class CommandLine:
    """A parsed command line."""

    def __init__(self, group: CommandGroup) -> None:
        self.options: dict[str, Any] = {}
        self.path: tuple[str, ...] = ()
        self.group: CommandGroup = group
        self.tool: Tool | None = None
        self.command_prefix_length = 0  # items of `typer_argv` before the arguments
        self.arguments: dict[str, Any] = {}
        self.dotted: dict[str, dict[str, list[str]]] = {}
        self.problems: list[Problem] = []
        self.typer_argv: list[str] = []
        self.typer_reason: str | None = None
        self.unknown_command: str | None = None  # a name that is not a command
        self.builtin: str | None = None  # the first word, if it names a built-in command
        self.has_other_spelling = False  # an option or argument may be given in another spelling
        self.has_replacement = False  # an unknown option has a counterpart that tooli names
        self.parent_flags: set[str] = set()  # flags of callbacks; they win over framework flags
        self.leading_flags: list[str] = []  # framework flags before the command
        self.is_ambiguous = False  # Typer may parse the line differently
        self.needs_lookup = False  # only Typer can find the command; `typer_lookup` asks it
        self.is_foreign = False  # the command is no tool: a custom group class made it
        self.typer_command: Command | None = None  # Typer's tree, if it is built
        self.from_config: set[str] = set()  # options from settings, not from the line
        self.app_settings = group.state.app_settings  # its flags are accepted on every line
        self.settings_texts: dict[str, RawText] = {}  # fields of the settings object, by name
        self.flag_values: list[tuple[str, str, str]] = []  # `--x --y`: its field, `--x`, `--y`

    @property
    def has_invalid_option(self) -> bool:
        """True if a framework option has an invalid value or is in the wrong position."""
        return any([problem.code == "E1007" for problem in self.problems])

    @property
    def has_payload(self) -> bool:
        """True if arguments come from `--input` or `--null`, which Typer does not know."""
        return "input" in self.options or "null" in self.options

    def needs_result_options(self, tool: Tool | None) -> bool:
        """True if the line or the tool limits or selects the records of the result."""
        limits = None if tool is None else tool.limits
        return not RESULT_OPTIONS.isdisjoint(self.options) or (
            limits is not None and bool(limits.paginated or limits.max_tokens)
        )

    def is_left_to_typer(self, tool: Tool) -> bool:
        """True if Typer decides what a line means that it rejects.

        It does for commands that print their result and with `TOOLI_OUTPUT=text`, unless the line
        has a framework option, or the command takes an object. Typer knows neither.
        """
        is_typer_line = tool.returns_printed_text or os.environ.get("TOOLI_OUTPUT") == "text"
        if not is_typer_line or self.options or self.settings_texts:
            return False
        return not any([is_structured(param.shape) for param in tool.params])

    def takes_settings_flag(self, name: str) -> bool:
        """True if a flag sets a field of the settings object of the app."""
        return self.app_settings is not None and name in self.app_settings.flags

    def take_value(self, rargs: list[str], name: str, field: str = "") -> str:
        """Take the next word as the value of an option, even if it looks like another option."""
        value = rargs.pop()
        if value[:2] == "--" and len(value) > 2:
            self.flag_values.append((field, name, value))
        return value

    def set_option(self, flag: str, value: str | None) -> None:
        """Set the option of a framework flag."""
        name, _, constant = FLAGS[flag]
        if constant == "+":
            self.options[name] = self.options.get(name, 0) + 1
            return
        value = constant if value is None else value
        if name in RUN_OPTIONS:
            from tooli.records.call_options import read_run_option

            self.options[name], problem = read_run_option(name, value)
            if problem is not None:
                self.problems.append(Problem("E1007", name, f"{flag} must be {problem}"))
            return
        allowed = allowed_values(name) if constant is None else ()
        if allowed and value not in allowed:
            self.problems.append(
                load_option_problems().choice_problem(flag, name, str(value), allowed)
            )
            return
        self.options[name] = value


def parse_command_line(
    root: CommandGroup,
    argv: Sequence[str],
    make_parser: Callable[[CommandLine, Tool], ArgumentParser] | None = None,
) -> CommandLine:
    """Parse a line for an app; `root` is the app's tree of commands."""
    line = CommandLine(root)
    rargs = [*reversed(argv)]  # the remaining arguments: the next one is rargs.pop()
    registration = root.only_command
    if registration is None:
        registration = _find_command(line, rargs)
    else:
        line.path = (registration.command_name,)
        line.typer_reason = root.typer_reason
    if registration is None:
        if root.name_only_tool and (words := root.name_only_tool(root, argv, line)):
            return parse_command_line(root, words, make_parser)
        read_output_mode(line, rargs[::-1])
        line.typer_argv.extend(reversed(rargs))
        return line
    tool = registration.tool(line.path, root, after_callbacks=True)
    line.tool = tool
    line.command_prefix_length = len(line.typer_argv)
    has_dynamic_root = root.only_command is not None and root.has_dynamic_commands
    line.needs_lookup |= tool.passes_arguments or has_dynamic_root or "cls" in registration.kwargs
    (make_parser or ArgumentParser)(line, tool).parse(rargs)
    if not tool.is_fast_path and line.typer_reason is None:
        line.typer_reason = "the command uses a feature of Typer"
    if line.typer_reason is not None and line.has_payload:
        line.tool = registration.tool(line.path, root)  # the call runs its callbacks
    return line


def read_output_mode(line: CommandLine, args: Sequence[str]) -> None:
    """Read only the output mode, such as `--json`, from arguments that cannot be parsed."""
    for i, arg in enumerate(args):
        if arg == "--":
            return
        name, equals, value = arg.partition("=")
        flag = framework_flag(name, line.parent_flags)
        if flag is not None and FLAGS[flag][0] == "output":
            following = value if equals else "".join(args[i + 1 : i + 2])
            mode = following if FLAGS[flag][1] == 1 else FLAGS[flag][2]
            if mode in allowed_values("output"):
                line.options["output"] = mode


def allowed_values(name: str) -> tuple[str, ...]:
    """Return the values that an option accepts; empty if it accepts any text."""
    if name == "output":
        from tooli.core.output_modes import OUTPUT_MODES

        return OUTPUT_MODES
    return CHOICES.get(name, ())


def needs_argument_checks(argv: Sequence[str]) -> bool:
    """True if a command line may contain text that the argument checks for agents reject."""
    text = "".join(argv)
    return not text.isprintable() or "\\" in text or "@" in text or "--input" in text


def load_option_problems() -> ModuleType:
    """Return the module that describes problems with options; few lines need it."""
    from tooli.cli import option_problems

    return option_problems


# ------------------------------------------------------------------ before the command


def _find_command(line: CommandLine, rargs: list[str]) -> Registration | None:
    root = group = line.group
    while True:
        if group.typer_reason:
            line.typer_reason = group.typer_reason
            line.parent_flags.update(group.callback_flags())
        if group.has_dynamic_commands:
            line.needs_lookup = True
        while rargs and rargs[-1][:1] == "-" and len(rargs[-1]) > 1:
            if not take_group_flag(line, group.callback_flags(), rargs):
                return None
        if not rargs:
            return None
        arg = rargs[-1]
        found = group.commands.get(arg)
        if found is None:
            inner = group.groups.get(arg)
            if inner is None and (names := group.split_key(arg)):
                rargs[-1:] = reversed(names)  # a key, as `search-tools` shows it
                continue
            if inner is None:
                line.unknown_command = arg
                if arg in BUILTIN_COMMANDS and group is root and not group.has_dynamic_commands:
                    line.builtin = arg
                return None
            group = inner
        line.typer_argv.append(rargs.pop())
        line.path = (*line.path, arg)
        line.group = group
        if found is not None:
            return found


def take_group_flag(line: CommandLine, callback_flags: Mapping[str, int], rargs: list[str]) -> bool:
    """Take one flag before the command; return False if it is `--` or an unknown option."""
    arg = rargs[-1]
    name, equals, explicit = arg.partition("=")
    is_long = len(name) > 2 or name[:2] == "--"
    if arg == "--" or (name in callback_flags and (is_long or not equals)):
        rargs.pop()
        line.typer_argv.append(arg)
        _pass_to_typer(line, callback_flags.get(name, 0) - bool(equals), rargs)
        return arg != "--"
    flag = framework_flag(name, callback_flags) if is_long or not equals else None
    if flag is not None:
        rargs.pop()
        line.leading_flags.append(name)
        take_framework_flag(line, flag, name, explicit if equals else None, rargs)
        return True
    if line.takes_settings_flag(name):
        rargs.pop()
        load_option_problems().take_settings_flag(line, name, explicit if equals else None, rargs)
        return True
    if arg[:2] != "--" and _take_short_flags(line, rargs, callback_flags):
        return True
    known = [*callback_flags, *FLAGS, *(line.app_settings.flags if line.app_settings else ())]
    load_option_problems().add_unknown_option(line, arg, rargs[:-1], known)
    return False


def _pass_to_typer(line: CommandLine, count: int, rargs: list[str]) -> None:
    """Move the values of a callback's option to `typer_argv`."""
    name = line.typer_argv[-1]
    for _ in range(min(count, len(rargs))):
        line.typer_argv.append(line.take_value(rargs, name))


def _take_short_flags(
    line: CommandLine, rargs: list[str], callback_flags: Mapping[str, int]
) -> bool:
    """Take combined short flags of the framework and of a callback: `-qv`, `-ojson`."""
    arg = rargs[-1]
    end = 1
    width: int | str = 0
    while end < len(arg) and not width:
        flag = f"-{arg[end]}"
        if flag not in callback_flags and flag not in FLAGS:
            return False
        width = callback_flags[flag] if flag in callback_flags else FLAGS[flag][1]
        end += 1
    rargs.pop()
    flags = [f"-{letter}" for letter in arg[1:end]]
    after = arg[end:] or None
    callback_letters = "".join([flag[1] for flag in flags if flag in callback_flags])
    for flag in flags:
        if flag not in callback_flags:
            take_framework_flag(line, flag, flag, after if flag is flags[-1] else None, rargs)
    if callback_letters:
        value = after if flags[-1] in callback_flags else None
        line.typer_argv.append(f"-{callback_letters}{value or ''}")
    if flags[-1] in callback_flags:
        _pass_to_typer(line, callback_flags[flags[-1]] - bool(after), rargs)
    return True


def framework_flag(name: str, reserved: Container[str]) -> str | None:
    """Return the framework flag of this name, `--tooli-NAME` even if the name is reserved."""
    if name.startswith("--tooli-"):
        flag = f"--{name[8:]}"
        return flag if flag in FLAGS else None
    if name in reserved:
        return None
    return name if name in FLAGS else None


def take_framework_flag(
    line: CommandLine, flag: str, typed: str, explicit: str | None, rargs: list[str]
) -> None:
    """Take a framework flag and its value."""
    arity = FLAGS[flag][1]
    if arity == "?":
        name = FLAGS[flag][0]
        if explicit is None and rargs and rargs[-1] in CHOICES[name]:
            explicit = rargs.pop()
        if explicit is not None and explicit not in CHOICES[name]:
            line.problems.append(
                load_option_problems().choice_problem(typed, name, explicit, CHOICES[name])
            )
            return
        line.set_option(flag, explicit)
    elif arity == 0:
        if explicit is not None:
            line.problems.append(load_option_problems().valued_flag_problem(flag, typed, explicit))
            return
        line.set_option(flag, None)
    elif explicit is None and (
        not rargs
        or (rargs[-1][:2] == "--" and load_option_problems().is_known_flag(line, rargs[-1]))
    ):
        line.problems.append(Problem("E1007", FLAGS[flag][0], f"{typed} needs a value"))
    else:
        line.set_option(flag, explicit if explicit is not None else rargs.pop())


# ------------------------------------------------------------------ after the command


def convert_with_typer(param: Param, raw: RawText) -> Any:
    """Convert a parameter's text with Typer. Used for text that `tooli.schema` cannot convert."""
    from tooli.cli import typer_values

    return typer_values.convert_with_typer(param, raw)


class ArgumentParser:
    """Assigns everything after the command's name to its parameters."""

    def __init__(self, line: CommandLine, tool: Tool) -> None:
        self.line = line
        self.tool = tool
        self.flags: dict[str, tuple[Param, bool]] = {}
        self.structured_flags: dict[str, Param] = {}
        self.texts: dict[str, list[str]] = {}
        self.named: dict[str, list[str]] = {}  # the arguments that are given by name
        self.reserved_flags: Container[str] = self.flags
        self.has_unknown_option = False  # True: its values may be among the positionals
        for param in tool.params:
            if param.kind == "argument" and is_structured(param.shape):
                self.structured_flags[f"--{param.name.replace('_', '-')}"] = param
            if param.kind != "injected" and varies_between_typer_versions(param, tool):
                self.defer_to_typer(f"versions of Typer parse {param.name} differently")
            for flag in param.flags:
                self.flags[flag] = (param, True)
                if is_structured(param.shape):
                    self.structured_flags[flag] = param
            for flag in param.negations:
                self.flags[flag] = (param, False)
        self.option_prefixes = {"-", "--"}  # prefixes of options: Typer accepts `+x` and `/x`, too
        for flag in self.flags:
            if flag[:1] != "-":
                self.option_prefixes.update((flag[0], flag[: 2 if flag[1:2] == flag[0] else 1]))
        if line.parent_flags:
            self.reserved_flags = line.parent_flags.union(self.flags)

    def parse(self, rargs: list[str]) -> None:
        line = self.line
        positional: list[str] = []
        while rargs:
            arg = rargs.pop()
            if arg == "--":
                line.typer_argv.append(arg)
                line.typer_argv.extend(reversed(rargs))
                positional.extend(reversed(rargs))
                break
            if arg[:1] in self.option_prefixes and len(arg) > 1:
                self._take_option(arg, rargs)
            else:
                line.typer_argv.append(arg)
                positional.append(arg)
        if not self.tool.cli_path and line.typer_argv:
            self._take_command_name(positional)
        self._assign_positionals(positional)
        self._read_environment()
        self._check_defaults()
        if line.flag_values:
            load_option_problems().check_flag_values(self, framework_flag)
        for name in line.leading_flags:
            if name in self.flags and not name.startswith("--tooli-"):
                fix = f"write it after the command; the framework's own is --tooli-{name[2:]}"
                line.problems.append(
                    Problem("E1007", None, f"{name} belongs to {self.tool.name}: {fix}")
                )

    def _take_command_name(self, positional: list[str]) -> None:
        """Take the first word if it is the name of the app's only command or of a built-in one.

        It is an argument if the command prints its result, because Typer reads the line so, and
        after `--` or an option of the command.
        """
        word = self.line.typer_argv[0]
        if word != self.tool.name and word not in BUILTIN_COMMANDS:
            return
        if self.tool.returns_printed_text or os.environ.get("TOOLI_OUTPUT") == "text":
            self.line.has_other_spelling = self.line.has_other_spelling or word == self.tool.name
        elif word == self.tool.name:
            del positional[0], self.line.typer_argv[0]
        elif word != "tooli" or not BUILTIN_COMMANDS.isdisjoint(positional[1:2]):
            self.line.builtin = word

    def _take_option(self, arg: str, rargs: list[str]) -> None:
        name, equals, explicit = arg.partition("=")
        found = self.flags.get(name)
        is_long = len(name) > 2 or name[:2] == "--"
        if found is not None and is_long:
            self.line.typer_argv.append(arg)
            self._take_own_option(found, name, explicit if equals else None, rargs)
            return
        dot = name.find(".")
        if dot > 0 and name[:dot] in self.structured_flags:
            self.take_dotted_option(
                self.structured_flags[name[:dot]], name[dot + 1 :], explicit, equals, rargs
            )
            return
        flag = framework_flag(name, self.reserved_flags) if is_long or not equals else None
        if flag is not None and (is_long or found is None):
            take_framework_flag(self.line, flag, name, explicit if equals else None, rargs)
        elif self.line.takes_settings_flag(name) and not self.tool.passes_arguments:
            take_settings_flag = load_option_problems().take_settings_flag
            take_settings_flag(self.line, name, explicit if equals else None, rargs)
        elif arg[:2] in self.option_prefixes:
            load_option_problems().take_unknown_option(
                self, convert_with_typer, name, explicit, equals, rargs
            )
        else:
            self._take_short_cluster(arg, rargs)

    def _take_own_option(
        self, found: tuple[Param, bool], name: str, explicit: str | None, rargs: list[str]
    ) -> None:
        param, positive = found
        arguments = self.line.arguments
        if param.is_flag:
            if explicit is not None:
                self._add_problem("E1006", param, f"Option {name} does not take a value")
            elif param.option_kwargs.get("count"):
                arguments[param.name] = arguments.get(param.name, 0) + 1
            else:
                arguments[param.name] = positive
            return
        texts = [] if explicit is None else [explicit]
        while len(texts) < param.nargs and rargs:
            texts.append(self.line.take_value(rargs, name, param.name))
            self.line.typer_argv.append(texts[-1])
        if len(texts) < param.nargs:
            needs = "a value" if param.nargs == 1 else f"{param.nargs} values"
            self._add_problem("E1006", param, f"Option {name} needs {needs}")
            return
        self.add_texts(param, texts)

    def add_texts(self, param: Param, new_texts: list[str]) -> None:
        """Add values of a parameter. Only a list or an object has more than one."""
        texts = self.texts.setdefault(param.name, [])
        if not (param.is_multiple or is_structured(param.shape)):
            texts.clear()
        texts.extend(new_texts)
        if type(self.line.arguments.get(param.name)) is not RawText:
            dotted = self.line.dotted.get(param.name)
            self.line.arguments[param.name] = RawText(texts, convert_with_typer, dotted)

    def take_dotted_option(
        self, param: Param, path: str, explicit: str, equals: str, rargs: list[str]
    ) -> None:
        """Take a dotted flag, which sets one part of an object."""
        flag = f"--{param.name}.{path}"
        if not equals:
            if not rargs:
                self._add_problem("E1006", param, f"Option {flag} needs a value")
                return
            explicit = self.line.take_value(rargs, flag, param.name)
        dotted = self.line.dotted.setdefault(param.name, {})
        dotted.setdefault(path, []).append(explicit)
        texts = self.texts.setdefault(param.name, [])
        self.line.arguments[param.name] = RawText(texts, convert_with_typer, dotted)

    def _take_short_cluster(self, arg: str, rargs: list[str]) -> None:
        """Take combined short flags: `-qv`, `-n5`, `-vvf file`."""
        own_letters: list[str] = []
        before = dict(self.line.arguments)
        for i in range(1, len(arg)):
            flag = f"{arg[0]}{arg[i]}"
            found = self.flags.get(flag)
            is_long = i == 1 and f"-{arg.partition('=')[0]}" in self.flags  # `-size` for `--size`
            if found is None and not is_long and flag in FLAGS and flag not in self.reserved_flags:
                if FLAGS[flag][1] == 0:
                    self.line.set_option(flag, None)
                    continue
                take_framework_flag(self.line, flag, flag, arg[i + 1 :] or None, rargs)
                break
            own_letters.append(arg[i])
            if found is None:
                take_unknown = load_option_problems().take_unknown_letter
                if take_unknown(self, convert_with_typer, i, arg, rargs, before):
                    return
                own_letters.extend(arg[i + 1 :])
                break
            if not found[0].is_flag:
                self.line.typer_argv.append(f"{arg[0]}{''.join(own_letters)}{arg[i + 1 :]}")
                own_letters = []
                self._take_own_option(found, flag, arg[i + 1 :] or None, rargs)
                break
            self._take_own_option(found, flag, None, rargs)
        if own_letters:
            self.line.typer_argv.append(f"{arg[0]}{''.join(own_letters)}")

    def defer_to_typer(self, reason: str) -> None:
        """Let Typer parse the line and report its errors."""
        self.line.typer_reason = reason
        self.line.is_ambiguous = True

    def _add_problem(self, code: str, param: Param, message: str) -> None:
        self.line.problems.append(Problem(code, param.name, message))

    def _positional_params(self) -> list[Param]:
        return [p for p in self.tool.params if p.kind == "argument" and p.name not in self.named]

    def _assign_positionals(self, positionals: list[str]) -> None:
        """Assign the positional values; parameters after a list argument get the last ones."""
        params = self._positional_params()
        list_index = next((i for i, p in enumerate(params) if p.is_multiple), len(params))
        start, stop = 0, len(positionals)
        spans: list[tuple[Param, int, int]] = []
        for param in params[:list_index]:
            end = min(start + param.nargs, stop)
            spans.append((param, start, end))
            start = end
        for param in reversed(params[list_index + 1 :]):
            begin = max(stop - param.nargs, start)
            spans.append((param, begin, stop))
            stop = begin
        if list_index < len(params):
            spans.insert(list_index, (params[list_index], start, stop))
            start = stop
        for param, begin, end in spans:
            if begin < end and not param.is_multiple and end - begin < param.nargs:
                self._add_problem("E1006", param, f"{param.name!r} takes {param.nargs} values")
            elif begin < end:
                raw = positionals[begin:end], convert_with_typer, self.line.dotted.get(param.name)
                self.line.arguments[param.name] = RawText(*raw)
        if list_index == len(params) and start < len(positionals) and not self.has_unknown_option:
            rest = tuple(positionals[start : start + MAX_PROBLEMS])
            make_problem = load_option_problems().extra_arguments_problem
            self.line.problems.append(make_problem(self.line, rest, positionals))

    def _check_defaults(self) -> None:
        """Leave the line to Typer if it must convert a default to the type of its parameter."""
        for param in self.tool.params:
            is_unused = param.name in self.line.arguments or param.required or param.is_omittable
            if (
                is_unused
                or param.kind == "injected"
                or (param.has_valid_default and not param.is_choice)
            ):
                continue
            from tooli.schema.convert_values import default_needs_typer

            if default_needs_typer(param):
                self.defer_to_typer(f"the default of {param.name} is not of its type")

    def _read_environment(self) -> None:
        """Read parameters with `envvar=` from the environment, unless they are on the line."""
        for param in self.tool.params:
            names = param.option_kwargs.get("envvar")
            if names and param.name not in self.line.arguments:
                from tooli.cli.environment_values import read_variables

                names = [names] if isinstance(names, str) else names
                read_variables(self, param, names, convert_with_typer)
