"""Plan tokens: a plan that somebody has seen, as a word that lets exactly that be run, once.

    "p" + base64( when it ends │ which one │ the call │ the plan │ a mark for each action │ seal )

Sealed with a key of the user's, so that nobody makes one without having planned. Used tokens
are remembered as empty files, one each, as sessions are; the file is made by whoever is first.
"""

from __future__ import annotations

import binascii
import os
from time import time

from tooli.call.canonical import digest
from tooli.contract.record import Record
from tooli.state.home import state_home
from tooli.state.keys import key_file

LASTS = 3600
"""Seconds for which a plan can be applied."""
_ENDS, _ONCE, _BINDING, _PLAN, _SEAL = 5, 8, 12, 16, 16
_BODY = _ENDS + _ONCE + _BINDING + _PLAN


class BrokenToken(ValueError):  # noqa: N818
    """The text is no token of ours, was changed, or its time is over; the message says which."""


class Licence(Record):
    """What a token says."""

    ends: int
    once: bytes
    binding: bytes
    plan: bytes
    marks: bytes = b""


def bind_to(fingerprint: str, principal: str | None) -> bytes:
    """What ties a plan to a call: tool, arguments, whoever asks, and the folder they ask from."""
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    said = "\0".join((fingerprint, principal or "", here))
    return digest(said.encode("utf-8", "surrogatepass"), _BINDING)


def seal(binding: bytes, plan: str, marks: bytes) -> str | None:
    """The token for a plan; None where no key can be kept."""
    key = key_file("plans")
    if key is None:
        return None
    ends = int(time()) + LASTS
    body = ends.to_bytes(_ENDS, "big") + os.urandom(_ONCE) + binding + bytes.fromhex(plan) + marks
    return f"p{_as_text(body + digest(body, _SEAL, key))}"


def unseal(text: str) -> Licence:
    """What a token says; raises BrokenToken."""
    key = key_file("plans")
    if key is None:
        raise BrokenToken("no key for plans can be kept here")
    try:
        padded = text[1:].replace("-", "+").replace("_", "/") + "=" * (-len(text[1:]) % 4)
        data = binascii.a2b_base64(padded.encode("ascii"))
    except (ValueError, UnicodeEncodeError):
        raise BrokenToken("it is none") from None
    if f"p{_as_text(data)}" != text or len(data) < _BODY + _SEAL:
        raise BrokenToken("it is none")
    body, signed = data[:-_SEAL], data[-_SEAL:]
    from _operator import _compare_digest as same  # what hmac.compare_digest is

    if not same(digest(body, _SEAL, key), signed):
        raise BrokenToken("it was changed, or made by somebody else")
    ends = int.from_bytes(body[:_ENDS], "big")
    if ends < time():
        raise BrokenToken("its time is over")
    once, rest = body[_ENDS : _ENDS + _ONCE], body[_ENDS + _ONCE :]
    binding, rest = rest[:_BINDING], rest[_BINDING:]
    return Licence(ends, once, binding, rest[:_PLAN], rest[_PLAN:])


def spend(licence: Licence) -> bool:
    """Whether this is the first use of a token; an OSError where that cannot be known."""
    room = os.path.join(state_home(), "plans")
    os.makedirs(room, mode=0o700, exist_ok=True)
    marker = os.path.join(room, licence.once.hex())
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    _forget_old(room)
    return True


def _forget_old(room: str) -> None:
    """Take away the marks of tokens whose time is over anyway."""
    oldest = time() - 2 * LASTS
    try:
        with os.scandir(room) as markers:
            old = [marker.path for marker in markers if marker.stat().st_mtime < oldest]
        for path in old:
            os.unlink(path)
    except OSError:
        return  # another process clears up, or nobody may


def _as_text(data: bytes) -> str:
    text = binascii.b2a_base64(data, newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")
