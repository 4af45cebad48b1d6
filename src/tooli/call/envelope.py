"""The envelope: one JSON document for every outcome, and how any value becomes JSON.

`_json` is the C half of the standard library's `json`; the Python half costs more
to import than the rest of a call together.
"""

from __future__ import annotations

from tooli.call.model import PLAIN_OPTIONS, PYTHON, Ok

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.call.model import Call, Caller, Outcome


def document(outcome: Outcome, call: Call, milliseconds: Callable[[], int]) -> bytes:
    """An outcome as every door answers it, in bytes."""
    error = None if isinstance(outcome, Ok) else outcome.error.to_dict()
    value = outcome.value if isinstance(outcome, Ok) else None
    return write(error, value, lambda: meta_of(call, milliseconds()), call.warnings)


LONGEST = 9_999_999
"""Milliseconds that a call is taken to have lasted, where its answer is measured before it ends."""


def measure(outcome: Outcome, call: Call) -> int:
    """Bytes of the document that an outcome becomes, with the end of its line."""
    return len(document(outcome, call, lambda: LONGEST)) + 1


def write(
    error: Mapping[str, Any] | None,
    result: Any,
    meta: Callable[[], Mapping[str, Any]],
    warnings: list[str],
) -> bytes:
    """The envelope: fixed order, nothing empty; `meta` last, so that it can say what happened."""
    if error is not None:
        head = b'{"ok":false,"error":' + encode(error, warnings)
    elif result is None:
        head = b'{"ok":true'
    else:
        head = b'{"ok":true,"result":' + encode(result, warnings)
    return head + b',"meta":' + encode(meta(), []) + b"}"


def meta_of(call: Call, milliseconds: int) -> dict[str, Any]:
    """What is said about a call beside its result; only what there is to say."""
    tool = call.tool
    meta: dict[str, Any] = {"tool": tool.id}
    if tool.version is not None:
        meta["version"] = tool.version
    meta["duration_ms"] = milliseconds
    if call.warnings:
        meta["warnings"] = call.warnings
    if call.options is not PLAIN_OPTIONS and call.options.dry_run:
        meta["dry_run"] = True
    if call.caller is not PYTHON:
        _add_caller(meta, call.caller, call.options.detailed)
    if tool.deprecated:
        meta["deprecated"] = tool.deprecated
    if call.meta:
        meta.update(call.meta)
    return meta


def _add_caller(meta: dict[str, Any], caller: Caller, detailed: bool | None) -> None:
    """Who called; of what kind they are only where no name says so, or all is wanted."""
    if caller.name is not None:
        meta["caller_id"] = caller.name
        if caller.version is not None:
            meta["caller_version"] = caller.version
    if caller.session is not None:
        meta["session_id"] = caller.session
    if caller.category is not None and (detailed or caller.name is None):
        meta["execution_context"] = caller.category


# ------------------------------------------------------------------ JSON


def encode(value: Any, warnings: list[str]) -> bytes:
    """Compact JSON in UTF-8. Never fails: what JSON cannot hold is replaced, with a warning."""
    return encoder(warnings)(value)


def encoder(warnings: list[str]) -> Callable[[Any], bytes]:
    """An encoder for many values, one after another; what it replaces it notes in `warnings`."""

    def replace(thing: Any) -> Any:
        from tooli.contract.jsonable import replacement

        if hasattr(thing.__class__, "__next__"):  # can be read but once: the thorough way does it
            raise TypeError
        return replacement(thing, warnings)

    write: Callable[[Any], str] | None = None

    def encode_one(value: Any) -> bytes:
        nonlocal write
        if write is None:
            text = _by_hand(value)
            if text is not None:
                return text.encode()
            write = _writer(replace)
        try:
            text = write(value)
        except Exception:
            from tooli.contract.jsonable import jsonable

            text = write(jsonable(value, warnings))
        # Half a surrogate pair, from a file name that is not UTF-8, stands as JSON escapes it.
        return text.encode(errors="backslashreplace")

    return encode_one


def weigh(value: Any, warnings: list[str]) -> tuple[int, Any]:
    """Bytes of a value's JSON, and the value: where a part of it can be read but once, a copy."""
    from tooli.contract.jsonable import jsonable, replacement

    def replace(thing: Any) -> Any:
        if hasattr(thing.__class__, "__next__"):
            raise TypeError
        return replacement(thing, warnings)

    write = _writer(replace)
    try:
        text = write(value)
    except Exception:
        value = jsonable(value, warnings)
        text = write(value)
    return len(text.encode(errors="backslashreplace")), value


def _by_hand(value: Any, depth: int = 0) -> str | None:
    """A small value of the plainest kind: it does not need the encoder, which is a library."""
    kind = value.__class__
    if kind is str:
        plain = value.isascii() and value.isprintable() and '"' not in value
        return f'"{value}"' if plain and "\\" not in value else None
    if kind is int:
        return str(value) if -(10**15) < value < 10**15 else None
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is list and len(value) <= 12 and depth < 4:
        texts = [text for item in value if (text := _by_hand(item, depth + 1)) is not None]
        return f"[{','.join(texts)}]" if len(texts) == len(value) else None
    if kind is dict and len(value) <= 12 and depth < 4:
        parts: list[str] = []
        for key, item in value.items():
            name, text = _by_hand(key), _by_hand(item, depth + 1)
            if name is None or text is None or type(key) is not str:
                return None
            parts.append(f"{name}:{text}")
        return "{" + ",".join(parts) + "}"
    return None


def _writer(replace: Callable[[Any], Any]) -> Callable[[Any], str]:
    try:
        from _json import encode_basestring, make_encoder
    except ImportError:  # an interpreter without the C half
        from json import JSONEncoder

        return JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), default=replace, allow_nan=False
        ).encode

    made: Any = None

    def write(value: Any) -> str:
        nonlocal made
        if type(value) is str:
            return encode_basestring(value)
        if made is None:
            made = make_encoder({}, replace, encode_basestring, None, ":", ",", False, False, False)
        try:
            return "".join(made(value, 0))
        except BaseException:
            made = None  # what it was inside of is still marked as seen
            raise

    return write
