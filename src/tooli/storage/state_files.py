"""Files in the user's state directory: location, safe names, single-use markers, large results.

A marker is an empty file that records a single event, for example that a token was used or that a
session made its first call. Only one of several processes can create the file, so no database is
needed.

An overflow file contains a whole result that was too large to return. The oldest overflow files are
deleted when there are too many.
"""

from __future__ import annotations

import os
from time import time

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

SESSION_RETENTION_SECONDS = 30 * 24 * 3600
"""Seconds for which the first call of a session is remembered."""
MAX_OVERFLOW_FILES = 40
"""Maximum number of overflow files. The oldest ones are deleted."""
MAX_OVERFLOW_BYTES = 256 << 20
"""Maximum size of all overflow files together."""
_PURGE_ONE_IN = 61
"""One in this many marker names triggers a purge.

It is a prime number, so that every character of the name influences the remainder.
"""


def get_state_dir() -> str:
    """Return `TOOLI_STATE_DIR`, or the platform's default directory for program state."""
    getenv = os.environ.get
    configured = getenv("TOOLI_STATE_DIR")
    if configured:
        return configured
    if os.name == "nt":
        base_dir = getenv("LOCALAPPDATA") or os.path.join(
            os.path.expanduser("~"), "AppData", "Local"
        )
    else:
        base_dir = getenv("XDG_STATE_HOME") or os.path.join(
            os.path.expanduser("~"), ".local", "state"
        )
    return os.path.join(base_dir, "tooli")


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


# ------------------------------------------------------------------ marker files


def claim_once(folder: str, name: str, ttl: float) -> bool:
    """Create a marker file; return False if it already exists.

    Args:
        folder: directory of the markers; it is created if necessary.
        name: name of the marker.
        ttl: seconds for which markers in this folder must be kept.

    Raises:
        OSError: the marker can be neither created nor found.

    Some calls also delete the expired markers of the folder. Not every call does, because
    listing thousands of files takes longer than everything else here.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    if int.from_bytes(name.encode("utf-8", "surrogatepass"), "big") % _PURGE_ONE_IN == 0:
        _delete_expired(folder, ttl)
    return True


def release_claim(folder: str, name: str) -> None:
    """Delete a marker file, because the recorded event did not happen after all."""
    try:
        os.unlink(os.path.join(folder, name))
    except OSError:
        pass


def _delete_expired(folder: str, ttl: float) -> None:
    oldest = time() - ttl
    try:
        with os.scandir(folder) as entries:
            expired = [entry.path for entry in entries if entry.stat().st_mtime < oldest]
        for path in expired:
            os.unlink(path)
    except OSError:
        return  # another process purges at the same time, or the folder is read-only


# ------------------------------------------------------------------ overflow files


def write_overflow(name: str, chunks: Iterable[bytes]) -> str | None:
    """Write a result to an overflow file that only the user can read; return its path.

    Returns None if neither the state directory nor the temporary directory can be written.
    """
    for folder in (os.path.join(get_state_dir(), "results"), _temp_folder()):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if hasattr(os, "getuid") and os.stat(folder).st_uid != os.getuid():
                continue
            path = os.path.join(folder, f"{_safe_name(name)}-{os.urandom(6).hex()}.json")
            target = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError:
            continue
        try:
            with os.fdopen(target, "wb") as file:
                file.writelines(chunks)
        except OSError:  # the disk is full
            _remove(path)
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


def _delete_oldest(folder: str) -> None:
    try:
        with os.scandir(folder) as found:
            files = [
                (entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in found
            ]
    except OSError:
        return  # another process deletes files at the same time
    files.sort(reverse=True)
    total_bytes = 0
    for i, (_, size, path) in enumerate(files):
        total_bytes += size
        if i and (i >= MAX_OVERFLOW_FILES or total_bytes > MAX_OVERFLOW_BYTES):
            _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
