"""Compute what a call may access: the declared capabilities, restricted by the settings.

capabilities=, permissions=  ─▶ resolve_declared ─┐
                                                  ├─▶ resolve_allowed_access
allow_paths, deny_paths      ─▶ resolve_bounds   ─┘
"""

from __future__ import annotations

import os

from tooli.core import find_loaded
from tooli.core.caller_files import FileRules, IsolationRules
from tooli.core.declared_capabilities import (
    AllowedAccess,
    capabilities_problem,
    is_under_any,
    resolve_access,
)
from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState
    from tooli.core.call import Call
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


def resolve_allowed_access(
    tool: Tool, state: AppState, undeclared: AllowedAccess = UNRESTRICTED
) -> AllowedAccess:
    """Return what a call of the tool may access: what it declares, limited by the settings.

    `undeclared` is the access of a tool that declares nothing.
    """
    declared, bounds = resolve_declared(tool, state) or undeclared, resolve_bounds(state)
    return declared if bounds is None else intersect(declared, bounds)


def resolve_declared(tool: Tool, state: AppState) -> AllowedAccess | None:
    """Return what the command declares, restricted by the permissions of its apps.

    Without a declaration, only the permissions apply. Paths are resolved on each call, because a
    symbolic link may point out of a permitted folder.
    """
    guard = tool.guard
    folder = _base_directory(state)
    access: AllowedAccess | None = None
    for capabilities in (guard.capabilities, *guard.app_permissions):
        if capabilities:
            declared = resolve_access(capabilities, folder, lambda: find_link_folders(state))
            access = declared if access is None else intersect(access, declared)
    return access


def _base_directory(state: AppState) -> str | None:
    return os.path.expanduser(state.security_settings.get("work_dir") or "") or None


def find_link_folders(state: AppState) -> tuple[str, ...]:
    """Return the folders in which isolated commands of the app may create links.

    A command that may write everywhere can change what the user runs, so it adds no folder. Lazy
    commands are not imported.
    """
    sections = [state.security_settings, *state.security_settings.get("apps", {}).values()]
    is_all_isolated = any([rule.get("isolation") in ("wanted", "required") for rule in sections])
    folders: dict[str, None] = {}
    states = [state.root, *state.self_and_ancestors()]
    for current in states:  # grows while it is read
        for command in current.commands:
            declared = command.kwargs.get("capabilities") or current.permissions
            is_isolated = is_all_isolated or command.kwargs.get("isolation")
            if is_isolated and capabilities_problem(declared) is None:
                access = resolve_access(declared or (), _base_directory(state))
                folders |= dict.fromkeys(access.writes or ())
        groups = [getattr(app, "_state", None) for app, _ in current.groups]
        states += [group for group in groups if group is not None and group not in states]
    return tuple(folders)


def make_file_rules(tool: Tool, state: AppState) -> FileRules | None:
    """Return the rules for the files that a caller of the tool names; None if all are allowed."""
    settings = state.path_settings
    isolation = tool.guard.isolation or state.security_settings.get("isolation")
    is_isolated = isolation in ("wanted", "required")
    if not is_isolated and not settings.get("allow_paths") and not settings.get("deny_paths"):
        return None

    def find_isolation() -> IsolationRules | None:
        return make_isolation_rules(tool, state) if is_isolated else None

    return FileRules(tool.name, lambda: resolve_bounds(state), find_isolation)


def make_isolation_rules(tool: Tool, state: AppState) -> IsolationRules:
    """Return which links an isolated call of the tool may follow."""
    # `deny_paths` also applies to the files that Python itself needs
    access = resolve_allowed_access(tool, state, undeclared=AllowedAccess())
    return IsolationRules(access, find_link_folders(state))


def with_uploads(call: Call, access: AllowedAccess | None) -> AllowedAccess | None:
    """Return the access with the uploaded files of a call, which its function may read."""
    find_upload_paths = find_loaded("tooli.inputs.uploads", "find_upload_paths")
    paths = () if find_upload_paths is None else find_upload_paths(call.arguments)
    if not paths or access is None or access.reads is None:
        return access
    return access.replace(reads=(*access.reads, *paths))


def redirected_path_error(tool: Tool, access: AllowedAccess) -> AuthError:
    """Return the error for a command with a declared path that a link may have changed."""
    paths = ", ".join(access.redirected)
    return AuthError(
        f"{tool.name} may not use {paths}: the path leads through a link in a folder that the "
        "command, or an isolated command of the app, may write to.",
        code="E2003",
        suggestion=Suggestion(
            "ask_human",
            "Find out who made the link, and remove it, or declare the path that it leads to.",
        ),
        details={"redirected": list(access.redirected)},
    )


def resolve_bounds(state: AppState) -> AllowedAccess | None:
    """Return what the settings allow; None if they restrict nothing.

    A path is allowed if it is below a path in every list of `allow_paths`, and below none of
    `deny_paths`.
    """
    settings = state.path_settings
    allowed, denied = settings.get("allow_paths"), settings.get("deny_paths")
    if not allowed and not denied:
        return None
    allowed_paths: tuple[str, ...] | None = None
    folder = settings.get("work_dir") or ""
    for paths in allowed or ():
        allowed_paths = _intersect_paths(
            allowed_paths, tuple([resolve_setting_path(path, folder) for path in paths])
        )
    denied_paths = tuple([resolve_setting_path(path, folder) for path in denied or ()])
    return UNRESTRICTED.replace(
        reads=allowed_paths, writes=allowed_paths, deletes=allowed_paths, denied=denied_paths
    )


def resolve_setting_path(path: str, folder: str = "") -> str:
    """Return the absolute form of a path in a setting, with symbolic links resolved."""
    return os.path.realpath(os.path.join(os.path.expanduser(folder), os.path.expanduser(path)))


def intersect(access: AllowedAccess, other: AllowedAccess) -> AllowedAccess:
    """Return the access that both allow."""
    return AllowedAccess(
        reads=_intersect_paths(access.reads, other.reads),
        writes=_intersect_paths(access.writes, other.writes),
        deletes=_intersect_paths(access.deletes, other.deletes),
        net=access.net and other.net,
        spawns=access.spawns and other.spawns,
        env_reads=access.env_reads and other.env_reads,
        env_writes=access.env_writes and other.env_writes,
        denied=tuple(dict.fromkeys((*access.denied, *other.denied))),
        redirected=access.redirected,
        linked=access.linked,
    )


def _intersect_paths(
    paths: tuple[str, ...] | None, other: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    if paths is None or other is None:
        return other if paths is None else paths
    inner = [a for a in paths if is_under_any(a, other)]
    return tuple(dict.fromkeys([*inner, *(b for b in other if is_under_any(b, paths))]))
