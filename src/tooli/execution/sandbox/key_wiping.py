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
LONG_KEY_BYTES = 256
"""Of longer keys, several pieces are searched: copies in freed memory are often in parts."""
MIN_RUN_BYTES, MIN_RUN_BYTES_OF_LONG_KEYS = 4, 8
"""Smallest part of a damaged copy that is overwritten."""
_PIECES, _PIECE_BYTES, _MIN_DISTINCT_BYTES = 16, 64, 8
_M_TRIM_THRESHOLD = -1  # of malloc.h
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
        _keep_freed_memory()
        mappings = _read_mappings()
        for start, end in _find_used_parts(mappings):
            needles.overwrite_copies(start, end)
        del mappings  # until now: freeing it could unmap memory that is searched
        needles.close()
    except (OSError, ValueError, AttributeError) as failure:
        raise SandboxUnavailable(f"keys in memory cannot be overwritten: {failure}") from None
    held_keys.clear()


class KeyNeedles:
    """The keys that are searched for.

    The middle of each key is searched for, or pieces of it if it is long. The bytes around it that
    belong to the key are overwritten as well. So a copy in freed memory is found even if a new
    object has overwritten its beginning or its end. The bytes of that object are not changed.
    """

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._keys: list[tuple[int, int, list[tuple[int, int]]]] = []  # address, size, pieces
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
            self._keys.append((address, len(key), _select_pieces(key)))
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
        for address, size, pieces in self._keys:
            for offset, length in pieces:
                position = start
                while position < end:
                    found = self._memmem(position, end - position, address + offset, length)
                    if found is None:
                        break
                    first = found - offset
                    self._overwrite_copy(max(first, start), min(first + size, end), first, address)
                    position = found + length

    def _overwrite_copy(self, start: int, end: int, first: int, key: int) -> None:
        """Overwrite the parts between `start` and `end` that are equal to those of the key.

        A few equal bytes are no part of a key: they may belong to a new object.
        """
        is_long = end - start > LONG_KEY_BYTES
        min_run = MIN_RUN_BYTES_OF_LONG_KEYS if is_long else MIN_RUN_BYTES
        run = 0
        for position in range(start, end + 1):
            if position < end and _byte_at(position) == _byte_at(key + position - first):
                run += 1
                continue
            if run >= min_run:
                ctypes.memset(position - run, 0, run)
            run = 0

    def close(self) -> None:
        """Overwrite the keys themselves."""
        ctypes.memset(self._address, 0, self._end - self._address)


def _byte_at(address: int) -> int:
    return ctypes.c_ubyte.from_address(address).value


def _select_pieces(key: bytes) -> list[tuple[int, int]]:
    """Return start and size of the pieces of a key that are searched.

    A piece of a long key is omitted if it has few different bytes: it could be in other data too.
    """
    size = len(key)
    middle = max(MIN_KEY_BYTES, size // 2)
    pieces = [((size - middle) // 2, middle)]
    if size > LONG_KEY_BYTES:
        starts = [i * (size - _PIECE_BYTES) // (_PIECES - 1) for i in range(_PIECES)]
        pieces += [
            (start, _PIECE_BYTES)
            for start in starts
            if len({*key[start : start + _PIECE_BYTES]}) >= _MIN_DISTINCT_BYTES
        ]
    return pieces


def find_used_memory() -> list[tuple[int, int]]:
    """Return the parts of the writable memory of this process that have content."""
    return _find_used_parts(_read_mappings())


def _keep_freed_memory() -> None:
    """Make the C library keep the memory that is freed, so that it stays mapped."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl does not have it
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, -1)


def _read_mappings() -> list[tuple[int, int, bool]]:
    with open("/proc/self/maps", "rb") as file:
        return list(_parse_writable(file))


def _find_used_parts(mappings: list[tuple[int, int, bool]]) -> list[tuple[int, int]]:
    """Return the parts of some mappings that have content.

    A page that is not in use is empty, or equal to its file. Reading it could fail, and would make
    it a used page.
    """
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
