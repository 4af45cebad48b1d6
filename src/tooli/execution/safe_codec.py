"""Encode values of an untrusted process as data that is safe to decode.

    text, numbers, lists, objects    as in JSON
    {"!": [kind, part, …]}           other values: a kind of VALUE_KINDS and its parts

A sandboxed process is not trusted, so its messages are JSON. A value that JSON lacks is tagged with
its kind. The decoder checks the types of the parts and builds the value with the class that
VALUE_KINDS lists, so the process cannot choose what is imported or called. Pickle and marshal give
no such guarantee. Values of other classes are converted to JSON.
"""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from importlib import import_module
from json import JSONDecoder, JSONEncoder

from tooli.core.record import Record
from tooli.errors import Suggestion, ToolRuntimeError
from tooli.execution.timeouts import MAX_FRAME_BYTES, invalid_message_error
from tooli.text.jsonable import MAX_JSON_DEPTH, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


_TAG = "!"
_TAG_PREFIX = b'{"!"'  # how a tagged value starts in encoded data
_JSON_SCALARS = frozenset((str, int, float, bool, type(None)))
_type: Callable[[Any], Any] = type


class ValueKind(Record):
    """A kind of value: its class, and functions that split it into parts and rebuild it."""

    module: str
    name: str
    to_parts: Callable[[Any], Iterable[Any]]
    part_types: tuple[tuple[type, ...] | None, ...]  # the types of the parts; None: any data
    # Called with the class and the parts; None: the class is called with the parts.
    from_parts: Callable[..., Any] | None = None


# ------------------------------------------------------------------ kinds

_INT, _STR, _FLOAT, _LIST = (int,), (str,), (float,), (list,)
_OPTIONAL_STR, _OPTIONAL_INT = (str, type(None)), (int, type(None))


def _record_parts(value: Any) -> Iterable[Any]:
    return value._values()  # value is a Record


def _list_parts(value: Any) -> Iterable[Any]:
    return (list(value),)


def _timedelta_parts(value: Any) -> Iterable[Any]:
    return value.days, value.seconds, value.microseconds


def _timezone_parts(value: Any) -> Iterable[Any]:
    offset, *name = value.__getinitargs__()
    return offset, name[0] if name else None


def _time_parts(value: Any) -> Iterable[Any]:
    clock = (value.hour, value.minute, value.second, value.microsecond)
    return (*clock, value.tzinfo, value.fold)


def _datetime_parts(value: Any) -> Iterable[Any]:
    return value.year, value.month, value.day, *_time_parts(value)


def _make_timezone(cls: Any, offset: Any, name: str | None) -> Any:
    _require_type(offset, "datetime", "timedelta")
    return cls(offset) if name is None else cls(offset, name)


def _make_datetime(cls: Any, *parts: Any) -> Any:
    *clock, tzinfo, fold = parts
    if tzinfo is not None:
        _require_type(tzinfo, "datetime", "timezone")
    return cls(*clock, tzinfo, fold=fold)


def _make_bytes(cls: Any, text: str) -> Any:
    return cls(b64decode(text, validate=True))


def _make_page(cls: Any, items: Any, cursor: Any, total: Any) -> Any:
    return cls(items, next_cursor=cursor, total=total)


def _make_step(cls: Any, command: str, arguments: dict[Any, Any], why: str) -> Any:
    if not all([type(name) is str for name in arguments]):
        raise ValueError("an argument name is not text")
    return cls(command, arguments, why)


def _make_next(cls: Any, result: Any, steps: list[Any]) -> Any:
    made = cls(result)
    for step in steps:
        _require_type(step, "tooli.core.handoffs", "NextStep")
        made.then(step.command, step.arguments, why=step.why)
    return made


def _make_message(cls: Any, content: Any, role: str) -> Any:
    if type(content) is not str:
        _require_type(content, _CONTENT_MODULE, "Image", "Audio", "Embedded", "Link")
    return cls(content, role)


def _require_type(value: Any, module: str, *names: str) -> None:
    """Raise ValueError if a part is not of one of these classes."""
    if all([type(value) is not getattr(import_module(module), name) for name in names]):
        raise ValueError(f"unexpected {type(value).__name__}")


_CONTENT_MODULE, _PEER_MODULE = "tooli.core.content", "tooli.core.peer"
_TIME_PART_TYPES = (*[_INT] * 4, None, _INT)
VALUE_KINDS: dict[str, ValueKind] = {
    "tuple": ValueKind("builtins", "tuple", _list_parts, (_LIST,)),
    "set": ValueKind("builtins", "set", _list_parts, (_LIST,)),
    "frozenset": ValueKind("builtins", "frozenset", _list_parts, (_LIST,)),
    "dict": ValueKind("builtins", "dict", lambda v: ([list(one) for one in v.items()],), (_LIST,)),
    "bytes": ValueKind("builtins", "bytes", lambda v: (_to_base64(v),), (_STR,), _make_bytes),
    "bytearray": ValueKind(
        "builtins", "bytearray", lambda v: (_to_base64(v),), (_STR,), _make_bytes
    ),
    "complex": ValueKind("builtins", "complex", lambda v: (v.real, v.imag), (_FLOAT, _FLOAT)),
    "date": ValueKind("datetime", "date", lambda v: (v.year, v.month, v.day), (_INT,) * 3),
    "time": ValueKind("datetime", "time", _time_parts, _TIME_PART_TYPES, _make_datetime),
    "datetime": ValueKind(
        "datetime", "datetime", _datetime_parts, (*[_INT] * 3, *_TIME_PART_TYPES), _make_datetime
    ),
    "timedelta": ValueKind("datetime", "timedelta", _timedelta_parts, (_INT,) * 3),
    "timezone": ValueKind(
        "datetime", "timezone", _timezone_parts, (None, _OPTIONAL_STR), _make_timezone
    ),
    "decimal": ValueKind("decimal", "Decimal", lambda v: (str(v),), (_STR,)),
    "uuid": ValueKind("uuid", "UUID", lambda v: (v.hex,), (_STR,)),
    "path": ValueKind("pathlib", "PosixPath", lambda v: (str(v),), (_STR,)),
    "pure path": ValueKind("pathlib", "PurePosixPath", lambda v: (str(v),), (_STR,)),
    "page": ValueKind(
        "tooli.core.page",
        "Page",
        lambda v: (v.items, v.next_cursor, v.total),
        (_LIST, _OPTIONAL_STR, _OPTIONAL_INT),
        _make_page,
    ),
    "step": ValueKind(
        "tooli.core.handoffs", "NextStep", _record_parts, (_STR, (dict,), _STR), _make_step
    ),
    "next": ValueKind(
        "tooli.core.handoffs",
        "Next",
        lambda v: (v.result, list(v.steps)),
        (None, _LIST),
        _make_next,
    ),
    "image": ValueKind(_CONTENT_MODULE, "Image", _record_parts, ((bytes,), _STR)),
    "audio": ValueKind(_CONTENT_MODULE, "Audio", _record_parts, ((bytes,), _STR)),
    "embedded": ValueKind(
        _CONTENT_MODULE, "Embedded", _record_parts, (_STR, (str, bytes), _OPTIONAL_STR)
    ),
    "link": ValueKind(
        _CONTENT_MODULE, "Link", _record_parts, (_STR, _STR, _OPTIONAL_STR, _OPTIONAL_STR)
    ),
    "message": ValueKind(_CONTENT_MODULE, "Message", _record_parts, (None, _STR), _make_message),
    "elicit": ValueKind(_PEER_MODULE, "Elicit", _record_parts, (_STR, (dict,))),
    "sample": ValueKind(
        _PEER_MODULE, "Sample", _record_parts, ((list, tuple), _INT, _OPTIONAL_STR)
    ),
    "roots": ValueKind(_PEER_MODULE, "Roots", _record_parts, ()),
}
"""The kinds of values that keep their class. Building one of them has no side effects."""
_KIND_NAMES = {(kind.module, kind.name): name for name, kind in VALUE_KINDS.items()}


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode()


# ------------------------------------------------------------------ encoding, in the sandbox


def dumps(value: Any, warn: Callable[[str], None] | None = None) -> bytes:
    """Encode a value. Values of classes without a kind are converted to JSON."""
    warnings: list[str] = []
    try:
        data = _encode_json(_to_tagged(value, warnings, 0))
        if _TAG_PREFIX in data:
            loads(data)  # fails if a part has a type that its kind does not accept
    except Exception:
        warnings = []
        data = _encode_json(_to_tagged(to_jsonable(value, warnings), warnings, 0))
    if warn is not None:
        for warning in warnings:
            warn(warning)
    return data


def encode_frame(kind: str, payload: Any) -> bytes:
    """Encode a message to the caller. Values in its payload are encoded already (dumps)."""
    data = _encode_json([kind, _to_tagged(payload, [], 0)])
    if len(data) > MAX_FRAME_BYTES:
        raise frame_too_large_error(len(data))
    return data


def _encode_json(tree: Any) -> bytes:
    text = JSONEncoder(separators=(",", ":"), check_circular=False).encode(tree)
    return b"j" + text.encode("ascii")


def _to_tagged(value: Any, warnings: list[str], depth: int) -> Any:
    """Return a value as JSON types, in which other values are tagged objects."""
    cls = _type(value)
    if cls in _JSON_SCALARS:
        return value
    if depth > 2 * MAX_JSON_DEPTH:
        raise ValueError("nested too deeply or recursive")
    next_depth = depth + 1
    if cls is list:
        return [
            v if type(v) in _JSON_SCALARS else _to_tagged(v, warnings, next_depth) for v in value
        ]
    if cls is dict and _TAG not in value and all([type(name) is str for name in value]):
        return {
            name: v if type(v) in _JSON_SCALARS else _to_tagged(v, warnings, next_depth)
            for name, v in value.items()
        }
    kind = _find_kind(cls)
    if kind is not None:
        parts = [
            _to_tagged(part, warnings, next_depth) for part in VALUE_KINDS[kind].to_parts(value)
        ]
        return {_TAG: [kind, *parts]}
    if isinstance(value, str):
        return str.__str__(value)
    return _to_tagged(to_jsonable(value, warnings), warnings, next_depth)


def _find_kind(cls: type) -> str | None:
    name = cls.__qualname__
    module = "pathlib" if cls.__module__ == "pathlib._local" else cls.__module__
    kind = _KIND_NAMES.get((module, name))
    return (
        kind if kind is not None and getattr(sys.modules.get(module), name, None) is cls else None
    )


# ------------------------------------------------------------------ decoding, outside the sandbox


def loads(data: bytes) -> Any:
    """Decode a value; raise a ToolRuntimeError if it is invalid."""
    try:
        if data[:1] != b"j":
            raise ValueError("not encoded as data")
        return _DECODER.decode(data[1:].decode("ascii"))
    except Exception as failure:
        raise invalid_message_error(f"{type(failure).__name__}: {failure}") from None


def _from_tagged(obj: dict[str, Any]) -> Any:
    """Return the object, or the value that a tagged object stands for."""
    if _TAG not in obj:
        return obj
    tagged: Any = obj[_TAG]
    if tagged.__class__ is not list:
        raise ValueError("a tag without a kind")
    name, *parts = tagged
    kind = VALUE_KINDS[name]
    if len(obj) != 1 or len(parts) != len(kind.part_types):
        raise ValueError(f"not a valid {name}")
    for part, types in zip(parts, kind.part_types, strict=True):
        if types is not None and type(part) not in types:
            raise ValueError(f"a {name} has no part of type {type(part).__name__}")
    cls = getattr(import_module(kind.module), kind.name)
    return cls(*parts) if kind.from_parts is None else kind.from_parts(cls, *parts)


_DECODER = JSONDecoder(object_hook=_from_tagged)


def frame_too_large_error(size: int) -> ToolRuntimeError:
    """Return the error for a call whose result is too large for one message."""
    return ToolRuntimeError(
        f"The result of the isolated command has {size} bytes. "
        f"The limit is {MAX_FRAME_BYTES >> 20} MB at once.",
        suggestion=Suggestion("fix", "Yield items one by one, or write a file (Output)."),
    )
