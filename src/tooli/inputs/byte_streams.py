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

    from tooli.inputs.constraints import InputLimits
    from tooli.inputs.source import Input

CHUNK_BYTES = 1 << 16
MAX_URL_BYTES, MAX_STREAMED_URL_BYTES = 100 * 2**20, 2**30
"""How much of a URL is read where nobody says: into memory, and item by item."""
_SIZE_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


class LimitedReader(io.RawIOBase):
    """Bytes from a function that gives some; counted, and cut off where a limit is passed."""

    def __init__(
        self,
        read_chunk: Callable[[int], bytes],
        source: Input,
        limit: int | None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._read_chunk = read_chunk
        self._source = source
        self._limit = limit
        self._on_close = on_close
        self._bytes_read = 0

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Some bytes, as many as there are; none at the end."""
        data = self._read_chunk(len(buffer))
        self._bytes_read += len(data)
        if self._limit is not None and self._bytes_read > self._limit:
            raise input_too_large_error(self._source, self._limit)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close what it comes from, too, unless that is the process's own."""
        if self._on_close is not None:
            self._on_close()
        super().close()


def input_too_large_error(source: Input, limit: int) -> Exception:
    """The error for more data than may be read."""
    from tooli.errors import FormatError, Suggestion

    return FormatError(
        f"{source.source!r} is larger than {limit:,} bytes, and no more is read.",
        code="E1034",
        field=source.field,
        suggestion=Suggestion("ask_human", "Give less, or raise TOOLI_MAX_INPUT."),
        details={"source": source.source, "max_bytes": limit},
    )


def max_input_bytes(limits: InputLimits) -> int | None:
    """How many bytes may be read: as the author says, or the environment."""
    env_value = os.environ.get("TOOLI_MAX_INPUT", "")
    author_limit = limits.max_bytes
    env_limit = parse_size(env_value) if env_value else None
    if env_limit is None or author_limit is None:
        return author_limit if env_limit is None else env_limit
    return min(env_limit, author_limit)  # the environment may only tighten what the author said


def parse_size(text: str) -> int:
    """The bytes of a size such as `500000`, `100MB` or `2GiB`."""
    from tooli.errors import InputError

    digits = text.strip().lower().removesuffix("b")
    number = digits.rstrip("kmgi")
    try:
        return int(float(number) * _SIZE_UNITS[digits[len(number) :]])
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
    buffer: Any = getattr(stdin, "buffer", None)
    if buffer is not None:
        read_chunk = getattr(buffer, "read1", buffer.read)
    else:  # a test has put text there
        buffer = io.BytesIO(stdin.read().encode())
        read_chunk = buffer.read
    return io.BufferedReader(
        LimitedReader(read_chunk, source, max_input_bytes(limits)), CHUNK_BYTES
    )


def open_file(source: Input, limits: InputLimits) -> BufferedReader:
    """A file."""
    limit = max_input_bytes(limits)
    file: Any = open(source.source, "rb", CHUNK_BYTES)  # noqa: SIM115  whoever reads it closes it
    if limit is None:
        return file
    return io.BufferedReader(LimitedReader(file.read1, source, limit, file.close), CHUNK_BYTES)


def open_url(source: Input, limits: InputLimits) -> BufferedReader:
    """What a server sends."""
    from tooli.inputs.urls import fetch

    body = fetch(source.source, limits, source.field)
    source.format = body.format
    limit = max_input_bytes(limits) or (
        MAX_STREAMED_URL_BYTES if source.is_streamed else MAX_URL_BYTES
    )
    return io.BufferedReader(LimitedReader(body.read, source, limit, body.close), CHUNK_BYTES)
