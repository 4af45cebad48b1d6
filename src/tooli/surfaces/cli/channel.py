"""The process of a command line and what it stands in, as every start has to know it.

stdout, kept for the answer; SIGTERM; stderr; the collector; the end; a glance at who calls and at
what is set. One file, because every start would pay for a second.
"""

from __future__ import annotations

import gc
import os
import sys

from tooli.call.model import PRINTED_LIMIT, Failed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage
    from tooli.surfaces.cli.main import Session


class Channel:
    """stdout, kept for the answer.

    While it is held, file descriptor 1 leads to stderr: `print`, C code and child
    processes cannot get between the caller and the JSON. With `capture` it leads
    to a file in memory instead, which is read back at the end.
    """

    _parked: int | None = None
    """The real stdout after an answer: whatever follows it may not be read with it."""

    def __init__(self, capture: bool = False) -> None:
        self.begun = False
        self.torn = False  # an answer is half out: nothing may follow
        self._python = sys.stdout
        self._process = os.getpid()
        self._capture: int | None = None
        self._swapped: Any = None
        self._saved: int | None = None
        if _is_real(sys.stdout):
            _flush(sys.stdout)
            self._saved = _copy_of_stdout()
            self._capture = _memory() if capture else None
            _divert(2 if self._capture is None else self._capture)
        else:  # a test runner or a notebook has put its own stdout there
            import io

            self._swapped = sys.stderr
            if capture:
                self._swapped = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
            sys.stdout = self._swapped

    def printed(self) -> str:
        """What was printed since, if it was captured."""
        _flush(sys.stdout)
        if self._swapped is not None and self._swapped is not sys.stderr:
            data = self._swapped.buffer.getvalue()
        elif self._capture is not None:
            os.lseek(self._capture, 0, 0)
            data = os.read(self._capture, 4 * PRINTED_LIMIT + 1)
            _divert(2)
            os.close(self._capture)
            self._capture = None
        else:
            return ""
        return data.decode("utf-8", "replace").rstrip("\n")

    def write(self, data: bytes) -> None:
        """Write to the real stdout; only the process that took it does."""
        if self.torn or os.getpid() != self._process:
            return
        self.torn = self.begun = True
        if self._saved is not None:
            _send(self._saved, data)
        elif self._python is None:
            raise OSError(9, "it is closed")
        else:
            self._python.write(data.decode("utf-8"))
            self._python.flush()
        self.torn = False

    def release(self, *, for_good: bool) -> None:
        """Give stdout back; a process that is about to end keeps it, so that nothing follows."""
        if self._saved is None:
            sys.stdout = self._python
            return
        _flush(sys.stdout)
        Channel._parked = self._saved
        if not for_good:
            Channel.reopen()

    @classmethod
    def reopen(cls) -> None:
        """Lead stdout where it led before the last answer."""
        if cls._parked is not None:
            _flush(sys.stdout)
            os.dup2(cls._parked, 1)
            os.close(cls._parked)
            cls._parked = None


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


def _send(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # whoever shares the pipe has made it non-blocking
            from select import select

            select((), (target,), ())


def _divert(target: int) -> None:
    """Let file descriptor 1 lead elsewhere; nowhere, if there is no stderr."""
    try:
        os.dup2(target, 1)
    except OSError:
        _lead_nowhere(1)


def _copy_of_stdout() -> int:
    """A second descriptor of stdout, never one that others take for stdin or stderr."""
    copy = os.dup(1)
    while copy < 3:
        taken, copy = copy, os.dup(copy)
        _lead_nowhere(taken)
    return copy


def _lead_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("printed")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; a closed or missing one is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def complain(text: str) -> None:
    """Write a line to stderr, if there is one."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def unwritten(failure: OSError | ValueError) -> int:
    """Say that an answer could not be written; the exit code, but for a reader who has left."""
    if isinstance(failure, BrokenPipeError):
        return 0
    complain(f"The result could not be written to stdout: {reason_of(failure)}")
    return 70


def reason_of(failure: BaseException) -> object:
    """Why something could not be written, in the system's words."""
    return getattr(failure, "strerror", None) or failure


# ------------------------------------------------------------------ signals


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception that stops an event loop as Ctrl-C does."""

    error_code = "E4143"


def _terminate(*_: object) -> None:
    raise Terminated("Terminated.")


def _signals() -> Any:
    """`signal`, as far as it is C: the rest of it imports enum."""
    try:
        import _signal as found  # pyright: ignore[reportMissingImports]
    except ImportError:
        import signal as found
    return found  # pyright: ignore[reportUnknownVariableType]


def catch_sigterm(handler: Any = _terminate) -> Any:
    """Have SIGTERM handled; what handled it before."""
    signals = _signals()
    try:
        return signals.signal(signals.SIGTERM, handler)
    except ValueError:
        return None  # not the main thread: whoever owns that one handles signals


_spared = False


def spare_the_collector() -> None:
    """Leave what was made before the command runs to the operating system, at the end.

    The last collection of a process walks through all that was ever imported, in vain: a
    millisecond of every start. Only files that are open for writing could lose something
    by it, so where there is one, nothing is spared; nor where the process goes on after this
    command, as that of a test does.
    """
    global _spared
    if not _is_on_top():
        return
    if not _has_no_files():
        from tooli.surfaces.cli.leaving import writes_no_files

        if not writes_no_files():
            return
    _spared = True
    gc.freeze()


def _has_no_files(ours: int = 0) -> bool:
    """Whether nothing but stdin, stdout and stderr is open here; False where nobody can tell."""
    try:
        count = len(os.listdir("/proc/self/fd"))
    except OSError:
        return False
    standard = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return count - 1 - ours <= 3 - standard.count(None)  # 1: the folder that was just read


def leave(code: Any) -> Any:
    """End the process at once, where taking the interpreter apart would do nothing for anybody.

    That takes longer than most commands. It is left out only where nothing waits for it: no
    `atexit`, no thread, no file, no debugger or profiler, no foreign C code with buffers of its
    own, and nobody between here and the top of the script who would handle the exit.
    Otherwise the code is given back.
    """
    from _thread import _count as threads  # pyright: ignore
    from atexit import _ncallbacks as waiting  # pyright: ignore

    ours = Channel._parked is not None
    if not _has_no_files(ours) and not _can_lose_nothing(ours):
        return code
    if waiting() or threads() or _is_watched() or not _is_on_top():
        return code
    for module in list(sys.modules.values()):
        place = getattr(module, "__file__", None) or ""
        if place[-3:] in (".so", "pyd") and ("lib-dynload" not in place or "_ctypes" in place):
            return code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return code
    os._exit(code or 0)


def _can_lose_nothing(ours: int) -> bool:
    """Whether what is open is others'; or else it is written out now.

    Meanwhile the collector waits: it closes what is in a circle with a failure in any order, and
    what a text still holds is lost where the bytes below it come first.
    """
    collects = gc.isenabled()
    gc.disable()
    from tooli.surfaces.cli.leaving import opened_no_files, write_out_files

    others = opened_no_files(ours)
    if not others:
        write_out_files(_spared, ends=_is_on_top())
    if collects:
        gc.enable()
    return others


def _is_watched() -> bool:
    """Whether somebody looks into the interpreter: a debugger, a profiler, a prompt to follow."""
    flags = sys.flags
    if flags.inspect or flags.dev_mode or sys.gettrace() or sys.getprofile():
        return True
    tools: Any = getattr(sys, "monitoring", None)
    return tools is not None and any([tools.get_tool(number) for number in range(6)])


def _is_on_top() -> bool:
    """Whether nobody above the app has a `try` or a `with` that would see it end."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        handles = getattr(frame.f_code, "co_exceptiontable", b"?")  # older Pythons do not tell
        name = frame.f_globals.get("__name__", "") if handles else ""
        if handles and name != "runpy" and name[:6] != "tooli.":
            return False
        frame = frame.f_back
    return True


# ------------------------------------------------------------------ how it was started

MARKS = frozenset(
    (
        *("TOOLI_CALLER", "AI_AGENT", "AGENT", "AGENT_THREAD_ID", "AGENT_SESSION_ID"),
        *("AGENT_DISPLAY_OUT", "AGENT_CONTEXT_OUT", "AMP_CURRENT_THREAD_ID", "ANTIGRAVITY_AGENT"),
        *("AUGMENT_AGENT", "AWS_EXECUTION_ENV", "CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION"),
        *("CLAUDE_CODE_IS_COWORK", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID"),
        *("CLAUDE_PID", "CLINE_ACTIVE", "CODEX_CI", "CODEX_SANDBOX", "CODEX_SESSION_ID"),
        *("CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID"),
        *("CODEX_VERSION", "COPILOT_AGENT", "COPILOT_AGENT_SESSION_ID", "COPILOT_CLI"),
        *("COPILOT_CLI_BINARY_VERSION", "CRUSH", "CURSOR_AGENT", "CURSOR_EXTENSION_HOST_ROLE"),
        *("GEMINI_CLI", "GOOSE_TERMINAL", "GROK_AGENT", "GROK_SESSION_ID", "IFLOW_CLI"),
        *("JUNIE_DATA", "JUNIE_SHIM_PATH", "KILO", "KILOCODE_FEATURE", "KILO_PID", "OPENCODE"),
        *("OPENCODE_PID", "OPENCLAW_CLI", "OPENCLAW_SHELL", "OZ_RUN_ID", "PI_CODING_AGENT"),
        *("QWEN_CODE", "ROO_ACTIVE", "ROO_CLI_RUNTIME", "TRAE_AI_SHELL_ID"),
        *("WINDSURF_CASCADE_TERMINAL", "CI", "GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI"),
        *("JENKINS_URL", "TF_BUILD", "BUILDKITE", "TEAMCITY_VERSION", "TRAVIS", "APPVEYOR"),
        *("BITBUCKET_BUILD_NUMBER", "CODEBUILD_BUILD_ID", "DRONE", "CIRRUS_CI", "SEMAPHORE"),
        *("BITRISE_IO", "NETLIFY"),
    )
)
"""Variables that agents and CI systems set. Where there is none, `tooli.detect` is not loaded."""

SETTINGS = frozenset(
    (
        *("TOOLI_COLOR", "TOOLI_RESPONSE_FORMAT", "TOOLI_QUIET", "TOOLI_VERBOSE"),
        *("TOOLI_NO_INPUT", "TOOLI_TIMEOUT", "TOOLI_MAX_ITEMS", "TOOLI_MAX_BYTES"),
        *("TOOLI_MAX_TOKENS", "TOOLI_SECURITY_POLICY", "TOOLI_HUMAN_IN_THE_LOOP"),
        *("TOOLI_ISOLATION", "TOOLI_ALLOW_PATHS", "TOOLI_DENY_PATHS", "TOOLI_WORK_DIR"),
        *("TOOLI_TOKEN_KEY", "TOOLI_TOKEN_ISSUER", "TOOLI_TOKEN_AUDIENCE", "TOOLI_TOKENS"),
        *("TOOLI_RATE_LIMIT", "TOOLI_AUDIT_LOG", "TOOLI_STORE", "TOOLI_RECORD_CAPABILITIES"),
    )
)
"""Variables that are settings. Where there is none and no file of them, nor is `tooli.config`."""
SYSTEM_SETTINGS = "/etc/tooli/config.yaml"
if os.name == "nt":
    SYSTEM_SETTINGS = os.environ.get("PROGRAMDATA", "C:/ProgramData") + "/tooli/config.yaml"


def glance() -> tuple[bool, bool]:
    """Whether somebody may have left a mark, and whether there may be settings.

    A no is a no; a yes is a maybe, which `tooli.detect` and `tooli.config` look into.
    """
    names = frozenset(os.environ)
    marked = not MARKS.isdisjoint(names) or ".pi/agent/bin" in os.environ.get("PATH", "")
    return marked, not SETTINGS.isdisjoint(names) or _has_settings()


def _has_settings() -> bool:
    """Whether a file of settings is there: a few questions to the file system."""
    env, there = os.environ.get, os.access
    if there(SYSTEM_SETTINGS, 0):
        return True
    chosen = env("TOOLI_CONFIG")
    if chosen:
        return chosen.lower() not in ("off", "0", "false", "no")
    home = env("APPDATA") if os.name == "nt" else env("XDG_CONFIG_HOME")
    if there(f"{home or env('HOME', '') + '/.config'}/tooli/config.yaml", 0):
        return True
    try:
        here = folder = os.getcwd()
    except OSError:
        return False
    if _names(f"{here}/.env", b"TOOLI_"):
        return True
    for _ in range(40):
        if there(f"{folder}/.tooli.yaml", 0):
            return True
        if _names(f"{folder}/pyproject.toml", b"tool.tooli", b"[tool]\n", b"\ntool={"):
            return True
        if there(f"{folder}/.git", 0):
            return folder != here and _names(f"{folder}/.env", b"TOOLI_")
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            break
    return False


_WHOLE = 1 << 22  # bytes: no such file is longer


def _names(path: str, *signs: bytes) -> bool:
    """Whether a file is there and holds one of the signs, however it is spaced and quoted."""
    if not os.access(path, 0):
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            text = b"\n" + os.read(descriptor, _WHOLE).translate(None, b" \t\r\"'")
        finally:
            os.close(descriptor)
    except OSError:
        return os.path.isfile(path)
    return any([sign in text for sign in signs])


def completing() -> bool:
    """Whether a shell asks for completions: that is Typer's."""
    return any([key[-9:] == "_COMPLETE" and key[:1] == "_" for key in os.environ])


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


SMALL = 10_000
"""Bytes of an answer that every caller takes: only of a larger one it matters who calls."""


def fitting(session: Session, outcome: Outcome, call: Call, data: bytes) -> bytes:
    """A document as its caller takes it; whoever asked for a size has got it already."""
    if len(data) <= SMALL or call.options.shaping is not None or not session.marked:
        return data
    from tooli.surfaces.cli.budgets import refit

    return refit(session, outcome, call, data)


def shaping_for(session: Session) -> Any:
    """How much of the result is wanted, where the line or the caller says so."""
    if not session.line.shaped and (not session.marked or session.mode == "json"):
        return None  # a document that is too large is cut when it is there
    from tooli.surfaces.cli.budgets import shaping_of

    return shaping_of(session)


def watched(call: Call, stages: tuple[Stage, ...]) -> tuple[Call, tuple[Stage, ...]]:
    """A call, and an eye on its failure: an agent may be about to repeat it for ever."""
    if call.caller.session is not None or call.caller.category != "ai_agent":
        return call, stages  # what has a session of ours is watched already
    from tooli.detect.markers import SESSIONS

    sessions = [
        os.environ[one] for names in SESSIONS.values() for one in names if one in os.environ
    ]
    if not sessions:
        return call, stages

    def watch(call: Call) -> Generator[Call, Outcome, Outcome]:
        if _have_failed(sessions):
            from tooli.stages.loops import break_loops

            return (yield from break_loops(call))
        outcome = yield call
        if isinstance(outcome, Failed):
            from tooli.stages.loops import note_failure

            outcome = note_failure(call, outcome)
        return outcome

    return call, (watch, *stages)


def _have_failed(sessions: Sequence[str]) -> bool:
    """Whether a session may have failed before: a no is a no, for one question to the disk."""
    said = os.environ.get
    home = said("TOOLI_STATE_DIR")
    if not home:
        home = (said("XDG_STATE_HOME") or said("HOME", "") + "/.local/state") + "/tooli"
    plain = [f"/as-{one}" if one.replace("-", "a").isalnum() else "" for one in sessions]
    plain = [one if one == one.lower() and len(one) < 64 else "" for one in plain]
    return os.name == "nt" or any([os.access(f"{home}/loops{one}", 0) for one in plain])


def is_odd(argv: Sequence[str]) -> bool:
    """Whether a line may hold what no agent should send; an ordinary one is not looked at."""
    text = "".join(argv)
    return not text.isprintable() or "\\" in text or "@" in text or "--input" in text


# ------------------------------------------------------------------ how long it may take

AGENT_SECONDS = 120.0
"""What `adapt.AGENT_TIMEOUT` says: to import it would cost every call of an agent's more."""
MOMENT = 0.5
"""Seconds that a line has to end once its time is over."""


def is_timed(session: Session) -> bool:
    """Whether anybody has said how long the line may take, or may be an agent."""
    tool = session.line.tool
    stated = tool is not None and tool.limits.timeout is not None
    return session.marked or stated or "timeout" in session.line.options


def answer_in_time(session: Session) -> Any:
    """Answer a line; an alarm ends what takes too long.

    A limit that somebody stated is kept where the function runs (`enforce/`): then the alarm is
    only for the end of the process. An agent's is kept here alone, because that costs nothing.
    """
    alarm = Alarm(session)
    if alarm.assumed:
        alarm.set(alarm.seconds)
    try:
        return session.answer()
    finally:
        alarm.leaving = True
        if alarm.seconds and _is_on_top():
            alarm.set(max(alarm.seconds - session.milliseconds() / 1000, 0.01) + MOMENT)
        else:
            alarm.set(0.0)  # whoever catches the exit goes on in this process


class Alarm:
    """A timer of the operating system; when it rings, the line is over."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rings = 0
        self.leaving = False  # the answer is out; only the interpreter's own end is left
        self._is_set = False
        tool, said = session.line.tool, session.line.options.get("timeout")
        lasts = tool is not None and hasattr(tool.fn, "tooli_lasts")
        own = None if tool is None else tool.limits.timeout
        stated = [seconds for seconds in (own, said) if seconds is not None]
        self.assumed = not stated and not lasts and session.caller().category == "ai_agent"
        self.seconds = 0.0 if lasts else min(stated) if stated else AGENT_SECONDS * self.assumed

    def set(self, seconds: float) -> None:
        """Ring after so many seconds, and then again and again; with 0.0 not at all."""
        signals = _signals()
        if not hasattr(signals, "setitimer") or not (seconds or self._is_set):
            return
        try:
            if not self._is_set:
                before = signals.signal(signals.SIGALRM, self._ring)
                if before is not signals.SIG_DFL:  # it is the app's own
                    signals.signal(signals.SIGALRM, before)
                    return
            self._is_set = seconds > 0
            signals.setitimer(signals.ITIMER_REAL, seconds, MOMENT if seconds else 0.0)
            if not seconds:
                signals.signal(signals.SIGALRM, signals.SIG_DFL)
        except ValueError:
            pass  # not the main thread: whoever owns that one handles signals

    def _ring(self, *_: object) -> None:
        from tooli.surfaces.cli.overrun import ring

        ring(self)
