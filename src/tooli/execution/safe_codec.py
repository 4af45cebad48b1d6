"""Encode the messages of an untrusted process as data that is safe to decode.

    text, numbers, lists, objects    as in JSON
    {"!": [kind, part, …]}           other values: a kind of VALUE_KINDS and its parts

A sandboxed process is not trusted, so its messages are JSON. A value that JSON cannot represent is
tagged with its kind. The decoder checks the types of the parts and builds the value with the class
that VALUE_KINDS lists, so the process cannot choose what is imported or called. Pickle and marshal
give no such guarantee. Values of other classes are converted to JSON. The types and the size of
each message are validated. An invalid message ends the call. execution/untrusted_messages.py
handles the decoded messages.
"""

from __future__ import annotations

import re
import sys
from base64 import b64decode, b64encode
from importlib import import_module
from json import JSONDecoder, JSONEncoder

from tooli.core import Record
from tooli.core.result_types import restore_failure
from tooli.errors import (
    APPLICABILITY_LEVELS,
    SUGGESTION_ACTIONS,
    Suggestion,
    ToolError,
    ToolRuntimeError,
    error_class_for,
)
from tooli.execution.ipc import (
    Codec,
    build_error,
    invalid_message_error,
    pack_error_fields,
    prepare_exception,
)
from tooli.pipeline.failure import requested_exit_code
from tooli.text.jsonable import MAX_JSON_DEPTH, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime, time, timedelta, timezone
    from typing import Any, TypeVar

    from tooli.core.protocols import JsonObject
    from tooli.core.result_types import ItemFailure, Next, NextStep, Page, Partial
    from tooli.execution.ipc import PackedError

    BytesType = TypeVar("BytesType", bytes, bytearray)

MAX_FRAME_BYTES = 64 << 20
"""Maximum size of a frame of an untrusted process, in bytes."""
MAX_VALUE_PARTS_BYTES = 64 << 20
"""Maximum memory of the lists, objects and other parts of a value, as estimate_memory() counts."""
MAX_FRAME_PARTS_BYTES = 4 << 20
"""Maximum memory of the parts of a frame. The values in a frame are packed and do not count."""
MAX_HASHED_PARTS = 2000
"""Maximum number of parts of set members and keys with a predictable hash, in one value.

Only the hashes of text and bytes are random. A process can choose other members and keys so that
all of them collide. Building the set then takes quadratic time.
"""
MAX_TEXT_CHARS = 10_000
"""Maximum length of a text that an untrusted process sends, such as a warning."""
MAX_DATA_BYTES = 1 << 20
"""Maximum size of the details of an error, of the data of a log message, and of questions."""
_MAX_NAME_CHARS, _MAX_TRACE_CHARS, _MAX_WORDS = 200, 100_000, 1000
_ERROR_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_TAG = "!"
_TAG_PREFIX = b'{"!"'  # how a tagged value starts in encoded data
_JSON_SCALARS = frozenset((str, int, float, bool, type(None)))
_CONTAINER_BYTES, _ELEMENT_BYTES = 200, 50  # estimated memory of an object or list, and its parts
_CHARS_PER_PART = 100  # characters, or bits of a number, that count as one part of a key
INVALID_DATA_ERRORS = (TypeError, ValueError, KeyError, AttributeError, RecursionError)


class ValueKind(Record):
    """A kind of value: its class, and functions that split it into parts and rebuild it."""

    module: str
    name: str
    to_parts: Callable[[Any], Iterable[object]]
    # The types or kinds that are accepted for each part; None: any data.
    part_types: tuple[tuple[type | str, ...] | None, ...]
    # Called with the class and the parts; None: the class is called with the parts.
    from_parts: Callable[..., object] | None = None


# ------------------------------------------------------------------ kinds

_INT, _STR, _FLOAT, _LIST = (int,), (str,), (float,), (list,)
_OPTIONAL_STR, _OPTIONAL_INT = (str, type(None)), (int, type(None))


def _record_parts(value: Any) -> Iterable[object]:
    return value._values()  # value is a Record


def _list_parts(value: Iterable[object]) -> Iterable[object]:
    return (list(value),)


def _timezone_parts(value: Any) -> Iterable[object]:
    offset, *name = value.__getinitargs__()  # value is a timezone
    return offset, name[0] if name else None


def _time_parts(value: time | datetime) -> Iterable[object]:
    clock = (value.hour, value.minute, value.second, value.microsecond)
    return (*clock, value.tzinfo, value.fold)


def _datetime_parts(value: datetime) -> Iterable[object]:
    return value.year, value.month, value.day, *_time_parts(value)


def _make_timezone(cls: type[timezone], offset: timedelta, name: str | None) -> timezone:
    return cls(offset) if name is None else cls(offset, name)


def _make_datetime(cls: Callable[..., object], *parts: object) -> object:
    *clock, tzinfo, fold = parts
    return cls(*clock, tzinfo, fold=fold)


def _make_bytes(cls: type[BytesType], text: str) -> BytesType:
    return cls(b64decode(text, validate=True))


def _make_page(
    cls: type[Page[Any]], items: list[object], cursor: str | None, total: int | None
) -> Page[Any]:
    return cls(items, next_cursor=cursor, total=total)


def _make_step(
    cls: type[NextStep], command: str, arguments: Mapping[str, object], why: str
) -> NextStep:
    if not all([type(name) is str for name in arguments]):
        raise ValueError("an argument name is not text")
    return cls(command, arguments, why)


def _make_next(cls: type[Next[Any]], result: object, steps: list[NextStep]) -> Next[Any]:
    made = cls(result)
    for step in steps:
        if _find_kind(type(step)) != "step":
            raise ValueError(f"unexpected {type(step).__name__}")
        made.then(step.command, step.arguments, why=step.why)
    return made


def _make_partial(
    cls: type[Partial[Any]], items: list[object], failures: list[list[Any]]
) -> Partial[Any]:
    restored: list[ItemFailure] = []
    for item, raw, is_translated in failures:
        fields = _validate_error_fields("", raw, None)
        restored.append(restore_failure(item, _plain_error_class(fields), fields, is_translated))
    return cls(items, restored)


_RESULT_MODULE, _PEER_MODULE = "tooli.core.result_types", "tooli.core.peer"
_TIME_PART_TYPES = (*[_INT] * 4, ("timezone", type(None)), _INT)
_CONTENT = (str, "image", "audio", "embedded", "link")
VALUE_KINDS: dict[str, ValueKind] = {
    "tuple": ValueKind("builtins", "tuple", _list_parts, (_LIST,)),
    "set": ValueKind("builtins", "set", _list_parts, (_LIST,)),
    "frozenset": ValueKind("builtins", "frozenset", _list_parts, (_LIST,)),
    "dict": ValueKind(
        "builtins", "dict", lambda v: ([list(item) for item in v.items()],), (_LIST,)
    ),
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
    "timedelta": ValueKind(
        "datetime", "timedelta", lambda v: (v.days, v.seconds, v.microseconds), (_INT,) * 3
    ),
    "timezone": ValueKind(
        "datetime", "timezone", _timezone_parts, (("timedelta",), _OPTIONAL_STR), _make_timezone
    ),
    "decimal": ValueKind("decimal", "Decimal", lambda v: (str(v),), (_STR,)),
    "uuid": ValueKind("uuid", "UUID", lambda v: (v.hex,), (_STR,)),
    "path": ValueKind("pathlib", "PosixPath", lambda v: (str(v),), (_STR,)),
    "pure path": ValueKind("pathlib", "PurePosixPath", lambda v: (str(v),), (_STR,)),
    "page": ValueKind(
        _RESULT_MODULE,
        "Page",
        lambda v: (v.items, v.next_cursor, v.total),
        (_LIST, _OPTIONAL_STR, _OPTIONAL_INT),
        _make_page,
    ),
    "step": ValueKind(_RESULT_MODULE, "NextStep", _record_parts, (_STR, (dict,), _STR), _make_step),
    "next": ValueKind(
        _RESULT_MODULE,
        "Next",
        lambda v: (v.result, list(v.steps)),
        (None, _LIST),
        _make_next,
    ),
    "partial": ValueKind(
        _RESULT_MODULE,
        "Partial",
        lambda v: (v.items, v.packed_failures()),
        (_LIST, _LIST),
        _make_partial,
    ),
    "image": ValueKind(_RESULT_MODULE, "Image", _record_parts, ((bytes,), _STR)),
    "audio": ValueKind(_RESULT_MODULE, "Audio", _record_parts, ((bytes,), _STR)),
    "embedded": ValueKind(
        _RESULT_MODULE, "Embedded", _record_parts, (_STR, (str, bytes), _OPTIONAL_STR)
    ),
    "link": ValueKind(
        _RESULT_MODULE, "Link", _record_parts, (_STR, _STR, _OPTIONAL_STR, _OPTIONAL_STR)
    ),
    "message": ValueKind(_RESULT_MODULE, "Message", _record_parts, (_CONTENT, _STR)),
    "elicit": ValueKind(_PEER_MODULE, "Elicit", _record_parts, (_STR, (dict,))),
    "sample": ValueKind(
        _PEER_MODULE,
        "Sample",
        _record_parts,
        ((list, tuple), _INT, _OPTIONAL_STR, (float, int, type(None)), (list, tuple)),
    ),
    "roots": ValueKind(_PEER_MODULE, "Roots", _record_parts, ()),
}
"""The kinds of values that keep their class. Building one of them has no side effects."""
_KIND_NAMES = {(kind.module, kind.name): name for name, kind in VALUE_KINDS.items()}


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode()


# ------------------------------------------------------------------ encoding, in the sandbox


def dumps(value: object, warn: Callable[[str], None] | None = None) -> bytes:
    """Encode a value. Values of classes without a kind are converted to JSON."""
    warnings: list[str] = []
    try:
        data = _encode_json(_to_tagged(value, warnings, 0))
        if _TAG_PREFIX in data:
            _decode(data)  # fails if its kind does not accept a part, or for too many members
    except Exception:
        warnings = []
        data = _encode_json(_to_tagged(to_jsonable(value, warnings), warnings, 0))
    if estimate_memory(data, MAX_VALUE_PARTS_BYTES) > MAX_VALUE_PARTS_BYTES:
        raise _result_too_large_error("too many parts")
    if warn is not None:
        for warning in warnings:
            warn(warning)
    return data


def _result_too_large_error(reason: str) -> ToolRuntimeError:
    return ToolRuntimeError(
        f"The result of the isolated command has {reason}. "
        f"The limit is {MAX_FRAME_BYTES >> 20} MB at once.",
        suggestion=Suggestion("fix", "Yield items one by one, or write a file (Output)."),
    )


def _encode_json(tree: object) -> bytes:
    text = JSONEncoder(separators=(",", ":"), check_circular=False).encode(tree)
    return b"j" + text.encode("ascii")


def _to_tagged(value: Any, warnings: list[str], depth: int) -> Any:
    """Return a value as JSON types, in which other values are tagged objects."""
    cls: type = type(value)  # pyright: ignore[reportUnknownVariableType]
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


def loads(data: bytes, max_parts_bytes: int = MAX_VALUE_PARTS_BYTES) -> Any:
    """Decode a value; raise a ToolRuntimeError if it is invalid."""
    try:
        if estimate_memory(data, max_parts_bytes) > max_parts_bytes:
            raise ValueError("too many parts")
        return _decode(data)
    except Exception as failure:
        raise invalid_message_error(f"{type(failure).__name__}: {failure}") from None


def _decode(data: bytes) -> Any:
    if data[:1] != b"j":
        raise ValueError("not JSON data")
    return JSONDecoder(object_hook=_ValueBuilder().build).decode(data[1:].decode("ascii"))


def estimate_memory(data: bytes, limit: int) -> int:
    """Return about how much memory the parts of a value need, without decoding it.

    Brackets and commas in text do not count. It takes linear time, whatever the data is; a regular
    expression does not. Raises ValueError if a text has no end.
    """
    size = _count_memory(data)
    if size <= limit:
        return size
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # no quote in it is part of a text
    # Each bracket and each comma allows one element, and each element has at most two texts.
    if unescaped.count(b'"') > 4 * limit // _ELEMENT_BYTES + 2:
        return limit + 1
    parts = unescaped.split(b'"')
    if len(parts) % 2 == 0:
        raise ValueError("a text without an end")
    return sum([_count_memory(part) for part in parts[::2]])


def _count_memory(data: bytes) -> int:
    containers = data.count(b"[") + data.count(b"{")
    return containers * _CONTAINER_BYTES + data.count(b",") * _ELEMENT_BYTES


class _ValueBuilder:
    """Builds the values that the tagged objects of one message stand for."""

    def __init__(self) -> None:
        self._hashed_parts = 0  # parts of members and keys with a predictable hash

    def build(self, obj: JsonObject) -> Any:
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
            part_type: type = part.__class__
            if types is not None and part_type not in types and _find_kind(part_type) not in types:
                raise ValueError(f"a {name} has no part of type {part_type.__name__}")
        if name in _HASHING_KINDS:
            self._count_hashed([key for key, _ in parts[0]] if name == "dict" else parts[0])
        cls = getattr(import_module(kind.module), kind.name)
        return cls(*parts) if kind.from_parts is None else kind.from_parts(cls, *parts)

    def _count_hashed(self, keys: list[Any]) -> None:
        """Add the parts of members or keys; raise ValueError if there are too many."""
        for key in keys:
            if type(key) is not str and type(key) is not bytes:
                self._hashed_parts += _count_parts(key)
                if self._hashed_parts > MAX_HASHED_PARTS:
                    raise ValueError("too many members of sets, or keys that are not text")


_HASHING_KINDS = ("set", "frozenset", "dict")


def _count_parts(key: Any) -> int:
    """Return the number of parts of a key: how long it takes to compare it with an equal one."""
    if type(key) in (tuple, frozenset):
        return 1 + sum([_count_parts(part) for part in key])
    if isinstance(key, int):
        return 1 + key.bit_length() // _CHARS_PER_PART
    return 1 + len(key if isinstance(key, (str, bytes)) else str(key)) // _CHARS_PER_PART


# ------------------------------------------------------------------ codec


class SafeCodec(Codec):
    """Encodes and decodes the messages of an untrusted process."""

    max_frame_bytes = MAX_FRAME_BYTES

    def encode_frame(self, kind: str, payload: object) -> bytes:
        """Encode a message. Values in its payload are packed already."""
        data = _encode_json([kind, _to_tagged(payload, [], 0)])
        if len(data) > MAX_FRAME_BYTES:
            raise _result_too_large_error(f"{len(data)} bytes")
        return data

    def decode_frame(self, data: bytes) -> tuple[str, Any]:
        """Return the kind and the payload of a message, or raise the error E4051."""
        message = loads(data, MAX_FRAME_PARTS_BYTES)
        if message.__class__ is not list or len(message) != 2 or type(message[0]) is not str:
            raise invalid_message_error("not a message")
        return message[0], message[1]

    def pack(self, value: object, warn: Callable[[str], None]) -> bytes:
        """Encode a value. Values of classes without a kind are converted to JSON."""
        return dumps(value, warn)

    def unpack(self, data: bytes) -> Any:
        """Decode a value, or raise the error E4051."""
        return loads(data)

    def pack_error(self, exc: BaseException) -> PackedError:
        """Pack an exception as an exit code, or as the fields of its ToolError."""
        exc, trace = prepare_exception(exc)
        code = requested_exit_code(exc)
        if code is None:
            name, fields, trace = pack_error_fields(exc, trace)
            return name, {**fields, "details": _limit_details(fields["details"])}, trace
        exit_value = getattr(exc, "code", code)
        return "exit", exit_value if isinstance(exit_value, str) else code, None

    def unpack_error(self, packed: PackedError) -> BaseException:
        """Return the exception that pack_error() encoded, or the error E4051 if it is invalid."""
        try:
            name, data, trace = packed
            if name == "exit":
                return SystemExit(_validate_exit(data))
            fields = _validate_error_fields(name, data, trace)
        except INVALID_DATA_ERRORS:
            return invalid_message_error("invalid error")
        error_class = _plain_error_class(fields)
        is_name = name.isidentifier() and len(name) <= _MAX_NAME_CHARS
        trace = trace[-_MAX_TRACE_CHARS:] if trace is not None else None
        return build_error(error_class, name if is_name else "Exception", fields, trace)


def _plain_error_class(fields: JsonObject) -> type[ToolError]:
    """Return the class for an error. A class of the app could run any code in its `__init__`."""
    candidates = (
        error_class_for(fields["code"], fields["category"]),
        error_class_for("", fields["category"]),
        ToolError,
    )
    return next(cls for cls in candidates if cls.__init__ is ToolError.__init__)


def _validate_exit(code: Any) -> int | str:
    """Return the argument of SystemExit; raise TypeError if it is invalid."""
    if type(code) is str:
        return cut_text(code)
    if type(code) is not int or code.bit_length() > 31:
        raise TypeError
    return code


def _validate_error_fields(name: object, raw: Any, trace: object) -> JsonObject:
    """Return the fields of an error; raise TypeError or KeyError if they are invalid."""
    texts = (name, raw["code"], raw["category"], raw["message"], trace or "")
    if not all([type(text) is str for text in texts]):
        raise TypeError
    details, field, code = raw.get("details"), raw.get("field"), raw.get("exit_code")
    status = raw.get("http_status")
    if type(details) not in (dict, type(None)) or type(field) not in (str, type(None)):
        raise TypeError
    if _ERROR_CODE.fullmatch(raw["code"]) is None or len(raw["category"]) > _MAX_NAME_CHARS:
        raise TypeError
    return {
        **{key: raw[key] for key in ("code", "category")},
        "message": cut_text(raw["message"]),
        "field": None if field is None else cut_text(field),
        "suggestion": _validate_suggestion(raw.get("suggestion")),
        "is_retryable": bool(raw.get("is_retryable")),
        "details": _limit_details(details),
        "exit_code": code if type(code) is int and 0 < code < 256 else None,
        "http_status": status if type(status) is int and 400 <= status <= 599 else None,
        "warnings": [cut_text(line) for line in raw.get("warnings", ())[:_MAX_ERROR_WARNINGS]],
    }


_MAX_ERROR_WARNINGS = 20


def _limit_details(details: JsonObject | None) -> JsonObject | None:
    """Return the details of an error, or None if they are too large for a message."""
    if not details:
        return details
    data = _encode_json(details)
    is_small = len(data) <= MAX_DATA_BYTES
    return details if is_small and _count_memory(data) < MAX_FRAME_PARTS_BYTES // 2 else None


def _validate_suggestion(raw: Any) -> JsonObject | None:
    if not raw:
        return None
    argv = raw.get("argv")
    if (
        raw["action"] not in SUGGESTION_ACTIONS
        or raw.get("applicability") not in APPLICABILITY_LEVELS
        or type(raw.get("fix")) is not str
        or type(raw.get("example")) not in (str, type(None))
        or type(argv) not in (list, tuple, type(None))
        or not all([type(word) is str for word in argv or ()])
        or sum([len(word) for word in argv or ()]) > MAX_DATA_BYTES
        or len(argv or ()) > _MAX_WORDS
    ):
        raise TypeError
    names = ("action", "fix", "example", "argv", "applicability")
    fields = {name: raw[name] for name in names if name in raw}
    if type(raw.get("arguments")) is dict:
        fields["arguments"] = _limit_details(raw["arguments"])
    texts = {name: cut_text(raw[name]) for name in ("fix", "example") if raw.get(name) is not None}
    return {**fields, **texts}


def cut_text(text: str) -> str:
    """Return a text, cut to the maximum length; raise TypeError if it is not text."""
    return str.__str__(text)[:MAX_TEXT_CHARS]
