"""Marks: empty files that say "this happened", each made by whoever comes first.

A file and not a row: making it is one system call that only one of many processes wins, and
nobody pays for a database.
"""

from __future__ import annotations

import os

_SWEEPERS = 61  # one of so many names; a prime, so that all of a name counts


def claim(room: str, name: str, lasts: float) -> bool:
    """Whether nobody has made this mark before; an OSError where that cannot be known.

    Some of those who make one take marks away that are older than they need to last, in seconds:
    to look at all of them each time would take longer than the rest, where there are thousands.
    """
    os.makedirs(room, mode=0o700, exist_ok=True)
    try:
        os.close(os.open(os.path.join(room, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    if int.from_bytes(name.encode("utf-8", "surrogatepass"), "big") % _SWEEPERS == 0:
        _forget_old(room, lasts)
    return True


def release(room: str, name: str) -> None:
    """Take a mark away: what it says did not happen after all. One that stays does no harm."""
    try:
        os.unlink(os.path.join(room, name))
    except OSError:
        pass


def _forget_old(room: str, lasts: float) -> None:
    from time import time

    oldest = time() - lasts
    try:
        with os.scandir(room) as marks:
            old = [mark.path for mark in marks if mark.stat().st_mtime < oldest]
        for path in old:
            os.unlink(path)
    except OSError:
        return  # another process clears up, or nobody may
