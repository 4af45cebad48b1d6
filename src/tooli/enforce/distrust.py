"""What comes out from behind walls: data, and nothing that is obeyed.

    text, numbers, lists, objects    as JSON has them
    {"!": [kind, part, …]}           what JSON does not know: one of a table of kinds

The process behind walls is not trusted. Here its words are read as JSON, and a kind is made by
this table from parts whose types were looked at: nothing that the process names is looked up,
called or set. Neither a pickle nor anything marshalled can be read like that. What is of no kind
crosses as its JSON.
"""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from importlib import import_module
from json import JSONDecoder, JSONEncoder

from tooli.contract.jsonable import DEEPEST, jsonable
from tooli.contract.record import Record
from tooli.enforce.frames import LARGEST, garbled

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.errors import ToolRuntimeError

_MARK = "!"
_CROSSES = b'{"!"'  # in what was written: something that JSON does not know
_ATOMS = frozenset((str, int, float, bool, type(None)))
_type: Callable[[Any], Any] = type


class Kind(Record):
    """One kind of value: where its class is, what it is taken apart into, and put together from."""

    home: str
    name: str
    parts: Callable[[Any], Iterable[Any]]
    takes: tuple[tuple[type, ...] | None, ...]  # the types of its parts; None: any data
    make: Callable[..., Any] | None = None  # given the class and the parts; None: the class does it


# ------------------------------------------------------------------ the kinds

_INT, _STR, _FLOAT, _LIST = (int,), (str,), (float,), (list,)
_SOME_STR, _SOME_INT = (str, type(None)), (int, type(None))


def _fields(value: Any) -> Iterable[Any]:
    return value._values()  # of a Record


def _listed(value: Any) -> Iterable[Any]:
    return (list(value),)


def _numbers(value: Any) -> Iterable[Any]:
    return value.days, value.seconds, value.microseconds


def _zone_parts(value: Any) -> Iterable[Any]:
    offset, *name = value.__getinitargs__()
    return offset, name[0] if name else None


def _time_parts(value: Any) -> Iterable[Any]:
    clock = (value.hour, value.minute, value.second, value.microsecond)
    return (*clock, value.tzinfo, value.fold)


def _moment_parts(value: Any) -> Iterable[Any]:
    return value.year, value.month, value.day, *_time_parts(value)


def _make_zone(cls: Any, offset: Any, name: str | None) -> Any:
    _expect(offset, "datetime", "timedelta")
    return cls(offset) if name is None else cls(offset, name)


def _make_moment(cls: Any, *parts: Any) -> Any:
    *clock, zone, fold = parts
    if zone is not None:
        _expect(zone, "datetime", "timezone")
    return cls(*clock, zone, fold=fold)


def _make_bytes(cls: Any, text: str) -> Any:
    return cls(b64decode(text, validate=True))


def _make_page(cls: Any, items: Any, cursor: Any, total: Any) -> Any:
    return cls(items, next_cursor=cursor, total=total)


def _make_step(cls: Any, command: str, arguments: dict[Any, Any], why: str) -> Any:
    if not all([type(name) is str for name in arguments]):
        raise ValueError("an argument has no name")
    return cls(command, arguments, why)


def _make_next(cls: Any, result: Any, steps: list[Any]) -> Any:
    made = cls(result)
    for step in steps:
        _expect(step, "tooli.contract.handoffs", "Step")
        made.then(step.command, step.arguments, why=step.why)
    return made


def _make_message(cls: Any, content: Any, role: str) -> Any:
    if type(content) is not str:
        _expect(content, _CONTENT, "Image", "Audio", "Embedded", "Link")
    return cls(content, role)


def _expect(value: Any, home: str, *names: str) -> None:
    """Refuse a part that is none of some kinds."""
    if all([type(value) is not getattr(import_module(home), name) for name in names]):
        raise ValueError(f"a {type(value).__name__} stands where it should not")


_CONTENT, _PEER = "tooli.contract.content", "tooli.call.peer"
_CLOCK = (*[_INT] * 4, None, _INT)
KINDS: dict[str, Kind] = {
    "tuple": Kind("builtins", "tuple", _listed, (_LIST,)),
    "set": Kind("builtins", "set", _listed, (_LIST,)),
    "frozenset": Kind("builtins", "frozenset", _listed, (_LIST,)),
    "dict": Kind("builtins", "dict", lambda v: ([list(one) for one in v.items()],), (_LIST,)),
    "bytes": Kind("builtins", "bytes", lambda v: (_text(v),), (_STR,), _make_bytes),
    "bytearray": Kind("builtins", "bytearray", lambda v: (_text(v),), (_STR,), _make_bytes),
    "complex": Kind("builtins", "complex", lambda v: (v.real, v.imag), (_FLOAT, _FLOAT)),
    "date": Kind("datetime", "date", lambda v: (v.year, v.month, v.day), (_INT,) * 3),
    "time": Kind("datetime", "time", _time_parts, _CLOCK, _make_moment),
    "datetime": Kind("datetime", "datetime", _moment_parts, (*[_INT] * 3, *_CLOCK), _make_moment),
    "timedelta": Kind("datetime", "timedelta", _numbers, (_INT,) * 3),
    "timezone": Kind("datetime", "timezone", _zone_parts, (None, _SOME_STR), _make_zone),
    "decimal": Kind("decimal", "Decimal", lambda v: (str(v),), (_STR,)),
    "uuid": Kind("uuid", "UUID", lambda v: (v.hex,), (_STR,)),
    "path": Kind("pathlib", "PosixPath", lambda v: (str(v),), (_STR,)),
    "pure path": Kind("pathlib", "PurePosixPath", lambda v: (str(v),), (_STR,)),
    "page": Kind(
        "tooli.contract.pages",
        "Page",
        lambda v: (v.items, v.next_cursor, v.total),
        (_LIST, _SOME_STR, _SOME_INT),
        _make_page,
    ),
    "step": Kind("tooli.contract.handoffs", "Step", _fields, (_STR, (dict,), _STR), _make_step),
    "next": Kind(
        "tooli.contract.handoffs",
        "Next",
        lambda v: (v.result, list(v.steps)),
        (None, _LIST),
        _make_next,
    ),
    "image": Kind(_CONTENT, "Image", _fields, ((bytes,), _STR)),
    "audio": Kind(_CONTENT, "Audio", _fields, ((bytes,), _STR)),
    "embedded": Kind(_CONTENT, "Embedded", _fields, (_STR, (str, bytes), _SOME_STR)),
    "link": Kind(_CONTENT, "Link", _fields, (_STR, _STR, _SOME_STR, _SOME_STR)),
    "message": Kind(_CONTENT, "Message", _fields, (None, _STR), _make_message),
    "elicit": Kind(_PEER, "Elicit", _fields, (_STR, (dict,))),
    "sample": Kind(_PEER, "Sample", _fields, ((list, tuple), _INT, _SOME_STR)),
    "roots": Kind(_PEER, "Roots", _fields, ()),
}
"""What arrives as it is: to make one of these from such parts does nothing else."""
_NAMES = {(kind.home, kind.name): name for name, kind in KINDS.items()}


def _text(data: bytes) -> str:
    return b64encode(data).decode()


# ------------------------------------------------------------------ writing, behind the walls


def dumps(value: Any, warn: Callable[[str], None] | None = None) -> bytes:
    """Any value as it can cross."""
    said: list[str] = []
    try:
        data = _write(_taken_apart(value, said, 0))
        if _CROSSES in data:
            loads(data)  # a part may be none that its kind takes
    except Exception:
        said = []
        data = _write(_taken_apart(jsonable(value, said), said, 0))
    if warn is not None:
        for one in said:
            warn(one)
    return data


def frame(kind: str, what: Any) -> bytes:
    """What is said to the caller; values in it were written before, and cross whole."""
    data = _write([kind, _taken_apart(what, [], 0)])
    if len(data) > LARGEST:
        raise too_large(len(data))
    return data


def _write(tree: Any) -> bytes:
    text = JSONEncoder(separators=(",", ":"), check_circular=False).encode(tree)
    return b"j" + text.encode("ascii")


def _taken_apart(value: Any, said: list[str], depth: int) -> Any:
    """A value in JSON's own types, with marks where they do not do."""
    cls = _type(value)
    if cls in _ATOMS:
        return value
    if depth > 2 * DEEPEST:
        raise ValueError("nested too deeply, or within itself")
    inside = depth + 1
    if cls is list:
        return [v if type(v) in _ATOMS else _taken_apart(v, said, inside) for v in value]
    if cls is dict and _MARK not in value and all([type(name) is str for name in value]):
        return {
            name: v if type(v) in _ATOMS else _taken_apart(v, said, inside)
            for name, v in value.items()
        }
    kind = _kind_of(cls)
    if kind is not None:
        parts = [_taken_apart(part, said, inside) for part in KINDS[kind].parts(value)]
        return {_MARK: [kind, *parts]}
    if isinstance(value, str):
        return str.__str__(value)
    return _taken_apart(jsonable(value, said), said, inside)


def _kind_of(cls: type) -> str | None:
    name = cls.__qualname__
    home = "pathlib" if cls.__module__ == "pathlib._local" else cls.__module__
    kind = _NAMES.get((home, name))
    return kind if kind is not None and getattr(sys.modules.get(home), name, None) is cls else None


# ------------------------------------------------------------------ reading, outside


def loads(data: bytes) -> Any:
    """The value of what was written there; raises an error of the tree for anything else."""
    try:
        if data[:1] != b"j":
            raise ValueError("it is not written as data")
        return _READER.decode(data[1:].decode("ascii"))
    except Exception as failure:
        raise garbled(f"{type(failure).__name__}: {failure}") from None


def _put_together(found: dict[str, Any]) -> Any:
    """An object of JSON's; where it is marked, the value that it stands for."""
    if _MARK not in found:
        return found
    said: Any = found[_MARK]
    if said.__class__ is not list:
        raise ValueError("a mark without a kind")
    name, *parts = said
    kind = KINDS[name]
    if len(found) != 1 or len(parts) != len(kind.takes):
        raise ValueError(f"this is no {name}")
    for part, types in zip(parts, kind.takes, strict=True):
        if types is not None and type(part) not in types:
            raise ValueError(f"a {type(part).__name__} is no part of a {name}")
    cls = getattr(import_module(kind.home), kind.name)
    return cls(*parts) if kind.make is None else kind.make(cls, *parts)


_READER = JSONDecoder(object_hook=_put_together)


def too_large(size: int) -> ToolRuntimeError:
    """The failure of a call that gives more at once than is read."""
    from tooli.errors import Suggestion, ToolRuntimeError

    return ToolRuntimeError(
        f"An isolated command gives {LARGEST >> 20} MB at once at most, and this is {size} bytes.",
        suggestion=Suggestion("fix", "Let it yield items one by one, or write a file (Output)."),
    )
