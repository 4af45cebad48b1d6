"""The Typer lane: the real Typer runs the line. What depends on Typer's inside is in `typer_*`.

typer_register   what was registered with a Tooli is given to `typer.Typer`
typer_params     a tool's parameters in Typer's words
typer_lane       Typer parses, converts and calls; the values go through the pipeline,
                 and the session answers in its mode
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

import typer
from typer.core import TyperCommand
from typer.main import get_command

from tooli.call.failure import exit_request, outcome_of
from tooli.call.model import Failed, Ok, Problem
from tooli.contract.fit import Doubt, Given, Misfit, Words, fit_words
from tooli.surfaces.cli.channel import completing
from tooli.surfaces.cli.main import Session
from tooli.surfaces.cli.typer_params import judge, native
from tooli.surfaces.cli.typer_prompts import asking_on_the_terminal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.call.model import Call, Outcome
    from tooli.contract.tool import Param, Tool
    from tooli.errors import ToolError
    from tooli.surfaces.cli.argv import Line

_session: ContextVar[LaneSession | None] = ContextVar("tooli_session", default=None)


class LaneSession:
    """A session while Typer runs its line, and what came of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.outcome: Outcome | None = None
        self.call: Call | None = None
        self.code = 0


# ------------------------------------------------------------------ a tool, called by Typer


def genuine(app: Any) -> Any:
    """Typer's own class below an app, whatever `typer.Typer` has been made to mean."""
    wanted = ("typer.main", "Typer")
    return next(c for c in type(app).__mro__ if (c.__module__, c.__name__) == wanted)


def call_tool(app: Any, registration: Any, values: dict[str, Any]) -> Any:
    """A command's function, called by Typer with parsed values: they go through the pipeline."""
    lane = _session.get()
    if lane is None:
        return _alone(app, registration.tool((registration.word,)), values)
    line = lane.session.line
    path = line.path if line.path and line.tool is not None else (registration.word,)
    return _through(lane, registration.tool(path, lane.session.house), values)


def _alone(app: Any, tool: Tool, values: dict[str, Any]) -> Any:
    """Below somebody else's Typer: run it, and let failures out as they are."""
    from tooli.call.model import Caller, Options
    from tooli.call.pipeline import run

    arguments = _arguments(tool, values, {})
    call, stages = app.prepare(tool, arguments, Caller("cli"), Options(), warnings=[])
    outcome = run(call, stages)
    if isinstance(outcome, Failed):
        raise outcome.error.__cause__ or outcome.error
    return outcome.value


def _through(lane: LaneSession, tool: Tool, values: dict[str, Any]) -> Any:
    """Run a tool with what Typer parsed, in the session's mode."""
    session = lane.session
    session.line.tool = tool
    arguments = _arguments(tool, values, session.line.dotted)
    call, stages = session.prepare(_as_typed(arguments, session.line))
    lane.call = call
    if session.whole:
        from tooli.call.pipeline import run

        lane.outcome = session.guarded(lambda: run(call, stages))
        return None
    if session.machine:
        from tooli.call.pipeline import stream
        from tooli.surfaces.cli.streams import show_stream

        lane.outcome = session.guarded(lambda: show_stream(session, stream(call, stages), call))
        return None
    return _for_people(lane, call, stages)


def _for_people(lane: LaneSession, call: Call, stages: Any) -> Any:
    session = lane.session
    if not session.standalone:
        from tooli.call.pipeline import run

        outcome = run(call, stages)
        if isinstance(outcome, Failed):
            raise outcome.error.__cause__ or outcome.error
        return outcome.value
    code = session.perform(call, stages)
    if code:
        raise typer.Exit(code)
    return session.value


def _arguments(
    tool: Tool, values: dict[str, Any], dotted: dict[str, dict[str, list[str]]]
) -> dict[str, Any]:
    """What Typer parsed as a call's arguments: fitted where Typer could, words where not."""
    arguments: dict[str, Any] = {}
    for param in tool.params:
        value = values.get(param.name)
        parts = dotted.get(param.name)
        if param.kind == "injected" or native(param):
            if param.name in values:
                arguments[param.name] = Given(value)
        elif value not in (None, (), []) or parts:
            texts = [value] if isinstance(value, str) else list(value or ())
            arguments[param.name] = Words(texts, judge, parts)
    return arguments


def _as_typed(arguments: dict[str, Any], line: Line) -> dict[str, Any]:
    """The arguments in the order of the line; words as our own reader has them, if it is sure."""
    if line.guessed:
        return arguments
    typed = {name: value for name, value in line.arguments.items() if name in arguments}
    for name, value in typed.items():
        if not (isinstance(value, Words) and isinstance(arguments[name], Words)):
            typed[name] = arguments[name]
    return {**typed, **{k: v for k, v in arguments.items() if k not in typed}}


# ------------------------------------------------------------------ the door that Typer opens


class Door:
    """Typer's command or group, whose `main` answers in tooli's modes."""

    tooli_app: Any

    def main(
        self,
        args: Sequence[str] | BaseException | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a line: as a session of ours, unless we are inside one already."""
        if isinstance(args, BaseException):
            # rich leaves out every frame up to the last one with this name
            _rich_traceback_guard = self.tooli_app.pretty_exceptions_short
            raise _without_ours(args)
        inner: Any = super()
        house = self.tooli_app._house
        plainly = _session.get() is not None or extra or complete_var or house.parent is not None
        if plainly or completing():
            return inner.main(
                args=args,
                prog_name=prog_name,
                complete_var=complete_var,
                standalone_mode=standalone_mode,
                windows_expand_args=windows_expand_args,
                **extra,
            )
        argv = list(sys.argv[1:] if args is None else args)
        return Session(self.tooli_app, argv, prog_name, standalone_mode, self).answer()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Nobody is asked for a value where nobody can answer: it is missing then, and says so."""
        inner: Any = super()
        lane = _session.get()
        with asking_on_the_terminal(self, None if lane is None else lane.session):
            found: list[str] = inner.parse_args(ctx, args)
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Typer's help, then the framework's flags in one small panel."""
        inner: Any = super()
        inner.format_help(ctx, formatter)
        from tooli.surfaces.cli.people import framework_panel

        if ctx.parent is None or hasattr(ctx.parent.command, "tooli_app"):
            framework_panel(self.tooli_app._house.root, self, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Typer's completions, and the framework's flags."""
        inner: Any = super()
        items: list[Any] = inner.shell_complete(ctx, incomplete)
        if incomplete[:1] == "-":
            from typer._click.shell_completion import CompletionItem

            from tooli.surfaces.cli.argv import FLAGS

            known = {item.value for item in items}
            items += [
                CompletionItem(flag)
                for flag in FLAGS
                if flag.startswith(incomplete) and flag not in known and len(flag) > 2
            ]
        return items


# ------------------------------------------------------------------ running a line


def hand_over(app: Any, args: Sequence[str] | None, **settings: Any) -> Any:
    """Let Typer run the line as it always does."""
    command: Any = get_command(app)
    return command.main(args, **settings)


def run_line(session: Session) -> int:
    """Run a session's line in Typer, and answer in the session's mode."""
    from tooli.surfaces.cli.typer_register import adopt

    command = adopt(session.app, session.command or get_command(session.app))
    lane = LaneSession(session)
    token = _session.set(lane)
    try:
        if not session.machine:
            return _run_for_people(session, command)
        tool = session.line.tool
        session.claim(capture=tool is None or tool.prints)
        outcome = session.guarded(lambda: _run_for_machines(lane, command))
    finally:
        _session.reset(token)
    from tooli.surfaces.cli.answers import call_without_tool

    return session.finish(outcome, lane.call or call_without_tool(session))


def _run_for_people(session: Session, command: Any) -> int:
    session.value = command.main(
        session.line.rest, prog_name=session.prog_name, standalone_mode=session.standalone
    )
    return 0


def _run_for_machines(lane: LaneSession, command: Any) -> Outcome:
    session = lane.session
    try:
        code = command.main(session.line.rest, prog_name=session.prog_name, standalone_mode=False)
    except Exception as exc:
        if _is_usage(exc):
            return Failed(_refusal(lane, exc))
        return outcome_of(exc)
    if lane.outcome is not None:
        return lane.outcome
    if code == 130:
        return outcome_of(KeyboardInterrupt())
    if isinstance(code, int) and code:
        return outcome_of(SystemExit(code))
    return Ok(None)


def _is_usage(exc: Exception) -> bool:
    return any(cls.__name__ == "UsageError" for cls in type(exc).__mro__)


def _refusal(lane: LaneSession, exc: Exception) -> ToolError:
    """The refusal of a line: all that our own reader finds wrong, or else what Typer says."""
    from tooli.call.pipeline import fit_arguments
    from tooli.call.repair import refusal
    from tooli.errors import InputError
    from tooli.surfaces.cli.answers import no_command

    session = lane.session
    line = session.line
    said = problem_of(exc, line)
    if line.tool is None:
        if not line.branch.opaque and (said.code == "E1001" or line.problems):
            return no_command(session)[0]
        return InputError(said.message, code=said.code, field=said.field)
    command = getattr(getattr(exc, "ctx", None), "command", None)
    if hasattr(command, "commands") and said.code in ("E1002", "E1003"):  # a callback's own
        return InputError(said.message, code=said.code, field=said.field)
    call, _ = session.prepare(dict(line.arguments), line.problems)
    lane.call = call
    if not line.guessed:
        try:
            fit_arguments(call)
        except InputError as refused:
            return refused
    return refusal(call.replace(problems=(said,)), [])


def problem_of(exc: Exception, line: Line) -> Problem:
    """A complaint of Typer's, in the words of every other door."""
    from tooli.call.repair import problems_of, unknown

    tool = line.tool
    name = type(exc).__name__
    declared = getattr(getattr(exc, "param", None), "name", None)
    param = tool.param(declared) if tool is not None and declared else None
    text: str = getattr(exc, "message", None) or str(exc)
    if name == "MissingParameter":
        if param is not None:
            return next(problems_of(param, None))
        return Problem("E1002", declared, text)
    if name == "NoSuchOption":
        option = str(getattr(exc, "option_name", ""))
        if tool is not None and option[:2] == "--":
            return unknown(option.lstrip("-").replace("-", "_"), tool)
        return Problem("E1004", None, f"There is no option {option}")
    if name in ("BadOptionUsage", "BadArgumentUsage"):
        return Problem("E1006", declared, text)
    if text.startswith("Got unexpected extra argument"):
        return Problem("E1005", None, text)
    if text.startswith(("No such command", "Missing command")):
        return Problem("E1001", None, text)
    if param is not None:
        return next(problems_of(param, _misfit(param, line) or Misfit(text)))
    if declared is not None:
        return Problem("E1003", declared, f"{declared!r}: {text}")
    return Problem("E1000", None, text)


def _misfit(param: Param, line: Line) -> Misfit | None:
    """What the light engine has to say of the same words, where it is sure."""
    words = line.arguments.get(param.name)
    own = not param.settings.keys().isdisjoint(("parser", "click_type"))
    try:
        if isinstance(words, Words) and not own:
            fit_words(param, words)
    except Misfit as misfit:
        return misfit
    except Doubt:
        pass
    return None


def show_exception(session: Session, exc: BaseException) -> int:
    """Let Typer show what a command raised, exactly as it would have itself."""
    if session.command is not None or (exit_request(exc) is None and not _is_typers(exc)):
        raise exc

    tool = session.line.tool
    if tool is not None and getattr(exc, "ctx", exc) is None:
        vars(exc)["ctx"] = _context(session, tool.path)

    def again() -> None:
        raise exc

    command = TyperCommand(name=None, callback=again)
    command.main([], prog_name=session.prog_name, standalone_mode=session.standalone)
    return 0


def _context(session: Session, path: Sequence[str]) -> Any:
    """Typer's context of a command, for the usage line of a complaint."""
    command: Any = get_command(session.app)
    program = session.prog_name or sys.argv[0].rpartition("/")[2]
    context = typer.Context(command, info_name=program)
    for word in path:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        context = typer.Context(command, info_name=word, parent=context)
    return context


def _is_typers(exc: BaseException) -> bool:
    names = ("ClickException", "TyperException", "Abort")
    return any(cls.__name__ in names for cls in type(exc).__mro__)


def leave_through_typer(app: Any, exc: Exception) -> None:
    """Let an exception leave the program through Typer, which knows how to show it."""
    genuine(app).__call__(app, exc)


def _without_ours(exc: BaseException) -> BaseException:
    """The exception with a traceback that starts in the author's code."""
    trace = exc.__traceback__
    while trace is not None and _is_our_code(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return exc.with_traceback(trace) if trace is not None else exc


def _is_our_code(filename: str) -> bool:
    return any(filename.startswith(home) for home in _HOMES)


_HOMES = (__file__[: -len("surfaces/cli/typer_lane.py")], typer.__file__[: -len("__init__.py")])
