"""The wire of a stdio server: lines in, lines out, and nobody else's words among them.

File descriptors 0 and 1 are claimed. What a tool or its children read is empty, what they
write goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from threading import Lock

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LONGEST = 64 << 20
"""How many bytes a line may have; a longer one is answered with an error, and forgotten."""

_KEPT = 1 << 20
"""How much of each end of a line that is too long is looked through for an id."""


class Wire:
    """The client's end of stdin and stdout."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._lock = Lock()
        self.broken = False  # nobody reads any more

    @classmethod
    def claim(cls) -> Wire:
        """Take the process's stdin and stdout for the protocol alone."""
        from tooli.call.printing import route_stdout

        flush()
        source, target = _private(0), _private(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
        route_stdout()
        return cls(source, target)

    def lines(self) -> Iterator[bytes | Oversize]:
        """Every line that comes, until the client closes its end."""
        parts: list[bytes] = []  # of the line that has not ended yet
        size = 0
        left = b""
        while chunk := left or self._read():
            left = b""
            if b"\n" in chunk:
                first, *whole = chunk.split(b"\n")
                yield b"".join((*parts, first))
                chunk = whole.pop()
                yield from whole
                parts, size = [], 0
            parts.append(chunk)
            size += len(chunk)
            if size > LONGEST:
                found, left = self._skip(b"".join(parts))
                yield found
                parts, size = [], 0
        rest = b"".join(parts)
        if rest:
            yield rest

    def _read(self) -> bytes:
        try:
            return os.read(self._source, 1 << 16)
        except OSError:
            return b""

    def _skip(self, start: bytes) -> tuple[Oversize, bytes]:
        """Read on to the end of a line that is too long, keeping only its ends."""
        head, tail = start[:_KEPT], start[-_KEPT:]
        while chunk := self._read():
            line, newline, left = chunk.partition(b"\n")
            tail = (tail + line)[-_KEPT:]
            if newline:
                return Oversize(head, tail), left
        return Oversize(head, tail), b""

    def write(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.send(to_json(message))

    def send(self, data: bytes) -> None:
        """Send one line, whole, whoever else sends at the same time."""
        view = memoryview(data + b"\n")
        with self._lock:
            try:
                while view and not self.broken:
                    view = view[os.write(self._target, view) :]
            except BlockingIOError:
                self._send_slowly(view)
            except OSError:
                self.broken = True

    def _send_slowly(self, view: memoryview) -> None:
        """The same where the client has made its pipe non-blocking."""
        from select import select

        try:
            while view:
                select((), (self._target,), ())
                try:
                    view = view[os.write(self._target, view) :]
                except BlockingIOError:
                    continue
        except OSError:
            self.broken = True

    def deserted(self) -> bool:
        """Whether the client has closed its end of stdout as well."""
        if self.broken:
            return True
        try:
            from select import POLLERR, POLLHUP, poll
        except ImportError:  # Windows: a write will tell
            return False
        watch = poll()
        watch.register(self._target, 0)
        return any([event & (POLLERR | POLLHUP) for _, event in watch.poll(0)])  # pipe | socket


class Oversize:
    """A line that is too long: its beginning and its end."""

    __slots__ = ("head", "tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail


def _private(standard: int) -> int:
    """A second descriptor of stdin or stdout, which children do not inherit."""
    try:
        copy = os.dup(standard)
    except OSError:
        from tooli.errors import StateError

        name = "stdout" if standard else "stdin"
        raise StateError(f"{name} is closed, and a client speaks through it.") from None
    lower: list[int] = []
    while copy < 3:
        lower.append(copy)
        copy = os.dup(standard)
    for taken in lower:
        os.close(taken)
    return copy


def flush() -> None:
    """Write out what Python's own streams still hold, as far as they are there."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError, RuntimeError):  # or a signal came amid one
            continue


# ------------------------------------------------------------------ JSON


def to_json(message: dict[str, Any]) -> bytes:
    """A message as one line of JSON."""
    try:
        text = _dumps(message)
    except (ValueError, TypeError, RecursionError):
        from tooli.contract.jsonable import jsonable

        text = _dumps(jsonable(message, []))
    return text.encode("utf-8", "backslashreplace")


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def from_json(line: bytes) -> Any:
    """What a line says; raises ValueError or RecursionError where it is no JSON."""
    return _loads(line.decode("utf-8", "replace"))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_loads = json.JSONDecoder(parse_constant=_no_constant).decode


def ids_in(line: bytes | Oversize) -> list[int | str]:
    """The ids of the requests in a line that cannot be read: each wants an answer.

    Looks for `"id": …` in the object itself, or in the objects of a batch; of a long line
    only into its ends, so that no line costs more than it is worth.
    """
    if isinstance(line, bytes) and len(line) > 2 * _KEPT:
        line = Oversize(line[:_KEPT], line[-_KEPT:])
    if isinstance(line, Oversize):
        return _ids(line.head)[0] or _last_id(line.tail)
    known, is_sound = _ids(line)
    return known if known or is_sound else _last_id(line)


# A string that never ends goes to the end of the text: no byte is looked at twice.
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*'
_VALUE = rb"\s*:\s*(-?\d{1,4000}(?=[\s,}\]])|" + _STRING + rb'")'


def _ids(text: bytes) -> tuple[list[int | str], bool]:
    """The ids at the depth of a request, and whether the quotes are in pairs."""
    import re

    value = re.compile(_VALUE)
    is_batch = text.lstrip().startswith(b"[")
    depth, wanted = 0, 2 if is_batch else 1
    found: list[int | str | None] = []
    is_sound = True
    for token in re.finditer(_STRING + rb'("|\\?\Z)|[\[\]{}]', text):
        sign = token.group()
        is_sound = token.group(1) in (None, b'"')
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
        elif sign == b'"id"' and depth == wanted:
            given = value.match(text, token.end())
            found.append(_id(given.group(1)) if given is not None else None)
    known = [one for one in found if one is not None]
    return list(dict.fromkeys(known)) if is_batch else known[-1:], is_sound


def _last_id(text: bytes) -> list[int | str]:
    """The last id in a text whose depths are not to be trusted."""
    import re

    given = [_id(one) for one in re.findall(rb'"id"' + _VALUE, text)[-1:]]
    return [one for one in given if one is not None]


def _id(data: bytes) -> int | str | None:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return None


def twin(given: int | str) -> int | str:
    """The same id in its other form: clients that cancel 7 may mean "7", and the other way."""
    if isinstance(given, int):
        return str(given)
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else given
