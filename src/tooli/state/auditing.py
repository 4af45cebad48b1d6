"""The audit log, read back: its last lines, and whether it is whole."""

from __future__ import annotations

import os
from time import sleep

from tooli.contract.jsonable import is_object
from tooli.contract.record import Record
from tooli.state.audit import KEPT, SUM, Head, unsealed
from tooli.state.home import state_home
from tooli.state.keys import key_file

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

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
        self.files: list[str] = []
        self.lines = 0
        self.torn = 0  # lines of which a crash left the beginning
        self.sealed = False
        self.fault: Fault | None = None


# ------------------------------------------------------------------ verifying


def verify(path: str) -> Finding:
    """Read a log from its beginning; an OSError where it cannot be read."""
    found = Finding(path)
    if not os.path.exists(path) and not os.path.exists(f"{path}.head"):
        return found
    key = _key()
    found.sealed = bool(key)
    with Head(path, reading=True) as head:  # nobody writes, while what there is is opened
        last = head.read(key)
        files = _opened(path)
        sizes = [os.fstat(file.fileno()).st_size for _, file in files]
    chain = _Chain(found, key)
    try:
        for (name, file), size in zip(files, sizes, strict=True):
            found.files.append(name)
            chain.read(name, file, size)
            if found.fault is not None:
                return found
    finally:
        for _, file in files:
            file.close()
    chain.end(last)
    return found


def _key() -> bytes:
    """The key of the log, where there is one: none is made to look at what was written before."""
    kept = os.path.exists(os.path.join(state_home(), "audit.key"))
    return (key_file("audit") if kept else None) or b""


def _opened(path: str) -> list[tuple[str, IO[bytes]]]:
    names = [f"{path}.{number}" for number in range(KEPT, 0, -1)]
    return [(name, open(name, "rb")) for name in (*names, path) if os.path.exists(name)]


class _Chain:
    """Lines in their order; each must follow the one before."""

    def __init__(self, found: Finding, key: bytes) -> None:
        self._found = found
        self._key = key
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
        beginning = not found.lines and self._may_begin_late()
        follows = seq == self._seq + 1 and said.get("prev") == self._sum
        if not follows and not (beginning and not self._odd):
            if self._odd:
                return self._accuse(*self._odd[0])
            return self._fail(_gap(self._seq, seq), seq)
        for odd in self._odd:
            if _is_whole(odd[2]):  # a crash leaves half a line
                return self._accuse(*odd)
            found.torn += 1
        self._odd.clear()
        if "after" in said:
            return self._fail(f"when this line was written, {said['after']}", seq)
        found.lines += 1
        self._seq, self._sum = seq, total

    def _may_begin_late(self) -> bool:
        """Whether the oldest lines are gone because new ones came: then all old files are there."""
        return os.path.exists(f"{self._found.path}.{KEPT}")

    def end(self, head: tuple[int, str] | None) -> None:
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
        self._fail("this line is not as it was written")

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
    found: list[dict[str, Any]] = []
    for name in (path, *[f"{path}.{number}" for number in range(1, KEPT + 1)]):
        if len(found) >= count or not os.path.exists(name):
            break
        with open(name, "rb") as file:
            lines = file.read().splitlines()
        wanted = [one for line in lines if (one := _shown(line)) is not None]
        found[:0] = wanted[-(count - len(found)) :]
    return found


def follow(path: str, ended: Callable[[], bool] = lambda: False) -> Iterator[dict[str, Any]]:
    """Lines that are added from now on, as they come."""
    file = open(path, "rb") if os.path.exists(path) else None  # noqa: SIM115
    if file is not None:
        file.seek(0, os.SEEK_END)
    rest = b""
    try:
        while not ended():
            data = file.read() if file is not None else b""
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                one = _shown(line)
                if one is not None:
                    yield one
            if data:
                continue
            if file is None or _replaced(path, file):
                if file is not None:
                    file.close()
                file = open(path, "rb") if os.path.exists(path) else None  # noqa: SIM115
                if file is not None:
                    continue
            sleep(BREATH)
    finally:
        if file is not None:
            file.close()


def _replaced(path: str, file: IO[bytes]) -> bool:
    """Whether a new log was begun in the place of the one that is being read."""
    try:
        return os.stat(path).st_ino != os.fstat(file.fileno()).st_ino
    except OSError:
        return True


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
