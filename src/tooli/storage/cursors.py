"""Cursors: signed tokens that say where the next page of a result starts.

    "c" + base64url( binding │ digests of the last records │ position │ source cursor │ signature )

A cursor contains no secrets and can be used any number of times. It is valid only for a call with
the same tool and arguments. The digests of the last records find the position again if earlier
records were inserted or deleted meanwhile.
"""

from __future__ import annotations

from tooli.core.call_fingerprint import digest
from tooli.core.record import Record
from tooli.storage.signing import decode_token, encode_token

RECORD_DIGEST_BYTES = 5
MAX_RECORD_DIGESTS = 3
"""Number of records before its position that a cursor identifies."""
_BINDING_BYTES, _POSITION_BYTES, _SIGNATURE_BYTES = 6, 5, 9


class CursorPosition(Record):
    """The content of a cursor: how many records were returned, and which were the last ones."""

    binding: bytes
    position: int
    record_digests: tuple[bytes, ...] = ()  # newest first
    source_cursor: str | None = None  # the cursor of the tool's own page


def compute_cursor_binding(tool: str, canonical: bytes) -> bytes:
    """Return the bytes that bind a cursor to a tool and its arguments."""
    return digest(tool.encode() + b"\0" + canonical, _BINDING_BYTES)


def digest_record(record: bytes) -> bytes:
    """Return the digest that identifies a record in a cursor."""
    return digest(record, RECORD_DIGEST_BYTES)


def encode_cursor(start: CursorPosition, key: bytes) -> str:
    """Return the cursor for a position."""
    digests = start.record_digests[:MAX_RECORD_DIGESTS]
    body = start.binding + bytes([len(digests)]) + b"".join(digests)
    body += start.position.to_bytes(_POSITION_BYTES, "big")
    if start.source_cursor is not None:
        body += b"t" + start.source_cursor.encode("utf-8", "surrogatepass")
    return encode_token("c", body, key, _SIGNATURE_BYTES)


def decode_cursor(text: str, key: bytes) -> CursorPosition:
    """Return the content of a cursor; raise InvalidToken if it is not valid."""
    body = decode_token("c", text, key, _SIGNATURE_BYTES)
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
