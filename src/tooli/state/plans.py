"""Plan tokens: a plan that somebody has seen, as a word that lets exactly that be run, once.

    "p" + base64( when it ends │ which one │ the call │ the plan │ a mark for each action │ seal )

Sealed with a key of the user's, so that nobody makes one without having planned. There is a mark
for each that was used.
"""

from __future__ import annotations

import os
from time import time

from tooli.call.canonical import digest
from tooli.contract.record import Record
from tooli.state.home import state_home
from tooli.state.keys import BrokenSeal, key_file, sealed, unsealed
from tooli.state.marks import claim, release

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
    return sealed("p", body, key, _SEAL)


def unseal(text: str) -> Licence:
    """What a token says; raises BrokenToken."""
    key = key_file("plans")
    if key is None:
        raise BrokenToken("no key for plans can be kept here")
    try:
        body = unsealed("p", text, key, _SEAL)
    except BrokenSeal:
        raise BrokenToken("it was changed, or made by somebody else") from None
    if body is None or len(body) < _BODY:
        raise BrokenToken("it is none")
    ends = int.from_bytes(body[:_ENDS], "big")
    if ends < time():
        raise BrokenToken("its time is over")
    once, rest = body[_ENDS : _ENDS + _ONCE], body[_ENDS + _ONCE :]
    binding, rest = rest[:_BINDING], rest[_BINDING:]
    return Licence(ends, once, binding, rest[:_PLAN], rest[_PLAN:])


def spend(licence: Licence) -> bool:
    """Whether this is the first use of a token; an OSError where that cannot be known."""
    return claim(_room(), licence.once.hex(), 2 * LASTS)


def unspend(licence: Licence) -> None:
    """Let a token be used again: its plan was not run."""
    release(_room(), licence.once.hex())


def _room() -> str:
    return os.path.join(state_home(), "plans")
