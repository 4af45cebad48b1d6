"""Sessions that have called before: one empty file each, made by whoever comes first.

A file and not a row: making it is one system call that only one of many processes wins,
and an agent that names its session in every call does not pay for a database.
"""

from __future__ import annotations

import os

from tooli.state.home import state_home

KEPT = 30 * 24 * 3600
"""Seconds after which a session is forgotten; the first call of a new one clears up."""


def is_first_call(app: str, session: str) -> bool:
    """Whether an app has not been called in this session; from now on it has.

    Where nothing can be written, no call is known to be the first.
    """
    room = os.path.join(state_home(), "sessions", file_name(app))
    marker = os.path.join(room, file_name(session))
    try:
        os.makedirs(room, mode=0o700, exist_ok=True)
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    _forget_old(room)
    return True


def file_name(text: str) -> str:
    """A name that any file system takes, another one for each text."""
    plain = len(text) <= 60 and text.isascii() and text.replace("-", "a").isalnum()
    if plain and text == text.lower():
        return f"as-{text}"
    from hashlib import sha256

    return "by-" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _forget_old(room: str) -> None:
    from time import time

    oldest = time() - KEPT
    try:
        with os.scandir(room) as markers:
            old = [marker.path for marker in markers if marker.stat().st_mtime < oldest]
        for path in old:
            os.unlink(path)
    except OSError:
        return  # another process clears up, or nobody may
