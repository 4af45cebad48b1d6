"""Files in the user's state directory: single-use markers, large results, repeated failures.

A marker is an empty file that records a single event, for example that a token was used or that a
session made its first call. Only one of several processes can create the file, so no database is
needed.

An overflow file contains a whole result that was too large to return. The oldest overflow files are
deleted when there are too many.

The last failure of each tool in a session is remembered. A server keeps a limited number of them in
memory. On the command line each call is a new process, so each session with failures has a small
file. If the file cannot be written, the failure is not remembered, and the call is not affected.

All folders and files are private to the user, whatever the umask is. Old files are deleted only if
their names have the form that tooli gives them, and if they are regular files of the user. The
state directory may contain other files.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from errno import EACCES
from time import time

from tooli.core import Record, is_fixed_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.safe_files import OpenFolder

FAILURE_RETENTION_SECONDS = 600.0
"""Seconds for which a failure is remembered."""
MAX_MEMORY_FAILURES, MAX_TOOLS_PER_SESSION = 2048, 32
"""Maximum number of failures in memory, and in the file of one session."""
_MAX_FAILURES_BYTES = 1 << 18
"""Maximum size of a session's file. `MAX_TOOLS_PER_SESSION` failures need less space."""
SESSION_RETENTION_SECONDS = 30 * 24 * 3600
"""Seconds for which the first call of a session is remembered."""
MAX_OVERFLOW_FILES = 40
"""Maximum number of overflow files. The oldest ones are deleted."""
MAX_OVERFLOW_BYTES = 256 << 20
"""Maximum size of all overflow files together."""
_FAILURES_SUFFIX = ".failures"
_BINARY = getattr(os, "O_BINARY", 0)
_PURGE_ONE_IN = 61
"""A new marker triggers a purge if its name, read as a number, is divisible by this number.

The number is prime, so that every character of the name influences the remainder.
"""


def get_state_dir() -> str:
    """Return `TOOLI_STATE_DIR`, or the platform's default directory for program state.

    Raises:
        InputError: the directory depends on the current folder, which may be a project that
            somebody else wrote.
    """
    getenv = os.environ.get
    name, state_dir = "TOOLI_STATE_DIR", getenv("TOOLI_STATE_DIR")
    if not state_dir:
        name = "LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME"
        base_dir = getenv(name)
        if not base_dir or (os.name != "nt" and not is_fixed_path(base_dir)):
            name, parts = "HOME", ("AppData", "Local") if os.name == "nt" else (".local", "state")
            base_dir = os.path.join(os.path.expanduser("~"), *parts)
        state_dir = os.path.join(base_dir, "tooli")
    if is_fixed_path(state_dir):
        return state_dir
    from tooli.errors import InputError, Suggestion

    raise InputError(
        f"{name} must be an absolute path outside of /proc and /dev, because the state folder "
        "must not depend on the current folder.",
        code="E1011",
        suggestion=Suggestion("ask_human", f"Set {name} to an absolute path."),
        is_retryable=False,
    )


def safe_file_name(text: str) -> str:
    """Return a file name that every file system accepts. Different texts get different names."""
    is_safe = len(text) <= 60 and text.isascii() and text.replace("-", "a").isalnum()
    if is_safe and text == text.lower():
        return f"as-{text}"
    from hashlib import sha256

    return "by-" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def is_first_call(app: str, session: str) -> bool:
    """Record that a session calls an app; return True if it is the session's first call.

    Returns False if the state directory cannot be written.
    """
    folder = os.path.join(get_state_dir(), "sessions", safe_file_name(app))
    try:
        return claim_once(folder, safe_file_name(session), SESSION_RETENTION_SECONDS)
    except OSError:
        return False


# ------------------------------------------------------------------ private files


class UnusableFile(Exception):  # noqa: N818
    """A file cannot be used. The message says why."""


def read_regular_file(path: str, max_bytes: int, flags: int = 0) -> tuple[bytes, int]:
    """Return content and mode of a regular file. Never blocks on a pipe.

    Raises:
        UnusableFile: it is not a regular file, or it is too large.
        OSError: it cannot be read.
    """
    file = os.open(path, os.O_RDONLY | flags | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    try:
        mode = os.fstat(file).st_mode
        if mode & 0o170000 != 0o100000:
            raise UnusableFile("it is not a regular file")
        chunks: list[bytes] = []
        while (chunk := os.read(file, max_bytes + 1)) and sum(map(len, chunks)) <= max_bytes:
            chunks.append(chunk)
    finally:
        os.close(file)
    data = b"".join(chunks)
    if len(data) > max_bytes:
        raise UnusableFile("it is too large")
    return data, mode


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents. Only the user can access them.

    `os.makedirs` applies the mode to the last folder only.
    """
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder, child = os.path.dirname(folder), folder
        if folder == child:
            break
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:  # another process has created it
            if not os.path.isdir(path):
                raise


def check_private_folder(folder: str) -> None:
    """Raise PermissionError if another user owns a folder or can write to it.

    Such a user could replace keys, grants and stored results. On Windows nothing is checked.
    """
    if not hasattr(os, "getuid"):
        return
    user, found = os.getuid(), os.lstat(folder)
    if found.st_mode & 0o170000 == 0o120000:
        if found.st_uid not in (user, 0):
            raise PermissionError(EACCES, f"{folder} is a link of another user")
        found = os.stat(folder)
    if found.st_uid != user:
        raise PermissionError(EACCES, f"{folder} belongs to another user")
    if found.st_mode & 0o022:
        raise PermissionError(
            EACCES, f"other users can write to {folder}; run: chmod go-w {folder}"
        )


def delete_own_files(folder: str, is_obsolete: Callable[[str, os.stat_result], bool]) -> None:
    """Delete the obsolete files of a folder: regular files of the user with one name.

    A folder that is a link is left alone. Errors are ignored.
    """
    try:
        opened, files = _list_own_files(folder)
        for name, found in files:
            if is_obsolete(name, found):
                opened.unlink(name)
    except OSError:
        return  # another process deletes files at the same time, or the folder is read-only


def _list_own_files(folder: str) -> tuple[OpenFolder, list[tuple[str, os.stat_result]]]:
    """Open a folder; return it with the names and attributes of its regular files."""
    from tooli.core.safe_files import OpenFolder, is_own_file

    parent, name = os.path.split(os.path.abspath(folder))
    opened = OpenFolder(os.path.join(os.path.realpath(parent), name))
    found = [(name, opened.lstat(name)) for name in opened.list_names()]
    return opened, [(name, file) for name, file in found if file is not None and is_own_file(file)]


def is_hex(text: str, length: int) -> bool:
    """True for a text of that many lower-case hexadecimal digits."""
    return len(text) == length and not text.strip("0123456789abcdef")


def write_private_file(path: str, data: bytes) -> None:
    """Write a new file that only the user can read."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)


def remove_file(path: str) -> None:
    """Delete a file if that is possible."""
    try:
        os.unlink(path)
    except OSError:
        pass


def read_boot_id() -> str:
    """Return the ID of the current boot of this machine; "" if it is unknown."""
    return read_proc_file("/proc/sys/kernel/random/boot_id").strip().replace("-", "")


def read_proc_file(path: str) -> str:
    """Return the text of a small file in /proc; "" if it cannot be read."""
    try:
        return read_regular_file(path, 4096)[0].decode("utf-8", "replace")
    except (OSError, UnusableFile):
        return ""


class FileLock:
    """A lock file that only one process holds at a time.

    If the file cannot be created or locked, the block runs without a lock.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._owner_pid = 0

    def __enter__(self) -> None:
        flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
        try:
            make_private_folder(os.path.dirname(self._path))
            self._file = os.open(self._path, flags, 0o600)
            set_file_lock(self._file, locked=True, wait=True)
            self._owner_pid = os.getpid()
        except (ImportError, OSError):
            pass

    def __exit__(self, *_: object) -> None:
        if self._file is None:
            return
        # Closing the file does not release the lock if a forked child has the file open. The child
        # itself must not release the lock of its parent.
        if self._owner_pid == os.getpid():
            set_file_lock(self._file, locked=False)
        os.close(self._file)
        self._file = None


def set_file_lock(file: int, *, locked: bool, wait: bool = False) -> None:
    """Take the lock of a file, or release it."""
    try:
        import fcntl
    except ImportError:  # Windows locks bytes; a byte beyond the end represents the file
        import msvcrt

        os.lseek(file, 4096, os.SEEK_SET)
        mode = "LK_UNLCK" if not locked else "LK_LOCK" if wait else "LK_NBLCK"
        getattr(msvcrt, "locking")(file, getattr(msvcrt, mode), 1)  # noqa: B009
        return
    flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
    fcntl.flock(file, flags if locked else fcntl.LOCK_UN)


# ------------------------------------------------------------------ marker files


def claim_once(folder: str, name: str, ttl: float) -> bool:
    """Create a marker file; return False if it already exists.

    Args:
        folder: directory of the markers; it is created if necessary.
        name: name of the marker.
        ttl: seconds for which markers in this folder must be kept.

    Raises:
        OSError: the marker can be neither created nor found, or other users can write to the
            folder.

    Only some calls delete the expired markers of the folder, because listing thousands of files
    takes much longer than creating one.
    """
    make_private_folder(folder)
    check_private_folder(folder)
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    if int.from_bytes(name.encode("utf-8", "surrogatepass"), "big") % _PURGE_ONE_IN == 0:
        _delete_expired_markers(folder, ttl)
    return True


def release_claim(folder: str, name: str) -> None:
    """Delete a marker file, or the file of a used grant. Errors are ignored."""
    remove_file(os.path.join(folder, name))


def _delete_expired_markers(folder: str, ttl: float) -> None:
    oldest = time() - ttl
    delete_own_files(
        folder,
        lambda name, found: found.st_mtime < oldest and not found.st_size and _is_marker_name(name),
    )


def _is_marker_name(name: str) -> bool:
    """True for the name of a session, a nonce, or a used grant (`abcd-efgh.used`)."""
    return (
        _is_safe_file_name(name)
        or (len(name) >= 16 and is_hex(name, len(name)))
        or (name.endswith(".used") and len(name) == 14 and name[4] == "-")
    )


def _is_safe_file_name(name: str) -> bool:
    """True for a name that `safe_file_name` returns."""
    if name.startswith("by-"):
        return is_hex(name[3:], 40)
    text = name[3:] if name.startswith("as-") else ""
    return text.isascii() and text.replace("-", "a").isalnum() and text == text.lower()


# ------------------------------------------------------------------ overflow files


def write_overflow(name: str, encode_chunks: Callable[[], Iterable[bytes]]) -> str | None:
    """Write a result to an overflow file that only the user can read; return its path.

    Args:
        name: the start of the file name.
        encode_chunks: returns the content; called again for each folder that is tried.

    Returns None if neither the state directory nor the temporary directory can be written.
    """
    for folder in (os.path.join(get_state_dir(), "results"), _temp_folder()):
        try:
            make_private_folder(folder)
            check_private_folder(folder)
            path = os.path.join(folder, f"{_safe_name(name)}-{os.urandom(6).hex()}.tooli.json")
            target = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError:
            continue
        try:
            with os.fdopen(target, "wb") as file:
                file.writelines(encode_chunks())
        except OSError:  # the disk is full
            remove_file(path)
            continue
        _delete_oldest(folder)
        return path
    return None


def _temp_folder() -> str:
    from tempfile import gettempdir

    user = os.getuid() if hasattr(os, "getuid") else "results"
    return os.path.join(gettempdir(), f"tooli-{user}")


def _safe_name(name: str) -> str:
    return "".join([char if char.isalnum() else "-" for char in name])[:60]


def _is_overflow_name(name: str) -> bool:
    start, _, random_chars = name.removesuffix(".tooli.json").rpartition("-")
    is_safe = start.replace("-", "").isalnum() or start.strip("-") == ""
    return name.endswith(".tooli.json") and is_safe and is_hex(random_chars, 12)


def _delete_oldest(folder: str) -> None:
    try:
        _, found = _list_own_files(folder)
    except OSError:
        return
    files = [
        (file.st_mtime_ns, file.st_size, name) for name, file in found if _is_overflow_name(name)
    ]
    files.sort(reverse=True)
    obsolete: set[str] = set()
    total_bytes = 0
    for i, (_, size, name) in enumerate(files):
        total_bytes += size
        if i and (i >= MAX_OVERFLOW_FILES or total_bytes > MAX_OVERFLOW_BYTES):
            obsolete.add(name)
    if obsolete:
        delete_own_files(folder, lambda name, _: name in obsolete)


# ------------------------------------------------------------------ repeated failures


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
        return _load_failures(_session_path(session)).get(tool)

    def record_failure(self, session: str, tool: str, failure: RepeatedFailure) -> None:
        """Record a failure."""
        path = _session_path(session)
        failures = _load_failures(path)
        failures.pop(tool, None)
        latest = [*failures.items(), (tool, failure)][-MAX_TOOLS_PER_SESSION:]
        _save_failures(path, dict(latest))

    def forget(self, session: str, tool: str) -> None:
        """Forget the failures of a tool, because it succeeded."""
        path = _session_path(session)
        failures = _load_failures(path)
        if failures.pop(tool, None) is not None:
            _save_failures(path, failures)


def _is_recent(timestamp: float) -> bool:
    # A time in the future counts as expired: the clock was set back.
    return 0 <= time() - timestamp < FAILURE_RETENTION_SECONDS


def _session_path(session: str) -> str:
    return os.path.join(get_state_dir(), "loops", f"{safe_file_name(session)}{_FAILURES_SUFFIX}")


def _is_failures_name(name: str) -> bool:
    """True for the name of a session's file, or of a draft of it."""
    start, suffix, draft = name.rpartition(_FAILURES_SUFFIX)
    is_draft = draft.startswith(".") and is_hex(draft[1:], 8)
    return bool(suffix) and (not draft or is_draft) and _is_safe_file_name(start)


def _load_failures(path: str) -> dict[str, RepeatedFailure]:
    """Return the failures in a file that have not expired. An invalid file has none."""
    try:
        data = read_regular_file(path, _MAX_FAILURES_BYTES)[0]
    except (OSError, UnusableFile):
        return {}
    from json import loads

    try:
        data_by_tool: Any = loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, RepeatedFailure] = {}
    for tool, fields in data_by_tool.items() if data_by_tool.__class__ is dict else ():
        if fields.__class__ is list and list(map(type, fields)) == [str, str, int, float, dict]:
            failure = RepeatedFailure(*fields)
            if _is_recent(failure.failed_at):
                found[tool] = failure
    return found


def _save_failures(path: str, failures: dict[str, RepeatedFailure]) -> None:
    """Replace a session's file atomically; delete it if there are no failures."""
    from json import dumps

    folder = os.path.dirname(path)
    draft = f"{path}.{os.urandom(4).hex()}"
    rows = {
        tool: [getattr(failure, name) for name in RepeatedFailure.__match_args__]
        for tool, failure in failures.items()
    }
    try:
        if not failures:
            os.unlink(path)
            return
        make_private_folder(folder)
        is_new = not os.path.lexists(path)
        write_private_file(draft, dumps(rows).encode())
        os.replace(draft, path)
    except OSError:
        return  # the failure is not remembered
    if not is_new:
        return
    oldest = time() - FAILURE_RETENTION_SECONDS
    delete_own_files(
        folder, lambda name, found: found.st_mtime < oldest and _is_failures_name(name)
    )
