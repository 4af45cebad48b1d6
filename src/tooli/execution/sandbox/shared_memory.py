"""Replace the shared memory of this process by private memory.

    /proc/self/maps ──▶ each shared mapping ──▶ a copy │ a private mapping │ inaccessible memory

A forked process inherits the shared mappings of its parent: files that were mapped with mmap, the
index of a SQLite database, memory of `multiprocessing`. A write to such memory changes the file,
or the memory of another process, and neither Landlock nor seccomp restricts it. Read-only mappings
are replaced as well, because mprotect can make them writable again.
"""

from __future__ import annotations

import os

from tooli.core import Record
from tooli.execution.sandbox.syscalls import (
    SandboxUnavailable,
    ctypes,
    detect_architecture,
    syscall,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_COPIED_FILE_BYTES = 1 << 20
"""Larger files are not copied, but mapped privately, which takes no time."""
MAX_COPIED_BYTES = 64 << 20
"""Maximum number of bytes that are copied for one call."""
_CHUNK_BYTES = 1 << 20
_PAGE_BYTES = 4096
_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRIVATE, _FIXED, _ANONYMOUS, _NO_RESERVE = 0x02, 0x10, 0x20, 0x4000  # flags of mmap
_MAY_MOVE, _MOVE_FIXED = 1, 2  # flags of mremap
# System call numbers of mmap, mprotect and mremap.
_MEMORY_SYSCALLS = {"x86_64": (9, 10, 25), "aarch64": (222, 226, 216)}


class SharedMapping(Record):
    """A part of the memory that other processes can see."""

    start: int
    end: int
    protection: int
    offset: int  # in the file
    device: int
    inode: int
    path: str

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.end - self.start


def parse_shared_mappings(lines: Iterable[bytes]) -> Iterator[SharedMapping]:
    """Yield the shared mappings in the lines of /proc/self/maps."""
    for line in lines:
        fields = line.split(None, 5)
        if len(fields) < 5 or fields[1][3:4] != b"s":
            continue
        start, _, end = fields[0].partition(b"-")
        flags = zip(fields[1], b"rwx", (_READ, _WRITE, _EXECUTE), strict=False)
        major, _, minor = fields[3].partition(b":")
        yield SharedMapping(
            int(start, 16),
            int(end, 16),
            sum([value for flag, letter, value in flags if flag == letter]),
            int(fields[2], 16),
            os.makedev(int(major, 16), int(minor, 16)),
            int(fields[4]),
            os.fsdecode(fields[5].rstrip(b"\n").replace(b"\\012", b"\n"))
            if len(fields) > 5
            else "",
        )


def find_shared_mappings() -> list[SharedMapping]:
    """Return the shared mappings of this process, or raise SandboxUnavailable."""
    try:
        with open("/proc/self/maps", "rb") as file:
            return list(parse_shared_mappings(file))
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(f"/proc/self/maps cannot be read: {error}") from None


def make_memory_private() -> None:
    """Replace all shared mappings of this process. It must have a single thread.

    The content stays readable, with two exceptions: memory above MAX_COPIED_BYTES that belongs to
    no file that can be opened, and memory of devices, become inaccessible.
    """
    mappings = find_shared_mappings()
    if not mappings:
        return
    copied_bytes = 0
    try:
        for mapping in mappings:
            if mapping.size > MAX_COPIED_FILE_BYTES and _replace_by_private_mapping(mapping):
                continue
            if copied_bytes + mapping.size <= MAX_COPIED_BYTES:
                copied_bytes += mapping.size
                _replace_by_copy(mapping)
            else:
                _map(mapping.start, mapping.size, 0, _FIXED | _NO_RESERVE)
    except OSError as error:
        raise SandboxUnavailable(f"shared memory cannot be replaced: {error.strerror}") from None
    if find_shared_mappings():
        raise SandboxUnavailable("the process still has shared memory")


def _replace_by_copy(mapping: SharedMapping) -> None:
    """Replace a mapping by anonymous memory with the same content."""
    _, mprotect, mremap = _MEMORY_SYSCALLS[detect_architecture()]
    copy = _map(0, mapping.size, _READ | _WRITE, 0)
    # Reading the memory directly could end the process: a mapped file may have become shorter.
    memory_fd = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for position, data in _read_memory(memory_fd, mapping):
            if data.strip(b"\0"):
                ctypes.memmove(copy + position, data, len(data))
    finally:
        os.close(memory_fd)
    if mapping.protection != _READ | _WRITE:
        syscall(mprotect, copy, mapping.size, mapping.protection)
    syscall(mremap, copy, mapping.size, mapping.size, _MAY_MOVE | _MOVE_FIXED, mapping.start)


def _read_memory(memory_fd: int, mapping: SharedMapping) -> Iterator[tuple[int, bytes]]:
    """Yield the content of a mapping with its positions, without pages that cannot be read."""
    position = 0
    while position < mapping.size:
        size = min(_CHUNK_BYTES, mapping.size - position)
        try:
            data = os.pread(memory_fd, size, mapping.start + position)
        except OSError:
            data = b""
        if data:
            yield position, data
        position += len(data) or _PAGE_BYTES


def _replace_by_private_mapping(mapping: SharedMapping) -> bool:
    """Map the same file privately; return False if the file cannot be opened or is another one."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(mapping.path, flags)
    except (OSError, ValueError):
        return False
    try:
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != (mapping.device, mapping.inode):
            return False
        _map(mapping.start, mapping.size, mapping.protection, _FIXED, fd, mapping.offset)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _map(
    address: int, size: int, protection: int, flags: int, fd: int = -1, offset: int = 0
) -> int:
    """Map private memory, of a file or anonymous, and return its address."""
    mmap, _, _ = _MEMORY_SYSCALLS[detect_architecture()]
    flags |= _PRIVATE if fd >= 0 else _PRIVATE | _ANONYMOUS
    return syscall(mmap, address, size, protection, flags, fd, offset)
