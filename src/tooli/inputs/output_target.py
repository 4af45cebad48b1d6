"""The file that an `Output` replaces, and the temporary file that a command writes.

before the run: resolve the path, open its folder, note what is there
open ─▶ a temporary file in the folder ─┬─ success ─▶ synced, renamed to the target
                                        └─ failure ─▶ removed, the target is unchanged

The command, or other code, may change every path meanwhile. Therefore the folder is held open, no
link is followed, and the temporary file is only renamed if it and the target are still the same.
"""

from __future__ import annotations

import os
from errno import ELOOP, ENOENT, ENOTDIR
from stat import S_ISDIR, S_ISFIFO, S_ISLNK, S_ISREG

from tooli.core.safe_files import (
    HAS_DIR_FD,
    O_NOFOLLOW,
    O_PATH,
    FileIdentity,
    OpenFolder,
    file_identity,
    is_own_file,
)
from tooli.errors import ConflictError, Suggestion

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

UNWRITTEN_MARKER = b"\0nothing was written here\0"
_MAX_HELD_FILES = 64
"""Maximum number of targets and temporary files per folder that are held open."""
_MAX_LISTED_FILES = 5000
"""Maximum number of files that are examined to find left-over temporary files."""
_RANDOM_CHARS = 16
_swept_folders: set[str] = set()


class OutputFolder(OpenFolder):
    """The folder of one or more outputs of a call.

    A shared lock on the folder tells other processes that its temporary files are in use.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.held_files = 0
        if self.fd is None or fcntl is None:
            return
        try:  # a lock needs a descriptor that can read the folder
            readable_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.fd)
        except OSError:
            return
        os.close(self.fd)
        self.fd = readable_fd
        try:
            self._remove_stale_files(readable_fd)
            fcntl.flock(readable_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:  # another process removes stale files, or there are no locks
            pass

    def _remove_stale_files(self, fd: int) -> None:
        """Remove the temporary files of killed runs, unless another run uses the folder."""
        if fcntl is None or self.path in _swept_folders:
            return
        _swept_folders.add(self.path)
        names: list[str] = []
        with os.scandir(fd) as entries:
            for i, entry in enumerate(entries):
                if i >= _MAX_LISTED_FILES:
                    break
                if is_temporary_name(entry.name):
                    names.append(entry.name)
        if not names:
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in names:
            found = self.lstat(name)
            if found is not None and is_own_file(found):
                self.unlink(name)


def is_temporary_name(name: str) -> bool:
    """True for the name of a temporary file: `.NAME.tooli-0123456789abcdef.tmp`."""
    start, _, random_chars = name.removesuffix(".tmp").rpartition(".tooli-")
    return (
        name.endswith(".tmp")
        and len(start) > 1
        and start.startswith(".")
        and len(random_chars) == _RANDOM_CHARS
        and not random_chars.strip("0123456789abcdef")
    )


def _make_temporary_name(name: str) -> str:
    start = os.fsencode(name)[:100].decode("utf-8", "ignore") or "output"
    return f".{start}.tooli-{os.urandom(_RANDOM_CHARS // 2).hex()}.tmp"


class OutputTarget:
    """The target of an output, and its temporary file if there is one."""

    def __init__(self, path: str, shown_path: str, folders: dict[str, OutputFolder]) -> None:
        """Open the folder of a target and note what is there.

        Args:
            path: the real path of the target.
            shown_path: the path for messages, as the caller gave it.
            folders: the open folders of the call by path.

        Raises:
            OSError: the folder cannot be opened.
            ConflictError: the target or a part of its path has been replaced.
        """
        self._shown_path = shown_path
        folder_path, self._name = os.path.split(path)
        folder = folders.get(folder_path)
        if folder is None:
            try:
                folder = folders[folder_path] = OutputFolder(folder_path)
            except OSError as error:
                if error.errno in _REPLACED_FOLDER_ERRNOS:
                    raise _make_conflict(shown_path, path, "its folder was replaced") from None
                raise
        self._folder = folder
        found = folder.lstat(self._name)
        if found is not None and not S_ISREG(found.st_mode):
            raise self._conflict(f"{_kind_of(found)} has this path now")
        self._before = None if found is None else file_identity(found)
        self._mode = None if found is None else found.st_mode & 0o777
        self._target_fd = None if found is None else self._hold_target()
        self._temporary_name: str | None = None
        self._temporary_identity: FileIdentity = (0, 0, 0)
        self._held_fd: int | None = None

    def _hold_target(self) -> int | None:
        """Open the target: while it is open, no other file gets its number."""
        try:
            fd = self._folder.open(self._name, O_PATH or os.O_RDONLY)
        except OSError:  # it was removed, or this user may not read it
            return None
        return fd if self._may_hold(fd) else None

    def _may_hold(self, fd: int) -> bool:
        """Count a file that is held open. If there are too many, close it and return False."""
        if HAS_DIR_FD and self._folder.held_files < _MAX_HELD_FILES:
            self._folder.held_files += 1
            return True
        os.close(fd)
        return False

    @property
    def temporary_path(self) -> str | None:
        """The path of the temporary file; None if there is none."""
        if self._temporary_name is None:
            return None
        return os.path.join(self._folder.path, self._temporary_name)

    # -------------------------------------------------------------- write

    def create_temporary_file(self) -> None:
        """Create the temporary file in the process that runs the function."""
        if self._temporary_name is None:
            name = _make_temporary_name(self._name)
            # The audit hook of the policy `strict` understands absolute paths only.
            path = os.path.join(self._folder.path, name)
            self._use_new_file(name, os.open(path, _NEW_FILE_FLAGS, self._new_file_mode))
            found = self._folder.lstat(name)
            if found is None or file_identity(found) != self._temporary_identity:
                self._temporary_name = None
                raise self._conflict("its folder was replaced")

    def create_marked_file(self) -> None:
        """Create the temporary file for a worker process, below the open folder.

        It contains a marker until the worker opens it, so that an unused file is not committed.
        """
        name = _make_temporary_name(self._name)
        fd = self._folder.open(name, _NEW_FILE_FLAGS, self._new_file_mode)
        os.write(fd, UNWRITTEN_MARKER)
        self._use_new_file(name, fd)

    @property
    def _new_file_mode(self) -> int:
        return 0o666 if self._mode is None else 0o600

    def _use_new_file(self, name: str, fd: int) -> None:
        self._temporary_name = name
        self._temporary_identity = file_identity(os.fstat(fd))
        if self._mode is not None and hasattr(os, "fchmod"):
            os.fchmod(fd, self._mode)
        if self._may_hold(fd):
            self._held_fd = fd

    def open_temporary_file(self, path: str, flags: int) -> int:
        """Open the temporary file and truncate it; an `opener` for `open()`."""
        flags = flags & ~os.O_CREAT & ~os.O_TRUNC | O_NOFOLLOW
        fd = os.open(path, flags)
        try:
            if file_identity(os.fstat(fd)) != self._temporary_identity:
                raise self._conflict("its temporary file was replaced")
            try:
                os.ftruncate(fd, 0)
            except PermissionError:  # the sandbox of an older kernel allows O_TRUNC only
                os.close(os.open(path, flags | os.O_TRUNC))
        except BaseException:
            os.close(fd)
            raise
        return fd

    # -------------------------------------------------------------- commit and discard

    def discard_if_unwritten(self) -> None:
        """Remove the temporary file if it still contains the marker only."""
        try:
            fd = self._open_checked()
        except (OSError, ConflictError):  # commit() reports it
            return
        try:
            os.lseek(fd, 0, os.SEEK_SET)
            is_unwritten = os.read(fd, len(UNWRITTEN_MARKER) + 1) == UNWRITTEN_MARKER
        finally:
            if fd != self._held_fd:
                os.close(fd)
        if is_unwritten:
            self.discard()

    def verify(self) -> None:
        """Raise ConflictError if the target or the temporary file has been replaced."""
        if self._temporary_name is None:
            return
        found = self._folder.lstat(self._temporary_name)
        if found is None:
            raise self._conflict("its temporary file was removed")
        if file_identity(found) != self._temporary_identity:
            raise self._conflict("its temporary file was replaced")
        found = self._folder.lstat(self._name)
        if found is not None and file_identity(found) != self._before:
            raise self._conflict(f"{_kind_of(found)} was put there")

    def commit(self) -> None:
        """Replace the target with the temporary file."""
        name = self._temporary_name
        if name is None:
            return
        fd = self._open_checked()
        try:
            mode = os.fstat(fd).st_mode
            if mode & 0o7000 and hasattr(os, "fchmod"):
                os.fchmod(fd, mode & 0o777)
            os.fsync(fd)
        finally:
            if fd != self._held_fd:
                os.close(fd)
        self.verify()
        self._folder.replace(name, self._name)
        self._release()
        found = self._folder.lstat(self._name)
        if found is None or file_identity(found) != self._temporary_identity:
            raise self._conflict("another file was put there")

    def discard(self) -> None:
        """Remove the temporary file, unless another file has its name now."""
        name = self._temporary_name
        if name is None:
            self._release()
            return
        try:
            found = self._folder.lstat(name)
            if found is not None and file_identity(found) == self._temporary_identity:
                self._release()  # Windows removes only closed files
                self._folder.unlink(name)
        except OSError:
            pass
        self._release()

    def _open_checked(self) -> int:
        """Return a descriptor of the temporary file."""
        if self._held_fd is not None:
            return self._held_fd
        try:
            # Windows syncs only files that are open for writing.
            flags = os.O_RDONLY if HAS_DIR_FD else os.O_RDWR
            fd = self._folder.open(self._temporary_name or "", flags)
        except FileNotFoundError:
            raise self._conflict("its temporary file was removed") from None
        if file_identity(os.fstat(fd)) != self._temporary_identity:
            os.close(fd)
            raise self._conflict("its temporary file was replaced")
        return fd

    def _release(self) -> None:
        self._temporary_name = None
        held = self._held_fd, self._target_fd
        self._held_fd = self._target_fd = None
        for fd in held:
            if fd is not None:
                self._folder.held_files -= 1
                os.close(fd)

    def __del__(self) -> None:
        if hasattr(self, "_held_fd"):
            self._release()

    def _conflict(self, reason: str) -> ConflictError:
        path = os.path.join(self._folder.path, self._name)
        return _make_conflict(self._shown_path, path, reason)


def _make_conflict(shown_path: str, path: str, reason: str) -> ConflictError:
    return ConflictError(
        f"{shown_path!r} was not written: {reason}.",
        suggestion=Suggestion(
            "ask_human",
            "Find out what changes files in this folder while the command runs, then run it again.",
        ),
        details={"path": path},
    )


_REPLACED_FOLDER_ERRNOS = (ELOOP, ENOENT, ENOTDIR)
_NEW_FILE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_RDWR | O_NOFOLLOW | getattr(os, "O_BINARY", 0)


def _kind_of(found: os.stat_result) -> str:
    mode = found.st_mode
    if S_ISLNK(mode):
        return "a symbolic link"
    if S_ISDIR(mode):
        return "a folder"
    if S_ISFIFO(mode):
        return "a pipe"
    return "another file" if S_ISREG(mode) else "a device or socket"
