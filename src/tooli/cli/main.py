"""The command line's door: a line of words becomes a Call, an Outcome becomes output.

argv ─▶ read_line ─▶ mode ─┬▶ a question about the app (help, schema, version)
                           ├▶ what only Typer knows: the Typer lane takes the same line
                           └▶ Call ─▶ pipeline ─▶ Outcome ─▶ envelope, lines or a table
"""

from __future__ import annotations

import gc
import os
import sys
from time import perf_counter

from tooli.cli.argv import COMPLETION_FLAGS, CommandLine, parse_command_line
from tooli.cli.process import (
    StdoutClosed,
    StdoutGuard,
    fast_exit,
    freeze_gc,
    has_timeout,
    is_completing,
    is_terminal,
    limit_document,
    needs_argument_checks,
    program_argv,
    report_write_error,
    run_with_timeout,
    set_sigterm_handler,
    shaping_if_needed,
    sniff_environment,
)
from tooli.core._hot_tables import EXTRA_OPTIONS, INFO_OPTIONS, OPTION_FIELDS
from tooli.core.app_state import BUILTIN_COMMANDS
from tooli.core.call import Caller, Failed, Options
from tooli.pipeline.drivers import run
from tooli.pipeline.present import present

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage
    from tooli.core.caller_profile import CallerProfile
    from tooli.core.output_modes import OutputMode
    from tooli.core.tool import Param
    from tooli.schema.convert import RawText


def main(app: Any, args: Sequence[str] | None = None, **settings: Any) -> Any:
    """Run a command line; exits the process, as Typer does, unless `standalone_mode=False`."""
    prog_name = settings.pop("prog_name", None)
    standalone = settings.pop("standalone_mode", True)
    argv = list(sys.argv[1:] if args is None else args)
    expand = os.name == "nt" and args is None and not {*"*?~%["}.isdisjoint("".join(argv))
    if settings or is_completing() or expand:
        from tooli.cli.typer_runner import run_with_typer

        return run_with_typer(
            app, args, prog_name=prog_name, standalone_mode=standalone, **settings
        )
    gc_was_on = gc.isenabled()
    gc.disable()  # while a line is read nothing becomes garbage: there is nothing to look for
    invocation = Invocation(app, argv, prog_name, standalone)
    if standalone:
        freeze_gc()
    if gc_was_on:
        gc.enable()
    return (
        run_with_timeout(invocation)
        if standalone and has_timeout(invocation)
        else invocation.run_and_exit()
    )


class Invocation:
    """One run of a command line: what was asked, how to answer, and where to."""

    def __init__(
        self,
        app: Any,
        argv: Sequence[str],
        prog_name: str | None,
        standalone: bool,
        command: Any = None,
    ) -> None:
        self.app = app
        self.state = app._state
        self.argv = argv
        self.prog_name = prog_name
        self.standalone = standalone
        self.command = command  # Typer's own, where Typer opened the door
        self.code = 0
        self.streamed_count = 0  # items of a stream that are out already
        self.warnings: list[str] = []
        self.has_explicit_mode = False
        self.items: list[str] | None = None  # what was on stdin, for `--null`
        self.started = perf_counter()
        StdoutGuard.restore_stdout()
        self._parse_error: Exception | None = None
        self.line = self._parse()
        self.value: Any = None
        self._caller_profile: CallerProfile | None = None
        self.setting_errors: Sequence[Any] = ()  # what is wrong with the settings
        self.maybe_agent, has_settings = sniff_environment()
        app_state = app._state
        if has_settings or self.app is not app or app_state.policy != app_state.declared_policy:
            from tooli.cli.cli_settings import load_settings

            load_settings(self, app_state, has_settings)
        self.mode = self._choose_mode()
        self.stdout_guard: StdoutGuard | None = None
        self._previous_sigterm: Any = None  # what SIGTERM did before

    # -------------------------------------------------------------- what was asked

    def _parse(self) -> CommandLine:
        try:
            line = parse_command_line(self.app.tree(), self.argv, self.convert_with_typer)
            unknown_word = line.unknown_word if not line.path else None
            if unknown_word in BUILTIN_COMMANDS or (
                line.problems and not BUILTIN_COMMANDS.isdisjoint(self.argv)
            ):
                from tooli.cli.usage_errors import parse_builtin_command

                line = parse_builtin_command(self, line)
            return line
        except Exception as error:  # a command that is declared wrongly, or cannot be loaded
            self._parse_error = error
            from tooli.cli.usage_errors import parse_output_mode

            return parse_output_mode(self.argv)

    def _choose_mode(self) -> str:
        requested = self.line.options.get("output") or os.environ.get("TOOLI_OUTPUT")
        requested = requested or self.state.default_output
        if requested not in ("auto", "json") and not _is_known_mode(requested):
            from tooli.cli.usage_errors import report_invalid_mode

            return report_invalid_mode(self.line, requested)
        self.has_explicit_mode = requested != "auto"
        command_mode = (
            getattr(self.line.tool.fn, "tooli_mode", None) if self.line.tool is not None else None
        )
        prints = command_mode is not None and _find_mode(command_mode).is_interactive
        if prints and self.has_explicit_mode:
            from tooli.cli.usage_errors import resolve_text_command_mode

            return resolve_text_command_mode(self, requested)
        if command_mode is not None and not self.has_explicit_mode:
            return command_mode
        if self.has_explicit_mode:
            return requested
        if self.line.options.get("print0"):
            return "plain"
        tool = self.line.tool
        prints = tool is not None and tool.returns_printed_text
        profile = self.caller_profile
        if profile is not None and profile.output == "json":
            return "text" if prints and profile.printed == "as it is" else "json"
        return "text" if prints or is_terminal(sys.stdout) else "json"

    @property
    def caller_profile(self) -> CallerProfile | None:
        """What a caller of that kind gets; None where nobody left a mark."""
        if self.maybe_agent and self._caller_profile is None:
            from tooli.cli.cli_settings import detect_caller_profile

            self._caller_profile = detect_caller_profile()
        return self._caller_profile

    @property
    def has_human(self) -> bool:
        """Whether nothing speaks against a person at the keyboard."""
        return self.caller_profile is None or self.caller_profile.output != "json"

    @property
    def is_machine_mode(self) -> bool:
        """True if stdout contains the answer only."""
        return self.mode == "json" or _find_mode(self.mode).owns_stdout

    @property
    def is_interactive_mode(self) -> bool:
        """True if the answer is text for a person, with Typer's help and error messages."""
        return self.mode != "json" and _find_mode(self.mode).is_interactive

    @property
    def is_document_mode(self) -> bool:
        """True if the answer is one document, with the envelope."""
        return self.mode == "json" or _find_mode(self.mode).is_document

    def caller(self) -> Caller:
        """Who is asking, and how they typed the program."""
        prog = (self.prog_name,) if self.prog_name else program_argv()
        if not self.maybe_agent and "TOOLI_SESSION_ID" not in os.environ:
            return Caller("cli", prog=prog)
        from tooli.detect import identify_caller

        name, version, session, kind = identify_caller(self.maybe_agent)
        agent = kind == "ai_agent" and needs_argument_checks(self.argv)
        return Caller("cli", name, version, session, prog=prog, category=kind, maybe_agent=agent)

    def options(self) -> Options:
        """What the line asks of the framework."""
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
            interactive=self.is_interactive_mode and self.has_human and is_terminal(sys.stderr),
            is_machine_mode=self.is_machine_mode,
            stdin_consumed=options.get("input") == "-" or self.items is not None,
            result_options=shaping_if_needed(self),
            has_default_timeout="timeout" in self.line.from_config,
        )

    def convert_with_typer(self, param: Param, raw: RawText) -> Any:
        """Typer's word on a text that the light engine is in doubt about."""
        from tooli.cli.typer_params import convert_with_typer

        return convert_with_typer(param, raw)

    # -------------------------------------------------------------- answering

    def run_and_exit(self) -> Any:
        """Run the line and leave."""
        try:
            code = self._run_to_exit_code()
        except SystemExit as system_exit:  # Typer has answered
            code = self._flush_stdout(system_exit.code)
            if code == system_exit.code:
                raise
        except BaseException:
            self.release()
            raise
        return self.exit(code)

    def _run_to_exit_code(self) -> Any:
        try:
            return self._flush_stdout(self.run())
        except StdoutClosed:  # nobody reads any more: end quietly
            return self.code
        except (Exception, KeyboardInterrupt) as exc:
            if self.is_machine_mode:
                from tooli.cli.usage_errors import write_internal_error

                return write_internal_error(self, exc)
            if isinstance(exc, KeyboardInterrupt) and self.standalone:
                return 130
            if self.command is None and isinstance(exc, Exception):
                from tooli.cli.typer_runner import raise_through_typer

                raise_through_typer(self.app, exc)
            raise

    def _flush_stdout(self, code: Any) -> Any:
        """The exit code, once what was printed is out."""
        if self.stdout_guard is not None or not self.standalone:
            return code
        from tooli.cli.text_output import flush_stdout

        return flush_stdout(self, code)

    def run(self) -> int:
        """Answer the line; the exit code."""
        if self._parse_error is not None:
            raise self._parse_error
        options = self.line.options
        may_need_color = self.maybe_agent and not self.is_machine_mode
        if (
            self.setting_errors
            or may_need_color
            or not {"verbose", "color", "no_color"}.isdisjoint(options)
        ):
            from tooli.cli.cli_settings import apply_output_settings

            exit_code = apply_output_settings(self)
            if exit_code is not None:
                return exit_code
        has_misused_flag = any([p.code == "E1007" for p in self.line.problems])
        if not has_misused_flag and not INFO_OPTIONS.isdisjoint(options):
            from tooli.cli.info_options import run_info_option

            return run_info_option(self)
        if any(word in self.argv for word in COMPLETION_FLAGS) and self.line.tool is None:
            self.mode = "text"
        if self._needs_typer():
            from tooli.cli.typer_runner import run_invocation

            return run_invocation(self)
        if self.line.tool is None:
            from tooli.cli.info_options import report_missing_command

            return report_missing_command(self)
        self.guard_stdout(capture=self.line.tool.returns_printed_text)
        call, stages = self.prepare(self.line.arguments, self.line.problems)
        if self.is_interactive_mode:
            from tooli.cli.usage_errors import has_invalid_arguments

            if has_invalid_arguments(self, call):  # it is Typer who says so to people
                from tooli.cli.typer_runner import run_invocation

                return run_invocation(self)
        return self.run_call(call, stages)

    def _needs_typer(self) -> bool:
        line = self.line
        if any(p.code == "E1007" for p in line.problems) or line.has_payload:
            return False
        if self.command is not None and not (
            self.is_machine_mode and line.unknown_word is not None
        ):
            return True
        if self.is_interactive_mode:
            needs_typer_message = bool(line.problems) or line.tool is None or line.tool.deprecated
            return bool(needs_typer_message or line.typer_reason is not None)
        if line.unknown_word is not None and not line.group.has_dynamic_commands:
            return False
        return line.typer_reason is not None

    def prepare(
        self, arguments: dict[str, Any], problems: Sequence[Any] = ()
    ) -> tuple[Call, tuple[Stage, ...]]:
        """The call that the line stands for."""
        if "input" in self.line.options or "null" in self.line.options:
            from tooli.cli.payload import add_external_arguments

            arguments, problems = add_external_arguments(self, arguments, problems)
        prepare_args = self.line.tool, arguments, self.caller(), self.options(), self.warnings
        return self.app.prepare(*prepare_args, problems=tuple(problems))

    def run_call(self, call: Call, stages: tuple[Stage, ...]) -> int:
        """Run the call and show what became of it."""
        if not self.is_document_mode:
            from tooli.cli.stream_output import run_streaming

            return run_streaming(self, call, stages)
        return self.write_outcome(self.capture_outcome(lambda: run(call, stages)), call)

    def capture_outcome(self, work: Callable[[], Outcome]) -> Outcome:
        """The outcome of some work, whatever stops it."""
        try:
            return work()
        except Exception:
            raise
        except BaseException as exc:
            from tooli.pipeline.failure import to_outcome

            return to_outcome(exc)

    # -------------------------------------------------------------- showing

    def guard_stdout(self, *, capture: bool = False) -> None:
        """Take stdout for the answer alone; in machine modes SIGTERM is answered, too."""
        if self.is_machine_mode and self.stdout_guard is None:
            self.stdout_guard = StdoutGuard(capture)
            if self.standalone:
                self._previous_sigterm = set_sigterm_handler()

    def write_outcome(self, outcome: Outcome, call: Call) -> int:
        """Show an outcome; the exit code."""
        if self.stdout_guard is None:
            from tooli.cli.text_output import show_outcome

            return show_outcome(self, outcome, call)
        printed = self.stdout_guard.printed()
        if printed:
            from tooli.pipeline.stdout_capture import attach_printed_text

            outcome = attach_printed_text(outcome, printed, call)
        if isinstance(outcome, Failed):
            self.code = outcome.error.exit_code & 0xFF or 70
        else:
            self.value = outcome.value
        if self.mode != "json":
            from tooli.cli.stream_output import write_machine_outcome

            return write_machine_outcome(self, outcome, call)
        document = present(outcome, call, self.milliseconds).envelope_json()
        self.emit(limit_document(self, outcome, call, document))
        return self.code

    def milliseconds(self) -> int:
        """How long it has taken so far."""
        return int((perf_counter() - self.started) * 1000)

    def emit(self, data: bytes) -> None:
        """One line of the answer."""
        if self.stdout_guard is None:
            return
        try:
            self.stdout_guard.write(data + b"\n")
        except (OSError, ValueError) as failure:
            self.code = report_write_error(failure) or self.code
            raise StdoutClosed from None

    def exit(self, code: int) -> Any:
        """Leave, as Typer leaves: with an exit code, or with the value where that is wanted."""
        self.release()
        if not self.standalone:
            return self.value if code == 0 else code
        sys.exit(fast_exit(code))

    def release(self) -> None:
        """Give back what was taken: stdout, and SIGTERM."""
        if self.stdout_guard is not None:
            self.stdout_guard.release(is_final=self.standalone)
        if self._previous_sigterm is not None:
            set_sigterm_handler(self._previous_sigterm)


def _find_mode(name: str) -> OutputMode:
    """Return the row of a mode. The table is not loaded for `json`, the mode of agents."""
    from tooli.core.output_modes import find_mode

    return find_mode(name)


def _is_known_mode(name: str) -> bool:
    from tooli.core.output_modes import OUTPUT_MODES

    return name in OUTPUT_MODES
