"""Open inputs as streams of bytes: stdin, files, URLs; never more of them than is allowed."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from typing import Any

    from tooli.inputs.marks import InputLimits
    from tooli.inputs.source import Input

CHUNK = 1 << 16
WHOLE, STREAMED = 100 * 2**20, 2**30
"""How much of a URL is read where nobody says: into memory, and item by item."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


class Tap(io.RawIOBase):
    """Bytes from a function that gives some; counted, and cut off where a limit is passed."""

    def __init__(
        self,
        more: Callable[[int], bytes],
        source: Input,
        limit: int | None,
        ends: Callable[[], None] | None = None,
    ) -> None:
        self._more = more
        self._source = source
        self._limit = limit
        self._ends = ends
        self._count = 0

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Some bytes, as many as there are; none at the end."""
        data = self._more(len(buffer))
        self._count += len(data)
        if self._limit is not None and self._count > self._limit:
            raise too_large(self._source, self._limit)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close what it comes from, too, unless that is the process's own."""
        if self._ends is not None:
            self._ends()
        super().close()


def too_large(source: Input, limit: int) -> Exception:
    """The error for more data than may be read."""
    from tooli.errors import FormatError, Suggestion

    return FormatError(
        f"{source.source!r} is larger than {limit:,} bytes, and no more is read.",
        code="E1034",
        field=source.field,
        suggestion=Suggestion("ask_human", "Give less, or raise TOOLI_MAX_INPUT."),
        details={"source": source.source, "max_bytes": limit},
    )


def most(limits: InputLimits) -> int | None:
    """How many bytes may be read: as the author says, or the environment."""
    said = os.environ.get("TOOLI_MAX_INPUT", "")
    ours = limits.max_bytes
    asked = size_of(said) if said else None
    if asked is None or ours is None:
        return ours if asked is None else asked
    return min(asked, ours)  # the environment may only tighten what the author said


def size_of(text: str) -> int:
    """The bytes of a size such as `500000`, `100MB` or `2GiB`."""
    from tooli.errors import InputError

    digits = text.strip().lower().removesuffix("b")
    number = digits.rstrip("kmgi")
    try:
        return int(float(number) * _UNITS[digits[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise InputError(f"TOOLI_MAX_INPUT={text!r} is no size: say 500MB or 2GiB") from None


def open_stdin(source: Input, limits: InputLimits) -> BufferedReader:
    """Stdin; closing it leaves the process its own."""
    stdin: Any = sys.stdin
    if stdin is None:
        from tooli.errors import InputError

        raise InputError("stdin is closed.", code="E1035", field=source.field)
    if getattr(stdin, "tooli_read", False):
        from tooli.errors import StateError

        raise StateError("stdin was read already: it can be read once.")
    try:
        stdin.tooli_read = True
    except AttributeError:  # its class has no room for it
        pass
    under: Any = getattr(stdin, "buffer", None)
    if under is not None:
        more = getattr(under, "read1", under.read)
    else:  # a test has put text there
        under = io.BytesIO(stdin.read().encode())
        more = under.read
    return io.BufferedReader(Tap(more, source, most(limits)), CHUNK)


def open_file(source: Input, limits: InputLimits) -> BufferedReader:
    """A file."""
    limit = most(limits)
    file: Any = open(source.source, "rb", CHUNK)  # noqa: SIM115  whoever reads it closes it
    if limit is None:
        return file
    return io.BufferedReader(Tap(file.read1, source, limit, file.close), CHUNK)


def open_url(source: Input, limits: InputLimits) -> BufferedReader:
    """What a server sends."""
    from tooli.inputs.urls import fetch

    body = fetch(source.source, limits, source.field)
    source.kind = body.kind
    limit = most(limits) or (STREAMED if source.streamed else WHOLE)
    return io.BufferedReader(Tap(body.read, source, limit, body.close), CHUNK)
