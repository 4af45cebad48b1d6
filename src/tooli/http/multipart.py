"""MultipartParser: reads `multipart/form-data` (RFC 7578) chunk by chunk, with limits.

    chunk ─▶ feed ─▶ start_part(PartHead) ▸ write(bytes) ▸ end_part()  of the receiver

The parser keeps at most the headers of one part, and the bytes that may be the start of a boundary.
"""

from __future__ import annotations

import re

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Protocol

    class PartReceiver(Protocol):
        """Receives the parts of a form."""

        def start_part(self, head: PartHead) -> None:
            """Start a part."""
            ...

        def write(self, data: bytes) -> None:
            """Add data to the part."""
            ...

        def end_part(self) -> None:
            """End the part."""
            ...


MAX_PREAMBLE, MAX_HEADER_BYTES, MAX_NAME_CHARS = 4_096, 8_192, 200
_PARAMETER = re.compile(r';\s*([A-Za-z0-9*_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))')
_BOUNDARY = re.compile(r"[A-Za-z0-9'()+_,./:=? -]{1,70}")


class MultipartError(ValueError):
    """The body is not valid `multipart/form-data`. The message completes "The body"."""


class PartHead(Record):
    """The headers of a part."""

    name: str
    file_name: str | None  # None: the part is a field
    content_type: str


def read_boundary(content_type: bytes) -> bytes:
    """Return the boundary in a Content-Type header."""
    parameters = _parameters(content_type.decode("latin-1"))
    boundary = parameters.get("boundary", "")
    if not _BOUNDARY.fullmatch(boundary) or boundary.endswith(" "):
        raise MultipartError("has no valid boundary in its content type")
    return boundary.encode("ascii")


def _parameters(header: str) -> dict[str, str]:
    """Return the parameters of a header, such as `name` and `filename`."""
    found: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(";" + header.partition(";")[2]):
        value = re.sub(r'\\(["\\])', r"\1", quoted) or plain
        if found.setdefault(name.lower(), value) != value:
            raise MultipartError(f"has a part with two values of {name[:40]!r}")
    return found


class MultipartParser:
    """Parses one body."""

    def __init__(self, boundary: bytes, receiver: PartReceiver) -> None:
        self._delimiter = b"\r\n--" + boundary
        self._receiver = receiver
        self._buffer = bytearray(b"\r\n")  # the first boundary may be at the beginning
        self._state = self._read_preamble

    def feed(self, data: bytes) -> None:
        """Parse more bytes."""
        self._buffer += data
        while self._state():
            pass

    def close(self) -> None:
        """Raise MultipartError if the body is not complete."""
        if self._state != self._skip_epilogue:
            raise MultipartError("ends before its last boundary")

    # -------------------------------------------------------------- states, True: go on

    def _read_preamble(self) -> bool:
        start = self._buffer.find(self._delimiter)
        if start < 0:
            if len(self._buffer) > MAX_PREAMBLE:
                raise MultipartError("does not begin with its boundary")
            return False
        del self._buffer[: start + len(self._delimiter)]
        self._state = self._read_delimiter_end
        return True

    def _read_delimiter_end(self) -> bool:
        if self._buffer.startswith(b"--"):
            self._state = self._skip_epilogue
            return True
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > 2:
                self._check_padding(len(self._buffer) - 1)
            return False
        self._check_padding(end)
        del self._buffer[:end]  # the line break stays, it may end an empty list of headers
        self._state = self._read_headers
        return True

    def _check_padding(self, end: int) -> None:
        padding = bytes(self._buffer[:end])
        if padding.strip(b" \t") or len(padding) > MAX_NAME_CHARS:
            raise MultipartError("has text after a boundary")

    def _read_headers(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > MAX_HEADER_BYTES:
            if len(self._buffer) > MAX_HEADER_BYTES:
                raise MultipartError(
                    f"has a part with headers of more than {MAX_HEADER_BYTES} bytes"
                )
            return False
        head = parse_part_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        self._receiver.start_part(head)
        self._state = self._read_data
        return True

    def _read_data(self) -> bool:
        end = self._buffer.find(self._delimiter)
        size = end if end >= 0 else len(self._buffer) - len(self._delimiter) + 1
        if size > 0:
            self._receiver.write(bytes(self._buffer[:size]))
            del self._buffer[:size]
        if end < 0:
            return False
        del self._buffer[: len(self._delimiter)]
        self._receiver.end_part()
        self._state = self._read_delimiter_end
        return True

    def _skip_epilogue(self) -> bool:
        self._buffer.clear()
        return False


def parse_part_head(data: bytes) -> PartHead:
    """Return the headers of a part."""
    try:
        lines = data.decode("utf-8").split("\r\n")
    except UnicodeDecodeError:
        raise MultipartError("has a part whose headers are not UTF-8") from None
    headers: dict[str, str] = {}
    for line in lines[1:] if not lines[0] else lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name):
            raise MultipartError("has a part with an invalid header")
        if headers.setdefault(name.lower(), value.strip()) != value.strip():
            raise MultipartError(f"has a part with two headers {name[:40]}")
    disposition = headers.get("content-disposition", "")
    parameters = _parameters(disposition)
    name = parameters.get("name", "")
    if not disposition.lower().startswith("form-data") or not name:
        raise MultipartError("has a part without a name")
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise MultipartError("has a part with an invalid name")
    encoding = headers.get("content-transfer-encoding", "binary").lower()
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if encoding not in ("binary", "8bit", "7bit") or content_type.startswith("multipart/"):
        raise MultipartError("has a part with an encoding that is not supported, or with parts")
    return PartHead(name, parameters.get("filename"), content_type)
