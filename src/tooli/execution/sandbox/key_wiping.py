"""Overwrite the keys of tooli in the memory of this process, before untrusted code runs in it.

    held keys ──▶ /proc/self/maps ──▶ pages in use ──▶ every copy of a key ──▶ zeros

A forked process has a copy of the memory of its parent. Dropping the objects is not enough: their
memory keeps its content when it is freed, and libraries make copies. So the whole writable memory
is searched, including freed memory and stacks.
"""

from __future__ import annotations

import mmap
import os
import re

from tooli.core.held_keys import held_keys
from tooli.execution.sandbox.syscalls import SandboxUnavailable, ctypes

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MIN_KEY_BYTES = 16
"""Shorter keys are not overwritten: the same bytes could be a part of something else."""
_ENTRY_BYTES = 8  # of a page, in /proc/self/pagemap
# The highest byte of an entry: bit 7 is set for a page in memory, bit 6 for a page in swap.
_IS_IN_USE = bytes([flags >= 0x40 for flags in range(256)])
_IN_USE_PAGES = re.compile(b"\x01+")


def wipe_keys() -> None:
    """Overwrite the held keys everywhere in the memory of this process.

    The process must have a single thread.

    Raises:
        SandboxUnavailable: the memory cannot be searched.
    """
    keys = [key for key in held_keys if len(key) >= MIN_KEY_BYTES]
    if not keys:
        return
    try:
        # The searched keys are in memory of their own, which is not searched.
        needles = KeyNeedles(keys)
        del keys
        for start, end in find_used_memory():
            needles.overwrite_copies(start, end)
        needles.close()
    except (OSError, ValueError, AttributeError) as failure:
        raise SandboxUnavailable(f"keys in memory cannot be overwritten: {failure}") from None
    held_keys.clear()


class KeyNeedles:
    """The keys that are searched for.

    The middle of each key is searched for, and the bytes around it that belong to the key are
    overwritten as well. So a copy in freed memory is found even if a new object has overwritten its
    beginning or its end. Bytes that do not belong to the key are never changed.
    """

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._keys: list[tuple[int, int, int, int]] = []  # address, size, start and size of middle
        libc = ctypes.CDLL(None)
        self._memmem = libc.memmem
        self._memmem.restype = ctypes.c_void_p
        self._memmem.argtypes = (ctypes.c_void_p, ctypes.c_size_t) * 2
        sizes = [len(key) for key in keys]
        self._memory = mmap.mmap(-1, sum(sizes), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        address = self._address
        for key in keys:
            ctypes.memmove(address, key, len(key))
            middle = max(MIN_KEY_BYTES, len(key) // 2)
            self._keys.append((address, len(key), (len(key) - middle) // 2, middle))
            address += len(key)
        self._end = address

    def overwrite_copies(self, start: int, end: int) -> None:
        """Overwrite all copies of the keys in a part of the memory."""
        if start <= self._address < end:
            page = mmap.PAGESIZE
            own_end = (self._end + page - 1) // page * page
            self.overwrite_copies(start, self._address)
            self.overwrite_copies(own_end, end)
            return
        for address, size, middle_start, middle_size in self._keys:
            position = start
            while position < end:
                found = self._memmem(position, end - position, address + middle_start, middle_size)
                if found is None:
                    break
                first = found - middle_start
                self._overwrite_copy(max(first, start), min(first + size, end), first, address)
                position = found + middle_size

    def _overwrite_copy(self, start: int, end: int, first: int, key: int) -> None:
        """Overwrite the bytes from `start` to `end` that are equal to those of the key."""
        for position in range(start, end):
            expected = ctypes.c_char.from_address(key + position - first).value
            if ctypes.c_char.from_address(position).value == expected:
                ctypes.memset(position, 0, 1)

    def close(self) -> None:
        """Overwrite the keys themselves."""
        ctypes.memset(self._address, 0, self._end - self._address)


def find_used_memory() -> list[tuple[int, int]]:
    """Return the parts of the writable memory of this process that have content.

    A page that is not in use is empty, or equal to its file. Reading it could fail, and would make
    it a used page.
    """
    with open("/proc/self/maps", "rb") as file:
        mappings = list(_parse_writable(file))
    try:
        pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # the kernel does not have it
        return [(start, end) for start, end, is_file in mappings if not is_file]
    try:
        return [part for start, end, _ in mappings for part in _find_used(pagemap, start, end)]
    finally:
        os.close(pagemap)


def _parse_writable(lines: Iterable[bytes]) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the writable mappings, and whether they belong to a file."""
    for line in lines:
        fields = line.split(None, 5)
        if fields[1][:2] == b"rw":
            start, _, end = fields[0].partition(b"-")
            yield int(start, 16), int(end, 16), int(fields[4]) != 0


def _find_used(pagemap: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a mapping whose pages are in use."""
    page = mmap.PAGESIZE
    size = (end - start) // page * _ENTRY_BYTES
    entries = os.pread(pagemap, size, start // page * _ENTRY_BYTES)
    for found in _IN_USE_PAGES.finditer(
        entries[_ENTRY_BYTES - 1 :: _ENTRY_BYTES].translate(_IS_IN_USE)
    ):
        yield start + found.start() * page, start + found.end() * page
