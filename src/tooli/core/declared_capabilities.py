"""Capabilities: what a command may access, as its author declares it with `capabilities=`.

fs:read  fs:read:./data  fs:write  fs:write:./out  fs:delete  net:read  net:write
proc:spawn  env:read  env:write  state:mutate  none
"""

from __future__ import annotations

import os

from tooli.core import Record
from tooli.core.safe_files import resolve_links
from tooli.errors import DefinitionError
from tooli.similar_names import closest_match, did_you_mean
from tooli.text.jsonable import is_list, is_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from typing_extensions import TypeIs

    from tooli.core.tool import Tool

CAPABILITIES: dict[str, str] = {
    "fs:read": "reads files",
    "fs:write": "writes files",
    "fs:delete": "deletes files",
    "net:read": "reads from other machines",
    "net:write": "sends data to other machines",
    "proc:spawn": "starts other programs",
    "env:read": "reads environment variables",
    "env:write": "changes environment variables",
    "state:mutate": "changes persistent state: a database, a service",
    "none": "accesses nothing",
}
"""Every capability, with a description of what it allows."""
PATH_CAPABILITIES = ("fs:read", "fs:write", "fs:delete")
"""Capabilities that may name a path: `fs:write:./out` covers that folder and all below it."""


class AllowedAccess(Record):
    """The access of a running command: its capabilities with resolved paths.

    Paths are absolute and without symbolic links. None means any path, an empty tuple no path.
    """

    reads: tuple[str, ...] | None = ()
    writes: tuple[str, ...] | None = ()
    deletes: tuple[str, ...] | None = ()
    net: bool = False
    spawns: bool = False
    env_reads: bool = False
    env_writes: bool = False
    denied: tuple[str, ...] = ()  # never accessible; takes precedence over all others
    redirected: tuple[str, ...] = ()  # declared capabilities that a link changes: not allowed
    linked: tuple[str, ...] = ()  # paths that a declared path leads to through a link


def capability_problem(capability: object) -> str | None:
    """Return what is wrong with a capability, or None if it is valid."""
    if not isinstance(capability, str):
        return f"a capability must be a string, not {capability!r}"
    name, path = split_capability(capability)
    if name not in CAPABILITIES:
        return f"{capability!r} is not a capability{_suggest_capabilities(name, path)}"
    if path is not None and (name not in PATH_CAPABILITIES or not path):
        return (
            f"{capability!r}: only {', '.join(PATH_CAPABILITIES)} take a path, as in fs:read:./data"
        )
    return None


def _suggest_capabilities(name: str, path: str | None) -> str:
    """Return the end of the message about an unknown capability."""
    closest = closest_match(name, CAPABILITIES)
    if closest is not None:
        has_path = path and closest in PATH_CAPABILITIES
        return f"; did you mean {f'{closest}:{path}' if has_path else closest!r}?"
    first, _, action = name.partition(":")
    area = first if action else _area_of(first)
    similar = [known for known in CAPABILITIES if area in known.split(":")]
    return f"; use one of {', '.join(similar or CAPABILITIES)}"


def _area_of(word: str) -> str:
    """Return the area that a word names, or the word itself, which may be an action."""
    for area, other_names in _CAPABILITY_AREAS.items():
        if closest_match(word, (area, *other_names)):
            return area
    return word


def split_capability(capability: str) -> tuple[str, str | None]:
    """Split a capability into its name and its path; the path is None if it has none."""
    parts = capability.split(":", 2)
    return ":".join(parts[:2]), parts[2] if len(parts) > 2 else None


def resolve_access(
    capabilities: Iterable[str],
    base_directory: str | None = None,
    find_link_folders: Callable[[], Iterable[str]] = tuple,
) -> AllowedAccess:
    """Return the access that a list of capabilities allows.

    Relative paths start at `base_directory`, or at the working directory.

    A command can put links into the folders that it may write to. Such a link must not give it
    access to another place at the next call. Therefore a path that leads through a link in one of
    these folders is not allowed, unless it is below another path of the same capability.
    `find_link_folders` returns more folders that contain such links. It is called only if a path
    has a link.
    """
    paths_by_capability: dict[str, list[str] | None] = {name: [] for name in PATH_CAPABILITIES}
    linked: list[tuple[str, str, tuple[str, ...]]] = []  # capability, real path, links
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
                real_path, links = resolve_links(absolute_path)
                if links:
                    linked.append((capability, real_path, links))
                else:
                    paths.append(real_path)
    redirected = _add_linked_paths(linked, paths_by_capability, find_link_folders)
    reads, writes, deletes = [None if p is None else tuple(p) for p in paths_by_capability.values()]
    return AllowedAccess(
        reads=reads,
        writes=writes,
        deletes=deletes,
        net=bool(without_path & {"net:read", "net:write"}),
        spawns="proc:spawn" in without_path,
        env_reads="env:read" in without_path,
        env_writes="env:write" in without_path,
        redirected=redirected,
        linked=tuple([real_path for _, real_path, _ in linked]),
    )


def _add_linked_paths(
    linked: list[tuple[str, str, tuple[str, ...]]],
    paths_by_capability: dict[str, list[str] | None],
    find_link_folders: Callable[[], Iterable[str]],
) -> tuple[str, ...]:
    """Add the paths whose links the command cannot have made; return the other capabilities."""
    if not linked:
        return ()
    own = [path for name, path, _ in linked if name.startswith("fs:write:")]
    folders = (*(paths_by_capability["fs:write"] or ()), *own, *find_link_folders())
    suspicious: list[tuple[str, str]] = []
    for capability, path, links in linked:
        paths = paths_by_capability[split_capability(capability)[0]]
        if paths is None:
            continue
        if has_link_below(links, folders):
            suspicious.append((capability, path))
        else:
            paths.append(path)
    return tuple(
        [
            capability
            for capability, path in suspicious
            if not is_under_any(
                path, tuple(paths_by_capability[split_capability(capability)[0]] or ())
            )
        ]
    )


def has_link_below(links: Iterable[str], folders: tuple[str, ...]) -> bool:
    """True if one of the links is in one of the folders, or further below."""
    return any([is_under_any(os.path.dirname(link), folders) for link in links])


def is_under_any(path: str, roots: tuple[str, ...] | None) -> bool:
    """True if a path is one of the roots or below one. None as roots means any path.

    All paths must be absolute. Symbolic links are not followed: resolve them first.
    """
    if roots is None:
        return True
    prefix = path.rstrip(os.sep) + os.sep
    return any([prefix.startswith(root.rstrip(os.sep) + os.sep) for root in roots])


# ------------------------------------------------------------------ keywords


def capabilities_problem(value: object) -> str | None:
    """Return what is wrong with a value of `capabilities=`, or None."""
    if not (is_list(value) or is_set(value)):
        return "must be a list of capabilities, such as ['fs:read:./data']"
    for capability in value:
        problem = capability_problem(capability)
        if problem is not None:
            return problem
    if not value:
        return "must not be empty; write ['none'] for a command that accesses nothing"
    if "none" in value and len(value) > 1:
        return "'none' cannot be combined with other capabilities"
    return None


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
"""Levels of access to an area, with the actions each allows. `write` includes deleting."""


def read_app_permissions(permissions: Mapping[str, str] | Collection[str]) -> tuple[str, ...]:
    """Return the capabilities that `Tooli(permissions=…)` allows the app's commands to declare.

    `permissions` is a list of capabilities, or a dict of areas and levels of access:
    `{"filesystem": "read-write"}`. Everything that it does not name is forbidden.
    """
    if not _is_mapping(permissions):
        problem = capabilities_problem(permissions)
        if problem is not None:
            raise DefinitionError(f"Tooli(permissions={permissions!r}): {problem}")
        return tuple(permissions)
    areas_by_name = {
        name: area for area, aliases in _CAPABILITY_AREAS.items() for name in (area, *aliases)
    }
    capabilities: list[str] = []
    for name, level in permissions.items():
        _check_one_of("an area", name, areas_by_name)
        _check_one_of(f"the level of {name!r}", level, _ACCESS_LEVELS)
        area = areas_by_name[name]
        capabilities += [
            f"{area}:{action}"
            for action in _ACCESS_LEVELS[level]
            if f"{area}:{action}" in CAPABILITIES
        ]
    return tuple(capabilities) or ("none",)


def _is_mapping(
    permissions: Mapping[str, str] | Collection[str],
) -> TypeIs[Mapping[str, str]]:
    return hasattr(permissions, "items")


def _check_one_of(label: str, value: object, allowed: Iterable[str]) -> None:
    if isinstance(value, str) and value in allowed:
        return
    hint = did_you_mean(value, allowed)
    raise DefinitionError(
        f"Tooli(permissions=…): {label} must be one of {', '.join(allowed)}, not {value!r}{hint}"
    )


def find_disallowed(capabilities: Iterable[str], permissions: Iterable[str]) -> list[str]:
    """Return the capabilities that an app's permissions do not allow."""
    allowed = [split_capability(capability) for capability in permissions]
    return [
        capability
        for capability in capabilities
        if capability != "none" and not _is_allowed(capability, allowed)
    ]


def _is_allowed(capability: str, allowed: list[tuple[str, str | None]]) -> bool:
    name, path = split_capability(capability)
    for allowed_name, allowed_path in allowed:
        if allowed_name != name:
            continue
        if allowed_path is None:
            return True
        if path is not None:
            absolute_path, root = [
                os.path.abspath(os.path.expanduser(p)) for p in (path, allowed_path)
            ]
            if is_under_any(absolute_path, (root,)):
                return True
    return False


def apply_app_permissions(tool: Tool, app_permissions: tuple[tuple[str, ...], ...]) -> Tool:
    """Return the tool with the permissions of its app and of the apps above it.

    Raises DefinitionError if the tool declares a capability that they do not allow.
    """
    for permissions in app_permissions:
        disallowed = find_disallowed(tool.guard.capabilities, permissions)
        if disallowed:
            raise DefinitionError(
                f"{tool.key or tool.name}: capabilities={disallowed!r} is more than the app's "
                f"permissions= allow ({', '.join(permissions)})"
            )
    guard = tool.guard
    permissions = (*guard.app_permissions, *app_permissions)
    return tool.replace(guard=guard.replace(app_permissions=permissions))
