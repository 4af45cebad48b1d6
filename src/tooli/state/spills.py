"""Spills: whole results that were too large to be answered, kept as files for a while."""

from __future__ import annotations

import os

from tooli.state.home import state_home

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = 40
"""How many files are kept; the oldest go first."""
MOST = 256 << 20
"""How many bytes they may have together."""


def spill(name: str, pieces: Iterable[bytes]) -> str | None:
    """Write a result to a file that only its user reads; its path, or None where nothing may."""
    for room in (os.path.join(state_home(), "results"), _temporary()):
        try:
            os.makedirs(room, mode=0o700, exist_ok=True)
            if hasattr(os, "getuid") and os.stat(room).st_uid != os.getuid():
                continue
            path = os.path.join(room, f"{_plain(name)}-{os.urandom(6).hex()}.json")
            target = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError:
            continue
        try:
            with os.fdopen(target, "wb") as file:
                file.writelines(pieces)
        except OSError:  # the disk is full
            _remove(path)
            continue
        _forget_old(room)
        return path
    return None


def _temporary() -> str:
    from tempfile import gettempdir

    user = os.getuid() if hasattr(os, "getuid") else "results"
    return os.path.join(gettempdir(), f"tooli-{user}")


def _plain(name: str) -> str:
    return "".join([letter if letter.isalnum() else "-" for letter in name])[:60]


def _forget_old(room: str) -> None:
    try:
        with os.scandir(room) as found:
            files = [
                (entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in found
            ]
    except OSError:
        return  # another process clears up
    files.sort(reverse=True)
    together = 0
    for i, (_, size, path) in enumerate(files):
        together += size
        if i and (i >= KEPT or together > MOST):
            _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
