"""Capabilities: what a command may touch, as its author declares it.

fs:read  fs:read:./data  fs:write  fs:write:./out  fs:delete  net:read  net:write
proc:spawn  env:read  env:write  state:mutate  none
"""

from __future__ import annotations

from tooli.contract.record import Record
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.contract.tool import Tool

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


def is_below(path: str, places: tuple[str, ...] | None) -> bool:
    """Whether a path is one of the places, or below one; None is everywhere.

    All of them are absolute, and compared as they are: who cares for links follows them first.
    """
    from os import sep

    if places is None:
        return True
    whole = path.rstrip(sep) + sep
    return any([whole.startswith(place.rstrip(sep) + sep) for place in places])


# ------------------------------------------------------------------ as authors say it


def read_capabilities(said: object, where: str) -> tuple[str, ...]:
    """The capabilities that a command declares; raises DefinitionError for what is none."""
    if isinstance(said, str) or not _is_row(said):
        raise DefinitionError(f"{where} is a list of capabilities, such as ['fs:read:./data']")
    words: tuple[str, ...] = tuple(said)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    for word in words:
        problem = problem_with(word)
        if problem is not None:
            raise DefinitionError(f"{where}: {problem}")
    if not words:
        raise DefinitionError(f"{where} is empty: say ['none'] for what touches nothing")
    if "none" in words and len(words) > 1:
        raise DefinitionError(f"{where}: 'none' stands alone")
    return words


def _is_row(said: object) -> bool:
    return isinstance(said, (list, tuple, set, frozenset))


_AREAS = {
    "fs": ("filesystem", "files"),
    "net": ("network",),
    "proc": ("process", "processes"),
    "env": ("environment",),
    "state": (),
}
_DEGREES: dict[str, tuple[str, ...]] = {
    "none": (),
    "read": ("read",),
    "write": ("write", "delete", "mutate"),
    "read-write": ("read", "write", "delete", "mutate"),
    "all": ("read", "write", "delete", "spawn", "mutate"),
}
"""How much of an area: `write` is to change what is there, so it is to delete, too."""


def read_ceiling(said: object) -> tuple[str, ...]:
    """The capabilities that an app's commands may declare: `permissions=`, read.

    A list of capabilities, or areas and how much of each: `{"filesystem": "read-write"}`.
    What is not named is not allowed.
    """
    if not hasattr(said, "items"):
        return read_capabilities(said, "permissions=")
    given: Any = said
    known = {name: area for area, more in _AREAS.items() for name in (area, *more)}
    words: list[str] = []
    for name, degree in given.items():
        area = known.get(name) if isinstance(name, str) else None
        if area is None:
            raise DefinitionError(f"permissions=: {_unknown(name, known)}")
        if not isinstance(degree, str) or degree not in _DEGREES:
            raise DefinitionError(f"permissions=: {name!r} is {_unknown(degree, _DEGREES)}")
        words += [f"{area}:{act}" for act in _DEGREES[degree] if f"{area}:{act}" in TAXONOMY]
    return tuple(words) or ("none",)


def _unknown(name: object, known: Iterable[str]) -> str:
    from tooli.errors import nearest

    meant = nearest(name, known) if isinstance(name, str) else None
    return f"{name!r}, which is none of {', '.join(known)}" + (
        f"; did you mean {meant!r}?" if meant else ""
    )


def beyond(words: Iterable[str], ceiling: Iterable[str]) -> list[str]:
    """The capabilities that a ceiling does not allow."""
    tops = [split(word) for word in ceiling]
    return [word for word in words if word != "none" and not _is_allowed(word, tops)]


def _is_allowed(word: str, tops: list[tuple[str, str | None]]) -> bool:
    import os

    head, path = split(word)
    for top, folder in tops:
        if top != head:
            continue
        if folder is None:
            return True
        if path is not None:
            whole, root = [os.path.abspath(os.path.expanduser(one)) for one in (path, folder)]
            if is_below(whole, (root,)):
                return True
    return False


def hold_to(tool: Tool, ceilings: tuple[tuple[str, ...], ...]) -> Tool:
    """A tool under the ceilings of its app and of those above; DefinitionError where it declares
    more than they allow."""
    for ceiling in ceilings:
        over = beyond(tool.guard.capabilities, ceiling)
        if over:
            raise DefinitionError(
                f"{tool.key or tool.name}: capabilities={over!r} is more than the app's "
                f"permissions= allow: {', '.join(ceiling)}"
            )
    return tool.replace(guard=tool.guard.replace(ceilings=ceilings), staged=True)
