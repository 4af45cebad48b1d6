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

from tooli.call.envelope import document
from tooli.call.model import Caller, Failed, Options
from tooli.call.pipeline import run
from tooli.sources.local import BUILT_IN
from tooli.surfaces.cli.argv import COMPLETION, MODES, QUESTIONS, Line, read_line
from tooli.surfaces.cli.channel import (
    Channel,
    Gone,
    answer_in_time,
    catch_sigterm,
    completing,
    fitting,
    glance,
    is_odd,
    is_terminal,
    is_timed,
    leave,
    shaping_for,
    spare_the_collector,
    typed_program,
    unwritten,
    watched,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tooli.adapt import Behaviour
    from tooli.call.model import Call, Outcome, Stage
    from tooli.contract.fit import Words
    from tooli.contract.tool import Param


def main(app: Any, args: Sequence[str] | None = None, **settings: Any) -> Any:
    """Run a command line; exits the process, as Typer does, unless `standalone_mode=False`."""
    prog_name = settings.pop("prog_name", None)
    standalone = settings.pop("standalone_mode", True)
    argv = list(sys.argv[1:] if args is None else args)
    expand = os.name == "nt" and args is None and not {*"*?~%["}.isdisjoint("".join(argv))
    if settings or completing() or expand:
        from tooli.surfaces.cli.typer_lane import hand_over

        return hand_over(app, args, prog_name=prog_name, standalone_mode=standalone, **settings)
    gc_was_on = gc.isenabled()
    gc.disable()  # while a line is read nothing becomes garbage: there is nothing to look for
    session = Session(app, argv, prog_name, standalone)
    if standalone:
        spare_the_collector()
    if gc_was_on:
        gc.enable()
    return answer_in_time(session) if standalone and is_timed(session) else session.answer()


class Session:
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
        self.house = app._house
        self.argv = argv
        self.prog_name = prog_name
        self.standalone = standalone
        self.command = command  # Typer's own, where Typer opened the door
        self.code = 0
        self.shown = 0  # items of a stream that are out already
        self.warnings: list[str] = []
        self.explicit = False
        self.items: list[str] | None = None  # what was on stdin, for `--null`
        self.started = perf_counter()
        Channel.reopen()
        self._unreadable: Exception | None = None
        self.line = self._read()
        self.value: Any = None
        self._manner: Behaviour | None = None
        self.faults: Sequence[Any] = ()  # what is wrong with the settings
        self.marked, furnished = glance()
        own = app._house
        if furnished or self.app is not app or own.policy != own.declared:
            from tooli.surfaces.cli.surroundings import look_around

            look_around(self, own, furnished)
        self.mode = self._choose_mode()
        self.channel: Channel | None = None
        self._before: Any = None  # what SIGTERM did before

    # -------------------------------------------------------------- what was asked

    def _read(self) -> Line:
        try:
            line = read_line(self.app.tree(), self.argv, self.judge)
            stray = line.stray if not line.path else None
            if stray in BUILT_IN or (line.problems and not BUILT_IN.isdisjoint(self.argv)):
                from tooli.surfaces.cli.trouble import read_built_in

                line = read_built_in(self, line)
            return line
        except Exception as mistake:  # a command that is declared wrongly, or cannot be loaded
            self._unreadable = mistake
            from tooli.surfaces.cli.trouble import modes_of

            return modes_of(self.argv)

    def _choose_mode(self) -> str:
        asked = self.line.options.get("output") or os.environ.get("TOOLI_OUTPUT")
        asked = asked or self.house.default_output
        if asked not in MODES:
            from tooli.surfaces.cli.trouble import refuse_mode

            return refuse_mode(self.line, asked)
        self.explicit = asked != "auto"
        own = getattr(self.line.tool.fn, "tooli_mode", None) if self.line.tool is not None else None
        if own == "text" and self.explicit:
            from tooli.surfaces.cli.trouble import unless_it_speaks

            return unless_it_speaks(self, asked)
        if own is not None and not self.explicit:
            return own
        if self.explicit:
            return asked
        if self.line.options.get("print0"):
            return "plain"
        tool = self.line.tool
        prints = tool is not None and tool.prints
        suits = self.manner
        if suits is not None and suits.output == "json":
            return "text" if prints and suits.printed == "as it is" else "json"
        return "text" if prints or is_terminal(sys.stdout) else "json"

    @property
    def manner(self) -> Behaviour | None:
        """What a caller of that kind gets; None where nobody left a mark."""
        if self.marked and self._manner is None:
            from tooli.surfaces.cli.surroundings import manner_here

            self._manner = manner_here()
        return self._manner

    @property
    def manned(self) -> bool:
        """Whether nothing speaks against a person at the keyboard."""
        return self.manner is None or self.manner.output != "json"

    @property
    def machine(self) -> bool:
        """Whether stdout belongs to the answer alone."""
        return self.mode not in ("text", "plain")

    @property
    def whole(self) -> bool:
        """Whether the answer is one document, with an envelope."""
        return self.mode in ("json", "toon")

    def caller(self) -> Caller:
        """Who is asking, and how they typed the program."""
        prog = (self.prog_name,) if self.prog_name else typed_program()
        if not self.marked and "TOOLI_SESSION_ID" not in os.environ:
            return Caller("cli", prog=prog)
        from tooli.detect import introduce

        name, version, session, kind = introduce(self.marked)
        agent = kind == "ai_agent" and is_odd(self.argv)
        return Caller("cli", name, version, session, prog=prog, category=kind, agent=agent)

    def options(self) -> Options:
        """What the line asks of the framework."""
        said = self.line.options.get
        form = said("response_format")
        return Options(
            yes=said("yes", False),
            dry_run=said("dry_run", False),
            no_input=said("no_input", False),
            quiet=said("quiet", False),
            verbose=said("verbose", 0),
            detailed=None if form is None and self.whole else form == "detailed",
            concise=form == "concise",
            interactive=self.mode == "text" and self.manned and is_terminal(sys.stderr),
            machine=self.machine,
            stdin_taken=said("input") == "-" or self.items is not None,
            nul=said("null", False),
            shaping=shaping_for(self),
            timeout=said("timeout"),
            assumed="timeout" in self.line.settled,
            idempotency_key=said("idempotency_key"),
            apply=said("apply"),
        )

    def judge(self, param: Param, words: Words) -> Any:
        """Typer's word on a text that the light engine is in doubt about."""
        from tooli.surfaces.cli.typer_params import judge

        return judge(param, words)

    # -------------------------------------------------------------- answering

    def answer(self) -> Any:
        """Run the line and leave."""
        try:
            code = self._answer()
        except SystemExit as leaving:  # Typer has answered
            code = self._flush(leaving.code)
            if code == leaving.code:
                raise
        except BaseException:
            self.release()
            raise
        return self.end(code)

    def _answer(self) -> Any:
        try:
            return self._flush(self.run())
        except Gone:  # nobody reads any more: end quietly
            return self.code
        except (Exception, KeyboardInterrupt) as exc:
            if self.machine:
                from tooli.surfaces.cli.trouble import answer_breakage

                return answer_breakage(self, exc)
            if isinstance(exc, KeyboardInterrupt) and self.standalone:
                return 130
            if self.command is None and isinstance(exc, Exception):
                from tooli.surfaces.cli.typer_lane import leave_through_typer

                leave_through_typer(self.app, exc)
            raise

    def _flush(self, code: Any) -> Any:
        """The exit code, once what was printed is out."""
        if self.channel is not None or not self.standalone:
            return code
        from tooli.surfaces.cli.people import flush

        return flush(self, code)

    def run(self) -> int:
        """Answer the line; the exit code."""
        if self._unreadable is not None:
            raise self._unreadable
        said = self.line.options
        coloured = self.marked and not self.machine
        if self.faults or coloured or not {"verbose", "color", "no_color"}.isdisjoint(said):
            from tooli.surfaces.cli.surroundings import suit

            refused = suit(self)
            if refused is not None:
                return refused
        misused = any([p.code == "E1007" for p in self.line.problems])
        if not misused and not QUESTIONS.isdisjoint(said):
            from tooli.surfaces.cli.answers import answer

            return answer(self)
        if any(word in self.argv for word in COMPLETION) and self.line.tool is None:
            self.mode = "text"
        if self._for_typer():
            from tooli.surfaces.cli.typer_lane import run_line

            return run_line(self)
        if self.line.tool is None:
            from tooli.surfaces.cli.answers import answer_nowhere

            return answer_nowhere(self)
        self.claim(capture=self.line.tool.prints)
        call, stages = self.prepare(self.line.arguments, self.line.problems)
        if self.mode == "text":
            from tooli.surfaces.cli.trouble import does_not_fit

            if does_not_fit(self, call):  # it is Typer who says so to people
                from tooli.surfaces.cli.typer_lane import run_line

                return run_line(self)
        return self.perform(call, stages)

    def _for_typer(self) -> bool:
        line = self.line
        if any(p.code == "E1007" for p in line.problems) or line.fed:
            return False
        if self.command is not None and not (self.machine and line.stray is not None):
            return True
        if self.mode == "text":
            troubled = bool(line.problems) or line.tool is None or line.tool.deprecated
            return bool(troubled or line.aside is not None)
        if line.stray is not None and not line.branch.opaque:
            return False
        return line.aside is not None

    def prepare(
        self, arguments: dict[str, Any], problems: Sequence[Any] = ()
    ) -> tuple[Call, tuple[Stage, ...]]:
        """The call that the line stands for."""
        if "input" in self.line.options or "null" in self.line.options:
            from tooli.surfaces.cli.payload import complete

            arguments, problems = complete(self, arguments, problems)
        asked = self.line.tool, arguments, self.caller(), self.options(), self.warnings
        ready = self.app.prepare(*asked, problems=tuple(problems))
        return watched(*ready) if self.marked else ready

    def perform(self, call: Call, stages: tuple[Stage, ...]) -> int:
        """Run the call and show what became of it."""
        if not self.whole:
            from tooli.surfaces.cli.streams import perform

            return perform(self, call, stages)
        return self.finish(self.guarded(lambda: run(call, stages)), call)

    def guarded(self, work: Callable[[], Outcome]) -> Outcome:
        """The outcome of some work, whatever stops it."""
        try:
            return work()
        except Exception:
            raise
        except BaseException as stop:
            from tooli.call.failure import outcome_of

            return outcome_of(stop)

    # -------------------------------------------------------------- showing

    def claim(self, *, capture: bool = False) -> None:
        """Take stdout for the answer alone; in machine modes SIGTERM is answered, too."""
        if self.machine and self.channel is None:
            self.channel = Channel(capture)
            if self.standalone:
                self._before = catch_sigterm()

    def finish(self, outcome: Outcome, call: Call) -> int:
        """Show an outcome; the exit code."""
        if self.channel is None:
            from tooli.surfaces.cli.people import show

            return show(self, outcome, call)
        printed = self.channel.printed()
        if printed:
            from tooli.surfaces.printed import with_printed

            outcome = with_printed(outcome, printed, call)
        if isinstance(outcome, Failed):
            self.code = outcome.error.exit_code & 0xFF or 70
        else:
            self.value = outcome.value
        if self.mode != "json":
            from tooli.surfaces.cli.streams import finish

            return finish(self, outcome, call)
        self.emit(fitting(self, outcome, call, document(outcome, call, self.milliseconds)))
        return self.code

    def milliseconds(self) -> int:
        """How long it has taken so far."""
        return int((perf_counter() - self.started) * 1000)

    def emit(self, data: bytes) -> None:
        """One line of the answer."""
        if self.channel is None:
            return
        try:
            self.channel.write(data + b"\n")
        except (OSError, ValueError) as failure:
            self.code = unwritten(failure) or self.code
            raise Gone from None

    def end(self, code: int) -> Any:
        """Leave, as Typer leaves: with an exit code, or with the value where that is wanted."""
        self.release()
        if not self.standalone:
            return self.value if code == 0 else code
        sys.exit(leave(code))

    def release(self) -> None:
        """Give back what was taken: stdout, and SIGTERM."""
        if self.channel is not None:
            self.channel.release(for_good=self.standalone)
        if self._before is not None:
            catch_sigterm(self._before)
