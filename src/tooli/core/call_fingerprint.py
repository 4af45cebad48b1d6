"""Fingerprints of calls. Equal calls have equal fingerprints on every interface.

Cursors, idempotency keys, approvals and plan tokens are bound to a call by its fingerprint.
"""

from __future__ import annotations

from tooli.core.tool import MISSING
from tooli.errors import ToolError
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_set, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call


def caller_arguments(call: Call) -> dict[str, Any]:
    """Return the bound arguments that come from the caller, without the injected ones."""
    tool = call.tool
    names = (
        tool.param_names if tool.input_model is None else tool.param_names | {tool.input_model[0]}
    )
    return {name: value for name, value in call.arguments.items() if name in names}


def canonical_arguments(call: Call) -> list[tuple[str, object]]:
    """Return the arguments from the caller as JSON values, sorted by name."""
    pairs = [(name, to_stable_json(value)) for name, value in caller_arguments(call).items()]
    return sorted(pairs, key=lambda pair: pair[0])


def canonical_bytes(call: Call, *more: Any) -> bytes:
    """Return the canonical arguments of a call, followed by `more`, as JSON in UTF-8.

    Digests of the call's secrets are included, because the JSON of a model masks its secrets.
    """
    secrets = sorted({_secret_identity(secret) for secret in call.secrets or ()})
    return encode([canonical_arguments(call), *more, *([secrets] if secrets else ())], [])


def fingerprint(call: Call, *more: Any) -> str:
    """Return a short digest of a call: of its tool, its bound arguments and `more`."""
    return digest(call.tool.id.encode() + b"\0" + canonical_bytes(call, *more), 16).hex()


def to_stable_json(value: object) -> object:
    """Return a value as JSON types, without reading inputs and streams.

    An input is represented by its location, or by its content if the caller passed the content. A
    secret is represented by a digest of its value, an open file or iterator by its class name.
    """
    kind = value.__class__
    if hasattr(kind, "reveal"):
        return [kind.__name__, _secret_identity(value)]
    if hasattr(kind, "is_stdin"):
        content = getattr(value, "content", MISSING)
        content_part = [] if content is MISSING else [to_jsonable(content, [])]
        return [kind.__name__, str(getattr(value, "tooli_location", None) or ""), *content_part]
    if is_list(value) or is_set(value):
        items = list(value)
        if any([hasattr(item.__class__, "reveal") for item in items]):
            return [to_stable_json(item) for item in items]
    if hasattr(kind, "__next__") or hasattr(kind, "read"):
        return kind.__name__
    return to_jsonable(value, [])


def _secret_identity(secret: Any) -> str:
    """Return a digest of a secret's value that is too short to reveal it.

    A secret passed as `@file` or `env:NAME` is read. If that fails, its location identifies it, and
    the call fails when it runs.
    """
    try:
        value = secret.reveal()
    except ToolError:
        return str(secret.tooli_cli_text)
    return digest(repr(value).encode("utf-8", "surrogatepass"), 3).hex()


def digest(data: bytes, size: int, key: bytes = b"") -> bytes:
    """Return a BLAKE2b digest, with an optional key.

    `hashlib` is slow to import, so it is only the fallback.
    """
    try:
        from _blake2 import blake2b  # pyright: ignore
    except ImportError:  # an interpreter without the C module
        from hashlib import blake2b
    return blake2b(data, digest_size=size, key=key).digest()
