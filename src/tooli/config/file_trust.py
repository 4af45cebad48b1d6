"""Open settings files safely: only regular files that no other user owns or can write.

A settings file is not read if another user could have written it, as with git's `safe.directory`:

- another user owns the file or its folder, or can write to one of them;
- it is a file of a project, and a symbolic link to a file outside of its folder.

Root is trusted. If root runs a command with sudo, a project may belong to the user who called sudo.
The folders in the setting `trusted_dirs` are not checked. Windows has no such owners and modes, so
only the kind of the file is checked there.
"""

from __future__ import annotations

import os
import stat

from tooli.core.declared_capabilities import is_under_any

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROJECT_LAYERS = (".env", "project")
"""The layers that a project folder contains. They are not trusted."""

_OVERFLOW_UID = 65534
"""Owner that Linux shows for files of users that have no ID in a user namespace, such as root."""
_MAX_LINKS = 40
_UID_MAP = "/proc/self/uid_map"

_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer must not block
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


class UntrustedFile(Exception):  # noqa: N818
    """A settings file is not read. The message says why: "user 1000 owns it"."""


class SpecialFile(UntrustedFile):
    """A settings file is a pipe, a socket or a device, which is never read."""


def open_settings_file(
    path: str, layer: str, trusted_dirs: tuple[str, ...], env: Mapping[str, str]
) -> int:
    """Return a file descriptor of a settings file. Never blocks.

    Raises:
        UntrustedFile: another user may have written the file.
        SpecialFile: a file that other programs read as well (`.env`, pyproject.toml) is special.
        OSError: the file cannot be opened, or is not a regular file.
    """
    target = path
    _check_owner(path, layer, trusted_dirs, env)
    if layer in PROJECT_LAYERS:
        if not path.endswith(".yaml") and not stat.S_ISREG(os.stat(path).st_mode):
            raise SpecialFile("it is a pipe, a socket or a device")
        target = _resolve_project_link(path, trusted_dirs)
    descriptor = os.open(target, _OPEN_FLAGS | (_NO_FOLLOW if layer in PROJECT_LAYERS else 0))
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(0, "it is not a regular file")
        if hasattr(os, "geteuid"):
            reason = _find_risk(descriptor, info, target, layer, trusted_dirs, env)
            if reason is not None:
                raise UntrustedFile(reason)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_owner(
    path: str, layer: str, trusted_dirs: tuple[str, ...], env: Mapping[str, str]
) -> None:
    """Refuse anything that another user has put at a path, even if it cannot be opened.

    Otherwise a pipe, a folder or an unreadable file of another user would stop every call.
    """
    if not hasattr(os, "geteuid"):
        return
    owner = os.lstat(path).st_uid
    if owner in _trusted_owners(layer, env):
        return
    folder = os.path.realpath(os.path.dirname(path))
    if layer == "system" or not is_under_any(folder, tuple(_resolve_folders(trusted_dirs))):
        raise UntrustedFile(f"user {owner} owns it")


def _resolve_project_link(path: str, trusted_dirs: tuple[str, ...]) -> str:
    """Return the target of a file of a project; refuse a link that leaves the folder."""
    if not os.path.islink(path):
        return path
    target = os.path.realpath(path)
    folder = os.path.realpath(os.path.dirname(path))
    if not is_under_any(target, (folder, *_resolve_folders(trusted_dirs))):
        raise UntrustedFile("it is a symbolic link to a file outside of its folder")
    return target


def _resolve_folders(folders: tuple[str, ...]) -> list[str]:
    return [os.path.realpath(os.path.expanduser(folder)) for folder in folders]


def _find_risk(
    descriptor: int,
    info: os.stat_result,
    path: str,
    layer: str,
    trusted_dirs: tuple[str, ...],
    env: Mapping[str, str],
) -> str | None:
    """Return who else may have written a file; None if nobody."""
    owners = _trusted_owners(layer, env)
    reason = _describe_risk(descriptor, info, owners, "it")
    if reason is None:
        for folder, is_parent in _checked_folders(path, layer):
            folder_info = os.stat(folder)
            if not is_parent and folder_info.st_mode & stat.S_ISVTX:
                continue  # only its owner can rename a folder there
            allowed = owners if is_parent else owners | {folder_info.st_uid}
            reason = _describe_risk(folder, folder_info, allowed, f"the folder {folder}")
            if reason is not None:
                break
    if reason is None or layer == "system":
        return reason
    folder = os.path.realpath(os.path.dirname(path))
    return None if is_under_any(folder, tuple(_resolve_folders(trusted_dirs))) else reason


def _trusted_owners(layer: str, env: Mapping[str, str]) -> frozenset[int]:
    """Return the users who may own a file of a layer."""
    owners = {0, os.geteuid()}
    if layer == "system" and _is_in_user_namespace():
        owners.add(_OVERFLOW_UID)
    sudo_user = env.get("SUDO_UID", "")
    if layer in PROJECT_LAYERS and os.geteuid() == 0 and sudo_user.isdecimal():
        owners.add(int(sudo_user))
    return frozenset(owners)


def is_own_project(folder: str) -> bool:
    """True if a folder belongs to the user, to root, or to the user who called sudo."""
    if not hasattr(os, "geteuid"):
        return True
    return os.lstat(folder).st_uid in _trusted_owners("project", os.environ)


def _is_in_user_namespace() -> bool:
    """True if the user IDs of this process are not those of the whole system."""
    try:
        with open(_UID_MAP, "rb") as file:
            return file.read().split() != [b"0", b"0", b"4294967295"]
    except OSError:
        return False


def _checked_folders(path: str, layer: str) -> Iterator[tuple[str, bool]]:
    """Yield the folders that must not be writable, and whether each directly contains the file.

    For the user's file, these are all folders above it, because it is trusted with everything.
    They include the folders above each link on its path and above the target of the link.
    """
    folder = os.path.dirname(path)
    yield folder, True
    real_folder = os.path.dirname(os.path.realpath(path))
    if real_folder != folder:
        yield real_folder, True
    for parent in _folders_above(path) if layer == "user" else ():
        yield parent, False


def _folders_above(path: str) -> Iterator[str]:
    """Yield each folder in which the system looks up a part of a path, links included."""
    parts = os.path.abspath(path).split(os.sep)[:0:-1]
    folder, links = os.sep, 0
    while parts:
        yield folder
        part = parts.pop()
        entry = os.path.normpath(os.path.join(folder, part))
        if part and os.path.islink(entry) and links < _MAX_LINKS:
            links += 1
            target = os.readlink(entry)
            parts += [name for name in reversed(target.split(os.sep)) if name]
            folder = os.sep if os.path.isabs(target) else folder
        else:
            folder = entry


def _describe_risk(
    place: str | int, info: os.stat_result, owners: frozenset[int], subject: str
) -> str | None:
    if info.st_uid not in owners:
        return f"user {info.st_uid} owns {subject}"
    if info.st_mode & stat.S_IWOTH:
        writer = "every user"
    elif info.st_mode & stat.S_IWGRP and not _is_private_group(place, info):
        writer = f"group {info.st_gid}"
    else:
        return None
    if os.statvfs(place).f_flag & os.ST_RDONLY:  # such as a volume of Kubernetes
        return None
    return f"{writer} can write to {subject}"


def _is_private_group(place: str | int, info: os.stat_result) -> bool:
    """True if the group of a file has no member except the owner of the file.

    Many systems give every user such a group, and make new files writable for it.
    """
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(info.st_uid), grp.getgrgid(info.st_gid)
    except KeyError:
        return False
    is_private = (
        user.pw_gid == info.st_gid
        and user.pw_name == group.gr_name
        and set(group.gr_mem) <= {user.pw_name}
    )
    return is_private and not _has_acl(place)


def _has_acl(place: str | int) -> bool:
    """True if a file has an access control list, which may allow other users to write to it."""
    try:
        return "system.posix_acl_access" in os.listxattr(place)
    except (AttributeError, OSError):  # not on Linux, or not on this file system
        return False
