"""Marks: empty files that say "this happened", each made by whoever comes first.

A file and not a row: making it is one system call that only one of many processes wins, and
nobody pays for a database.
"""

from __future__ import annotations

import os

_PURGE_ONE_IN = 61  # one of so many names; a prime, so that all of a name counts


def claim_once(folder: str, name: str, ttl: float) -> bool:
    """Whether nobody has made this mark before; an OSError where that cannot be known.

    Some of those who make one take marks away that are older than they need to last, in seconds:
    to look at all of them each time would take longer than the rest, where there are thousands.
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
    """Take a mark away: what it says did not happen after all. One that stays does no harm."""
    try:
        os.unlink(os.path.join(folder, name))
    except OSError:
        pass


def _delete_expired(folder: str, ttl: float) -> None:
    from time import time

    oldest = time() - ttl
    try:
        with os.scandir(folder) as entries:
            old = [entry.path for entry in entries if entry.stat().st_mtime < oldest]
        for path in old:
            os.unlink(path)
    except OSError:
        return  # another process clears up, or nobody may
