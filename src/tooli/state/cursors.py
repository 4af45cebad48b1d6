"""Cursors: where a result goes on, as a short text that nobody else can make or change.

    "c" + base64( which call │ the last records │ position │ the author's own word │ seal )

It says nothing that the records do not say, can be used any number of times, and holds only
for the call that it was made for. The digests of the last records find the place again when
records before it have come or gone.
"""

from __future__ import annotations

from tooli.call.canonical import digest
from tooli.contract.record import Record
from tooli.state.keys import BrokenSeal, sealed, unsealed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = 5
"""Bytes of a record's digest."""
LAST = 3
"""How many of the last records a cursor knows."""
_BINDING, _POSITION, _SEAL = 6, 5, 9


class BrokenCursor(ValueError):  # noqa: N818
    """The text is no cursor of ours, or was changed."""


class Start(Record):
    """Where to go on: how many records were given, the marks of the last of them, newest first."""

    binding: bytes
    position: int
    marks: tuple[bytes, ...] = ()
    token: str | None = None  # the author's own word


def bind_to(tool: str, canonical: bytes) -> bytes:
    """What ties a cursor to a call: a tool and its arguments."""
    return digest(tool.encode() + b"\0" + canonical, _BINDING)


def mark(record: bytes) -> bytes:
    """What a record is known by."""
    return digest(record, MARK)


def seal(start: Start, key: bytes) -> str:
    """The cursor for a place."""
    marks: Sequence[bytes] = start.marks[:LAST]
    body = start.binding + bytes([len(marks)]) + b"".join(marks)
    body += start.position.to_bytes(_POSITION, "big")
    if start.token is not None:
        body += b"t" + start.token.encode("utf-8", "surrogatepass")
    return sealed("c", body, key, _SEAL)


def unseal(text: str, key: bytes) -> Start:
    """The place that a cursor stands for; raises BrokenCursor."""
    try:
        body = unsealed("c", text, key, _SEAL)
    except BrokenSeal:
        raise BrokenCursor from None
    if body is None:
        raise BrokenCursor
    count = body[_BINDING]
    after = _BINDING + 1 + count * MARK
    marks = [body[i : i + MARK] for i in range(_BINDING + 1, after, MARK)]
    rest = body[after + _POSITION :]
    return Start(
        body[:_BINDING],
        int.from_bytes(body[after : after + _POSITION], "big"),
        tuple(marks),
        rest[1:].decode("utf-8", "surrogatepass") if rest else None,
    )
