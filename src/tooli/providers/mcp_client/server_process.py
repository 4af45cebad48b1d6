"""ServerProcess: a program that speaks MCP on its stdin and stdout, one message per line.

    send ──▶ writer thread ──▶ stdin │ stdout ──▶ reader thread ──▶ on_message
                                     │ stderr ──▶ stderr thread ──▶ the end of it, for errors

The program has a process group of its own, so Ctrl-C does not reach it. It ends with this process:
its stdin is closed then. On Linux, the kernel kills it as well, even if this process was killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import deque
from json import dumps, loads
from queue import SimpleQueue
from threading import Event, Lock, Thread

from tooli.errors import AuthError, DependencyError, Suggestion
from tooli.execution.processes import SIGTERM, kill_process_group
from tooli.providers.http_requests import read_reference
from tooli.schema.described import clean_text
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject

    MessageHandler: TypeAlias = Callable[[JsonObject], None]

MAX_MESSAGE_BYTES = 32 << 20
"""Maximum size of one message from a server."""
MAX_NOISE_BYTES = 1 << 20
"""Maximum number of bytes on stdout that are no messages. A server that prints more is stopped."""
_LINE_BYTES = 100  # what a short line counts at least
MAX_STDERR_CHARS = 4_000
"""The end of the stderr of a server that is kept for errors."""
END_SECONDS, TERMINATE_SECONDS = 1.0, 1.0
"""Seconds in which a server has to end after its stdin was closed, and after SIGTERM."""

_INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
)
_INHERITED_ON_WINDOWS = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "COMSPEC"),
    *("PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "TMP", "USERNAME", "USERPROFILE"),
)

# Starts the program after it has asked the kernel to kill it when its parent ends. It is a program
# of its own: a function that runs between fork and exec may block in a process with threads.
_STARTER = """
import os, sys
parent = int(sys.argv[1])
try:
    import _ctypes
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")
    _ctypes.call_cdeclfunction(prctl, (1, 9, 0, 0, 0))
except (ImportError, AttributeError, OSError):
    pass
if os.getppid() != parent:
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[3:])
"""


class ServerGone(Exception):  # noqa: N818
    """The connection to a server has ended. The message says why."""

    def __init__(self, reason: str, was_sent: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.was_sent = was_sent  # False: the server has not received the request


def base_environment() -> dict[str, str]:
    """Return the variables that every server inherits: none of them is a secret."""
    names = _INHERITED_ON_WINDOWS if sys.platform == "win32" else _INHERITED
    found = {name: os.environ[name] for name in names if name in os.environ}
    return {name: value for name, value in found.items() if not value.startswith("()")}


def build_environment(env: Mapping[str, str], source: str) -> dict[str, str]:
    """Return the environment of a server. Values such as `env:NAME` and `@/FILE` are read."""
    values = base_environment()
    for name, value in env.items():
        is_file = value[:1] == "@" and os.path.isabs(value[1:])
        is_secret = is_file or value[:4] == "env:"
        values[name] = read_reference(value, source) if is_secret else value
    return values


def find_program(command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> str | None:
    """Return the path of the program of a command, or None."""
    name = command[0]
    if os.path.dirname(name) and not os.path.isabs(name):
        name = os.path.join(cwd or os.getcwd(), name)
    return shutil.which(name, path=env.get("PATH"))


class ServerProcess:
    """A running server. `on_message` gets its messages; `on_end` is called once when it ends.

    `on_noise` is called for each line on stdout that is no message.
    """

    def __init__(
        self,
        source: str,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        on_message: MessageHandler,
        on_end: Callable[[ServerGone], None],
        on_noise: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self._command = command
        self._env = env
        self._cwd = cwd
        self._on_message = on_message
        self._on_end = on_end
        self._on_noise = on_noise
        self._process: subprocess.Popen[bytes] | None = None
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._stderr: deque[bytes] = deque(maxlen=64)
        self._noise: deque[bytes] = deque(maxlen=3)
        self._noise_bytes = 0
        self._reason: str | None = None
        self._started, self._stderr_read = Event(), Event()
        self._failure: Exception | None = None
        self._lock = Lock()

    def start(self) -> None:
        """Start the program. Raises an error of tooli if that fails."""
        env = build_environment(self._env, self._source)
        if self._cwd is not None and not os.path.isdir(self._cwd):
            raise DependencyError(f"{self._source}: its folder {self._cwd} does not exist.")
        program = find_program(self._command, env, self._cwd)
        if program is None:
            raise DependencyError(
                f"{self._source}: the program {self._command[0]!r} is not installed, or not on the "
                "PATH.",
                suggestion=Suggestion("fix", f"Install {self._command[0]}, or give its full path."),
            )
        # The kernel kills the program when the thread that started it ends, so that thread stays.
        Thread(target=self._run, args=(program, env), name="tooli-mcp-stdin", daemon=True).start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def _run(self, program: str, env: Mapping[str, str]) -> None:
        arguments = [program, *self._command[1:]]
        if sys.platform == "linux" and sys.executable and not getattr(sys, "frozen", False):
            starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(os.getpid())]
            arguments = [*starter, program, *arguments]
        process: subprocess.Popen[bytes] | None = None
        try:
            process = self._process = subprocess.Popen(
                arguments,
                env=dict(env),
                cwd=self._cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except PermissionError as failure:
            reason = failure.strerror or "permission denied"
            self._failure = AuthError(f"{self._source} cannot be started: {reason}", code="E2030")
        except (OSError, ValueError) as failure:
            reason = clean_text(getattr(failure, "strerror", None) or str(failure), 200)
            self._failure = DependencyError(f"{self._source} cannot be started: {reason}")
        self._started.set()
        if process is not None:  # `close` may have forgotten it already
            readers = {"stderr": self._read_stderr, "stdout": self._read_stdout}
            for name, read in readers.items():
                thread = f"tooli-mcp-{name}"
                Thread(target=read, args=(process,), name=thread, daemon=True).start()
            self._write(process)

    # -------------------------------------------------------------- messages

    def send(self, message: JsonObject) -> None:
        """Send a message. It never blocks; a server that has ended is reported by `on_end`."""
        data = dumps(message, separators=(",", ":")).encode("ascii")
        self._outgoing.put(data + b"\n")

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        """Write the messages until the server is closed. Runs as long as the program."""
        assert process.stdin is not None
        while (data := self._outgoing.get()) is not None:
            try:
                process.stdin.write(data)
                process.stdin.flush()
            except (OSError, ValueError):
                break
        try:
            process.stdin.close()
        except OSError:
            pass
        process.wait()

    def _read_stdout(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        descriptor, buffer = process.stdout.fileno(), bytearray()
        try:
            while self._reason is None and (chunk := os.read(descriptor, 1 << 16)):
                start = len(buffer)
                buffer += chunk
                if buffer.find(b"\n", start) >= 0:
                    *lines, rest = bytes(buffer).split(b"\n")
                    buffer = bytearray(rest)
                    for line in lines:
                        self._read_line(line)
                elif len(buffer) > MAX_MESSAGE_BYTES:
                    self._reason = f"it sent a message of more than {MAX_MESSAGE_BYTES >> 20} MB"
        except OSError:
            pass
        self._ended(process)
        process.stdout.close()

    def _read_line(self, line: bytes) -> None:
        line = line.strip()
        if not line:
            return
        try:
            for message in decode_messages(line):
                self._on_message(message)
        except JsonLimitError as failure:
            self._reason = f"it sent a message that {failure}"
        except ValueError:
            self._noise.append(line[:200])
            self._noise_bytes += len(line) + _LINE_BYTES
            if self._noise_bytes > MAX_NOISE_BYTES:
                self._reason = "it prints text that is not MCP"
            self._on_noise()

    def _read_stderr(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        try:
            while chunk := os.read(process.stderr.fileno(), 1 << 12):
                self._stderr.append(chunk)
        except OSError:
            pass
        self._stderr_read.set()
        process.stderr.close()

    # -------------------------------------------------------------- the end

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        """Report the end of the server, after its stdout has ended."""
        reason = self._reason
        if reason is None:
            try:
                code = process.wait(END_SECONDS)
                reason = (
                    f"it was ended by signal {-code}" if code < 0 else f"it ended (exit {code})"
                )
            except subprocess.TimeoutExpired:
                reason = "it has closed its stdout"
        self.close(0.0)
        self._stderr_read.wait(0.5)
        self._on_end(ServerGone(reason))

    def output_tail(self) -> JsonObject:
        """Return the end of what the server printed: stderr, and text on stdout."""
        stderr = b"".join(self._stderr).decode("utf-8", "replace")
        shown = clean_text(stderr[-MAX_STDERR_CHARS:], MAX_STDERR_CHARS).strip()
        noise = b"\n".join(self._noise).decode("utf-8", "replace")
        found = {"stderr": shown, "stdout": clean_text(noise, 600).strip()}
        return {name: text for name, text in found.items() if text}

    def close(self, grace: float = END_SECONDS) -> None:
        """End the program: close its stdin, then terminate it, then kill it."""
        self._outgoing.put(None)
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            if not _has_ended(process, grace):
                _terminate(process)
                if not _has_ended(process, TERMINATE_SECONDS if grace else 0.2):
                    _kill(process)
            _kill_group(process)


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _terminate(process: subprocess.Popen[bytes]) -> None:
    try:
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, SIGTERM)
    except OSError:
        pass


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        kill_process_group(process.pid)
    _has_ended(process, 1.0)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what a program has left in its process group, such as the child of `npx`."""
    if sys.platform != "win32":
        try:
            os.killpg(process.pid, SIGTERM)
        except OSError:  # the group is empty
            return
        kill_process_group(process.pid)


def decode_messages(data: bytes) -> list[JsonObject]:
    """Return the JSON-RPC messages in a text: one, or a batch.

    Raises a ValueError if it is no message, and a JsonLimitError if it is too large to decode.
    """
    check_json_limits(data, outer_depth=3)
    try:
        value: Any = loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    messages = value if is_list(value) else [value]
    if not all([is_object(message) and message.get("jsonrpc") == "2.0" for message in messages]):
        raise ValueError("not JSON-RPC")
    return [*messages]
