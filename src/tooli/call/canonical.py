"""A call as a few bytes that are the same through every door: for cursors, keys and approvals."""

from __future__ import annotations

from tooli.call.envelope import encode
from tooli.contract.jsonable import jsonable
from tooli.contract.tool import MISSING

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.call.model import Call


def given_to(call: Call) -> dict[str, Any]:
    """The bound arguments that come from the caller: what is injected is not among them."""
    tool = call.tool
    names = tool.names if tool.model is None else tool.names | {tool.model[0]}
    return {name: value for name, value in call.arguments.items() if name in names}


def asked_of(call: Call) -> list[tuple[str, Any]]:
    """The same as JSON, by name."""
    found = [(name, stable(value)) for name, value in given_to(call).items()]
    return sorted(found, key=lambda pair: pair[0])


def canonical(call: Call, *more: Any) -> bytes:
    """What a call asks for, and anything else that it is to be told apart by."""
    return encode([asked_of(call), *more], [])


def fingerprint(call: Call, *more: Any) -> str:
    """The tool and its bound arguments as a short text: equal calls have equal ones."""
    return digest(call.tool.id.encode() + b"\0" + canonical(call, *more), 16).hex()


def stable(value: Any) -> Any:
    """A value as JSON; of what is only a way to a value, where it leads and not what is there."""
    kind = value.__class__
    if hasattr(kind, "reveal"):
        return [kind.__name__, _trace_of(value)]
    if hasattr(kind, "is_stdin"):
        content = getattr(value, "content", MISSING)
        said = [] if content is MISSING else [jsonable(content, [])]
        return [kind.__name__, str(getattr(value, "tooli_place", None) or ""), *said]
    if any([hasattr(kind, name) for name in ("__next__", "read")]):
        return kind.__name__
    return jsonable(value, [])


def _trace_of(secret: Any) -> str:
    """What tells one secret from another: where it is, or so short a digest that it tells no more.

    Nothing is read for it.
    """
    if secret.tooli_word is not None:
        return str(secret.tooli_word)
    return digest(repr(secret.reveal()).encode("utf-8", "surrogatepass"), 3).hex()


def digest(data: bytes, size: int, key: bytes = b"") -> bytes:
    """A short digest, or with a key a seal; BLAKE2 without the price of `hashlib`."""
    try:
        from _blake2 import blake2b  # pyright: ignore
    except ImportError:  # an interpreter without the C half
        from hashlib import blake2b
    return blake2b(data, digest_size=size, key=key).digest()
