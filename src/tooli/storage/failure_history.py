"""Failures that repeat: what the last calls of a session failed with, tool by tool.

A server remembers them in memory, for as many sessions as there is room for. A command line is
another process each time, and keeps a small file for each session that fails. It guards nothing:
where nothing can be kept, nothing is remembered.
"""

from __future__ import annotations

import os
from time import time

from tooli.core.record import Record
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

RETENTION_SECONDS = 600.0
"""Seconds after its last failure for which a call is remembered."""
MAX_SESSIONS, MAX_TOOLS_PER_SESSION = 2048, 32
_MAX_FILE_BYTES = 1 << 16
"""Bytes of a session's file: more is not read, and so not written."""


class RepeatedFailure(Record):
    """One call that failed, and how often it did so in a row."""

    call_digest: str  # the call
    error_digest: str  # how it failed
    count: int
    failed_at: float  # when it last ran and failed
    error: dict[str, Any]  # what it failed with, in short


class MemoryFailureHistory:
    """The failures of many sessions, in this process."""

    def __init__(self) -> None:
        from threading import Lock  # a command line needs none

        self._lock = Lock()
        self._failures: dict[tuple[str, str], RepeatedFailure] = {}

    def last_failure(self, session: str, tool: str) -> RepeatedFailure | None:
        """The last failure of a tool, unless it is long ago."""
        found = self._failures.get((session, tool))
        return found if found is not None and _is_recent(found.failed_at) else None

    def record_failure(self, session: str, tool: str, failure: RepeatedFailure) -> None:
        """Remember a failure; the one that was noted the longest ago makes room."""
        with self._lock:
            self._failures.pop((session, tool), None)
            self._failures[session, tool] = failure
            if len(self._failures) > MAX_SESSIONS:
                del self._failures[next(iter(self._failures))]

    def forget(self, session: str, tool: str) -> None:
        """The tool has worked."""
        with self._lock:
            self._failures.pop((session, tool), None)


class FileFailureHistory:
    """The failures of sessions on a command line: a file each."""

    def last_failure(self, session: str, tool: str) -> RepeatedFailure | None:
        """The last failure of a tool, unless it is long ago."""
        return _load(_session_path(session)).get(tool)

    def record_failure(self, session: str, tool: str, failure: RepeatedFailure) -> None:
        """Remember a failure."""
        path = _session_path(session)
        failures = _load(path)
        failures.pop(tool, None)
        latest = [*failures.items(), (tool, failure)][-MAX_TOOLS_PER_SESSION:]
        _save(path, dict(latest))

    def forget(self, session: str, tool: str) -> None:
        """The tool has worked."""
        path = _session_path(session)
        failures = _load(path)
        if failures.pop(tool, None) is not None:
            _save(path, failures)


def _is_recent(timestamp: float) -> bool:
    return (
        0 <= time() - timestamp < RETENTION_SECONDS
    )  # a clock that was put back forgets, rather than never to


def _session_path(session: str) -> str:
    from tooli.storage.state_files import get_state_dir, safe_file_name

    return os.path.join(get_state_dir(), "loops", safe_file_name(session))


def _load(path: str) -> dict[str, RepeatedFailure]:
    """What a file holds and is not too old; nothing where it is none of ours."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            data = os.read(file, _MAX_FILE_BYTES)
        finally:
            os.close(file)
    except OSError:
        return {}
    from json import loads

    try:
        data_by_tool: Any = loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, RepeatedFailure] = {}
    for tool, one in data_by_tool.items() if is_object(data_by_tool) else ():
        if is_list(one) and list(map(type, one)) == [str, str, int, float, dict]:
            failure = RepeatedFailure(*one)
            if _is_recent(failure.failed_at):
                found[tool] = failure
    return found


def _save(path: str, failures: dict[str, RepeatedFailure]) -> None:
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
            os.write(file, _encode_failures(failures))
        finally:
            os.close(file)
        os.replace(draft, path)
        _delete_expired(folder)
    except OSError:
        return  # no room, or nobody may: then nothing is remembered


def _encode_failures(failures: dict[str, RepeatedFailure]) -> bytes:
    """As many failures as there is room for, the latest first of all."""
    from json import dumps

    rows: list[str] = []
    remaining_bytes = _MAX_FILE_BYTES - 2
    for tool, one in reversed(failures.items()):
        fields = [one.call_digest, one.error_digest, one.count, one.failed_at, one.error]
        row = f"{dumps(tool)}: {dumps(fields)}"  # ASCII, whatever is said: a letter is a byte
        remaining_bytes -= len(row) + 2
        if remaining_bytes < 0:
            break
        rows.append(row)
    return ("{" + ", ".join(reversed(rows)) + "}").encode()


def _delete_expired(folder: str) -> None:
    with os.scandir(folder) as files:
        old = [one.path for one in files if not _is_recent(one.stat().st_mtime)]
    for path in old:
        os.unlink(path)
