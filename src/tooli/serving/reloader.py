"""Reloader: runs the server in a child process, and restarts it when a source file changes.

    parent ── listening socket ──▶ child: the same command line, which serves
      │  ▲
      │  └── a file of the app changed ──▶ SIGTERM, then a new child
      └── SIGTERM, SIGINT ──▶ child

The parent keeps the listening socket, so clients that connect during a restart wait.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from time import monotonic
from typing import TYPE_CHECKING

from tooli.errors import ToolRuntimeError
from tooli.serving.server_log import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import FrameType

SOCKET_VARIABLE = "_TOOLI_RELOAD_SOCKET"
"""The environment variable that tells a child its listening socket, or its port on Windows."""

POLL_SECONDS = 0.25
"""Seconds between two checks of the files."""

MAX_FILES = 20_000
"""Maximum number of files that are checked."""

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


def inherited_listener() -> socket.socket | int | None:
    """Return the listening socket of the parent, or on Windows its port; None without a parent."""
    value = os.environ.pop(SOCKET_VARIABLE, None)
    if value is None:
        return None
    return socket.socket(fileno=int(value)) if os.name == "posix" else int(value)


def run_with_reload(listener: socket.socket, grace: float) -> None:
    """Run this command line in a child process, again after each change, until a signal arrives.

    Raises a ToolRuntimeError if the last child was killed or failed.
    """
    reloader = Reloader(listener, grace)
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {sig: signal.signal(sig, reloader.on_signal) for sig in signals}
    try:
        reloader.run()
    finally:
        for sig, handler in previous.items():
            signal.signal(sig, handler)


class Reloader:
    """A child process that serves, and the files that it is restarted for."""

    def __init__(self, listener: socket.socket, grace: float) -> None:
        self._grace = grace
        self._port: int = listener.getsockname()[1]
        if os.name == "posix":
            self._socket: int | None = listener.fileno()
        else:
            self._socket = None
            listener.close()  # each child listens on the same port
        self._is_ending = False

    def on_signal(self, sig: int, frame: FrameType | None) -> None:
        """End the child, and then this process."""
        del sig, frame
        self._is_ending = True

    def run(self) -> None:
        """Start the child, and replace it after each change."""
        while not self._is_ending:
            seen = snapshot(source_folders())
            child = self._start()
            changed = self._wait_for_change(child, seen)
            code = child.poll()
            if changed is None and code is not None and not self._is_ending:
                report(f"The server ended with code {code}. It starts again after a change.")
                if code == 0:
                    return
                changed = self._wait_for_change(None, seen)
            self._end(child)
            if changed is not None:
                report(f"{changed} has changed. The server restarts.")

    def _start(self) -> subprocess.Popen[bytes]:
        value = self._port if self._socket is None else self._socket
        return subprocess.Popen(
            [sys.executable, *sys.orig_argv[1:]],
            env={**os.environ, SOCKET_VARIABLE: str(value)},
            pass_fds=() if self._socket is None else (self._socket,),
        )

    def _wait_for_change(
        self, child: subprocess.Popen[bytes] | None, seen: Mapping[str, int]
    ) -> str | None:
        """Return the file that has changed; None if the child has ended or a signal arrived."""
        while not self._is_ending:
            if child is not None and _wait(child, POLL_SECONDS):
                return None
            if child is None:
                _pause(POLL_SECONDS)
            changed = find_change(seen, snapshot(source_folders()))
            if changed is not None:
                return changed
        return None

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is None:
            child.terminate()
            deadline = monotonic() + self._grace + 5
            while not _wait(child, POLL_SECONDS) and monotonic() < deadline:
                continue
        if child.poll() is None:
            child.kill()
            child.wait()
            if self._is_ending:
                raise ToolRuntimeError("The server did not end in time and was killed.")


def _wait(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a process; return True if it has ended."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _pause(seconds: float) -> None:
    """Wait. A signal ends the wait."""
    from time import sleep

    sleep(seconds)


# ------------------------------------------------------------------ files


def source_folders() -> list[str]:
    """Return the folders whose files are checked: the current one, and those of the app.

    The folders of installed packages and of the standard library are not checked.
    """
    installed = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    folders = {os.getcwd()}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and "site-packages" not in path:
            folder = os.path.dirname(os.path.realpath(path))
            if not any([f"{folder}/".startswith(f"{prefix}/") for prefix in installed]):
                folders.add(folder)
    own = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    return sorted([folder for folder in folders if not f"{folder}/".startswith(f"{own}/")])


def snapshot(folders: Iterable[str]) -> dict[str, int]:
    """Return the Python files below some folders, and when each has changed."""
    found: dict[str, int] = {}
    for folder in folders:
        for path in _python_files(folder):
            try:
                found[path] = os.stat(path).st_mtime_ns
            except OSError:  # it was deleted
                continue
            if len(found) >= MAX_FILES:
                return found
    return found


def _python_files(folder: str) -> Iterator[str]:
    for path, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in _SKIPPED_FOLDERS
            and name[0] != "."
            and not os.path.exists(os.path.join(path, name, "pyvenv.cfg"))
        ]
        yield from [os.path.join(path, name) for name in names if name.endswith(".py")]


def find_change(before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    """Return a file that was added, changed or deleted between two snapshots."""
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            return os.path.relpath(path)
    return None
