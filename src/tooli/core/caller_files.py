"""Open the files that a caller names: `@FILE`, `--input @FILE`, and the path of an input.

    name ──▶ resolve all links ──▶ check the rules ──▶ open, without following a link ──▶ CallerFile

No other code opens such a file by its name. The file that is checked is therefore the file that is
read, and a stage that needs its content later uses the same descriptor.

`FileRules` says which files a call may use: the settings `allow_paths` and `deny_paths`, and no
links that an isolated command may have made.
"""

from __future__ import annotations

import errno
import io
import os
import select
from contextvars import ContextVar

from tooli.core.declared_capabilities import has_link_below, is_under_any
from tooli.core.safe_files import HAS_DIR_FD, O_NOFOLLOW, O_NONBLOCK, open_folder, resolve_links
from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.declared_capabilities import AllowedAccess

_CHUNK_BYTES = 1 << 16
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_REGULAR, _FOLDER, _PIPE = 0o100000, 0o040000, 0o010000
MAX_OBJECT_BYTES = 64 << 20
"""Maximum size of a file with a JSON object. A device has no end, and a sparse file costs nothing.
"""
CAN_HOLD = hasattr(os, "pread")
"""True if several readers of a file can share one descriptor."""


class IsolationRules:
    """What an isolated command may read, and the folders in which such commands may make links."""

    def __init__(self, access: AllowedAccess, link_folders: tuple[str, ...]) -> None:
        self.access = access
        self.folders = (*(access.writes or ()), *link_folders)

    def check(
        self,
        tool_name: str,
        name: str,
        resolved: tuple[str, tuple[str, ...]],
        field: str | None,
        *,
        is_written: bool = False,
    ) -> None:
        """Raise an AuthError (E2003) if a link leads to a file that the command may not use."""
        path, links = resolved
        allowed_paths = self.access.writes if is_written else self.access.reads
        if not has_link_below(links, self.folders) or is_under_any(path, self.folders):
            return
        if not is_under_any(path, allowed_paths):
            raise _planted_link_error(tool_name, field, name, path)


class FileRules:
    """Which files the caller of a tool may name. The rules are computed when the first is named.

    Args:
        tool_name: the name of the tool, for messages.
        find_bounds: returns what the settings allow; None if they restrict nothing.
        find_isolation: returns the rules of an isolated command; None for other commands.
    """

    def __init__(
        self,
        tool_name: str,
        find_bounds: Callable[[], AllowedAccess | None],
        find_isolation: Callable[[], IsolationRules | None],
    ) -> None:
        self.tool_name = tool_name
        self._find_bounds = find_bounds
        self._find_isolation = find_isolation
        self._found: tuple[AllowedAccess | None, IsolationRules | None] | None = None

    def check(self, name: str, path: str, links: tuple[str, ...], field: str | None) -> None:
        """Raise an AuthError if the caller may not use a file.

        Args:
            name: the path as the caller wrote it.
            path: its real path.
            links: the links on the way to the real path.
            field: the argument that contains the path.
        """
        self.check_settings(name, path, field)
        isolation = self._rules[1]
        if isolation is not None:
            isolation.check(self.tool_name, name, (path, links), field)

    def check_settings(self, name: str, path: str, field: str | None) -> None:
        """Raise an AuthError (E2005) if the settings do not allow a file."""
        bounds = self._rules[0]
        if bounds is not None:
            check_bounds(self.tool_name, name, path, bounds, field)

    @property
    def _rules(self) -> tuple[AllowedAccess | None, IsolationRules | None]:
        if self._found is None:
            self._found = self._find_bounds(), self._find_isolation()
        return self._found


current_file_rules: ContextVar[FileRules | None] = ContextVar("tooli_file_rules", default=None)
"""The rules of the current call, while its arguments are converted; None: every file is allowed."""


def check_named_file(name: str, field: str) -> None:
    """Raise an AuthError (E2005) if the settings do not allow a file, whether it exists or not.

    Call it before anything that depends on the file. Otherwise, errors would say whether it exists.
    """
    rules = current_file_rules.get()
    if rules is not None:
        rules.check_settings(name, os.path.realpath(name), field)


def check_bounds(
    tool_name: str, name: str, real_path: str, bounds: AllowedAccess, field: str | None
) -> None:
    """Raise an AuthError (E2005) if the settings do not allow a path."""
    if is_under_any(real_path, bounds.reads) and not is_under_any(real_path, bounds.denied):
        return
    details: dict[str, object] = {"path": real_path}
    if bounds.reads is not None:
        details["allowed"] = list(bounds.reads)
    raise AuthError(
        f"{tool_name} may not use {name!r}: the configuration does not allow it.",
        code="E2005",
        field=field,
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Use an allowed path, or ask the owner of the configuration.",
        ),
        details=details,
    )


def _planted_link_error(tool_name: str, field: str | None, name: str, path: str) -> AuthError:
    return AuthError(
        f"{tool_name} was not run: {name!r} leads to {path} through a link in a folder "
        "that isolated commands may write to.",
        code="E2003",
        field=field,
        suggestion=Suggestion(
            "ask_human",
            "Find out who made the link, and remove it. To use the file, pass its own path.",
        ),
        details={"path": path},
    )


# ------------------------------------------------------------------ open files


class CallerFile:
    """An open file that the caller has named. It is closed when nothing refers to it any more."""

    __slots__ = ("fd", "info", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path  # the real path, if the call has rules; otherwise as the caller wrote it
        self.info = os.fstat(fd)

    @property
    def is_regular(self) -> bool:
        """True for a regular file, which can be read several times."""
        return self.info.st_mode & 0o170000 == _REGULAR

    def read(self, max_bytes: int | None = None) -> bytes:
        """Return the content, or its beginning."""
        with self.open() as file:
            return file.read() if max_bytes is None else file.read(max_bytes)

    def read_object(self) -> bytes:
        """Return the content of a file with a JSON object; raise OSError if it is too large."""
        data = self.read(MAX_OBJECT_BYTES + 1)
        if len(data) > MAX_OBJECT_BYTES:
            raise too_large_error()
        return data

    def open(self) -> io.BufferedReader:
        """Return a reader. That of a regular file starts at the beginning."""
        raw: Any = _HeldReader(self) if CAN_HOLD and self.is_regular else self._detach()
        return io.BufferedReader(raw, _CHUNK_BYTES)

    def _detach(self) -> io.FileIO:
        fd, self.fd = self.fd, -1
        return io.FileIO(fd, "rb")

    def close(self) -> None:
        """Close the file."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def too_large_error() -> OSError:
    """Return the error for a JSON object that is too large."""
    return OSError(errno.EFBIG, f"it is larger than {MAX_OBJECT_BYTES >> 20} MB")


class _HeldReader(io.RawIOBase):
    """Reads a file with a position of its own, so that several readers can share a descriptor."""

    def __init__(self, file: CallerFile) -> None:
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor. Its own position stays at the beginning."""
        return self._file.fd

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Change the position and return it."""
        start = (0, self._position, 0 if whence != 2 else os.fstat(self._file.fd).st_size)[whence]
        if start + offset < 0:
            raise ValueError("negative seek position")
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a buffer and return their number; 0 at the end."""
        data = os.pread(self._file.fd, len(buffer), self._position)
        self._position += len(data)
        buffer[: len(data)] = data
        return len(data)


def open_caller_file(
    name: str, field: str | None = None, rules: FileRules | None = None
) -> CallerFile:
    """Open a file that the caller has named, if the rules allow it.

    Args:
        name: the path as the caller wrote it.
        field: the argument that contains the path.
        rules: the rules of the call; None if every file is allowed.

    Raises:
        AuthError: the rules do not allow the file.
        OSError: the file cannot be opened, or is a folder.
        ValueError: the path is not valid.
    """
    if rules is None:
        file = CallerFile(os.open(name, _FLAGS), name)
    else:
        path, links = _resolve(name, field, rules)
        file = CallerFile(_open_resolved(path, links), path)
        if not file.is_regular:
            _wait_for_data(file, is_named=path not in links)
    if file.info.st_mode & 0o170000 == _FOLDER:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return file


def hold_caller_file(
    name: str, field: str | None, rules: FileRules | None
) -> tuple[str, CallerFile | None]:
    """Open a file that is read later, if it is a regular file; return its path and the file.

    With rules, the path is the real path. A pipe or a device is only checked: opening it can have
    an effect on other programs. Raises the same errors as `open_caller_file`.
    """
    path, links = (name, ()) if rules is None else _resolve(name, field, rules)
    if os.stat(path, follow_symlinks=rules is None).st_mode & 0o170000 != _REGULAR:
        return path, None
    flags = _FLAGS | O_NONBLOCK  # it may have become a pipe
    file = CallerFile(os.open(name, flags) if rules is None else _open_resolved(path, links), path)
    return path, file if file.is_regular else None


def _resolve(name: str, field: str | None, rules: FileRules) -> tuple[str, tuple[str, ...]]:
    """Return the real path of an allowed file, and the links that lead to it."""
    path, links = resolve_links(name)
    rules.check(name, path, links, field)
    if links and _is_descriptor(links[-1]) and not os.path.lexists(path):
        return links[-1], links  # a pipe or a socket, which has no path
    return path, links


def _open_resolved(path: str, links: tuple[str, ...]) -> int:
    """Open a real path. Raises OSError if a part of it has become a link in the meantime."""
    if path in links:  # a descriptor
        return os.open(path, _FLAGS | O_NONBLOCK)
    flags = _FLAGS | O_NOFOLLOW | O_NONBLOCK
    folder = open_folder(os.path.dirname(path)) if HAS_DIR_FD else None
    if folder is None:
        return os.open(path, flags)
    try:
        return os.open(os.path.basename(path) or ".", flags, dir_fd=folder)
    finally:
        os.close(folder)


def _is_descriptor(link: str) -> bool:
    """True for the link to an open file of this process, such as /dev/fd/63."""
    return os.path.dirname(link) == f"/proc/{os.getpid()}/fd"


def _wait_for_data(file: CallerFile, *, is_named: bool) -> None:
    """Make the reads of a pipe or a device wait for data.

    A named pipe without a writer looks as if it had ended. Its writer may have ended already, so
    the pipe is not opened again, which would wait for another writer.
    """
    if is_named and file.info.st_mode & 0o170000 == _PIPE and hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(file.fd, select.POLLIN)
        waiting.poll()
    if O_NONBLOCK:
        os.set_blocking(file.fd, True)
