"""StdioTransport: JSON lines on stdin and stdout, which are reserved for the protocol.

File descriptors 0 and 1 are replaced: tools and their child processes read an empty stdin, and
their output to stdout goes to stderr.
"""

from __future__ import annotations

import json
import os
import select
import sys
from threading import Lock

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_LINE_BYTES = 64 << 20
"""Maximum size of a line. A longer line is skipped and answered with an error."""

_ID_SEARCH_BYTES = 1 << 20
"""Number of bytes at each end of an oversized line that are searched for an id."""


class StdioTransport:
    """The connection to the client on stdin and stdout."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._lock = Lock()
        self.is_broken = False  # the client has closed stdout

    @classmethod
    def claim_stdio(cls) -> StdioTransport:
        """Reserve the process's stdin and stdout for the protocol."""
        from tooli.pipeline.stdout_capture import route_stdout

        flush_standard_streams()
        read_fd, write_fd = _duplicate_fd(0), _duplicate_fd(1)
        null_input = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_input, 0)
        os.close(null_input)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            null_output = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_output, 1)
            os.close(null_output)
        route_stdout()
        return cls(read_fd, write_fd)

    def lines(self) -> Iterator[bytes | OversizedLine]:
        """Yield every line until the client closes stdin."""
        parts: list[bytes] = []  # of the incomplete line
        size = 0
        remainder = b""
        while chunk := remainder or self._read():
            remainder = b""
            if b"\n" in chunk:
                first, *complete_lines = chunk.split(b"\n")
                yield b"".join((*parts, first))
                chunk = complete_lines.pop()
                yield from complete_lines
                parts, size = [], 0
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_LINE_BYTES:
                found, remainder = self._skip_line(b"".join(parts))
                yield found
                parts, size = [], 0
        rest = b"".join(parts)
        if rest:
            yield rest

    def _read(self) -> bytes:
        try:
            return os.read(self._read_fd, 1 << 16)
        except OSError:
            return b""

    def _skip_line(self, start: bytes) -> tuple[OversizedLine, bytes]:
        """Skip to the end of a line that is too long; return the line and the bytes after it."""
        head, tail = start[:_ID_SEARCH_BYTES], start[-_ID_SEARCH_BYTES:]
        while chunk := self._read():
            line, newline, remainder = chunk.partition(b"\n")
            tail = (tail + line)[-_ID_SEARCH_BYTES:]
            if newline:
                return OversizedLine(head, tail), remainder
        return OversizedLine(head, tail), b""

    def write(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.send(to_json(message))

    def send(self, data: bytes) -> None:
        """Send one line; safe to call from several threads."""
        view = memoryview(data + b"\n")
        with self._lock:
            try:
                while view and not self.is_broken:
                    view = view[os.write(self._write_fd, view) :]
            except BlockingIOError:
                self._send_nonblocking(view)
            except OSError:
                self.is_broken = True

    def _send_nonblocking(self, view: memoryview) -> None:
        """Send the rest of a line to a pipe that the client has made non-blocking."""
        try:
            while view:
                select.select((), (self._write_fd,), ())
                try:
                    view = view[os.write(self._write_fd, view) :]
                except BlockingIOError:
                    continue
        except OSError:
            self.is_broken = True

    def is_disconnected(self) -> bool:
        """True if the client has closed its end of stdout."""
        if self.is_broken or not hasattr(select, "poll"):  # Windows: only a write detects it
            return self.is_broken
        poller = select.poll()
        poller.register(self._write_fd, 0)
        # a closed pipe reports POLLERR, a closed socket reports POLLHUP
        return any([event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0)])


class OversizedLine:
    """A line that is too long: its start and its end."""

    __slots__ = ("head", "tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self.head = head
        self.tail = tail


def _duplicate_fd(fd: int) -> int:
    """Return a duplicate of stdin or stdout that child processes do not inherit."""
    try:
        copy = os.dup(fd)
    except OSError:
        from tooli.errors import StateError

        name = "stdout" if fd else "stdin"
        raise StateError(f"{name} is closed, but the protocol needs it.") from None
    low_fds: list[int] = []
    while copy < 3:
        low_fds.append(copy)
        copy = os.dup(fd)
    for low_fd in low_fds:
        os.close(low_fd)
    return copy


def flush_standard_streams() -> None:
    """Flush Python's stdout and stderr if they exist."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError, RuntimeError):  # a signal interrupted a flush
            continue


# ------------------------------------------------------------------ JSON


def to_json(message: dict[str, Any]) -> bytes:
    """Return a message as one line of JSON."""
    try:
        text = _dumps(message)
    except (ValueError, TypeError, RecursionError):
        from tooli.text.jsonable import to_jsonable

        text = _dumps(to_jsonable(message, []))
    return text.encode("utf-8", "backslashreplace")


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def from_json(line: bytes) -> Any:
    """Return the value of a JSON line; raises ValueError or RecursionError if it is invalid."""
    return _loads(line.decode("utf-8", "replace"))


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


_loads = json.JSONDecoder(parse_constant=_reject_constant).decode


def find_request_ids(line: bytes | OversizedLine) -> list[int | str]:
    """Return the ids of the requests in an invalid line, because each request needs an answer.

    Searches the object, or the objects of a batch, for `"id": …`. In a long line, only the two
    ends are searched, to limit the time.
    """
    if isinstance(line, bytes) and len(line) > 2 * _ID_SEARCH_BYTES:
        line = OversizedLine(line[:_ID_SEARCH_BYTES], line[-_ID_SEARCH_BYTES:])
    if isinstance(line, OversizedLine):
        return _scan_ids(line.head)[0] or _find_last_id(line.tail)
    known, has_paired_quotes = _scan_ids(line)
    return known if known or has_paired_quotes else _find_last_id(line)


# An unterminated string extends to the end of the text, so that no byte is scanned twice.
_STRING_PATTERN = rb'"[^"\\]*(?:\\.[^"\\]*)*'
_ID_VALUE_PATTERN = rb"\s*:\s*(-?\d{1,4000}(?=[\s,}\]])|" + _STRING_PATTERN + rb'")'


def _scan_ids(text: bytes) -> tuple[list[int | str], bool]:
    """Return the ids at the depth of a request, and whether all quotes are paired."""
    import re

    value = re.compile(_ID_VALUE_PATTERN)
    is_batch = text.lstrip().startswith(b"[")
    depth, id_depth = 0, 2 if is_batch else 1
    found: list[int | str | None] = []
    has_paired_quotes = True
    for token in re.finditer(_STRING_PATTERN + rb'("|\\?\Z)|[\[\]{}]', text):
        symbol = token.group()
        has_paired_quotes = token.group(1) in (None, b'"')
        if symbol in (b"{", b"["):
            depth += 1
        elif symbol in (b"}", b"]"):
            depth -= 1
        elif symbol == b'"id"' and depth == id_depth:
            match = value.match(text, token.end())
            found.append(_parse_id(match.group(1)) if match is not None else None)
    known = [request_id for request_id in found if request_id is not None]
    return list(dict.fromkeys(known)) if is_batch else known[-1:], has_paired_quotes


def _find_last_id(text: bytes) -> list[int | str]:
    """Return the last id in a text whose nesting is unreliable."""
    import re

    last_values = re.findall(rb'"id"' + _ID_VALUE_PATTERN, text)[-1:]
    ids = [_parse_id(value) for value in last_values]
    return [request_id for request_id in ids if request_id is not None]


def _parse_id(data: bytes) -> int | str | None:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return None


def alternate_id(request_id: int | str) -> int | str:
    """Return the id as the other type: 7 for "7", and "7" for 7.

    Some clients cancel a request with an id of the other type.
    """
    if isinstance(request_id, int):
        return str(request_id)
    return (
        int(request_id)
        if request_id.isascii() and request_id.isdigit() and len(request_id) < 19
        else request_id
    )
