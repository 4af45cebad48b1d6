"""Private temporary folders, and the folders that a sandboxed call may write to.

A sandboxed command can change everything in these folders, and may be able to change the folder
around them. This process holds the folders open, and follows no link when it creates or removes
something.
"""

from __future__ import annotations

import os
from time import monotonic

from tooli.core.safe_files import OpenFolder, make_folders, remove_folder
from tooli.errors import Suggestion, TemporaryError

try:
    import fcntl
except ImportError:  # Windows, which has no sandbox
    fcntl = None

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.declared_capabilities import AllowedAccess

_SUFFIX_CHARS = 16
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_MAX_SWEEP_SECONDS = 1.0  # how long the removal of all stale folders takes at most
_swept_dirs: set[tuple[str, str]] = set()  # parent folders and prefixes, after their sweep


class TempFolder:
    """A private folder for temporary files.

    If this process is killed, the next one that makes a folder with the same prefix removes it.
    """

    def __init__(self, prefix: str) -> None:
        self._parent, self._name, self._fd = _create_temp_dir(prefix)
        self.path = os.path.join(self._parent.path, self._name)

    def remove(self) -> None:
        """Remove the folder. Errors are ignored.

        The removal takes a limited time. A later process removes the rest.
        """
        try:
            remove_folder(self._name, self._fd, self._parent)
        finally:
            os.close(self._fd)
            self._parent.close()


class UnsweptTempFolder:
    """A private folder on a system without descriptors for folders, such as Windows.

    That of a killed process stays.
    """

    def __init__(self, prefix: str) -> None:
        from tempfile import mkdtemp  # it takes long to import

        self.path = os.path.realpath(mkdtemp(prefix=prefix))

    def remove(self) -> None:
        """Remove the folder. Errors are ignored."""
        from shutil import rmtree

        rmtree(self.path, ignore_errors=True)


def make_temp_folder(prefix: str) -> TempFolder | UnsweptTempFolder:
    """Return a private folder. On POSIX, that of a killed process is removed later."""
    return (TempFolder if os.mkdir in os.supports_dir_fd else UnsweptTempFolder)(prefix)


class SandboxDirs:
    """The folders of a sandboxed call: one for temporary files, and those that it may write to.

    The kernel grants access to existing paths only. A declared path that does not exist is created:
    as a file if its name has an extension, otherwise as a folder. Only the user can access it. It
    is not removed afterwards, because another call may have been granted access to it. A path that
    a link leads to is not created: the link may belong to a repository of somebody else.
    """

    def __init__(self, access: AllowedAccess) -> None:
        self._folder = TempFolder("tooli-sandbox-")
        self.temp_dir = self._folder.path
        for path in access.writes or ():
            if path not in access.linked:
                _create_path(path)

    def remove(self) -> None:
        """Remove the folder for temporary files."""
        self._folder.remove()


def _create_path(path: str) -> None:
    """Create a declared path, whose links are resolved, unless it exists."""
    if os.path.lexists(path):
        return
    try:
        if os.path.splitext(path)[1]:
            folder, name = os.path.split(path)
            os.close(OpenFolder(folder).open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        else:
            make_folders(path)
    except OSError:  # the command will report that it cannot write there
        pass


def _create_temp_dir(prefix: str) -> tuple[OpenFolder, str, int]:
    """Create a private folder. Return its parent, its name and a descriptor that locks it.

    The lock ends with this process, so that other processes can remove the folder if this one is
    killed. `tempfile` is not used, because it takes longer to import.
    """
    tmpdir = os.environ.get("TMPDIR")
    reason = ""
    for parent_dir in (*([tmpdir] if tmpdir else []), "/tmp", "/var/tmp"):
        name = f"{prefix}{os.urandom(_SUFFIX_CHARS // 2).hex()}"
        try:
            parent = OpenFolder(os.path.realpath(parent_dir))
            _remove_stale_dirs(parent, prefix)
            os.mkdir(parent.entry(name), 0o700, dir_fd=parent.fd)
            return parent, name, _lock_dir(parent, name)
        except OSError as error:
            reason = error.strerror or str(error)
    raise TemporaryError(
        f"No folder for temporary files can be created: {reason}.",
        suggestion=Suggestion("ask_human", "Set TMPDIR to a writable folder."),
    )


def _lock_dir(parent: OpenFolder, name: str) -> int:
    """Lock a folder, so that `_remove_stale_dirs` of another process leaves it alone.

    Raises OSError if another process has just removed it.
    """
    fd = os.open(parent.entry(name), _OPEN_FLAGS, dir_fd=parent.fd)
    try:
        _lock(fd)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:  # without locks, `_remove_stale_dirs` removes nothing
        pass
    if os.fstat(fd).st_nlink == 0 or parent.lstat(name) is None:
        os.close(fd)
        raise FileNotFoundError(0, "another process has removed it", name)
    return fd


def _lock(fd: int, *, exclusive: bool = False) -> None:
    """Lock a file or raise OSError, without waiting."""
    if fcntl is not None:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)


def _is_temp_dir_name(name: str, prefix: str) -> bool:
    suffix = name[len(prefix) :]
    return (
        name.startswith(prefix)
        and len(suffix) == _SUFFIX_CHARS
        and not suffix.strip("0123456789abcdef")
    )


def _remove_stale_dirs(parent: OpenFolder, prefix: str) -> None:
    """Remove the folders of killed processes. Each parent folder is searched once per process.

    It takes a limited time. Later processes remove the rest.
    """
    if (parent.path, prefix) in _swept_dirs:
        return
    _swept_dirs.add((parent.path, prefix))
    try:
        names = [name for name in parent.list_names() if _is_temp_dir_name(name, prefix)]
    except OSError:
        return
    deadline = monotonic() + _MAX_SWEEP_SECONDS
    for name in names:
        seconds = deadline - monotonic()
        if seconds <= 0:
            break
        try:
            fd = os.open(parent.entry(name), _OPEN_FLAGS, dir_fd=parent.fd)
        except OSError:
            continue
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                _lock(fd, exclusive=True)
                remove_folder(name, fd, parent, seconds)
        except OSError:  # in use
            pass
        finally:
            os.close(fd)
