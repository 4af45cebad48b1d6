"""Run an app as a process, with pipes or terminals, and read its output."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import random
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

APPS = Path(__file__).parent / "apps"
OUTCOMES_APP = APPS / "outcomes.py"
PROCESS_TIMEOUT = 300
"""Seconds after which a process counts as hung. A busy machine needs much less."""

_TESTED_PORTS = range(16_000, 32_000)
"""Ports that the system gives neither to outgoing connections nor to servers with port 0."""


def free_port() -> int:
    """Return a port that nothing listens on, for a server whose port must be known before."""
    while True:
        port = random.choice(_TESTED_PORTS)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


# A background job of a shell script ignores SIGINT, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DOCUMENTED_EXIT_CODES = frozenset((0, 2, 10, 20, 30, 40, 50, 65, 70, 75, 101, 130, 143))


class ProcessResult(NamedTuple):
    """Exit code and output of a process."""

    code: int
    out: bytes
    err: bytes


def environment(**more: str | None) -> dict[str, str]:
    """Return a minimal environment, without the variables of agents, CI systems and Python.

    A variable that is None is removed.
    """
    env = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
    }
    for name, value in more.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def command(app: Path | str, *argv: str | bytes) -> list[str | bytes]:
    """Return the argument list that starts an app."""
    return [sys.executable, str(app), *argv]


def run(app: Path | str, *argv: str | bytes, stdin: bytes = b"", **more: Any) -> ProcessResult:
    """Run an app with pipes and wait for its end."""
    env = more.pop("env", None) or environment()
    done = subprocess.run(
        command(app, *argv),
        input=stdin,
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env=env,
        **more,
    )
    return ProcessResult(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def start_app(app: Path | str, *argv: str | bytes, **more: Any):
    """Start an app with pipes; kill it when the block ends."""
    env = more.pop("env", None) or environment()
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(app, *argv), env=env, **{**streams, **more}) as process:
        watchdog = threading.Timer(PROCESS_TIMEOUT, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            process.kill()
            watchdog.cancel()


def wait_for_ready(process: subprocess.Popen[bytes]) -> None:
    """Block until the app writes "ready" to stderr."""
    assert process.stderr is not None
    for line in process.stderr:
        if line == b"ready\n":
            return
    raise AssertionError("the app ended before it was ready")


def finish(process: subprocess.Popen[bytes]) -> ProcessResult:
    """Wait for the end of a process and return its result."""
    out, err = process.communicate(timeout=PROCESS_TIMEOUT)
    return ProcessResult(process.returncode, out, err)


def run_on_terminal(
    app: Path | str,
    *argv: str | bytes,
    terminals: str = "012",
    size: tuple[int, int] = (24, 80),
    env: dict[str, str] | None = None,
    interrupt: bool = False,
) -> ProcessResult:
    """Run an app and wait for its end; with `interrupt`, send SIGINT when it is ready.

    `terminals` lists the file descriptors that are terminals, one terminal each. The others are
    pipes.
    """
    parent_ends: list[int] = []
    child_ends: list[int] = []
    for stream in range(3):
        if str(stream) in terminals:
            parent_end, child_end = pty.openpty()
            fcntl.ioctl(parent_end, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            mode = termios.tcgetattr(child_end)
            mode[1] &= ~termios.OPOST  # keep the line ends that the app writes
            termios.tcsetattr(child_end, termios.TCSANOW, mode)
        elif stream == 0:
            child_end, parent_end = os.pipe()
        else:
            parent_end, child_end = os.pipe()
        parent_ends.append(parent_end)
        child_ends.append(child_end)
    process = subprocess.Popen(
        command(app, *argv),
        stdin=child_ends[0],
        stdout=child_ends[1],
        stderr=child_ends[2],
        env=env or environment(TERM="xterm-256color"),
    )
    for child_end in child_ends:
        os.close(child_end)
    output = {1: bytearray(), 2: bytearray()}
    is_ready = threading.Event()

    def read(stream: int) -> None:
        while True:
            try:
                data = os.read(parent_ends[stream], 65536)
            except OSError:  # no process has the terminal open
                break
            if not data:
                break
            output[stream] += data
            if b"ready\n" in output[2]:
                is_ready.set()

    readers = [threading.Thread(target=read, args=(stream,)) for stream in (1, 2)]
    for reader in readers:
        reader.start()
    if interrupt:
        assert is_ready.wait(PROCESS_TIMEOUT)
        process.send_signal(signal.SIGINT)
    try:
        code = process.wait(PROCESS_TIMEOUT)
    finally:
        process.kill()
        for reader in readers:
            reader.join()
        for parent_end in parent_ends:
            os.close(parent_end)
    return ProcessResult(code, bytes(output[1]), bytes(output[2]))


def run_interactive(
    app: Path | str,
    *argv: str | bytes,
    answers: Sequence[tuple[bytes, bytes | Callable[[bytes], bytes]]] = (),
    env: dict[str, str] | None = None,
) -> ProcessResult:
    """Run an app on one terminal and answer its prompts.

    Each pair of `answers` is a text that the app displays and the keys to type then. The keys can
    be a function of the output so far. `out` of the result is everything that was displayed.
    """
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        command(app, *argv),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=env or environment(TERM="xterm-256color"),
        start_new_session=True,
    )
    os.close(terminal)
    watchdog = threading.Timer(PROCESS_TIMEOUT, process.kill)
    watchdog.start()
    displayed = bytearray()
    waiting = list(answers)
    position = 0
    try:
        while True:
            try:
                data = os.read(screen, 65536)
            except OSError:  # no process has the terminal open
                break
            if not data:
                break
            displayed += data
            while waiting and waiting[0][0] in displayed[position:]:
                awaited, answer = waiting.pop(0)
                position = displayed.index(awaited, position) + len(awaited)
                keys = answer if isinstance(answer, bytes) else answer(bytes(displayed))
                os.write(screen, keys)
        code = process.wait(PROCESS_TIMEOUT)
    finally:
        process.kill()
        process.wait()
        watchdog.cancel()
        os.close(screen)
    assert not waiting, f"it never displayed {waiting[0][0]!r}: {bytes(displayed)!r}"
    return ProcessResult(code, bytes(displayed), b"")


# ------------------------------------------------------------------ reading output


def parse_json(data: bytes | str) -> Any:
    """Parse JSON strictly: NaN and duplicate keys are errors."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        assert len(found) == len(pairs), f"duplicate key in {pairs}"
        return found

    return json.loads(data, parse_constant=refuse, object_pairs_hook=unique)


def read_envelope(out: bytes) -> dict[str, Any]:
    """Return the envelope in stdout, which must not contain anything else."""
    assert out.endswith(b"\n"), out[-200:]
    assert out.count(b"\n") == 1, f"more than one line: {out[:500]!r}"
    return check_envelope(parse_json(out))


def check_envelope(found: Any) -> dict[str, Any]:
    """Return a valid envelope: it has the fixed keys in their order, and no nulls."""
    assert type(found) is dict, found
    keys = list(found)
    if found["ok"]:
        assert keys in (["ok", "result", "meta"], ["ok", "meta"]), keys
    else:
        assert keys in (["ok", "error", "meta"], ["ok", "error", "result", "meta"]), keys
        error = found["error"]
        order = ["code", "category", "message", "field", "suggestion", "is_retryable", "details"]
        assert [k for k in order if k in error] == list(error)
        assert type(error["message"]) is str
        assert error["message"]
        assert None not in error.values()
    assert next(iter(found["meta"])) == "tool"
    assert type(found["meta"]["duration_ms"]) is int
    return found


def read_failed_stream(out: bytes) -> tuple[list[Any], dict[str, Any]]:
    """Return the items of a stream that failed, and the envelope in its last line."""
    assert out.endswith(b"\n")
    lines = [parse_json(line) for line in out.splitlines()]
    last = check_envelope(lines.pop())
    assert last["ok"] is False
    return lines, last


def is_clean(err: bytes) -> bool:
    """True if stderr contains no traceback and no exception that Python ignored."""
    return not any(
        text in err for text in (b"Traceback", b"Exception ignored", b"Error in atexit", b'File "')
    )
