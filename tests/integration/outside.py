"""Run an app from outside: real processes, pipes, terminals."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
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
EVERY = APPS / "every.py"
PATIENCE = 300
"""Seconds after which a process counts as hung. A busy machine needs much less."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or else every child ignores it, too

DOCUMENTED = frozenset((0, 2, 10, 20, 30, 40, 50, 65, 70, 75, 101, 130, 143))


class Finished(NamedTuple):
    """What a process left behind."""

    code: int
    out: bytes
    err: bytes


def environment(**more: str | None) -> dict[str, str]:
    """A plain environment: nobody's agent, nobody's CI, Python as it comes."""
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
    """The words that start an app."""
    return [sys.executable, str(app), *argv]


def run(app: Path | str, *argv: str | bytes, stdin: bytes = b"", **more: Any) -> Finished:
    """Run an app to its end, its streams on pipes."""
    env = more.pop("env", None) or environment()
    done = subprocess.run(
        command(app, *argv), input=stdin, capture_output=True, timeout=PATIENCE, env=env, **more
    )
    return Finished(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def started(app: Path | str, *argv: str | bytes, **more: Any):
    """A running app; it is gone when the block ends."""
    env = more.pop("env", None) or environment()
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(app, *argv), env=env, **{**streams, **more}) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            process.kill()
            watchdog.cancel()


def wait_for_ready(process: subprocess.Popen[bytes]) -> None:
    """Block until the app says on stderr that it waits now."""
    assert process.stderr is not None
    for line in process.stderr:
        if line == b"ready\n":
            return
    raise AssertionError("the app ended before it was ready")


def finish(process: subprocess.Popen[bytes]) -> Finished:
    """The rest of a process."""
    out, err = process.communicate(timeout=PATIENCE)
    return Finished(process.returncode, out, err)


def run_on_terminal(
    app: Path | str,
    *argv: str | bytes,
    terminals: str = "012",
    size: tuple[int, int] = (24, 80),
    env: dict[str, str] | None = None,
    interrupt: bool = False,
) -> Finished:
    """Run an app whose streams `terminals` are terminals of their own, the others pipes."""
    masters: dict[int, int] = {}
    ours: list[int] = []
    theirs: list[int] = []
    for stream in range(3):
        if str(stream) in terminals:
            outer, inner = pty.openpty()
            fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            mode = termios.tcgetattr(inner)
            mode[1] &= ~termios.OPOST  # lines end as they were written
            termios.tcsetattr(inner, termios.TCSANOW, mode)
        elif stream == 0:
            inner, outer = os.pipe()
        else:
            outer, inner = os.pipe()
        masters[stream] = outer
        ours.append(outer)
        theirs.append(inner)
    process = subprocess.Popen(
        command(app, *argv),
        stdin=theirs[0],
        stdout=theirs[1],
        stderr=theirs[2],
        env=env or environment(TERM="xterm-256color"),
    )
    for inner in theirs:
        os.close(inner)
    kept = {1: bytearray(), 2: bytearray()}
    seen = threading.Event()

    def read(stream: int) -> None:
        while True:
            try:
                data = os.read(masters[stream], 65536)
            except OSError:  # a terminal that nobody holds any more
                break
            if not data:
                break
            kept[stream] += data
            if b"ready\n" in kept[2]:
                seen.set()

    readers = [threading.Thread(target=read, args=(stream,)) for stream in (1, 2)]
    for reader in readers:
        reader.start()
    if interrupt:
        assert seen.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
    try:
        code = process.wait(PATIENCE)
    finally:
        process.kill()
        for reader in readers:
            reader.join()
        for outer in ours:
            os.close(outer)
    return Finished(code, bytes(kept[1]), bytes(kept[2]))


def converse(
    app: Path | str,
    *argv: str | bytes,
    says: Sequence[tuple[bytes, bytes | Callable[[bytes], bytes]]] = (),
    env: dict[str, str] | None = None,
) -> Finished:
    """Run an app on one terminal, and answer it: after each text that it shows, with some keys.

    An answer may be made from what was shown so far. What it shows is all in `out`.
    """
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        command(app, *argv),
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=env or environment(TERM="xterm-256color"),
        start_new_session=True,
    )
    os.close(inner)
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    shown = bytearray()
    waiting = list(says)
    at = 0
    try:
        while True:
            try:
                data = os.read(outer, 65536)
            except OSError:  # nobody holds the terminal any more
                break
            if not data:
                break
            shown += data
            while waiting and waiting[0][0] in shown[at:]:
                awaited, answer = waiting.pop(0)
                at = shown.index(awaited, at) + len(awaited)
                os.write(outer, answer if isinstance(answer, bytes) else answer(bytes(shown)))
        code = process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        watchdog.cancel()
        os.close(outer)
    assert not waiting, f"it never showed {waiting[0][0]!r}: {bytes(shown)!r}"
    return Finished(code, bytes(shown), b"")


# ------------------------------------------------------------------ reading answers


def parse(data: bytes | str) -> Any:
    """JSON, strictly: no NaN, no doubled keys."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        assert len(found) == len(pairs), f"a key stands twice in {pairs}"
        return found

    return json.loads(data, parse_constant=refuse, object_pairs_hook=unique)


def envelope(out: bytes) -> dict[str, Any]:
    """The one envelope that is all of stdout."""
    assert out.endswith(b"\n"), out[-200:]
    assert out.count(b"\n") == 1, f"more than one line: {out[:500]!r}"
    return check(parse(out))


def check(found: Any) -> dict[str, Any]:
    """The envelope, if it is one: the fixed keys, in their order, and no nulls."""
    assert type(found) is dict, found
    keys = list(found)
    if found["ok"]:
        assert keys in (["ok", "result", "meta"], ["ok", "meta"]), keys
    else:
        assert keys == ["ok", "error", "meta"]
        error = found["error"]
        order = ["code", "category", "message", "field", "suggestion", "is_retryable", "details"]
        assert [k for k in order if k in error] == list(error)
        assert type(error["message"]) is str
        assert error["message"]
        assert None not in error.values()
    assert next(iter(found["meta"])) == "tool"
    assert type(found["meta"]["duration_ms"]) is int
    return found


def failing_stream(out: bytes) -> tuple[list[Any], dict[str, Any]]:
    """The items of a stream that failed, and the failure that is its last line."""
    assert out.endswith(b"\n")
    lines = [parse(line) for line in out.splitlines()]
    last = check(lines.pop())
    assert last["ok"] is False
    return lines, last


def is_clean(err: bytes) -> bool:
    """Whether stderr is fit to be read: no traceback, nothing that Python ignored."""
    return not any(
        sign in err for sign in (b"Traceback", b"Exception ignored", b"Error in atexit", b'File "')
    )
