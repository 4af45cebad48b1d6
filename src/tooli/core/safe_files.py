"""Use and remove files in folders that other code can change at the same time.

A path can mean something else each time it is used: a folder becomes a symbolic link, a file
becomes a pipe. An open folder stays the same folder. The functions of this module therefore work
below a directory descriptor and follow no link. Systems without directory descriptors (Windows)
use paths.
"""

from __future__ import annotations

import os
from itertools import islice
from stat import S_IFMT, S_ISDIR, S_ISREG, S_ISVTX, S_IWOTH
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")

HAS_DIR_FD = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_O_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
O_PATH = getattr(os, "O_PATH", 0)

FileIdentity = tuple[int, int, int]
"""Device, number and type of a file."""


def file_identity(found: os.stat_result) -> FileIdentity:
    """Return what distinguishes a file from all others that exist at the same time."""
    return found.st_dev, found.st_ino, S_IFMT(found.st_mode)


def is_own_file(found: os.stat_result) -> bool:
    """True for a regular file of this user that has no second name."""
    if not S_ISREG(found.st_mode) or found.st_nlink > 1:
        return False
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


_MAX_LINKS = 40  # as the kernel


def resolve_links(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the real path, like `os.path.realpath`, and the path of each link on the way.

    Both are found at the same time. A link that is changed later changes neither of them. On
    Windows no links are returned.
    """
    if os.name == "nt":
        return os.path.realpath(path), ()
    links: list[str] = []
    pending = os.path.join(os.getcwd(), path).split("/")[::-1]
    current = "/"
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)
            continue
        entry = os.path.join(current, part)
        try:
            target = os.readlink(entry)
        except OSError:  # not a link
            current = entry
            continue
        links.append(entry)
        if len(links) > _MAX_LINKS:  # links that lead to each other: the kernel refuses the path
            return os.path.join(entry, *pending[::-1]), tuple(links)
        if target.startswith("/"):
            current = "/"
        pending += target.split("/")[::-1]
    return current, tuple(links)


def find_foreign_link(links: Iterable[str]) -> str | None:
    """Return the first link that the kernel would refuse to follow; None if there is none.

    In a sticky folder that every user can write, such as /tmp, a link counts only if the owner of
    the folder or the current user has made it. The kernel applies this rule (`protected_symlinks`)
    when it follows a link, but not when a program reads the link and opens its target.
    """
    for link in links:
        try:
            folder, owner = os.stat(os.path.dirname(link)), os.lstat(link).st_uid
        except OSError:
            continue  # it was removed
        is_shared = folder.st_mode & S_ISVTX and folder.st_mode & S_IWOTH
        if is_shared and owner not in (os.geteuid(), folder.st_uid):
            return link
    return None


def open_folder(path: str) -> int | None:
    """Open a folder by its real path; None on systems without directory descriptors.

    On Linux, each part of the path is opened by itself. Raises OSError if a part is a symbolic
    link. Other systems check the last part only.
    """
    if not HAS_DIR_FD:
        return None
    if not O_PATH:
        return os.open(path, _O_DIRECTORY | O_NOFOLLOW)
    return _walk(path, create=False)


def make_folders(path: str) -> None:
    """Create a folder and its missing parents, private to this user whatever the umask is.

    `path` is a real path. On Linux, raises OSError if a part of it is a symbolic link.
    """
    if O_PATH and HAS_DIR_FD:
        os.close(_walk(path, create=True))
        return
    missing: list[str] = []
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        os.mkdir(folder, 0o700)


def _walk(path: str, *, create: bool) -> int:
    """Open the parts of a path one after another; return the descriptor of the last one."""
    flags = _O_DIRECTORY | O_NOFOLLOW | O_PATH
    fd = os.open("/", flags)
    for part in path.split("/"):
        if part:
            outer = fd
            try:
                if create:
                    _make_folder(part, outer)
                fd = os.open(part, flags, dir_fd=outer)
            finally:
                os.close(outer)
    return fd


def _make_folder(name: str, fd: int) -> None:
    try:
        os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        try:
            os.mkdir(name, 0o700, dir_fd=fd)
        except FileExistsError:  # another process was faster
            pass


class OpenFolder:
    """A folder that is held open. It is closed when nothing refers to it any more."""

    def __init__(self, path: str) -> None:
        """Open a folder by its real path.

        Raises:
            OSError: the folder does not exist, or a part of the path is a link.
        """
        self.path = path
        self.fd: int | None = None
        self.fd = open_folder(path)

    def entry(self, name: str) -> str:
        """Return the path of a file, for a system call that also gets `fd`."""
        return os.path.join(self.path, name) if self.fd is None else name

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Open a file without following a link and without waiting for a pipe."""
        flags |= O_NOFOLLOW | O_NONBLOCK | getattr(os, "O_BINARY", 0)
        return os.open(self.entry(name), flags, mode, dir_fd=self.fd)

    def list_names(self) -> list[str]:
        """Return the names of all files in the folder."""
        if self.fd is None:
            return os.listdir(self.path)
        readable_fd = os.open(".", os.O_RDONLY | _O_DIRECTORY, dir_fd=self.fd)
        try:
            return os.listdir(readable_fd)
        finally:
            os.close(readable_fd)

    def lstat(self, name: str) -> os.stat_result | None:
        """Return the attributes of a file or link; None if it does not exist."""
        try:
            return os.lstat(self.entry(name), dir_fd=self.fd)
        except FileNotFoundError:
            return None

    def unlink(self, name: str) -> None:
        """Remove a file or link."""
        os.unlink(self.entry(name), dir_fd=self.fd)

    def replace(self, name: str, new_name: str) -> None:
        """Rename a file within the folder. An existing file or link is replaced."""
        os.replace(self.entry(name), self.entry(new_name), src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def close(self) -> None:
        """Close the folder."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


# ------------------------------------------------------------------ remove folders

MAX_REMOVAL_SECONDS = 5.0
"""How long the removal of a folder takes at most."""
_MAX_LISTED_NAMES = 200_000


def empty_folder(fd: int, max_seconds: float = MAX_REMOVAL_SECONDS) -> bool:
    """Remove everything in an open folder; return False if something is left.

    Another process may add files all the time, so it stops after `max_seconds`, and removes at most
    _MAX_LISTED_NAMES entries of each folder.

    It never follows a link and never enters another file system. Every folder is first renamed
    into the open folder. The rename fails for a mount point, so nothing below one is removed. It
    also keeps the work flat: any depth takes two descriptors and no recursion. Folders without
    permissions get them back. Never raises OSError.
    """
    deadline = monotonic() + max_seconds
    _allow_access(fd)
    pending = _list(fd)
    while pending and monotonic() < deadline:
        name = pending.pop()
        if _unlink(fd, name):
            continue
        child_name = _move(fd, name, fd)
        if child_name is None:
            continue
        child = _open_child(fd, child_name)
        if child is None:
            continue
        try:
            for inner in _list(child):
                if monotonic() >= deadline:
                    break
                if not _unlink(child, inner):
                    moved = _move(child, inner, fd)
                    if moved is not None:
                        pending.append(moved)
        finally:
            os.close(child)
        try:
            os.rmdir(child_name, dir_fd=fd)
        except OSError:
            continue
    return not _list(fd)


def remove_folder(
    name: str, fd: int, parent: OpenFolder, max_seconds: float = MAX_REMOVAL_SECONDS
) -> bool:
    """Empty and remove an open folder, whose name in `parent` is `name`.

    Return False if something is left. If another file has the name now, that file stays.
    """
    is_empty = empty_folder(fd, max_seconds)
    try:
        found = parent.lstat(name)
        if not is_empty or found is None or file_identity(found) != file_identity(os.fstat(fd)):
            return found is None and is_empty
        os.rmdir(parent.entry(name), dir_fd=parent.fd)
    except OSError:
        return False
    return True


def _list(fd: int) -> list[str]:
    try:
        with os.scandir(fd) as entries:
            return [entry.name for entry in islice(entries, _MAX_LISTED_NAMES)]
    except OSError:
        return []


def _unlink(fd: int, name: str) -> bool:
    """Remove a file or link. Return False for a folder, and if it cannot be removed."""
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _move(source: int, name: str, target: int) -> str | None:
    """Rename a folder into the folder `target`; return its new name, or None if that fails."""
    new_name = os.urandom(16).hex()

    def rename() -> str | None:
        if not S_ISDIR(os.lstat(name, dir_fd=source).st_mode):
            return None
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        return new_name

    return _use_folder(rename, source, name)  # only a writable folder can be moved


def _open_child(fd: int, name: str) -> int | None:
    flags = os.O_RDONLY | _O_DIRECTORY | O_NOFOLLOW
    child = _use_folder(lambda: os.open(name, flags, dir_fd=fd), fd, name)
    if child is not None:
        _allow_access(child)
    return child


def _use_folder(action: Callable[[], T | None], fd: int, name: str) -> T | None:
    """Return the result of an action on a folder, or None if it fails.

    If a permission is missing, the owner gets all rights and the action is repeated once.
    """
    try:
        return action()
    except PermissionError:
        if not _restore_access(fd, name):
            return None
    except OSError:
        return None
    try:
        return action()
    except OSError:
        return None


def _allow_access(fd: int) -> None:
    mode = os.fstat(fd).st_mode
    if mode & 0o700 != 0o700 or mode & S_ISVTX:
        try:
            os.fchmod(fd, 0o700)
        except OSError:
            pass


def _restore_access(fd: int, name: str) -> bool:
    """Give the owner all rights on a folder; return False if that fails. Never follows a link."""
    try:
        if not O_PATH:
            os.chmod(name, 0o700, dir_fd=fd, follow_symlinks=False)
            return True
        child = os.open(name, O_PATH | _O_DIRECTORY | O_NOFOLLOW, dir_fd=fd)
        try:
            os.chmod(f"/proc/self/fd/{child}", 0o700)
        finally:
            os.close(child)
    except (OSError, NotImplementedError, ValueError):  # the system cannot refuse a link
        return False
    return True
