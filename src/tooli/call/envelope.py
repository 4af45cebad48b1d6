"""The envelope: one JSON document for every outcome, and how any value becomes JSON.

`_json` is the C half of the standard library's `json`; the Python half costs more
to import than the rest of a call together.
"""

from __future__ import annotations

from tooli.call.model import Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.call.model import Call, Outcome


def envelope(outcome: Outcome, call: Call, milliseconds: int) -> dict[str, Any]:
    """An outcome as every door answers it: fixed order, nothing empty."""
    meta = meta_of(call, milliseconds)
    if isinstance(outcome, Ok):
        if outcome.value is None:
            return {"ok": True, "meta": meta}
        return {"ok": True, "result": outcome.value, "meta": meta}
    return {"ok": False, "error": outcome.error.to_dict(), "meta": meta}


def meta_of(call: Call, milliseconds: int) -> dict[str, Any]:
    """What is said about a call beside its result; only what there is to say."""
    tool, caller = call.tool, call.caller
    meta: dict[str, Any] = {"tool": tool.id}
    if tool.version is not None:
        meta["version"] = tool.version
    meta["duration_ms"] = milliseconds
    if call.warnings:
        meta["warnings"] = call.warnings
    if call.options.dry_run:
        meta["dry_run"] = True
    if caller.name is not None:
        meta["caller_id"] = caller.name
        if caller.version is not None:
            meta["caller_version"] = caller.version
    if caller.session is not None:
        meta["session_id"] = caller.session
    if tool.deprecated:
        meta["deprecated"] = tool.deprecated
    if call.meta:
        meta.update(call.meta)
    return meta


# ------------------------------------------------------------------ JSON


def encode(value: Any, warnings: list[str]) -> bytes:
    """Compact JSON in UTF-8. Never fails: what JSON cannot hold is replaced, with a warning."""
    try:
        text = _write(value, warnings, False)
    except (ValueError, TypeError, RecursionError, OverflowError):
        from tooli.contract.jsonable import jsonable

        text = _write(jsonable(value, warnings), warnings, False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, from a file name that is not UTF-8
        from tooli.contract.jsonable import jsonable

        return _write(jsonable(value, []), [], True).encode()


def _write(value: Any, warnings: list[str], ascii_only: bool) -> str:
    def replace(thing: Any) -> Any:
        from tooli.contract.jsonable import replacement

        return replacement(thing, warnings)

    if type(value) is str:
        return _quote(ascii_only)(value)
    make = _encoder()
    if make is None:
        import json

        return json.dumps(
            value, ensure_ascii=ascii_only, separators=(",", ":"), default=replace, allow_nan=False
        )
    return "".join(
        make({}, replace, _quote(ascii_only), None, ":", ",", False, False, False)(value, 0)
    )


def _encoder() -> Callable[..., Any] | None:
    try:
        from _json import make_encoder
    except ImportError:  # an interpreter without the C half
        return None
    return make_encoder


def _quote(ascii_only: bool) -> Callable[[str], str]:
    try:
        from _json import encode_basestring, encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring, encode_basestring_ascii
    return encode_basestring_ascii if ascii_only else encode_basestring
