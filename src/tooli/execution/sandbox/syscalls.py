"""The kernel's own door: system calls that Python has no words for; Linux on two processors."""

from __future__ import annotations

import os
import sys

from tooli.execution.process_tree import prctl

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_NO_NEW_PRIVS, _DUMPABLE, _AMBIENT, _CLEAR_ALL = 38, 4, 47, 4
_CAPABILITY_SYSCALLS = {"x86_64": (125, 126), "aarch64": (90, 91)}  # capget and capset
_CAPABILITY_VERSION = 0x20080522
_libc: Any = None


class SandboxUnavailable(Exception):  # noqa: N818
    """The kernel does not hold a process here; the message says what is missing."""


def detect_architecture() -> str:
    """The processor, as system calls are numbered for it; raises NoWalls."""
    if sys.platform != "linux":
        raise SandboxUnavailable(f"it takes Linux, and this is {sys.platform}")
    name = os.uname().machine
    if name not in _CAPABILITY_SYSCALLS or sys.maxsize < 2**32:
        raise SandboxUnavailable(f"system calls on {name} are not known")
    return name


def syscall(number: int, *args: Any) -> int:
    """What a system call answers; raises OSError."""
    from ctypes import c_long, get_errno

    result = _load_libc().syscall(
        c_long(number), *[c_long(arg) if isinstance(arg, int) else arg for arg in args]
    )
    if result == -1:
        code = get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _load_libc() -> Any:
    global _libc
    if _libc is None:
        try:
            import ctypes

            _libc = ctypes.CDLL(None, use_errno=True)
            _libc.syscall.restype = ctypes.c_long
        except (ImportError, OSError, AttributeError) as error:
            raise SandboxUnavailable(f"ctypes does not reach the C library: {error}") from None
    return _libc


def lock_down_process() -> None:
    """Gain no rights by starting programs, leave no memory image, let nobody look in."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not (prctl(_DUMPABLE, 0) and prctl(_NO_NEW_PRIVS, 1)):
        raise SandboxUnavailable("the kernel does not let a process renounce its rights (prctl)")


def drop_privileges(keep_mask: int) -> None:
    """Of what root may do, keep only these capabilities; nothing to do for anybody else."""
    import struct
    from ctypes import create_string_buffer

    capget, capset = _CAPABILITY_SYSCALLS[detect_architecture()]
    header = create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    data = create_string_buffer(24)
    syscall(capget, header, data)
    effective, permitted, _, permitted_high, *_ = struct.unpack("=6I", data.raw)
    if not permitted and not permitted_high:
        return
    prctl(_AMBIENT, _CLEAR_ALL)  # refused before Linux 4.3: there are none
    remaining = struct.pack("=6I", effective & keep_mask, permitted & keep_mask, 0, 0, 0, 0)
    syscall(capset, header, create_string_buffer(remaining, 24))


def wipe_initial_environment() -> None:
    """Blank the text of the variables that the process was started with.

    Whoever has taken variables out of the environment has taken out pointers: the text itself
    stays on the stack, and in /proc/self/environ.
    """
    from ctypes import memset

    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])  # env_start and env_end: proc(5)
    except (OSError, ValueError, IndexError) as error:
        raise SandboxUnavailable(f"/proc/self/stat cannot be read: {error}") from None
    if 0 < start < end:
        memset(start, 0, end - start)
