"""Restrict this process to some files and folders with Landlock, a feature of the kernel.

    Ruleset ──add(path, rights)──▶ … ──▶ enforce(): permanent, and for child processes as well

seccomp covers what the Landlock version of the kernel cannot restrict.
"""

from __future__ import annotations

import errno
import os
import struct

from tooli.core.declared_capabilities import is_under_any
from tooli.execution.sandbox.syscalls import SandboxUnavailable, ctypes, syscall

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

# System call numbers, which are the same on all supported architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REMOVE_DIR, REMOVE_FILE = 16, 32
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (
    1 << bit for bit in range(6, 13)
)
_REFER, TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

READ = READ_FILE | READ_DIR
WRITE = (
    (WRITE_FILE | TRUNCATE | _REFER)
    | (_MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM)  # no right to create devices
)
DELETE = REMOVE_DIR | REMOVE_FILE
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | _IOCTL_DEV
"""Rights that can be given for a single file."""

_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
# Bind and connect (ABI 4); abstract sockets and signals (ABI 6).
_TCP_RIGHTS, _SCOPE_FLAGS = 0x3, 0x3
TRUNCATE_ABI, NETWORK_ABI, SCOPES_ABI = 3, 4, 6
"""The ABI versions that introduced restrictions of truncate, network and scopes."""


def detect_abi() -> int:
    """Return the kernel's ABI version of Landlock, or raise SandboxUnavailable."""
    try:
        found = syscall(_CREATE_RULESET, 0, 0, 1)
    except OSError as error:
        reason = _UNAVAILABLE_REASONS.get(error.errno or 0, f"Landlock: {error.strerror}")
        raise SandboxUnavailable(reason) from None
    if found < 1:
        raise SandboxUnavailable("Landlock reports no ABI version")
    return found


_UNAVAILABLE_REASONS = {
    errno.ENOSYS: "Landlock (Linux 5.13 or newer) is missing or blocked",
    errno.EOPNOTSUPP: "Landlock is disabled: the kernel was started without it in lsm=",
}


class Ruleset:
    """The rights of a process; enforce() applies them."""

    def __init__(self, abi: int, net: bool) -> None:
        self.handled_rights = _RIGHTS_BY_ABI[min(abi, 5)]
        fields = [self.handled_rights]
        if abi >= NETWORK_ABI:
            fields.append(0 if net else _TCP_RIGHTS)
        if abi >= SCOPES_ABI:
            fields.append(_SCOPE_FLAGS)
        attributes = ctypes.create_string_buffer(struct.pack(f"={len(fields)}Q", *fields))
        try:
            self._fd = syscall(_CREATE_RULESET, attributes, 8 * len(fields), 0)
        except OSError as error:
            raise SandboxUnavailable(
                f"Landlock cannot create a ruleset: {error.strerror}"
            ) from None

    def add(self, path: str, rights: int, *, follow_symlinks: bool = False) -> bool:
        """Grant rights on a file, or on a folder and everything below it.

        Return False if the path cannot be opened or no right applies to it. `path` is a real path.
        If a part of it is a link now, it was replaced in the meantime and gets no rights. Use
        `follow_symlinks` for paths of the system, which may contain links.
        """
        try:
            flags = os.O_PATH | os.O_CLOEXEC
            descriptor = os.open(path, flags if follow_symlinks else flags | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            if not follow_symlinks and os.readlink(f"/proc/self/fd/{descriptor}") != path:
                return False
            kind = os.fstat(descriptor).st_mode & 0o170000
            allowed = rights & self.handled_rights & (-1 if kind == 0o040000 else _FILE_RIGHTS)
            if kind == 0o120000 or not allowed:
                return False
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, descriptor), 12)
            syscall(_ADD_RULE, self._fd, _PATH_BENEATH, rule, 0)
            return True
        except OSError as error:
            raise SandboxUnavailable(
                f"Landlock cannot add a rule for {path}: {error.strerror}"
            ) from None
        finally:
            os.close(descriptor)

    def enforce(self) -> None:
        """Apply the rules to this thread and everything it starts, permanently."""
        try:
            syscall(_RESTRICT_SELF, self._fd, 0)
        except OSError as error:
            raise SandboxUnavailable(f"Landlock cannot be enforced: {error.strerror}") from None
        finally:
            os.close(self._fd)


def paths_outside_denied(path: str, denied: tuple[str, ...]) -> Iterator[str]:
    """Yield paths that cover a folder without its denied parts. Landlock has no deny rules."""
    if is_under_any(path, denied):
        return
    if not any([is_under_any(denied_path, (path,)) for denied_path in denied]):
        yield path
        return
    try:
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        inner = os.path.join(path, name)
        if not os.path.islink(inner):
            yield from paths_outside_denied(inner, denied)
