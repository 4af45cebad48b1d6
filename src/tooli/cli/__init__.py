"""Run a command line: read it, run the call, write the answer, exit.

    argv ─▶ read_invocation ─▶ Invocation (frozen)
                                   │
                                   ├▶ info_options   help, schema, version
                                   ├▶ typer_runner   the Typer path: lines that only Typer can parse
                                   └▶ Call ─▶ pipeline ─▶ Outcome ─▶ CommandOutput ─▶ exit

`CommandOutput` owns stdout and writes the answer. `Exit` and `Deadline` (in `process`) end the
process, `Confirm` (in `confirm`) asks a person. Modules of this package that are loaded on demand
receive the `CommandOutput` and never import this one. Each file that a start loads costs 0.1 ms.
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
from time import perf_counter

from tooli.cli.argv import (
    COMPLETION_FLAGS,
    CommandLine,
    allowed_values,
    needs_argument_checks,
    parse_command_line,
)
from tooli.cli.process import (
    Deadline,
    Exit,
    StdoutClosed,
    StdoutGuard,
    capture_outcome,
    freeze_gc,
    is_completing,
    is_terminal,
    program_argv,
    set_sigterm_handler,
    sniff_environment,
)
from tooli.core import Record
from tooli.core._hot_tables import EXTRA_OPTIONS, INFO_OPTIONS, OPTION_FIELDS
from tooli.core.call import CALLER_PROFILES, Call, Caller, Failed, Options
from tooli.pipeline import load_location
from tooli.schema.tool_reader import declares_result

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from typer._click.core import Command

    from tooli.cli.process import SignalHandler
    from tooli.config.layers import SettingFault
    from tooli.core import AppState
    from tooli.core.call import CallerProfile, Outcome, Problem, Stage
    from tooli.core.output_modes import OutputMode
    from tooli.core.protocols import App
    from tooli.core.tool import Tool
    from tooli.records.call_options import ResultOptions


def main(app: App, args: Sequence[str] | None = None, *, enable_gc: bool, **settings: Any) -> Any:
    """Run a command line. Exits the process, as Typer does, unless `standalone_mode=False`.

    The garbage collector is off when this function is called. `enable_gc` says whether to turn it
    on again before the command runs.
    """
    prog_name = settings.pop("prog_name", None)
    standalone = settings.pop("standalone_mode", True)
    command = settings.pop("typer_command", None)
    builtin_prog: tuple[str, ...] | None = settings.pop("builtin_prog", None)
    argv = list(sys.argv[1:] if args is None else args)
    expand = os.name == "nt" and args is None and not {*"*?~%["}.isdisjoint("".join(argv))
    if command is None and (settings or is_completing() or expand):
        from tooli.cli.typer_runner import run_with_typer

        if enable_gc:
            gc.enable()
        return run_with_typer(
            app, args, prog_name=prog_name, standalone_mode=standalone, **settings
        )
    owns_process = standalone and command is None  # False if Typer calls the command
    try:
        invocation = read_invocation(app, argv, prog_name, standalone, command, builtin_prog)
        if owns_process:
            freeze_gc()
    finally:
        if enable_gc:
            gc.enable()
    output = CommandOutput(invocation)
    if owns_process and invocation.has_time_limit:
        return _run_with_deadline(output)
    return run_and_exit(output)


def _run_with_deadline(output: CommandOutput) -> Any:
    """Run an invocation that has a time limit, and exit."""
    invocation, line = output.invocation, output.invocation.line
    is_agent = invocation.caller.category == "ai_agent"

    def handle(deadline: Deadline) -> None:
        from tooli.cli.timeout_exit import handle_alarm

        handle_alarm(deadline, output)

    deadline = Deadline(line.tool, line.options.get("timeout"), is_agent, handle)
    return deadline.run(lambda: run_and_exit(output), invocation.milliseconds)


# ------------------------------------------------------------------ the invocation


class Invocation(Record):
    """One command line, its caller and its settings. Immutable; `read_invocation` creates it."""

    app: App
    argv: Sequence[str]
    line: CommandLine
    caller: Caller
    mode: str = "json"
    has_explicit_mode: bool = False
    prog_name: str | None = None
    standalone: bool = True
    command: Command | None = None  # Typer's command, if Typer called us
    maybe_agent: bool = False  # a variable of an agent or a CI system is set
    category: str | None = None  # kind of caller; None if no such variable is set
    setting_errors: Sequence[SettingFault] = ()
    parse_error: Exception | None = None  # an invalid command, or one that cannot be loaded
    started: float = 0.0

    @property
    def state(self) -> AppState:
        """The state of the app, or of the built-in commands if the line names one of them."""
        return self.app._state

    @property
    def caller_profile(self) -> CallerProfile | None:
        """The output defaults for the caller; None if no agent and no CI system is calling."""
        return None if self.category is None else CALLER_PROFILES[self.category]

    @property
    def may_have_human(self) -> bool:
        """True unless an agent or a CI system is calling."""
        profile = self.caller_profile
        return profile is None or profile.output != "json"

    @property
    def can_prompt(self) -> bool:
        """True if a person may be asked questions on the terminal."""
        return self.is_interactive_mode and self.may_have_human and is_terminal(sys.stderr)

    @property
    def has_time_limit(self) -> bool:
        """True if the line, the tool or the kind of caller may set a time limit."""
        tool = self.line.tool
        is_declared = tool is not None and tool.limits.timeout is not None
        return self.maybe_agent or is_declared or "timeout" in self.line.options

    @property
    def is_machine_mode(self) -> bool:
        """True if stdout contains the answer only."""
        return self.mode == "json" or find_mode(self.mode).owns_stdout

    @property
    def is_interactive_mode(self) -> bool:
        """True if the answer is text for a person, with Typer's help and error messages."""
        return self.mode != "json" and find_mode(self.mode).is_interactive

    @property
    def is_document_mode(self) -> bool:
        """True if the answer is one document, with the envelope."""
        return self.mode == "json" or find_mode(self.mode).is_document

    @property
    def record_separator(self) -> str:
        """The text that ends a record: a newline, or NUL after `--print0`."""
        return "\0" if self.line.options.get("print0") else "\n"

    def milliseconds(self) -> int:
        """Return the milliseconds since the start of the invocation."""
        return int((perf_counter() - self.started) * 1000)

    def options(self, tool: Tool | None = None, *, stdin_consumed: bool = False) -> Options:
        """Return the framework options of a call of `tool`."""
        options = self.line.options
        response_format = options.get("response_format")
        fields = {field: options[name] for name, field in OPTION_FIELDS.items() if name in options}
        if EXTRA_OPTIONS:
            extra = {name: options[name] for name in EXTRA_OPTIONS if name in options}
            fields["extra"] = extra or None
        return Options(
            **fields,
            detailed=None
            if response_format is None and self.is_document_mode
            else response_format == "detailed",
            concise=response_format == "concise",
            interactive=self.can_prompt,
            is_machine_mode=self.is_machine_mode,
            stdin_consumed=stdin_consumed or options.get("input") == "-",
            result_options=self._result_options(tool),
            has_default_timeout="timeout" in self.line.from_config,
            given={n: v for n, v in options.items() if n not in self.line.from_config},
            typed=self.line,
        )

    def _result_options(self, tool: Tool | None) -> ResultOptions | None:
        has_caller_limits = self.maybe_agent and self.mode != "json"
        if not has_caller_limits and not self.line.needs_result_options(tool):
            return None  # `limit_document` truncates a JSON document that is too large for an agent
        from tooli.cli.caller_defaults import compute_result_options

        return compute_result_options(self, tool)

    def prepare(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        problems: Sequence[Problem] = (),
        warnings: list[str] | None = None,
    ) -> tuple[Call, tuple[Stage, ...]]:
        """Return the call of a tool with these arguments, and its stages."""
        stdin_consumed = False
        if self.line.has_payload:
            from tooli.cli.payload import add_external_arguments

            arguments, problems, stdin_consumed = add_external_arguments(
                self.app._state, self.line, tool, arguments, problems
            )
        options = self.options(tool, stdin_consumed=stdin_consumed)
        warnings = [] if warnings is None else warnings
        return self.app.prepare(
            Call(tool, arguments, self.caller, warnings, options, problems=tuple(problems))
        )


def read_invocation(
    app: App,
    argv: Sequence[str],
    prog_name: str | None = None,
    standalone: bool = True,
    command: Command | None = None,
    builtin_prog: tuple[str, ...] | None = None,
) -> Invocation:
    """Read a line and its settings; `builtin_prog` are the words before a built-in command."""
    started = perf_counter()
    StdoutGuard.restore_stdout()
    state, setting_errors = app._state, ()
    app, line, parse_error = _parse_line(app, argv, is_builtin=builtin_prog is not None)
    maybe_agent, agent, has_settings = sniff_environment()
    prog = builtin_prog or ((prog_name,) if prog_name else program_argv())
    prog = (*prog, "tooli") if line.builtin == "tooli" else prog
    if builtin_prog is not None or line.builtin == "tooli" or prog[:2] == ("tooli", "run"):
        prog_name = " ".join(map(load_location("tooli.errors:shell_quote"), prog))
    caller, category = _identify_caller(argv, prog, maybe_agent, agent)
    # A command that inspects the settings runs even if some are invalid, and reports them itself.
    inspects = line.tool is not None and hasattr(line.tool.fn, "tooli_runs_with_invalid_settings")
    if has_settings or inspects or state.policy != state.declared_policy:
        from tooli.config.applied_settings import load_cli_settings

        faults = load_cli_settings(state, line.options, line.from_config, category, standalone)
        setting_errors = () if inspects else faults
    if state.app_settings is not None:
        load_usage_errors().apply_settings_flags(state.app_settings, line)
    state.has_cli_settings = app._state.has_cli_settings = True
    requested: str | None = line.options.get("output") or os.environ.get("TOOLI_OUTPUT")
    requested = requested or app._state.default_output
    if requested not in ("auto", "json") and requested not in allowed_values("output"):
        requested = load_usage_errors().report_unknown_mode(line, requested)
    invocation = Invocation(
        app,
        argv,
        line,
        caller,
        prog_name=prog_name,
        standalone=standalone,
        command=command if app._state is state else None,
        maybe_agent=maybe_agent,
        category=category,
        setting_errors=setting_errors,
        parse_error=parse_error,
        started=started,
    )
    mode, has_explicit_mode = _choose_mode(invocation, requested)
    if mode == "json" and not has_explicit_mode:
        return invocation
    return invocation.replace(mode=mode, has_explicit_mode=has_explicit_mode)


def _parse_line(
    app: App, argv: Sequence[str], *, is_builtin: bool
) -> tuple[App, CommandLine, Exception | None]:
    """Parse a line for the app, or for its built-in commands; return the app, line and error."""
    line, parse_error = None, None
    if not is_builtin:
        try:
            line = parse_command_line(app.tree(), argv)
            if line.needs_lookup:
                from tooli.cli.typer_lookup import find_with_typer

                line = find_with_typer(app, argv)
            if not (line.has_other_spelling or _may_name_builtin(line)):
                return app, line, None
        except Exception as error:
            parse_error = error
    if is_builtin:
        return load_usage_errors().parse_for_builtins(app, argv)
    return load_usage_errors().parse_again(app, argv, line, parse_error)


def _may_name_builtin(line: CommandLine) -> bool:
    is_only_command = line.tool is not None and not line.tool.cli_path
    return line.builtin is not None or (is_only_command and bool(line.problems))


def _choose_mode(invocation: Invocation, requested: str | None) -> tuple[str, bool]:
    """Return the output mode, and whether it was requested explicitly."""
    line, tool = invocation.line, invocation.line.tool
    if requested is None:
        return "json", False
    if tool is None and any([flag in invocation.argv for flag in COMPLETION_FLAGS]):
        return "text", requested != "auto"
    command_mode = None if tool is None else getattr(tool.fn, "tooli_mode", None)
    if requested != "auto":
        if command_mode is not None and find_mode(command_mode).is_interactive:
            return load_usage_errors().resolve_text_command_mode(invocation, requested), True
        return requested, True
    if command_mode is not None:
        return command_mode, False
    implied = "plain" if line.options.get("print0") else "stream"
    if implied == "plain" or line.options.get("sample_via") == "stdin":
        return implied, False
    profile = invocation.caller_profile
    if profile is not None and profile.printed == "result":
        return "json", False
    has_human = profile is None or profile.output == "auto"
    is_text = (has_human and is_terminal(sys.stdout)) or prints_text(invocation)
    return ("text" if is_text else "json"), False


def prints_text(invocation: Invocation) -> bool:
    """True if the command of the line, or without one the whole app, declares no result."""
    line = invocation.line
    if line.tool is not None:
        return line.tool.returns_printed_text
    commands = [registration for _, registration in invocation.app.tree().walk()]
    return line.is_foreign or not any([declares_result(command.known_fn) for command in commands])


def _identify_caller(
    argv: Sequence[str],
    prog: tuple[str, ...],
    maybe_agent: bool,
    agent: tuple[str, str | None] | None,
) -> tuple[Caller, str | None]:
    """Return the caller and its category; `agent` is its name and version, if they are known."""
    if agent is not None and "TOOLI_SESSION_ID" not in os.environ:
        checks_arguments = needs_argument_checks(argv)
        category = "ai_agent"
        caller = Caller("cli", *agent, prog=prog, category=category, maybe_agent=checks_arguments)
        return caller, category
    if not maybe_agent and "TOOLI_SESSION_ID" not in os.environ:
        return Caller("cli", prog=prog), None
    from tooli.cli.caller_defaults import detect_caller

    return detect_caller(prog, maybe_agent, needs_argument_checks(argv))


def find_mode(name: str) -> OutputMode:
    """Return the output mode with this name. `json` is checked before, without this table."""
    return load_location("tooli.core.output_modes:find_mode")(name)


def load_usage_errors() -> ModuleType:
    """Return the module for lines that cannot be run, and for other errors."""
    from tooli.cli import usage_errors

    return usage_errors


# ------------------------------------------------------------------ output

SMALL_DOCUMENT_BYTES = 10_000
"""Every caller accepts documents up to this size. Limits are loaded only for larger ones."""


class CommandOutput:
    """Writes the answer to an invocation. Owns stdout during the run, and holds the exit code."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.exit = Exit(invocation.standalone)
        self.warnings: list[str] = []  # warnings of the call, for `meta.warnings`
        self.guard: StdoutGuard | None = None
        self.streamed_count = 0  # items of a stream that have been written
        self.replaced: list[tuple[Any, str, Any]] = []  # owner, name and original value
        self._previous_sigterm: SignalHandler = None

    def take_stdout(self, *, capture: bool = False) -> None:
        """In a machine mode, reserve stdout for the answer, and let SIGTERM raise an exception."""
        if self.guard is None and self.invocation.is_machine_mode:
            self.guard = StdoutGuard(capture)
            if self.invocation.standalone:
                self._previous_sigterm = set_sigterm_handler()

    def take_stdout_for_data(self) -> None:
        """Reserve stdout for data in any mode."""
        self.guard = self.guard or StdoutGuard()

    def guard_prompts(self) -> None:
        """Let the questions of a command fail at once where nobody can answer them."""
        if sys.stdin is not sys.__stdin__:  # a test answers the questions
            return

        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            return (
                load_location("tooli.cli.prompt_guard:guarded_getpass")(self)
                if name == "getpass"
                else None
            )

        vars(find_spec)["find_spec"] = find_spec  # a finder is an object with this method
        self.replaced.append((builtins, "input", builtins.input))
        builtins.input = lambda prompt="", /: load_location("tooli.cli.prompt_guard:ask_line")(
            self, prompt
        )
        self.replaced.append((sys, "meta_path", sys.meta_path))
        sys.meta_path = [find_spec, *sys.meta_path]
        if "typer" in sys.modules or "getpass" in sys.modules:
            load_location("tooli.cli.prompt_guard:guard_modules")(self)

    def write_outcome(self, outcome: Outcome, call: Call) -> int:
        """Write the outcome of a call in the mode of the invocation; return the exit code."""
        printed = "" if self.guard is None else self.guard.printed()
        texts = () if self.guard is None else self.guard.stderr_texts
        if printed or (texts and isinstance(outcome, Failed)):
            from tooli.pipeline.stdout_capture import attach_output

            outcome = attach_output(outcome, printed, texts, call)
        invocation = self.invocation
        if isinstance(outcome, Failed) and (call.options.verbose or not call.tool.cli_path):
            call = load_location("tooli.cli.failure_notes:add_notes")(invocation, outcome, call)
        if self.guard is not None or not isinstance(outcome, Failed):
            self.exit.set_outcome(outcome)
        if self.guard is None or invocation.mode != "json":
            from tooli.cli.outcome_writer import write_outcome

            return write_outcome(self, outcome, call)
        present = load_location("tooli.pipeline.present:Presented")
        document: bytes = present(outcome, call, invocation.milliseconds).envelope_json()
        if len(document) > SMALL_DOCUMENT_BYTES and invocation.maybe_agent:
            from tooli.cli.document_limits import limit_document

            document = limit_document(invocation, outcome, call, document)
        self.emit(document)
        return self.exit.code

    def emit(self, data: bytes) -> None:
        """Write one line of the answer to stdout; raise StdoutClosed if the write fails."""
        if self.guard is not None:
            self.write_with(self.guard.write, data + b"\n")

    def write_with(self, write: Callable[..., None], *data: bytes) -> None:
        """Call a function that writes to stdout; raise StdoutClosed if the write fails."""
        try:
            write(*data)
        except (OSError, ValueError) as failure:
            load_usage_errors().report_write_error(self, failure)
            raise StdoutClosed from None

    def count_items(self, count: int) -> None:
        """Record how many items of a stream have been written."""
        self.streamed_count = count

    def flush(self, code: Any) -> Any:
        """Flush stdout in a text mode; return `code`, or another exit code if flushing fails."""
        if self.guard is not None or not self.invocation.standalone:
            return code
        try:
            if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
                sys.stdout.flush()
        except (OSError, ValueError) as failure:
            load_usage_errors().abandon_stdout(self, failure)
            return self.exit.code or code
        return code

    def release(self) -> None:
        """Restore stdout, the handler of SIGTERM and the functions that were replaced."""
        while self.replaced:
            setattr(*self.replaced.pop())
        if self.guard is not None:
            self.guard.release(is_final=self.invocation.standalone)
        if self._previous_sigterm is not None:
            set_sigterm_handler(self._previous_sigterm)


# ------------------------------------------------------------------ running the invocation


def run_and_exit(output: CommandOutput) -> Any:
    """Run an invocation and exit; with `standalone_mode=False`, return the value or the code."""
    try:
        code = _run_to_exit_code(output)
    except SystemExit as system_exit:  # Typer has written the answer
        code = output.flush(system_exit.code)
        if not output.invocation.standalone or code not in range(256):
            output.release()
            raise
    except BaseException:
        output.release()
        raise
    output.release()
    return output.exit.exit_or_return(code)


def _run_to_exit_code(output: CommandOutput) -> Any:
    try:
        return output.flush(run_invocation(output))
    except StdoutClosed:  # any error message is already written
        return output.exit.code
    except (Exception, KeyboardInterrupt) as exc:
        code = load_usage_errors().handle_exception(output, exc)
        if code is not None:
            return code
        if output.invocation.command is None and isinstance(exc, Exception):
            from tooli.cli.typer_runner import raise_through_typer

            raise_through_typer(output, exc)
        raise


def run_invocation(output: CommandOutput) -> int:
    """Run an invocation, write the answer, and return the exit code."""
    invocation = output.invocation
    line = invocation.line
    if invocation.parse_error is not None:
        raise invocation.parse_error
    may_need_color = invocation.maybe_agent and not invocation.is_machine_mode
    if (
        invocation.setting_errors
        or may_need_color
        or not {"verbose", "color", "no_color"}.isdisjoint(line.options)
    ):
        from tooli.cli.caller_defaults import apply_output_settings

        exit_code = apply_output_settings(output)
        if exit_code is not None:
            return exit_code
    has_answer = not {"no_input", "yes"}.isdisjoint(line.options)
    if invocation.is_machine_mode or invocation.maybe_agent or has_answer:
        output.guard_prompts()
    wants_info = not line.has_invalid_option and not INFO_OPTIONS.isdisjoint(line.options)
    if not wants_info and _needs_typer(invocation):
        return _run_on_typer_path(output)
    if wants_info or line.tool is None:
        from tooli.cli.info_options import report_missing_command, run_info_option

        return run_info_option(output) if wants_info else report_missing_command(output)
    output.take_stdout(capture=line.tool.returns_printed_text)
    call, stages = invocation.prepare(line.tool, line.arguments, line.problems, output.warnings)
    if invocation.is_interactive_mode and load_usage_errors().has_invalid_arguments(
        invocation, call
    ):  # a person gets Typer's message
        return _run_on_typer_path(output)
    if not invocation.is_document_mode or "sample_via" in line.options:
        from tooli.cli.outcome_writer import run_streaming

        return run_streaming(output, call, stages)
    run = load_location("tooli.pipeline.drivers:run")
    return output.write_outcome(capture_outcome(lambda: run(call, stages)), call)


def _run_on_typer_path(output: CommandOutput) -> int:
    from tooli.cli.typer_runner import run_on_typer_path

    return run_on_typer_path(output)


def _needs_typer(invocation: Invocation) -> bool:
    """True if Typer must parse the line, for its features or for its messages to a person."""
    line = invocation.line
    if line.has_invalid_option or line.has_payload:
        return False
    if invocation.command is not None and not (
        invocation.is_machine_mode and line.unknown_command is not None
    ):
        return True
    if invocation.is_interactive_mode:
        if line.has_replacement:
            return False
        needs_typer_message = bool(line.problems) or line.tool is None or line.tool.deprecated
        return bool(needs_typer_message or line.typer_reason is not None)
    if line.unknown_command is not None and not line.group.has_dynamic_commands:
        return False
    return line.typer_reason is not None
