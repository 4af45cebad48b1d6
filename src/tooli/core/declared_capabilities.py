"""Capabilities: what a command may touch, as its author declares it.

fs:read  fs:read:./data  fs:write  fs:write:./out  fs:delete  net:read  net:write
proc:spawn  env:read  env:write  state:mutate  none
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.core.tool import Tool

CAPABILITIES: dict[str, str] = {
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
PATH_CAPABILITIES = ("fs:read", "fs:write", "fs:delete")
"""Those that may name a path: `fs:write:./out` is that folder and all below it."""


class AllowedAccess(Record):
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


def describe_problem(capability: object) -> str | None:
    """What is wrong with a word that should be a capability."""
    from tooli.errors import closest_match

    if not isinstance(capability, str):
        return f"a capability is a text, not {capability!r}"
    name, path = split_capability(capability)
    if name not in CAPABILITIES:
        suggestion = closest_match(name, CAPABILITIES)
        return f"{capability!r} is no capability" + (
            f"; did you mean {suggestion!r}?" if suggestion else ""
        )
    if path is not None and (name not in PATH_CAPABILITIES or not path):
        return (
            f"{capability!r}: only {', '.join(PATH_CAPABILITIES)} name a path, as in fs:read:./data"
        )
    return None


def split_capability(capability: str) -> tuple[str, str | None]:
    """A capability and its path."""
    parts = capability.split(":", 2)
    return ":".join(parts[:2]), parts[2] if len(parts) > 2 else None


def resolve_access(capabilities: Iterable[str], base_directory: str | None = None) -> AllowedAccess:
    """A declaration as what it allows; relative paths are below the folder, or the current one."""
    import os

    paths_by_capability: dict[str, list[str] | None] = {name: [] for name in PATH_CAPABILITIES}
    without_path: set[str] = set()
    for capability in capabilities:
        capability_name, path = split_capability(capability)
        if capability_name not in PATH_CAPABILITIES:
            without_path.add(capability_name)
        elif path is None:
            paths_by_capability[capability_name] = None
        else:
            paths = paths_by_capability[capability_name]
            if paths is not None:
                absolute_path = os.path.join(
                    base_directory or os.getcwd(), os.path.expanduser(path)
                )
                paths.append(os.path.realpath(absolute_path))
    reads, writes, deletes = [None if p is None else tuple(p) for p in paths_by_capability.values()]
    return AllowedAccess(
        reads=reads,
        writes=writes,
        deletes=deletes,
        net=bool(without_path & {"net:read", "net:write"}),
        spawns="proc:spawn" in without_path,
        env_reads="env:read" in without_path,
        env_writes="env:write" in without_path,
    )


def is_under_any(path: str, roots: tuple[str, ...] | None) -> bool:
    """Whether a path is one of the places, or below one; None is everywhere.

    All of them are absolute, and compared as they are: who cares for links follows them first.
    """
    from os import sep

    if roots is None:
        return True
    prefix = path.rstrip(sep) + sep
    return any([prefix.startswith(root.rstrip(sep) + sep) for root in roots])


# ------------------------------------------------------------------ as authors say it


def read_capabilities(capabilities: object, label: str) -> tuple[str, ...]:
    """The capabilities that a command declares; raises DefinitionError for what is none."""
    if isinstance(capabilities, str) or not _is_collection(capabilities):
        raise DefinitionError(f"{label} is a list of capabilities, such as ['fs:read:./data']")
    declared: tuple[str, ...] = tuple(capabilities)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    for capability in declared:
        problem = describe_problem(capability)
        if problem is not None:
            raise DefinitionError(f"{label}: {problem}")
    if not declared:
        raise DefinitionError(f"{label} is empty: say ['none'] for what touches nothing")
    if "none" in declared and len(declared) > 1:
        raise DefinitionError(f"{label}: 'none' stands alone")
    return declared


def _is_collection(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))


_CAPABILITY_AREAS = {
    "fs": ("filesystem", "files"),
    "net": ("network",),
    "proc": ("process", "processes"),
    "env": ("environment",),
    "state": (),
}
_ACCESS_LEVELS: dict[str, tuple[str, ...]] = {
    "none": (),
    "read": ("read",),
    "write": ("write", "delete", "mutate"),
    "read-write": ("read", "write", "delete", "mutate"),
    "all": ("read", "write", "delete", "spawn", "mutate"),
}
"""How much of an area: `write` is to change what is there, so it is to delete, too."""


def read_app_permissions(permissions: object) -> tuple[str, ...]:
    """The capabilities that an app's commands may declare: `permissions=`, read.

    A list of capabilities, or areas and how much of each: `{"filesystem": "read-write"}`.
    What is not named is not allowed.
    """
    if not hasattr(permissions, "items"):
        return read_capabilities(permissions, "permissions=")
    areas: Any = permissions
    areas_by_name = {
        name: area for area, aliases in _CAPABILITY_AREAS.items() for name in (area, *aliases)
    }
    capabilities: list[str] = []
    for name, level in areas.items():
        area = areas_by_name.get(name) if isinstance(name, str) else None
        if area is None:
            raise DefinitionError(f"permissions=: {_describe_unknown(name, areas_by_name)}")
        if not isinstance(level, str) or level not in _ACCESS_LEVELS:
            raise DefinitionError(
                f"permissions=: {name!r} is {_describe_unknown(level, _ACCESS_LEVELS)}"
            )
        capabilities += [
            f"{area}:{action}"
            for action in _ACCESS_LEVELS[level]
            if f"{area}:{action}" in CAPABILITIES
        ]
    return tuple(capabilities) or ("none",)


def _describe_unknown(name: object, valid_names: Iterable[str]) -> str:
    from tooli.errors import closest_match

    suggestion = closest_match(name, valid_names) if isinstance(name, str) else None
    return f"{name!r}, which is none of {', '.join(valid_names)}" + (
        f"; did you mean {suggestion!r}?" if suggestion else ""
    )


def find_disallowed(capabilities: Iterable[str], permissions: Iterable[str]) -> list[str]:
    """The capabilities that a ceiling does not allow."""
    allowed = [split_capability(capability) for capability in permissions]
    return [
        capability
        for capability in capabilities
        if capability != "none" and not _is_allowed(capability, allowed)
    ]


def _is_allowed(capability: str, allowed: list[tuple[str, str | None]]) -> bool:
    import os

    name, path = split_capability(capability)
    for allowed_name, allowed_path in allowed:
        if allowed_name != name:
            continue
        if allowed_path is None:
            return True
        if path is not None:
            absolute_path, root = [
                os.path.abspath(os.path.expanduser(one)) for one in (path, allowed_path)
            ]
            if is_under_any(absolute_path, (root,)):
                return True
    return False


def apply_app_permissions(tool: Tool, app_permissions: tuple[tuple[str, ...], ...]) -> Tool:
    """A tool under the ceilings of its app and of those above; DefinitionError where it declares
    more than they allow."""
    for permissions in app_permissions:
        disallowed = find_disallowed(tool.guard.capabilities, permissions)
        if disallowed:
            raise DefinitionError(
                f"{tool.key or tool.name}: capabilities={disallowed!r} is more than the app's "
                f"permissions= allow: {', '.join(permissions)}"
            )
    return tool.replace(guard=tool.guard.replace(app_permissions=app_permissions))
