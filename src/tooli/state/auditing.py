"""The audit log, read back: its last lines, and whether it is whole."""

from __future__ import annotations

import os
from time import sleep

from tooli.contract.jsonable import is_object
from tooli.contract.record import Record
from tooli.state.audit import SUM, files_of, unsealed
from tooli.state.heads import START, Head
from tooli.state.home import state_home
from tooli.state.keys import key_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

    from tooli.state.heads import Link

BREATH = 0.25
"""Seconds between two looks at a log that is followed."""


class Fault(Record):
    """The first place where a log is not as it was written."""

    file: str
    line: int
    why: str
    seq: int | None = None


class Finding:
    """What was found out about a log."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = 0
        self.torn = 0  # lines of which a crash left the beginning
        self.sealed = False
        self.fault: Fault | None = None


# ------------------------------------------------------------------ verifying


def verify(path: str) -> Finding:
    """Read a log from its beginning; an OSError where it cannot be read."""
    found = Finding(path)
    key = _key()
    if not any([os.path.exists(name) for name in (*files_of(path), f"{path}.head")]):
        if key:  # it was made for a log: maybe for this one, maybe for another app's
            found.fault = Fault(
                path, 0, "there is no log: nothing was written here yet, or all of it was removed"
            )
        return found
    found.sealed = bool(key)
    with Head(path, reading=True) as head:  # nobody writes, while what there is is opened
        known = head.read(key)
        files = _opened(path)
        sizes = [os.fstat(file.fileno()).st_size for _, file in files]
    chain = _Chain(found, key, known and known[1])
    try:
        for (name, file), size in zip(files, sizes, strict=True):
            chain.read(name, file, size)
            if found.fault is not None:
                return found
    finally:
        for _, file in files:
            file.close()
    chain.end(known and known[0])
    return found


def _key() -> bytes:
    """The key of the log, where there is one: none is made to look at what was written before."""
    kept = os.path.exists(os.path.join(state_home(), "audit.key"))
    return (key_file("audit") if kept else None) or b""


def _opened(path: str) -> list[tuple[str, IO[bytes]]]:
    return [(name, open(name, "rb")) for name in files_of(path) if os.path.exists(name)]


class _Chain:
    """Lines in their order; each must follow the one before."""

    def __init__(self, found: Finding, key: bytes, first: Link | None) -> None:
        self._found = found
        self._key = key
        self._first = first  # how the log begins; None where no head says so
        self._seq, self._sum = 0, ""
        self._place = (found.path, 0)
        self._odd: list[tuple[str, int, bytes]] = []  # lines that are none, until one is again

    def read(self, name: str, file: IO[bytes], size: int) -> None:
        """Read one file."""
        left = size
        for number, line in enumerate(file, 1):
            if left <= 0:
                return
            left -= len(line)
            self._place = (name, number)
            known = unsealed(line.rstrip(b"\n"), self._key)
            if known is None:
                self._odd.append((name, number, line))
            else:
                self._take(known, line)
            if self._found.fault is not None:
                return

    def _take(self, known: tuple[int, str], line: bytes) -> None:
        from json import loads

        found = self._found
        seq, total = known
        said: dict[str, Any] = loads(line)
        begins = not found.lines and not self._odd and self._may_begin(seq, said.get("prev"))
        follows = seq == self._seq + 1 and said.get("prev") == self._sum
        if not follows and not begins:
            if self._odd:
                return self._accuse(*self._odd[0])
            before = self._seq if found.lines else (self._first or START)[0] - 1
            return self._fail(_gap(before, seq), seq)
        for odd in self._odd:
            if _is_whole(odd[2]):  # a crash leaves half a line
                return self._accuse(*odd)
            found.torn += 1
        self._odd.clear()
        if "after" in said:
            return self._fail(f"when this line was written, {said['after']}", seq)
        found.lines += 1
        self._seq, self._sum = seq, total

    def _may_begin(self, seq: int, prev: Any) -> bool:
        """Whether a line is the oldest that is kept: older ones have gone because new ones came.

        A crash may have left a file that was to be dropped. Where there is no head, that is what
        is wrong, and it is told at the end.
        """
        first = self._first
        return first is None or seq < first[0] or (seq, prev) == first

    def end(self, head: Link | None) -> None:
        """Hold the last line to what the head says."""
        found = self._found
        if self._odd:
            line = self._odd[-1][2]
            if len(self._odd) > 1 or line.endswith(b"\n") or _is_whole(line):
                return self._accuse(*self._odd[0])
            found.torn += 1
        if head is None:
            if self._seq > 1:
                self._fail("the head of the log is missing, or was changed", self._seq)
        elif head[0] > self._seq:
            gone = head[0] - self._seq
            self._fail(
                f"the last {gone} lines are missing" if gone > 1 else "the last line is missing"
            )
        elif head[0] < self._seq - 1:
            self._fail("the head of the log is an older one", self._seq)
        elif head[0] == self._seq and head[1] != self._sum:
            self._fail("the last line is not the one that was written", self._seq)
        return None

    def _accuse(self, name: str, number: int, line: bytes) -> None:
        self._place = (name, number)
        self._fail("this line is not as it was written, or was written with another key")

    def _fail(self, why: str, seq: int | None = None) -> None:
        self._found.fault = Fault(*self._place, why, seq)


def _gap(before: int, seq: int) -> str:
    if seq > before + 1:
        return f"lines are missing before it: {before + 1} to {seq - 1}"
    if seq == before + 1:
        return "it does not follow the line before it"
    return f"it is out of order: {seq} after {before}"


def _is_whole(line: bytes) -> bool:
    """Whether it is more than the beginning of a line."""
    return SUM in line and line.rstrip(b"\n").endswith(b'"}')


# ------------------------------------------------------------------ the last lines


def tail(path: str, count: int) -> list[dict[str, Any]]:
    """The last lines, oldest first; what is no line is left out."""
    return _last(count, files_of(path))


def _last(
    count: int, names: list[str], found: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """So many lines, the last of those files; `found` are some that come after them."""
    found = [] if found is None else found[max(0, len(found) - count) :]
    for name in reversed(names):
        if len(found) >= count or not os.path.exists(name):
            break
        with open(name, "rb") as file:
            lines = _told(file.read().split(b"\n"))
        found[:0] = lines[-(count - len(found)) :]
    return found


def _told(lines: list[bytes]) -> list[dict[str, Any]]:
    return [one for line in lines if (one := _shown(line)) is not None]


def follow(
    path: str, count: int = 0, ended: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """The last lines, and those that are added from now on, as they come: each of them once."""
    file = _open(path)
    rest = b""
    try:
        if file is not None:
            *lines, rest = file.read().split(b"\n")
            older = [name for name in files_of(path)[:-1] if not _is_at(name, file)]
            yield from _last(count, older, _told(lines)) if count else ()
        while not ended():
            moved = file is None or not _is_at(path, file)  # before it is read to its end
            data = file.read() if file is not None else b""
            *lines, rest = (rest + data).split(b"\n")
            yield from _told(lines)
            if data:
                continue
            if moved and (newer := _open(path)) is not None:
                if file is not None:
                    file.close()
                file, rest = newer, b""
            else:
                sleep(BREATH)
    finally:
        if file is not None:
            file.close()


def _open(path: str) -> IO[bytes] | None:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return None


def _is_at(path: str, file: IO[bytes]) -> bool:
    """Whether that file is there, and no other one in its place."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False


def _shown(line: bytes) -> dict[str, Any] | None:
    """A line as it is told: without what only vouches for it."""
    from json import loads

    try:
        said: Any = loads(line)
    except ValueError:
        return None
    if not is_object(said):
        return None
    return {name: value for name, value in said.items() if name not in ("prev", "sum")}
