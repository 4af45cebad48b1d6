"""What a call may touch: what its command declares, under its app's ceiling and the owner's lists.

capabilities=, permissions=  ─▶ declared ─┐
                                          ├─▶ allowance_for: all of it, met
allow_paths, deny_paths      ─▶ bounds   ─┘
"""

from __future__ import annotations

import os

from tooli.core.declared_capabilities import AllowedAccess, is_under_any, resolve_access

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Tool

UNRESTRICTED = AllowedAccess(
    reads=None,
    writes=None,
    deletes=None,
    net=True,
    spawns=True,
    env_reads=True,
    env_writes=True,
)


def resolve_allowance(tool: Tool, state: Any) -> AllowedAccess | None:
    """All that a call to the tool may touch; None where nobody says anything about it."""
    declared, bounds = resolve_declared(tool, state), resolve_bounds(state)
    if declared is None or bounds is None:
        return declared or bounds
    return intersect(declared, bounds)


def resolve_declared(tool: Tool, state: Any) -> AllowedAccess | None:
    """What the command declares, under the ceilings that it is held to; these alone, where it
    declares nothing. All are met anew: links may lead a declared path out of a ceiling."""
    guard = tool.guard
    folder = os.path.expanduser(state.security_settings.get("work_dir") or "") or None
    allowance: AllowedAccess | None = None
    for capabilities in (guard.capabilities, *guard.app_permissions):
        if capabilities:
            declared = resolve_access(capabilities, folder)
            allowance = declared if allowance is None else intersect(allowance, declared)
    return allowance


def resolve_bounds(state: Any) -> AllowedAccess | None:
    """What the owner's lists leave: all lists of allowed paths must allow, and none deny."""
    allowed, denied = (
        state.security_settings.get("allow_paths"),
        state.security_settings.get("deny_paths"),
    )
    if not allowed and not denied:
        return None
    allowed_paths: tuple[str, ...] | None = None
    folder = state.security_settings.get("work_dir") or ""
    for paths in allowed or ():
        allowed_paths = _intersect_paths(
            allowed_paths, tuple([resolve_setting_path(path, folder) for path in paths])
        )
    denied_paths = tuple([resolve_setting_path(path, folder) for path in denied or ()])
    return UNRESTRICTED.replace(
        reads=allowed_paths, writes=allowed_paths, deletes=allowed_paths, denied=denied_paths
    )


def resolve_setting_path(path: str, folder: str = "") -> str:
    """A path of a setting: absolute, with links followed; relative ones are of that folder."""
    return os.path.realpath(os.path.join(os.path.expanduser(folder), os.path.expanduser(path)))


def intersect(paths: AllowedAccess, other: AllowedAccess) -> AllowedAccess:
    """What both allow."""
    return AllowedAccess(
        reads=_intersect_paths(paths.reads, other.reads),
        writes=_intersect_paths(paths.writes, other.writes),
        deletes=_intersect_paths(paths.deletes, other.deletes),
        net=paths.net and other.net,
        spawns=paths.spawns and other.spawns,
        env_reads=paths.env_reads and other.env_reads,
        env_writes=paths.env_writes and other.env_writes,
        denied=tuple(dict.fromkeys((*paths.denied, *other.denied))),
    )


def _intersect_paths(
    paths: tuple[str, ...] | None, other: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    if paths is None or other is None:
        return other if paths is None else paths
    inner = [a for a in paths if is_under_any(a, other)]
    return tuple(dict.fromkeys([*inner, *(b for b in other if is_under_any(b, paths))]))
