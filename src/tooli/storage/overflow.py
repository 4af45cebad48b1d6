"""Overflow files: whole results that were too large to return, kept for a while."""

from __future__ import annotations

import os

from tooli.storage.state_files import get_state_dir

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_OVERFLOW_FILES = 40
"""Maximum number of files. The oldest ones are deleted."""
MAX_OVERFLOW_BYTES = 256 << 20
"""Maximum size of all files."""


def write_overflow(name: str, chunks: Iterable[bytes]) -> str | None:
    """Write a result to a file that only the user can read; return its path.

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
