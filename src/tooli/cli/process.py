"""The process of a command line: stdout, signals, environment, time limit and exit.

`StdoutGuard` reserves stdout for the answer. `Exit` ends the process as fast as is safe, `Deadline`
when its time limit expires. `sniff_environment` checks for agents and settings without detection.

Every start loads this module, so it imports almost nothing and is one file.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from _thread import _count as count_threads  # pyright: ignore

from tooli.core import may_exist
from tooli.core._hot_tables import (
    AGENT_MARKERS,
    AGENT_PATH_PARTS,
    AGENT_TIMEOUT_SECONDS,
    CALLER_VARIABLES,
    CONFIG_OFF_VALUES,
    FALSE_VALUES,
    FULL_DETECTION_VARIABLES,
    MAX_PARENT_FOLDERS,
    SETTING_VARIABLES,
    SYSTEM_CONFIG_PATH,
)
from tooli.core.call import MAX_PRINTED_CHARS, Failed

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any, TextIO, TypeAlias, TypeVar

    from tooli.core.call import Outcome
    from tooli.core.tool import Tool

    T = TypeVar("T")
    SignalHandler: TypeAlias = Callable[[int, FrameType | None], object] | int | None
else:
    try:
        import _signal as signals  # the C module, because the Python module imports enum
    except ImportError:
        import signal as signals


class StdoutGuard:
    """Reserves stdout for the answer.

    Until `release`, file descriptor 1 points to stderr, so that the output of `print`, C code and
    child processes does not mix with the JSON. With `capture`, it points to a file in memory,
    which `printed` reads.
    """

    _released_fd: int | None = None
    """Duplicate of the real stdout, if `release` has left file descriptor 1 redirected."""

    def __init__(self, capture: bool = False) -> None:
        self.has_written = False
        self.is_incomplete = False  # a write has not finished: nothing more may be written
        self._original_stdout = sys.stdout
        self._stderr, self.stderr_texts = sys.stderr, _copy_stderr()
        self._owner_pid = os.getpid()
        self._capture_fd: int | None = None
        self._captured: io.BytesIO | None = None
        self._stdout_fd: int | None = None
        if _is_process_stdout(sys.stdout):
            _flush(sys.stdout)
            self._stdout_fd = _duplicate_stdout()
            self._capture_fd = _open_memory_file() if capture else None
            _redirect_stdout(2 if self._capture_fd is None else self._capture_fd)
        else:  # a test runner or a notebook has replaced sys.stdout
            sys.stdout = sys.stderr
            if capture:
                self._captured = io.BytesIO()
                sys.stdout = io.TextIOWrapper(self._captured, "utf-8", "backslashreplace")

    def printed(self) -> str:
        """Return the captured text, and stop capturing."""
        _flush(sys.stdout)
        if self._captured is not None:
            data = self._captured.getvalue()
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
        """Write to the real stdout. A forked child of the process writes nothing."""
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
        """Restore stdout. With `is_final`, leave file descriptor 1 redirected."""
        getattr(self._stderr, "__dict__", {}).pop("write", None)
        if self._stdout_fd is None:
            sys.stdout = self._original_stdout
            return
        _flush(sys.stdout)
        StdoutGuard._released_fd = self._stdout_fd
        if not is_final:
            StdoutGuard.restore_stdout()

    @classmethod
    def restore_stdout(cls) -> None:
        """Undo the redirection that the last guard left in place."""
        if cls._released_fd is not None:
            _flush(sys.stdout)
            os.dup2(cls._released_fd, 1)
            os.close(cls._released_fd)
            cls._released_fd = None


def _copy_stderr() -> list[str]:
    """Return a list that receives a copy of the last texts that are written to `sys.stderr`.

    Only its method `write` is replaced, because other code may compare or keep the object.
    """
    texts: list[str] = []
    stream: Any = sys.stderr
    if hasattr(stream, "__dict__"):
        write = stream.write

        def write_and_keep(text: str) -> int:
            count = write(text)
            texts.append(text)
            del texts[:-1000]
            return count

        stream.write = write_and_keep
    return texts


class StdoutClosed(Exception):  # noqa: N818
    """Raised to end the run because stdout can no longer be written to."""


def _is_process_stdout(stream: TextIO | None) -> bool:
    try:
        return stream is sys.__stdout__ and stream is not None and stream.fileno() == 1
    except (OSError, ValueError):
        return False


def _flush(stream: TextIO | None) -> None:
    try:
        stream.flush()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    except (OSError, ValueError, AttributeError):
        pass


def _write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # another process made the pipe non-blocking
            from select import select

            select((), (target,), ())


def _redirect_stdout(target: int) -> None:
    """Point file descriptor 1 to another one, or to the null device if that one is closed."""
    try:
        os.dup2(target, 1)
    except OSError:
        redirect_to_devnull(1)


def _duplicate_stdout() -> int:
    """Return a duplicate of file descriptor 1 with a number above 2."""
    copy = os.dup(1)
    while copy < 3:
        low_fd, copy = copy, os.dup(copy)
        redirect_to_devnull(low_fd)
    return copy


def redirect_to_devnull(descriptor: int) -> None:
    """Point a file descriptor to the null device."""
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, descriptor)
    os.close(devnull)


def _open_memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("printed")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def is_terminal(stream: TextIO | None) -> bool:
    """True if a stream is a terminal; False if it is closed or missing."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def write_stderr(text: str) -> None:
    """Write a line to stderr, if it is open."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


# ------------------------------------------------------------------ signals


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception that stops an event loop as Ctrl-C does."""

    error_code = "E4143"


def _raise_terminated(*_: object) -> None:
    raise Terminated("Terminated.")


def set_sigterm_handler(handler: SignalHandler = _raise_terminated) -> SignalHandler:
    """Set the handler of SIGTERM; return the previous one."""
    try:
        return signals.signal(signals.SIGTERM, handler)
    except ValueError:
        return None  # only the main thread can set handlers


# ------------------------------------------------------------------ exit


class Exit:
    """The exit code of a run, and its value if `standalone_mode=False`."""

    def __init__(self, standalone: bool) -> None:
        self.standalone = standalone
        self.code = 0  # not 0 after a failure, or if the answer could not be written
        self.value: Any = None

    def set_outcome(self, outcome: Outcome) -> None:
        """Keep the value of a success, or the exit code of a failure."""
        if isinstance(outcome, Failed):
            self.code = outcome.error.exit_code & 0xFF or 70
        else:
            self.value = outcome.value

    def set_internal_error(self) -> None:
        """Exit with 70, because the answer could not be written."""
        self.code = 70

    def exit_or_return(self, code: int) -> Any:
        """Exit the process; with `standalone_mode=False`, return the value or the code."""
        if not self.standalone:
            return self.value if code == 0 else code
        sys.exit(fast_exit(code))


_gc_is_frozen = False


def freeze_gc() -> None:
    """Exclude everything that exists before the command runs from garbage collection.

    Otherwise the collection at exit takes a millisecond and frees nothing. If a file is open,
    objects are only moved to the oldest generation, because a file that is never collected may lose
    buffered data. Nothing is done if the process continues after this command, as in a test, or if
    a third-party C extension is loaded: some report objects that are not collected as leaks.
    """
    global _gc_is_frozen
    if not _is_top_level() or _has_foreign_extension():
        return
    gc.freeze()
    _gc_is_frozen = _has_only_standard_files()
    if not _gc_is_frozen:
        gc.unfreeze()


# C extensions that only compute: they have no buffers and no work at exit
_PURE_EXTENSIONS = frozenset(("pydantic_core", "yaml", "markupsafe", "orjson", "msgspec", "rpds"))


def _has_foreign_extension() -> bool:
    """True if ctypes or a C extension is loaded that is not part of Python and may have buffers."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        is_impure = path[-3:] in (".so", "pyd") and name.split(".")[0] not in _PURE_EXTENSIONS
        if is_impure and ("lib-dynload" not in path or "_ctypes" in path):
            return True
    return False


def _has_only_standard_files(own_count: int = 0) -> bool:
    """True if only stdin, stdout and stderr are open; False if that cannot be determined."""
    try:
        count = len(os.listdir("/proc/self/fd"))
    except OSError:
        return False
    standard = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return count - 1 - own_count <= 3 - standard.count(None)  # 1: the descriptor of listdir


def fast_exit(code: Any) -> Any:
    """Exit the process without finalizing the interpreter; return the code if that is not safe.

    It is safe without a thread, a file that the process opened, a debugger or profiler, ctypes or a
    C extension that may have buffers, and a frame that handles the exit. `atexit` functions run.
    """
    own_count = StdoutGuard._released_fd is not None
    if not _flush_or_has_only_inherited_files(own_count):
        return code
    if count_threads() or _is_being_debugged() or not _is_top_level() or _has_foreign_extension():
        return code
    if atexit._ncallbacks():
        if Deadline.is_used:  # it limits the time of these functions, once the run has ended
            return code
        atexit._run_exitfuncs()
        if count_threads() or not _flush_or_has_only_inherited_files(own_count):
            return code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return code
    os._exit(code or 0)


def _flush_or_has_only_inherited_files(own_count: int) -> bool:
    """True if all open files are inherited; otherwise flush them and return False.

    The garbage collector is off: it may close a binary file before the text file that buffers it.
    """
    if _has_only_standard_files(own_count):
        return True
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
    """True if a debugger, a profiler or the prompt of `python -i` needs the interpreter."""
    flags = sys.flags
    if flags.inspect or flags.dev_mode or sys.gettrace() or sys.getprofile():
        return True
    monitoring: Any = getattr(sys, "monitoring", None)
    return monitoring is not None and any([monitoring.get_tool(number) for number in range(6)])


def _is_top_level() -> bool:
    """True if no frame above the app has a `try` or a `with` that may handle the exit."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        # Python 3.10 has no exception table, so every frame may handle the exit.
        exception_table = getattr(frame.f_code, "co_exceptiontable", b"?")
        name = frame.f_globals.get("__name__", "") if exception_table else "runpy"
        if name != "runpy" and (name[:6] != "tooli." or name[6:14] == "testing."):
            return False
        frame = frame.f_back
    return True


# ------------------------------------------------------------------ the environment


def sniff_environment() -> tuple[bool, tuple[str, str | None] | None, bool]:
    """Check for an agent or CI system, its identity, and settings; return one value for each.

    The first value is True if an agent or a CI system may be calling; False is certain. The
    identity is the name and version of an agent. If it is None, only `tooli.detect` can tell who
    is calling. The last value is True if there may be settings, which `tooli.config` reads.
    """
    env = os.environ
    names = frozenset(env)
    found = names & CALLER_VARIABLES
    path = env.get("PATH", "")
    has_agent_path = any([part in path for part in AGENT_PATH_PARTS])
    agent = None
    if found and not has_agent_path and FULL_DETECTION_VARIABLES.isdisjoint(names):
        agent = _identify_agent(found, env)
    has_settings = not SETTING_VARIABLES.isdisjoint(names) or _has_config_file()
    return bool(found) or has_agent_path, agent, has_settings


def _identify_agent(found: frozenset[str], env: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Return name and version of the agent that sets these variables; None if it is not certain."""
    first_rank, agent_name = len(AGENT_MARKERS), ""
    for variable in found:
        if variable == "AI_AGENT":
            continue
        rank, name, values = AGENT_MARKERS.get(variable, (0, "", ()))
        value = env[variable]
        is_match = value in values if values else value.lower() not in FALSE_VALUES
        if not name or not is_match:
            return None
        if rank < first_rank:
            first_rank, agent_name = rank, name
    if not agent_name or "AI_AGENT" not in found:
        return (agent_name, None) if agent_name else None
    # such as claude-code_2-1-325_agent
    name, _, version = env["AI_AGENT"].removesuffix("_agent").partition("_")
    is_version = version.replace("-", "").isdigit() and version.isascii() and version[0] != "-"
    if name != agent_name or not is_version or len(version) > 40:
        return None
    return agent_name, version.replace("-", ".")


def _has_config_file() -> bool:
    """True if there may be a configuration file. Makes only a few file system calls."""
    env, exists = os.environ.get, os.access
    if may_exist(SYSTEM_CONFIG_PATH):
        return True
    config_choice = env("TOOLI_CONFIG")
    if config_choice:
        return config_choice.lower() not in CONFIG_OFF_VALUES
    home = env("APPDATA") if os.name == "nt" else env("XDG_CONFIG_HOME")
    home = home or env("HOME", "") + "/.config"
    if os.name != "nt" and (home[0] != "/" or home.startswith(_UNUSUAL_HOMES) or "/../" in home):
        return True  # `tooli.config` may ignore such a folder, and use another one
    if exists(f"{home}/tooli/config.yaml", 0):
        return True
    try:
        cwd = folder = os.getcwd()
    except OSError:
        return False
    if _file_contains(f"{cwd}/.env", b"TOOLI_"):
        return True
    for _ in range(MAX_PARENT_FOLDERS):
        if exists(f"{folder}/.tooli.yaml", 0):
            return True
        if _file_contains(f"{folder}/pyproject.toml", *_TABLE_PATTERNS):
            return True
        if exists(f"{folder}/.git", 0):
            return folder != cwd and _file_contains(f"{folder}/.env", b"TOOLI_")
        folder, child = os.path.dirname(folder), folder
        if folder == child:
            break
    return False


_MAX_CONFIG_BYTES = 1 << 22  # only this many bytes of a longer file are searched
_TABLE_PATTERNS = (
    *(b"tool.tooli", b"\n[tool]", b"\ntool={"),
    *(b"\\u006", b"\\u007", b"\\U0000006", b"\\U0000007"),  # an escaped letter of the name
)
_UNUSUAL_HOMES = ("/proc/", "/dev/", "//", "/./")
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for a writer


def _file_contains(path: str, *needles: bytes) -> bool:
    """True if a file exists and contains one of the needles, ignoring spaces and quotes."""
    if not os.access(path, 0):
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | _NONBLOCK)
        try:
            kind = os.fstat(descriptor).st_mode & 0o170000
            if kind != 0o100000:  # a pipe or a device, possibly the input of the command
                return kind != 0o040000  # `tooli.config` warns about it
            text = b"\n" + os.read(descriptor, _MAX_CONFIG_BYTES).translate(None, b" \t\r\"'")
        finally:
            os.close(descriptor)
    except OSError:
        return not os.path.isdir(path)
    return any([needle in text for needle in needles])


def is_completing() -> bool:
    """True if a shell asks for completions, which Typer answers."""
    return any([key[-9:] == "_COMPLETE" and key[:1] == "_" for key in os.environ])


def program_argv() -> tuple[str, ...]:
    """Return the command that starts this program, as a user would type it."""
    program = sys.argv[0] if sys.argv else ""
    if program[:10] == "tooli run ":  # the launcher has set it
        from shlex import split

        return tuple(split(program))
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        return ("python", "-m", spec.name.removesuffix(".__main__"))
    return ("python", program) if program.endswith(".py") else (os.path.basename(program),)


# ------------------------------------------------------------------ time limit

INTERRUPT_GRACE_SECONDS = 0.5  # for an interrupted function, until the process exits
EXIT_GRACE_SECONDS = 2.0  # long: once Python clears its modules, no handler sets the exit code


class Deadline:
    """The time limit of an invocation, measured by a timer of the operating system.

    A timeout that was declared or requested is enforced where the function runs
    (`tooli.execution`); the deadline then covers the exit of the process only. The default timeout
    of an agent's call is enforced here, because a timer costs nothing.
    """

    is_used = False  # True if this process has a time limit

    def __init__(
        self,
        tool: Tool | None,
        requested: float | None,
        is_agent: bool,
        handle: Callable[[Deadline], None],
    ) -> None:
        self._handle = handle  # called in the main thread when the timer fires
        self._alarm_count = 0
        self.is_exiting = False  # the answer is written; only the exit is left
        self._is_armed = False
        declared = None if tool is None else tool.limits.timeout
        timeouts = [seconds for seconds in (declared, requested) if seconds is not None]
        is_limited = tool is None or not hasattr(tool.fn, "tooli_long_running")
        self._is_default = is_limited and is_agent and not timeouts
        self.timeout = min(timeouts or (AGENT_TIMEOUT_SECONDS * is_agent,)) * is_limited

    def run(self, work: Callable[[], T], elapsed_ms: Callable[[], int]) -> T:
        """Return the result of `work`; call the handler when the time limit expires."""
        Deadline.is_used = True
        if self._is_default:
            self.schedule(self.timeout)
        try:
            return work()
        finally:
            self.is_exiting = True
            if self.timeout and _is_top_level():
                remaining = max(self.timeout - elapsed_ms() / 1000, 0.01)
                self.schedule(remaining + EXIT_GRACE_SECONDS, EXIT_GRACE_SECONDS)
            else:
                self.schedule(0.0)  # code above the app may catch the exit and continue

    def schedule(self, delay: float, interval: float = INTERRUPT_GRACE_SECONDS) -> None:
        """Start the timer, which fires again after each interval; with 0.0, stop it."""
        if not hasattr(signals, "setitimer") or not (delay or self._is_armed):
            return
        try:
            if not self._is_armed:
                previous = signals.signal(signals.SIGALRM, self._on_alarm)
                if previous is not signals.SIG_DFL:  # the app uses this signal itself
                    signals.signal(signals.SIGALRM, previous)
                    return
            self._is_armed = delay > 0
            signals.setitimer(signals.ITIMER_REAL, delay, interval if delay else 0.0)
            if not delay:
                signals.signal(signals.SIGALRM, signals.SIG_DFL)
        except ValueError:
            pass  # only the main thread can set handlers

    def count_alarm(self) -> int:
        """Count an alarm; return the number of alarms so far."""
        self._alarm_count += 1
        return self._alarm_count

    def _on_alarm(self, *_: object) -> None:
        self._handle(self)


def capture_outcome(work: Callable[[], Outcome]) -> Outcome:
    """Return the outcome of `work`; an interruption or an exit becomes a failure."""
    try:
        return work()
    except Exception:
        raise
    except BaseException as exc:
        from tooli.pipeline.failure import to_outcome

        return to_outcome(exc)
