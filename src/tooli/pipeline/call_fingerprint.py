"""A call as a few bytes that are the same through every door: for cursors, keys and approvals."""

from __future__ import annotations

from tooli.core.tool import MISSING
from tooli.text.json_encoder import encode
from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call


def caller_arguments(call: Call) -> dict[str, Any]:
    """The bound arguments that come from the caller: what is injected is not among them."""
    tool = call.tool
    names = (
        tool.param_names if tool.input_model is None else tool.param_names | {tool.input_model[0]}
    )
    return {name: value for name, value in call.arguments.items() if name in names}


def canonical_arguments(call: Call) -> list[tuple[str, Any]]:
    """The same as JSON, by name."""
    pairs = [(name, to_stable_json(value)) for name, value in caller_arguments(call).items()]
    return sorted(pairs, key=lambda pair: pair[0])


def canonical_bytes(call: Call, *more: Any) -> bytes:
    """What a call asks for, and anything else that it is to be told apart by."""
    return encode([canonical_arguments(call), *more], [])


def fingerprint(call: Call, *more: Any) -> str:
    """The tool and its bound arguments as a short text: equal calls have equal ones."""
    return digest(call.tool.id.encode() + b"\0" + canonical_bytes(call, *more), 16).hex()


def to_stable_json(value: Any) -> Any:
    """A value as JSON; of what is only a way to a value, where it leads and not what is there."""
    kind = value.__class__
    if hasattr(kind, "reveal"):
        return [kind.__name__, _secret_identity(value)]
    if hasattr(kind, "is_stdin"):
        content = getattr(value, "content", MISSING)
        content_part = [] if content is MISSING else [to_jsonable(content, [])]
        return [kind.__name__, str(getattr(value, "tooli_location", None) or ""), *content_part]
    if any([hasattr(kind, name) for name in ("__next__", "read")]):
        return kind.__name__
    return to_jsonable(value, [])


def _secret_identity(secret: Any) -> str:
    """What tells one secret from another: where it is, or so short a digest that it tells no more.

    Nothing is read for it.
    """
    if secret.tooli_cli_text is not None:
        return str(secret.tooli_cli_text)
    return digest(repr(secret.reveal()).encode("utf-8", "surrogatepass"), 3).hex()


def digest(data: bytes, size: int, key: bytes = b"") -> bytes:
    """A short digest, or with a key a seal; BLAKE2 without the price of `hashlib`."""
    try:
        from _blake2 import blake2b  # pyright: ignore
    except ImportError:  # an interpreter without the C half
        from hashlib import blake2b
    return blake2b(data, digest_size=size, key=key).digest()
