"""Run a program as if the kernel lacked system calls: `hide_syscalls.py 444,445 PROGRAM ARG…`.

A filter answers these numbers with ENOSYS. Descendants of the process cannot remove it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys


def hide(*numbers: int) -> None:
    """Make the system calls fail in this process and its descendants."""
    lines = [(0x20, 0, 0, 0)]  # the number
    for number in numbers:
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
    lines.append((0x06, 0, 0, 0x7FFF0000))
    program = b"".join(struct.pack("=HBBI", *line) for line in lines)
    text = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("=H6xQ", len(lines), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    seccomp = 277 if platform.machine() == "aarch64" else 317
    if libc.syscall(seccomp, 1, 0, header) != 0:
        raise OSError(ctypes.get_errno(), "no filter")


if __name__ == "__main__":
    hide(*map(int, sys.argv[1].split(",")))
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
