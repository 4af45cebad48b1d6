"""Failures that repeat: what the last calls of a session failed with, tool by tool.

A server remembers them in memory, for as many sessions as there is room for. A command line is
another process each time, and keeps a small file for each session that fails. It guards nothing:
where nothing can be kept, nothing is remembered.
"""

from __future__ import annotations

import os
from time import time

from tooli.contract.jsonable import is_list, is_object
from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

KEPT = 600.0
"""Seconds after its last failure for which a call is remembered."""
MOST_SESSIONS, MOST_TOOLS = 2048, 32
_LARGEST = 1 << 16
"""Bytes of a session's file: more is not read, and so not written."""


class Failure(Record):
    """One call that failed, and how often it did so in a row."""

    mark: str  # the call
    way: str  # how it failed
    count: int
    at: float  # when it last ran and failed
    error: dict[str, Any]  # what it failed with, in short


class Memory:
    """The failures of many sessions, in this process."""

    def __init__(self) -> None:
        from threading import Lock  # a command line needs none

        self._lock = Lock()
        self._failures: dict[tuple[str, str], Failure] = {}

    def recall(self, who: str, tool: str) -> Failure | None:
        """The last failure of a tool, unless it is long ago."""
        found = self._failures.get((who, tool))
        return found if found is not None and _is_recent(found.at) else None

    def note(self, who: str, tool: str, failure: Failure) -> None:
        """Remember a failure; the one that was noted the longest ago makes room."""
        with self._lock:
            self._failures.pop((who, tool), None)
            self._failures[who, tool] = failure
            if len(self._failures) > MOST_SESSIONS:
                del self._failures[next(iter(self._failures))]

    def forget(self, who: str, tool: str) -> None:
        """The tool has worked."""
        with self._lock:
            self._failures.pop((who, tool), None)


class Files:
    """The failures of sessions on a command line: a file each."""

    def recall(self, who: str, tool: str) -> Failure | None:
        """The last failure of a tool, unless it is long ago."""
        return _load(_path(who)).get(tool)

    def note(self, who: str, tool: str, failure: Failure) -> None:
        """Remember a failure."""
        path = _path(who)
        known = _load(path)
        known.pop(tool, None)
        kept = [*known.items(), (tool, failure)][-MOST_TOOLS:]
        _save(path, dict(kept))

    def forget(self, who: str, tool: str) -> None:
        """The tool has worked."""
        path = _path(who)
        known = _load(path)
        if known.pop(tool, None) is not None:
            _save(path, known)


def _is_recent(at: float) -> bool:
    return 0 <= time() - at < KEPT  # a clock that was put back forgets, rather than never to


def _path(who: str) -> str:
    from tooli.state.home import state_home
    from tooli.state.sessions import file_name

    return os.path.join(state_home(), "loops", file_name(who))


def _load(path: str) -> dict[str, Failure]:
    """What a file holds and is not too old; nothing where it is none of ours."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            data = os.read(file, _LARGEST)
        finally:
            os.close(file)
    except OSError:
        return {}
    from json import loads

    try:
        said: Any = loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, Failure] = {}
    for tool, one in said.items() if is_object(said) else ():
        if is_list(one) and list(map(type, one)) == [str, str, int, float, dict]:
            failure = Failure(*one)
            if _is_recent(failure.at):
                found[tool] = failure
    return found


def _save(path: str, failures: dict[str, Failure]) -> None:
    """Put a file in place whole, for its user alone; a session without failures has none."""
    folder = os.path.dirname(path)
    draft = f"{path}.{os.getpid()}"
    try:
        if not failures:
            os.unlink(path)
            return
        os.makedirs(folder, mode=0o700, exist_ok=True)
        file = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        try:
            os.write(file, _written(failures))
        finally:
            os.close(file)
        os.replace(draft, path)
        _forget_old(folder)
    except OSError:
        return  # no room, or nobody may: then nothing is remembered


def _written(failures: dict[str, Failure]) -> bytes:
    """As many failures as there is room for, the latest first of all."""
    from json import dumps

    rows: list[str] = []
    room = _LARGEST - 2
    for tool, one in reversed(failures.items()):
        kept = [one.mark, one.way, one.count, one.at, one.error]
        row = f"{dumps(tool)}: {dumps(kept)}"  # ASCII, whatever is said: a letter is a byte
        room -= len(row) + 2
        if room < 0:
            break
        rows.append(row)
    return ("{" + ", ".join(reversed(rows)) + "}").encode()


def _forget_old(folder: str) -> None:
    with os.scandir(folder) as files:
        old = [one.path for one in files if not _is_recent(one.stat().st_mtime)]
    for path in old:
        os.unlink(path)
