"""Capabilities: what a command may touch, as its author declares it.

fs:read  fs:read:./data  fs:write  fs:write:./out  fs:delete  net:read  net:write
proc:spawn  env:read  env:write  state:mutate  none
"""

from __future__ import annotations

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

TAXONOMY: dict[str, str] = {
    "fs:read": "reads files",
    "fs:write": "writes files",
    "fs:delete": "deletes files",
    "net:read": "asks other machines",
    "net:write": "sends data to other machines",
    "proc:spawn": "starts other programs",
    "env:read": "reads environment variables",
    "env:write": "changes environment variables",
    "state:mutate": "changes what lasts: a database, a service",
    "none": "touches nothing",
}
"""Every capability, and what it lets a command do."""
SCOPED = ("fs:read", "fs:write", "fs:delete")
"""Those that may name a path: `fs:write:./out` is that folder and all below it."""


class Allowance(Record):
    """What may be touched while a command runs: a declaration, made ready to be held against.

    Paths are absolute, with links followed; None is everywhere, an empty tuple nowhere.
    """

    reads: tuple[str, ...] | None = ()
    writes: tuple[str, ...] | None = ()
    deletes: tuple[str, ...] | None = ()
    net: bool = False
    spawns: bool = False
    env_reads: bool = False
    env_writes: bool = False
    denied: tuple[str, ...] = ()  # files below these are never touched, whatever else is said


def problem_with(word: object) -> str | None:
    """What is wrong with a word that should be a capability."""
    from tooli.errors import nearest

    if not isinstance(word, str):
        return f"a capability is a text, not {word!r}"
    head, path = split(word)
    if head not in TAXONOMY:
        meant = nearest(head, TAXONOMY)
        return f"{word!r} is no capability" + (f"; did you mean {meant!r}?" if meant else "")
    if path is not None and (head not in SCOPED or not path):
        return f"{word!r}: only {', '.join(SCOPED)} name a path, as in fs:read:./data"
    return None


def split(word: str) -> tuple[str, str | None]:
    """A capability and its path."""
    parts = word.split(":", 2)
    return ":".join(parts[:2]), parts[2] if len(parts) > 2 else None


def allowance_of(words: Iterable[str], folder: str | None = None) -> Allowance:
    """A declaration as what it allows; relative paths are below the folder, or the current one."""
    import os

    places: dict[str, list[str] | None] = {name: [] for name in SCOPED}
    plain: set[str] = set()
    for word in words:
        head, path = split(word)
        if head not in SCOPED:
            plain.add(head)
        elif path is None:
            places[head] = None
        else:
            found = places[head]
            if found is not None:
                whole = os.path.join(folder or os.getcwd(), os.path.expanduser(path))
                found.append(os.path.realpath(whole))
    reads, writes, deletes = [None if p is None else tuple(p) for p in places.values()]
    return Allowance(
        reads=reads,
        writes=writes,
        deletes=deletes,
        net=bool(plain & {"net:read", "net:write"}),
        spawns="proc:spawn" in plain,
        env_reads="env:read" in plain,
        env_writes="env:write" in plain,
    )
