"""Cursors: where a result goes on, as a short text that nobody else can make or change.

    "c" + base64( which call │ the last records │ position │ the author's own word │ seal )

It says nothing that the records do not say, can be used any number of times, and holds only
for the call that it was made for. The digests of the last records find the place again when
records before it have come or gone.
"""

from __future__ import annotations

from tooli.core.record import Record
from tooli.pipeline.call_fingerprint import digest
from tooli.storage.signing_keys import InvalidSignature, decode_signed, encode_signed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORD_DIGEST_BYTES = 5
"""Bytes of a record's digest."""
MAX_RECORD_DIGESTS = 3
"""How many of the last records a cursor knows."""
_BINDING_BYTES, _POSITION_BYTES, _SIGNATURE_BYTES = 6, 5, 9


class InvalidCursor(ValueError):  # noqa: N818
    """The text is no cursor of ours, or was changed."""


class CursorPosition(Record):
    """Where to go on: how many records were given, the marks of the last of them, newest first."""

    binding: bytes
    position: int
    record_digests: tuple[bytes, ...] = ()
    source_cursor: str | None = None  # the author's own word


def compute_cursor_binding(tool: str, canonical: bytes) -> bytes:
    """What ties a cursor to a call: a tool and its arguments."""
    return digest(tool.encode() + b"\0" + canonical, _BINDING_BYTES)


def digest_record(record: bytes) -> bytes:
    """What a record is known by."""
    return digest(record, RECORD_DIGEST_BYTES)


def encode_cursor(start: CursorPosition, key: bytes) -> str:
    """The cursor for a place."""
    digests: Sequence[bytes] = start.record_digests[:MAX_RECORD_DIGESTS]
    body = start.binding + bytes([len(digests)]) + b"".join(digests)
    body += start.position.to_bytes(_POSITION_BYTES, "big")
    if start.source_cursor is not None:
        body += b"t" + start.source_cursor.encode("utf-8", "surrogatepass")
    return encode_signed("c", body, key, _SIGNATURE_BYTES)


def decode_cursor(text: str, key: bytes) -> CursorPosition:
    """The place that a cursor stands for; raises BrokenCursor."""
    try:
        body = decode_signed("c", text, key, _SIGNATURE_BYTES)
    except InvalidSignature:
        raise InvalidCursor from None
    if body is None:
        raise InvalidCursor
    count = body[_BINDING_BYTES]
    after = _BINDING_BYTES + 1 + count * RECORD_DIGEST_BYTES
    digests = [
        body[i : i + RECORD_DIGEST_BYTES]
        for i in range(_BINDING_BYTES + 1, after, RECORD_DIGEST_BYTES)
    ]
    rest = body[after + _POSITION_BYTES :]
    return CursorPosition(
        body[:_BINDING_BYTES],
        int.from_bytes(body[after : after + _POSITION_BYTES], "big"),
        tuple(digests),
        rest[1:].decode("utf-8", "surrogatepass") if rest else None,
    )
