"""System calls of Linux (x86_64 and aarch64) for which Python has no functions."""

from __future__ import annotations

import os
import struct
import sys

from tooli.execution.processes import prctl

TYPE_CHECKING = False

if TYPE_CHECKING:
    import ctypes
    from typing import Any
else:
    try:
        import ctypes
    except ImportError:  # Python was built without libffi; _load_libc() reports it
        ctypes = None

_NO_NEW_PRIVS, _DUMPABLE, _AMBIENT, _CLEAR_ALL = 38, 4, 47, 4
_CAPABILITY_SYSCALLS = {"x86_64": (125, 126), "aarch64": (90, 91)}  # capget and capset
_CAPABILITY_VERSION = 0x20080522
_libc: Any = None


class SandboxUnavailable(Exception):  # noqa: N818
    """The system does not support a sandbox; the message says what is missing."""


def detect_architecture() -> str:
    """Return the processor architecture, or raise SandboxUnavailable."""
    if sys.platform != "linux":
        raise SandboxUnavailable(f"a sandbox needs Linux, not {sys.platform}")
    name = os.uname().machine
    if name not in _CAPABILITY_SYSCALLS or sys.maxsize < 2**32:
        raise SandboxUnavailable(f"the system calls of {name} are not supported")
    return name


def syscall(number: int, *args: Any) -> int:
    """Call the kernel and return the result, or raise OSError."""
    result = _load_libc().syscall(
        *[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in (number, *args)]
    )
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _load_libc() -> Any:
    global _libc
    if _libc is None:
        try:
            _libc = ctypes.CDLL(None, use_errno=True)
            _libc.syscall.restype = ctypes.c_long
        except (OSError, AttributeError) as error:
            raise SandboxUnavailable(f"ctypes cannot load the C library: {error}") from None
    return _libc


def lock_down_process() -> None:
    """Forbid new privileges, core dumps and inspection by other processes (ptrace)."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not (prctl(_DUMPABLE, 0) and prctl(_NO_NEW_PRIVS, 1)):
        raise SandboxUnavailable("the kernel does not let a process drop its privileges (prctl)")


def drop_privileges(keep_mask: int) -> None:
    """Drop all Linux capabilities except these. Processes without capabilities are unchanged."""
    capget, capset = _CAPABILITY_SYSCALLS[detect_architecture()]
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    data = ctypes.create_string_buffer(24)
    syscall(capget, header, data)
    effective, permitted, _, permitted_high, *_ = struct.unpack("=6I", data.raw)
    if not permitted and not permitted_high:
        return
    prctl(_AMBIENT, _CLEAR_ALL)  # Linux before 4.3 has no ambient capabilities
    remaining = struct.pack("=6I", effective & keep_mask, permitted & keep_mask, 0, 0, 0, 0)
    syscall(capset, header, ctypes.create_string_buffer(remaining, 24))


def wipe_initial_environment() -> None:
    """Overwrite the environment block that the process was started with.

    Removing a variable removes only a pointer. The text stays on the stack and in
    /proc/self/environ.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])  # env_start and env_end, see proc(5)
    except (OSError, ValueError, IndexError) as error:
        raise SandboxUnavailable(f"/proc/self/stat cannot be read: {error}") from None
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
