"""Repeated failures: the last failure of each tool in a session.

A server keeps a limited number of failures in memory. On the command line each call is a new
process, so each session with failures has a small file. If the file cannot be written, the failure
is not remembered, and the call is not affected.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import time

from tooli.core.record import Record
from tooli.storage.state_files import get_state_dir, safe_file_name
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import JsonObject

RETENTION_SECONDS = 600.0
"""Seconds for which a failure is remembered."""
MAX_MEMORY_FAILURES, MAX_TOOLS_PER_SESSION = 2048, 32
"""Maximum number of failures in memory, and in the file of one session."""
_MAX_FILE_BYTES = 1 << 16
"""Maximum size of a session's file."""


class RepeatedFailure(Record):
    """A call that failed, and how often in a row."""

    call_digest: str  # identifies the call
    error_digest: str  # identifies the error
    count: int
    failed_at: float  # time of the last failure
    error: JsonObject  # a summary of the error


class MemoryFailureHistory:
    """The failures of many sessions, in memory."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._failures: dict[tuple[str, str], RepeatedFailure] = {}

    def last_failure(self, session: str, tool: str) -> RepeatedFailure | None:
        """Return the last failure of a tool, unless it has expired."""
        found = self._failures.get((session, tool))
        return found if found is not None and _is_recent(found.failed_at) else None

    def record_failure(self, session: str, tool: str, failure: RepeatedFailure) -> None:
        """Record a failure, and drop the oldest one if there are too many."""
        with self._lock:
            self._failures.pop((session, tool), None)
            self._failures[session, tool] = failure
            if len(self._failures) > MAX_MEMORY_FAILURES:
                del self._failures[next(iter(self._failures))]

    def forget(self, session: str, tool: str) -> None:
        """Forget the failures of a tool, because it succeeded."""
        with self._lock:
            self._failures.pop((session, tool), None)


class FileFailureHistory:
    """The failures of command line sessions, in one file per session."""

    def last_failure(self, session: str, tool: str) -> RepeatedFailure | None:
        """Return the last failure of a tool, unless it has expired."""
        return _load(_session_path(session)).get(tool)

    def record_failure(self, session: str, tool: str, failure: RepeatedFailure) -> None:
        """Record a failure."""
        path = _session_path(session)
        failures = _load(path)
        failures.pop(tool, None)
        latest = [*failures.items(), (tool, failure)][-MAX_TOOLS_PER_SESSION:]
        _save(path, dict(latest))

    def forget(self, session: str, tool: str) -> None:
        """Forget the failures of a tool, because it succeeded."""
        path = _session_path(session)
        failures = _load(path)
        if failures.pop(tool, None) is not None:
            _save(path, failures)


def _is_recent(timestamp: float) -> bool:
    # A time in the future counts as expired: the clock was set back.
    return 0 <= time() - timestamp < RETENTION_SECONDS


def _session_path(session: str) -> str:
    return os.path.join(get_state_dir(), "loops", safe_file_name(session))


def _load(path: str) -> dict[str, RepeatedFailure]:
    """Return the failures in a file that have not expired. An invalid file has none."""
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
    for tool, fields in data_by_tool.items() if is_object(data_by_tool) else ():
        if is_list(fields) and list(map(type, fields)) == [str, str, int, float, dict]:
            failure = RepeatedFailure(*fields)
            if _is_recent(failure.failed_at):
                found[tool] = failure
    return found


def _save(path: str, failures: dict[str, RepeatedFailure]) -> None:
    """Replace a session's file atomically; delete it if there are no failures."""
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
        return  # the failure is not remembered


def _encode_failures(failures: dict[str, RepeatedFailure]) -> bytes:
    """Encode as many failures as fit, preferring the latest."""
    from json import dumps

    rows: list[str] = []
    remaining_bytes = _MAX_FILE_BYTES - 2
    for tool, failure in reversed(failures.items()):
        fields = [getattr(failure, name) for name in RepeatedFailure.__match_args__]
        row = f"{dumps(tool)}: {dumps(fields)}"  # ASCII, so a character is a byte
        remaining_bytes -= len(row) + 2
        if remaining_bytes < 0:
            break
        rows.append(row)
    return ("{" + ", ".join(reversed(rows)) + "}").encode()


def _delete_expired(folder: str) -> None:
    with os.scandir(folder) as files:
        expired = [file.path for file in files if not _is_recent(file.stat().st_mtime)]
    for path in expired:
        os.unlink(path)
