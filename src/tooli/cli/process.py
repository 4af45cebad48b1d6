"""The process of a command line and what it stands in, as every start has to know it.

stdout, kept for the answer; SIGTERM; stderr; the collector; the end; a glance at who calls and at
what is set. One file, because every start would pay for a second.
"""

from __future__ import annotations

import gc
import os
import sys

from tooli.core._hot_tables import (
    AGENT_TIMEOUT_SECONDS,
    CALLER_VARIABLES,
    SETTING_VARIABLES,
    SYSTEM_CONFIG_PATH,
)
from tooli.core.call import MAX_PRINTED_CHARS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.core.call import Call, Outcome


class StdoutGuard:
    """stdout, kept for the answer.

    While it is held, file descriptor 1 leads to stderr: `print`, C code and child
    processes cannot get between the caller and the JSON. With `capture` it leads
    to a file in memory instead, which is read back at the end.
    """

    _released_fd: int | None = None
    """The real stdout after an answer: whatever follows it may not be read with it."""

    def __init__(self, capture: bool = False) -> None:
        self.has_written = False
        self.is_incomplete = False  # an answer is half out: nothing may follow
        self._original_stdout = sys.stdout
        self._owner_pid = os.getpid()
        self._capture_fd: int | None = None
        self._replacement: Any = None
        self._stdout_fd: int | None = None
        if _is_process_stdout(sys.stdout):
            _flush(sys.stdout)
            self._stdout_fd = _duplicate_stdout()
            self._capture_fd = _open_memory_file() if capture else None
            _redirect_stdout(2 if self._capture_fd is None else self._capture_fd)
        else:  # a test runner or a notebook has put its own stdout there
            import io

            self._replacement = sys.stderr
            if capture:
                self._replacement = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
            sys.stdout = self._replacement

    def printed(self) -> str:
        """What was printed since, if it was captured."""
        _flush(sys.stdout)
        if self._replacement is not None and self._replacement is not sys.stderr:
            data = self._replacement.buffer.getvalue()
        elif self._capture_fd is not None:
            os.lseek(self._capture_fd, 0, 0)
            data = os.read(self._capture_fd, 4 * MAX_PRINTED_CHARS + 1)
            _redirect_stdout(2)
            os.close(self._capture_fd)
            self._capture_fd = None
        else:
            return ""
        return data.decode("utf-8", "replace").rstrip("\n")

    def write(self, data: bytes) -> None:
        """Write to the real stdout; only the process that took it does."""
        if self.is_incomplete or os.getpid() != self._owner_pid:
            return
        self.is_incomplete = self.has_written = True
        if self._stdout_fd is not None:
            _write_all(self._stdout_fd, data)
        elif self._original_stdout is None:
            raise OSError(9, "it is closed")
        else:
            self._original_stdout.write(data.decode("utf-8"))
            self._original_stdout.flush()
        self.is_incomplete = False

    def release(self, *, is_final: bool) -> None:
        """Give stdout back; a process that is about to end keeps it, so that nothing follows."""
        if self._stdout_fd is None:
            sys.stdout = self._original_stdout
            return
        _flush(sys.stdout)
        StdoutGuard._released_fd = self._stdout_fd
        if not is_final:
            StdoutGuard.restore_stdout()

    @classmethod
    def restore_stdout(cls) -> None:
        """Lead stdout where it led before the last answer."""
        if cls._released_fd is not None:
            _flush(sys.stdout)
            os.dup2(cls._released_fd, 1)
            os.close(cls._released_fd)
            cls._released_fd = None


class StdoutClosed(Exception):  # noqa: N818
    """Nobody reads stdout any more."""


def _is_process_stdout(stream: Any) -> bool:
    try:
        return stream is sys.__stdout__ and stream is not None and stream.fileno() == 1
    except (OSError, ValueError):
        return False


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        pass


def _write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # whoever shares the pipe has made it non-blocking
            from select import select

            select((), (target,), ())


def _redirect_stdout(target: int) -> None:
    """Let file descriptor 1 lead elsewhere; nowhere, if there is no stderr."""
    try:
        os.dup2(target, 1)
    except OSError:
        _redirect_to_devnull(1)


def _duplicate_stdout() -> int:
    """A second descriptor of stdout, never one that others take for stdin or stderr."""
    copy = os.dup(1)
    while copy < 3:
        low_fd, copy = copy, os.dup(copy)
        _redirect_to_devnull(low_fd)
    return copy


def _redirect_to_devnull(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _open_memory_file() -> int:
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


def write_stderr(text: str) -> None:
    """Write a line to stderr, if there is one."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def report_write_error(failure: OSError | ValueError) -> int:
    """Say that an answer could not be written; the exit code, but for a reader who has left."""
    if isinstance(failure, BrokenPipeError):
        return 0
    write_stderr(f"The result could not be written to stdout: {error_reason(failure)}")
    return 70


def error_reason(failure: BaseException) -> object:
    """Why something could not be written, in the system's words."""
    return getattr(failure, "strerror", None) or failure


# ------------------------------------------------------------------ signals


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception that stops an event loop as Ctrl-C does."""

    error_code = "E4143"


def _raise_terminated(*_: object) -> None:
    raise Terminated("Terminated.")


def _signal_module() -> Any:
    """`signal`, as far as it is C: the rest of it imports enum."""
    try:
        import _signal as found  # pyright: ignore[reportMissingImports]
    except ImportError:
        import signal as found
    return found  # pyright: ignore[reportUnknownVariableType]


def set_sigterm_handler(handler: Any = _raise_terminated) -> Any:
    """Have SIGTERM handled; what handled it before."""
    signals = _signal_module()
    try:
        return signals.signal(signals.SIGTERM, handler)
    except ValueError:
        return None  # not the main thread: whoever owns that one handles signals


_gc_is_frozen = False


def freeze_gc() -> None:
    """Leave what was made before the command runs to the operating system, at the end.

    The last collection of a process walks through all that was ever imported, in vain: a
    millisecond of every start. Only files that are open for writing could lose something
    by it, so where there is one, nothing is spared; nor where the process goes on after this
    command, as that of a test does.
    """
    global _gc_is_frozen
    if not _is_top_level():
        return
    if not _has_only_standard_files():
        from tooli.cli.open_files import has_no_open_writers

        if not has_no_open_writers():
            return
    _gc_is_frozen = True
    gc.freeze()


def _has_only_standard_files(own_count: int = 0) -> bool:
    """Whether nothing but stdin, stdout and stderr is open here; False where nobody can tell."""
    try:
        count = len(os.listdir("/proc/self/fd"))
    except OSError:
        return False
    standard = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return count - 1 - own_count <= 3 - standard.count(None)  # 1: the folder that was just read


def fast_exit(code: Any) -> Any:
    """End the process at once, where taking the interpreter apart would do nothing for anybody.

    That takes longer than most commands. It is left out only where nothing waits for it: no
    `atexit`, no thread, no file, no debugger or profiler, no foreign C code with buffers of its
    own, and nobody between here and the top of the script who would handle the exit.
    Otherwise the code is given back.
    """
    from _thread import _count as threads  # pyright: ignore
    from atexit import _ncallbacks as waiting  # pyright: ignore

    own_count = StdoutGuard._released_fd is not None
    if not _has_only_standard_files(own_count) and not _flush_or_has_only_inherited_files(
        own_count
    ):
        return code
    if waiting() or threads() or _is_being_debugged() or not _is_top_level():
        return code
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path[-3:] in (".so", "pyd") and ("lib-dynload" not in path or "_ctypes" in path):
            return code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return code
    os._exit(code or 0)


def _flush_or_has_only_inherited_files(own_count: int) -> bool:
    """Whether what is open is others'; or else it is written out now.

    Meanwhile the collector waits: it closes what is in a circle with a failure in any order, and
    what a text still holds is lost where the bytes below it come first.
    """
    gc_was_enabled = gc.isenabled()
    gc.disable()
    from tooli.cli.open_files import flush_open_files, has_only_inherited_files

    only_inherited = has_only_inherited_files(own_count)
    if not only_inherited:
        flush_open_files(_gc_is_frozen, is_exiting=_is_top_level())
    if gc_was_enabled:
        gc.enable()
    return only_inherited


def _is_being_debugged() -> bool:
    """Whether somebody looks into the interpreter: a debugger, a profiler, a prompt to follow."""
    flags = sys.flags
    if flags.inspect or flags.dev_mode or sys.gettrace() or sys.getprofile():
        return True
    monitoring: Any = getattr(sys, "monitoring", None)
    return monitoring is not None and any([monitoring.get_tool(number) for number in range(6)])


def _is_top_level() -> bool:
    """Whether nobody above the app has a `try` or a `with` that would see it end."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        exception_table = getattr(
            frame.f_code, "co_exceptiontable", b"?"
        )  # older Pythons do not tell
        name = frame.f_globals.get("__name__", "") if exception_table else ""
        if exception_table and name != "runpy" and name[:6] != "tooli.":
            return False
        frame = frame.f_back
    return True


# ------------------------------------------------------------------ how it was started


def sniff_environment() -> tuple[bool, bool]:
    """Whether somebody may have left a mark, and whether there may be settings.

    A no is a no; a yes is a maybe, which `tooli.detect` and `tooli.config` look into.
    """
    names = frozenset(os.environ)
    maybe_agent = not CALLER_VARIABLES.isdisjoint(names) or ".pi/agent/bin" in os.environ.get(
        "PATH", ""
    )
    return maybe_agent, not SETTING_VARIABLES.isdisjoint(names) or _has_config_file()


def _has_config_file() -> bool:
    """Whether a file of settings is there: a few questions to the file system."""
    env, exists = os.environ.get, os.access
    if exists(SYSTEM_CONFIG_PATH, 0):
        return True
    config_choice = env("TOOLI_CONFIG")
    if config_choice:
        return config_choice.lower() not in ("off", "0", "false", "no")
    home = env("APPDATA") if os.name == "nt" else env("XDG_CONFIG_HOME")
    if exists(f"{home or env('HOME', '') + '/.config'}/tooli/config.yaml", 0):
        return True
    try:
        cwd = folder = os.getcwd()
    except OSError:
        return False
    if _file_contains(f"{cwd}/.env", b"TOOLI_"):
        return True
    for _ in range(40):
        if exists(f"{folder}/.tooli.yaml", 0):
            return True
        if _file_contains(f"{folder}/pyproject.toml", b"tool.tooli", b"[tool]\n", b"\ntool={"):
            return True
        if exists(f"{folder}/.git", 0):
            return folder != cwd and _file_contains(f"{folder}/.env", b"TOOLI_")
        folder, child = os.path.dirname(folder), folder
        if folder == child:
            break
    return False


_MAX_CONFIG_BYTES = 1 << 22  # bytes: no such file is longer


def _file_contains(path: str, *needles: bytes) -> bool:
    """Whether a file is there and holds one of the signs, however it is spaced and quoted."""
    if not os.access(path, 0):
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            text = b"\n" + os.read(descriptor, _MAX_CONFIG_BYTES).translate(None, b" \t\r\"'")
        finally:
            os.close(descriptor)
    except OSError:
        return os.path.isfile(path)
    return any([needle in text for needle in needles])


def is_completing() -> bool:
    """Whether a shell asks for completions: that is Typer's."""
    return any([key[-9:] == "_COMPLETE" and key[:1] == "_" for key in os.environ])


def program_argv() -> tuple[str, ...]:
    """The words with which the program was started, as somebody would type them again."""
    program = sys.argv[0] if sys.argv else ""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        name = spec.name[: -len(".__main__")] if spec.name.endswith(".__main__") else spec.name
        return ("python", "-m", name)
    if program.endswith(".py"):
        return ("python", program)
    return (os.path.basename(program),)


SMALL_DOCUMENT_BYTES = 10_000
"""Bytes of an answer that every caller takes: only of a larger one it matters who calls."""


def limit_document(invocation: Invocation, outcome: Outcome, call: Call, data: bytes) -> bytes:
    """A document as its caller takes it; whoever asked for a size has got it already."""
    if (
        len(data) <= SMALL_DOCUMENT_BYTES
        or call.options.result_options is not None
        or not invocation.maybe_agent
    ):
        return data
    from tooli.cli.output_limits import truncate_document

    return truncate_document(invocation, outcome, call, data)


def shaping_if_needed(invocation: Invocation) -> Any:
    """How much of the result is wanted, where the line or the caller says so."""
    if not invocation.line.has_shaping and (
        not invocation.maybe_agent or invocation.mode == "json"
    ):
        return None  # a document that is too large is cut when it is there
    from tooli.cli.output_limits import compute_shaping

    return compute_shaping(invocation)


def needs_argument_checks(argv: Sequence[str]) -> bool:
    """Whether a line may hold what no agent should send; an ordinary one is not looked at."""
    text = "".join(argv)
    return not text.isprintable() or "\\" in text or "@" in text or "--input" in text


# ------------------------------------------------------------------ how long it may take

EXIT_GRACE_SECONDS = 0.5
"""Seconds that a line has to end once its time is over."""


def has_timeout(invocation: Invocation) -> bool:
    """Whether anybody has said how long the line may take, or may be an agent."""
    tool = invocation.line.tool
    has_declared_timeout = tool is not None and tool.limits.timeout is not None
    return invocation.maybe_agent or has_declared_timeout or "timeout" in invocation.line.options


def run_with_timeout(invocation: Invocation) -> Any:
    """Answer a line; an alarm ends what takes too long.

    A limit that somebody stated is kept where the function runs (`enforce/`): then the alarm is
    only for the end of the process. An agent's is kept here alone, because that costs nothing.
    """
    alarm = TimeoutAlarm(invocation)
    if alarm.is_default:
        alarm.schedule(alarm.timeout)
    try:
        return invocation.run_and_exit()
    finally:
        alarm.is_exiting = True
        if alarm.timeout and _is_top_level():
            alarm.schedule(
                max(alarm.timeout - invocation.milliseconds() / 1000, 0.01) + EXIT_GRACE_SECONDS
            )
        else:
            alarm.schedule(0.0)  # whoever catches the exit goes on in this process


class TimeoutAlarm:
    """A timer of the operating system; when it rings, the line is over."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.fired_count = 0
        self.is_exiting = False  # the answer is out; only the interpreter's own end is left
        self._is_armed = False
        tool, option = invocation.line.tool, invocation.line.options.get("timeout")
        is_long_running = tool is not None and hasattr(tool.fn, "tooli_long_running")
        declared = None if tool is None else tool.limits.timeout
        timeouts = [seconds for seconds in (declared, option) if seconds is not None]
        self.is_default = (
            not timeouts and not is_long_running and invocation.caller().category == "ai_agent"
        )
        self.timeout = (
            0.0
            if is_long_running
            else min(timeouts)
            if timeouts
            else AGENT_TIMEOUT_SECONDS * self.is_default
        )

    def schedule(self, delay: float) -> None:
        """Ring after so many seconds, and then again and again; with 0.0 not at all."""
        signals = _signal_module()
        if not hasattr(signals, "setitimer") or not (delay or self._is_armed):
            return
        try:
            if not self._is_armed:
                previous = signals.signal(signals.SIGALRM, self._on_alarm)
                if previous is not signals.SIG_DFL:  # it is the app's own
                    signals.signal(signals.SIGALRM, previous)
                    return
            self._is_armed = delay > 0
            signals.setitimer(signals.ITIMER_REAL, delay, EXIT_GRACE_SECONDS if delay else 0.0)
            if not delay:
                signals.signal(signals.SIGALRM, signals.SIG_DFL)
        except ValueError:
            pass  # not the main thread: whoever owns that one handles signals

    def _on_alarm(self, *_: object) -> None:
        from tooli.cli.timeout_exit import handle_alarm

        handle_alarm(self)
