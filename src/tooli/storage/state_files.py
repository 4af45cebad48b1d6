"""Files in the user's state directory: its location, safe file names, single-use marker files.

A marker is an empty file that records that something happened once, for example that a token was
used or that a session made its first call. Only one of several processes can create the file, so
no database is needed.
"""

from __future__ import annotations

import os
from time import time

SESSION_RETENTION_SECONDS = 30 * 24 * 3600
"""Seconds after which the first call of a session may be forgotten."""
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
