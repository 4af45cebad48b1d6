"""The command line's door: a line of words becomes a Call, an Outcome becomes output.

    argv ─▶ read_line ─▶ mode ─┬▶ a question about the app (help, schema, version)
                               ├▶ what only Typer knows: the Typer lane takes the same line
                               └▶ Call ─▶ pipeline ─▶ Outcome ─▶ envelope, lines or a table
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

from tooli.call.envelope import encode, meta_of
from tooli.call.model import Caller, Failed, Ok, Options
from tooli.call.pipeline import run, stream
from tooli.surfaces.cli.argv import COMPLETION, MODES, read_line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage
    from tooli.contract.fit import Words
    from tooli.contract.tool import Param
    from tooli.surfaces.cli.argv import Line

PRINTED_LIMIT = 1 << 20
"""How much of what a command prints becomes its result."""


def main(app: Any, args: Sequence[str] | None = None, **settings: Any) -> Any:
    """Run a command line; exits the process, as Typer does, unless `standalone_mode=False`."""
    prog_name = settings.pop("prog_name", None)
    standalone = settings.pop("standalone_mode", True)
    argv = list(sys.argv[1:] if args is None else args)
    if settings or completing(prog_name) or (os.name == "nt" and args is None and _globs(argv)):
        from tooli.surfaces.cli.typer_lane import hand_over

        return hand_over(app, args, prog_name=prog_name, standalone_mode=standalone, **settings)
    return Session(app, argv, prog_name, standalone).answer()


def completing(prog_name: str | None) -> bool:
    """Whether a shell asks for completions: that is Typer's."""
    name = prog_name or os.path.basename(sys.argv[0] if sys.argv else "")
    return f"_{name}_COMPLETE".replace("-", "_").replace(".", "_").upper() in os.environ or any(
        key[-9:] == "_COMPLETE" and key[:1] == "_" for key in os.environ
    )


def _globs(argv: Sequence[str]) -> bool:
    return any(char in word for word in argv for char in "*?~%[")


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
        self.started = perf_counter()
        self.line: Line = read_line(app.tree(), argv, self.judge)
        self.value: Any = None
        self._agent: bool | None = None
        self.mode = self._choose_mode()
        self.channel: Channel | None = None

    # -------------------------------------------------------------- what was asked

    def _choose_mode(self) -> str:
        asked = self.line.options.get("output") or os.environ.get("TOOLI_OUTPUT")
        asked = asked or self.house.default_output
        if asked not in MODES:
            from tooli.call.model import Problem

            message = f"TOOLI_OUTPUT={asked} is none of {', '.join(MODES)}"
            self.line.problems.append(Problem("E1007", "output", message))
            return "json"
        self.explicit = asked != "auto"
        if self.explicit:
            return asked
        if is_terminal(sys.stdout) and not self.agent:
            return "text"
        tool = self.line.tool
        return "text" if tool is not None and tool.prints and not self.agent else "json"

    @property
    def agent(self) -> bool:
        """Whether an agent seems to be calling."""
        if self._agent is None:
            from tooli.detect import detect_execution_context

            self._agent = detect_execution_context().is_agent
        return self._agent

    @property
    def machine(self) -> bool:
        """Whether stdout belongs to JSON alone."""
        return self.mode in ("json", "jsonl")

    @property
    def line_end(self) -> str:
        """What ends a record: a newline, or NUL after `--print0`."""
        return "\0" if self.line.options.get("print0") else "\n"

    def caller(self) -> Caller:
        """Who is asking, and how they typed the program."""
        env = os.environ.get
        return Caller(
            "cli",
            env("TOOLI_CALLER") or None,
            env("TOOLI_CALLER_VERSION") or None,
            env("TOOLI_SESSION_ID") or None,
            prog=(self.prog_name,) if self.prog_name else typed_program(),
        )

    def options(self) -> Options:
        """What the line asks of the framework."""
        said = self.line.options.get
        return Options(
            yes=said("yes", False),
            dry_run=said("dry_run", False),
            no_input=said("no_input", False),
            quiet=said("quiet", False),
            verbose=said("verbose", 0),
            detailed=said("response_format") == "detailed",
            interactive=self.mode == "text" and is_terminal(sys.stderr) and not self.agent,
        )

    def judge(self, param: Param, words: Words) -> Any:
        """Typer's word on a text that the light engine is in doubt about."""
        from tooli.surfaces.cli.typer_lane import judge

        return judge(param, words)

    # -------------------------------------------------------------- answering

    def answer(self) -> Any:
        """Run the line and leave."""
        try:
            code = self.run()
        except Gone:  # nobody reads any more: end quietly
            code = self.code
        except Exception as exc:
            if self.command is None:
                from tooli.surfaces.cli.typer_lane import leave_through_typer

                leave_through_typer(self.app, exc)
            raise
        return self.end(code)

    def run(self) -> int:
        """Answer the line; the exit code."""
        said = self.line.options
        if said.get("no_color"):
            os.environ["NO_COLOR"] = "1"
        asks = said.keys() & {"help", "schema", "help_agent", "show_version"}
        if asks and not any(p.code == "E1007" for p in self.line.problems):
            from tooli.surfaces.cli.answers import answer

            return answer(self)
        if any(word in self.argv for word in COMPLETION) and self.line.tool is None:
            self.mode = "text"
        if self._for_typer():
            from tooli.surfaces.cli.typer_lane import run_line

            return run_line(self)
        if self.line.tool is None:
            return self._without_tool()
        return self.perform(*self.prepare(self.line.arguments, self.line.problems))

    def _for_typer(self) -> bool:
        line = self.line
        if any(p.code == "E1007" for p in line.problems) or "input" in line.options:
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
        payload = self.line.options.get("input")
        if payload is not None:
            from tooli.surfaces.cli.payload import read_payload

            given, found = read_payload(payload)
            arguments = {**given, **arguments}
            problems = [*problems, *found]
        return self.app.prepare(
            self.line.tool,
            arguments,
            self.caller(),
            self.options(),
            problems=tuple(problems),
            warnings=self.warnings,
        )

    def _without_tool(self) -> int:
        from tooli.surfaces.cli.answers import no_command

        error, call = no_command(self)
        self.claim()
        return self.finish(Failed(error), call)

    def perform(self, call: Call, stages: tuple[Stage, ...]) -> int:
        """Run the call and show what became of it."""
        if self.machine:
            self.claim(capture=call.tool.prints)
        if self.mode != "json":
            return self._perform_stream(call, stages)
        return self.finish(self.guarded(lambda: run(call, stages)), call)

    def _perform_stream(self, call: Call, stages: tuple[Stage, ...]) -> int:
        from tooli.surfaces.cli.streams import show_stream

        outcome = self.guarded(lambda: show_stream(self, stream(call, stages)))
        if isinstance(outcome, Failed) and self._may_ask(outcome):
            from tooli.call.asking import ask

            if ask(f"{outcome.error.message} Run it?"):
                return self._perform_stream(call.replace(approved=True), stages)
        return self.finish(outcome, call)

    def _may_ask(self, outcome: Failed) -> bool:
        options = self.options()
        return (
            outcome.error.code in ("E1010", "E2101")
            and options.interactive
            and not options.no_input
            and is_terminal(sys.stdin)
            and self.house.policy != "strict"
        )

    def guarded(self, work: Callable[[], Outcome]) -> Outcome:
        """The outcome of some work, whatever stops it."""
        try:
            return work()
        except KeyboardInterrupt as stop:
            from tooli.call.failure import as_tool_error

            return Failed(as_tool_error(stop))
        except Terminated:
            from tooli.errors import Interrupted

            return Failed(Interrupted("Terminated.", code="E4143"))

    # -------------------------------------------------------------- showing

    def claim(self, *, capture: bool = False) -> None:
        """Take stdout for the answer alone; in machine modes SIGTERM is answered, too."""
        if self.machine and self.channel is None:
            self.channel = Channel(capture)
            if self.standalone:
                _catch_sigterm()

    def finish(self, outcome: Outcome, call: Call) -> int:
        """Show an outcome; the exit code."""
        if self.channel is None:
            from tooli.surfaces.cli.people import show

            return show(self, outcome, call)
        printed = self.channel.printed()
        if printed:
            outcome = _with_printed(outcome, printed, call)
        if isinstance(outcome, Failed):
            self.code = outcome.error.exit_code
        else:
            self.value = outcome.value
        if self.mode == "json" or isinstance(outcome, Failed):
            self.emit(document(outcome, call, self.started))
        elif outcome.value is not None:
            self.emit(encode(outcome.value, call.warnings))
        return self.channel.code or self.code

    def emit(self, data: bytes) -> None:
        """One line of the answer."""
        if self.channel is not None:
            self.channel.write(data + b"\n")

    def end(self, code: int) -> Any:
        """Leave, as Typer leaves: with an exit code, or with the value where that is wanted."""
        if self.channel is not None:
            self.channel.release(for_good=self.standalone)
        if not self.standalone:
            return self.value if code == 0 else code
        sys.exit(code)


def document(outcome: Outcome, call: Call, started: float) -> bytes:
    """The envelope as bytes; the result first, so that what it warns of is in `meta`."""
    if isinstance(outcome, Ok):
        head = b'{"ok":true'
        if outcome.value is not None:
            head += b',"result":' + encode(outcome.value, call.warnings)
    else:
        head = b'{"ok":false,"error":' + encode(outcome.error.to_dict(), call.warnings)
    meta = meta_of(call, int((perf_counter() - started) * 1000))
    return head + b',"meta":' + encode(meta, []) + b"}"


def _with_printed(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """What a command printed is its result; where it failed, a detail of the failure."""
    if len(printed) > PRINTED_LIMIT:
        printed = printed[:PRINTED_LIMIT]
        call.warnings.append(f"the printed text was cut after {PRINTED_LIMIT} characters")
    if isinstance(outcome, Failed):
        outcome.error.details = {**(outcome.error.details or {}), "printed": printed}
    elif outcome.value is None:
        return Ok(printed)
    else:
        sys.stderr.write(printed + "\n")
    return outcome


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; a closed or missing one is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def typed_program() -> tuple[str, ...]:
    """The words with which the program was started, as somebody would type them again."""
    program = sys.argv[0] if sys.argv else ""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        name = spec.name[: -len(".__main__")] if spec.name.endswith(".__main__") else spec.name
        return ("python", "-m", name)
    if program.endswith(".py"):
        return ("python", program)
    return (os.path.basename(program),)


class Terminated(BaseException):
    """SIGTERM, as an exception."""


def _catch_sigterm() -> None:
    try:
        from _signal import SIGTERM, signal  # `signal` itself imports enum
    except ImportError:
        from signal import SIGTERM, signal

    def stop(*_: object) -> None:
        raise Terminated

    try:
        signal(SIGTERM, stop)
    except ValueError:
        pass  # not the main thread: whoever owns that one handles signals


class Channel:
    """stdout, kept for the answer.

    While it is held, file descriptor 1 leads to stderr: `print`, C code and child
    processes cannot get between the caller and the JSON. With `capture` it leads
    to a file in memory instead, which is read back at the end.
    """

    def __init__(self, capture: bool = False) -> None:
        self.code = 0
        self._python = sys.stdout
        self._capture: int | None = None
        self._swapped: Any = None
        self._saved: int | None = None
        if _is_real(sys.stdout):
            _flush(sys.stdout)
            self._saved = os.dup(1)
            self._capture = _memory() if capture else None
            os.dup2(2 if self._capture is None else self._capture, 1)
        else:  # a test runner or a notebook has put its own stdout there
            import io

            self._swapped = io.TextIOWrapper(io.BytesIO(), "utf-8") if capture else sys.stderr
            sys.stdout = self._swapped

    def printed(self) -> str:
        """What was printed since, if it was captured."""
        _flush(sys.stdout)
        if self._swapped is not None and self._swapped is not sys.stderr:
            data = self._swapped.buffer.getvalue()
        elif self._capture is not None:
            os.lseek(self._capture, 0, 0)
            data = os.read(self._capture, 4 * PRINTED_LIMIT + 1)
            os.dup2(2, 1)
            os.close(self._capture)
            self._capture = None
        else:
            return ""
        return data.decode("utf-8", "replace").rstrip("\n")

    def write(self, data: bytes) -> None:
        """Write to the real stdout; a reader who has gone ends the run quietly."""
        try:
            if self._saved is None:
                self._python.write(data.decode("utf-8"))
                self._python.flush()
                return
            view = memoryview(data)
            while view:
                view = view[os.write(self._saved, view) :]
        except BrokenPipeError:
            raise Gone from None
        except (OSError, ValueError) as failure:
            self.code = 70
            reason = getattr(failure, "strerror", None) or failure
            sys.stderr.write(f"The result could not be written to stdout: {reason}\n")

    def release(self, *, for_good: bool) -> None:
        """Give stdout back; a process that is about to end keeps it, so that nothing follows."""
        if self._saved is None:
            sys.stdout = self._python
            return
        _flush(sys.stdout)
        if not for_good:
            os.dup2(self._saved, 1)
        os.close(self._saved)


class Gone(Exception):  # noqa: N818
    """Nobody reads stdout any more."""


def _is_real(stream: Any) -> bool:
    try:
        return stream is sys.__stdout__ and stream is not None and stream.fileno() == 1
    except (OSError, ValueError):
        return False


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        pass


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("printed")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
