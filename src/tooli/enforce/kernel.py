"""The kernel's own door: system calls that Python has no words for; Linux on two processors."""

from __future__ import annotations

import os
import sys

from tooli.enforce.processes import prctl

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_NO_NEW_PRIVS, _DUMPABLE, _AMBIENT, _CLEAR_ALL = 38, 4, 47, 4
_CAPABILITIES = {"x86_64": (125, 126), "aarch64": (90, 91)}  # capget and capset
_CAPABILITY_VERSION = 0x20080522
_libc: Any = None


class NoWalls(Exception):  # noqa: N818
    """The kernel does not hold a process here; the message says what is missing."""


def machine() -> str:
    """The processor, as system calls are numbered for it; raises NoWalls."""
    if sys.platform != "linux":
        raise NoWalls(f"it takes Linux, and this is {sys.platform}")
    name = os.uname().machine
    if name not in _CAPABILITIES or sys.maxsize < 2**32:
        raise NoWalls(f"system calls on {name} are not known")
    return name


def syscall(number: int, *words: Any) -> int:
    """What a system call answers; raises OSError."""
    from ctypes import c_long, get_errno

    result = _load().syscall(
        c_long(number), *[c_long(word) if isinstance(word, int) else word for word in words]
    )
    if result == -1:
        code = get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _load() -> Any:
    global _libc
    if _libc is None:
        try:
            import ctypes

            _libc = ctypes.CDLL(None, use_errno=True)
            _libc.syscall.restype = ctypes.c_long
        except (ImportError, OSError, AttributeError) as missing:
            raise NoWalls(f"ctypes does not reach the C library: {missing}") from None
    return _libc


def renounce() -> None:
    """Gain no rights by starting programs, leave no memory image, let nobody look in."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not (prctl(_DUMPABLE, 0) and prctl(_NO_NEW_PRIVS, 1)):
        raise NoWalls("the kernel does not let a process renounce its rights (prctl)")


def drop_privileges(kept: int) -> None:
    """Of what root may do, keep only these capabilities; nothing to do for anybody else."""
    import struct
    from ctypes import create_string_buffer

    capget, capset = _CAPABILITIES[machine()]
    header = create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    data = create_string_buffer(24)
    syscall(capget, header, data)
    effective, permitted, _, more, *_ = struct.unpack("=6I", data.raw)
    if not permitted and not more:
        return
    prctl(_AMBIENT, _CLEAR_ALL)  # refused before Linux 4.3: there are none
    left = struct.pack("=6I", effective & kept, permitted & kept, 0, 0, 0, 0)
    syscall(capset, header, create_string_buffer(left, 24))


def wipe_environment() -> None:
    """Blank the text of the variables that the process was started with.

    Whoever has taken variables out of the environment has taken out pointers: the text itself
    stays on the stack, and in /proc/self/environ.
    """
    from ctypes import memset

    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])  # env_start and env_end: proc(5)
    except (OSError, ValueError, IndexError) as hidden:
        raise NoWalls(f"/proc/self/stat cannot be read: {hidden}") from None
    if 0 < start < end:
        memset(start, 0, end - start)
