"""How a value that JSON does not know becomes one that it does."""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeGuard

DEEPEST = 150
"""Deeper than this nothing is written: the reader's parser would give up, too."""


def replacement(thing: Any, warnings: list[str]) -> Any:
    """One step towards JSON for an object that is not JSON's."""
    for module, name, change in _KINDS:
        home = sys.modules.get(module)
        if home is not None and isinstance(thing, getattr(home, name)):
            return change(thing)
    if is_set(thing):
        return ordered(thing)
    if isinstance(thing, (bytes, bytearray, memoryview)):
        data: bytes = bytes(thing)  # pyright: ignore[reportUnknownArgumentType]
        return _bytes(data)
    shown = getattr(thing.__class__, "tooli_text", None)  # an input, a secret, an output
    if shown is not None:
        return thing.tooli_text
    for change in (
        _from_content,
        _from_model,
        _from_fields,
        _from_path,
        _from_array,
        _from_iterable,
    ):
        found = change(thing)
        if found is not _NOTHING:
            return found
    _warn(warnings, f"a {thing.__class__.__name__} was written as its text")
    try:
        return str(thing)
    except Exception:
        return f"<{thing.__class__.__name__}>"


def is_object(value: object) -> TypeGuard[dict[Any, Any]]:
    """Whether it is JSON's kind of object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether it is JSON's kind of array."""
    return isinstance(value, (list, tuple))


def is_set(value: object) -> TypeGuard[set[Any] | frozenset[Any]]:
    """Whether it is a set, which has no order and is none of JSON's."""
    return isinstance(value, (set, frozenset))


class _Nothing: ...


_NOTHING = _Nothing()


def _duration(value: Any) -> str:
    """ISO 8601, as pydantic writes it."""
    from tooli.contract.models import adapter

    return adapter(value.__class__).dump_python(value, mode="json")


def _iso(value: Any) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _member(value: Any) -> Any:
    return value.value


_KINDS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("enum", "Enum", _member),
    ("datetime", "datetime", _iso),
    ("datetime", "date", _iso),
    ("datetime", "time", _iso),
    ("datetime", "timedelta", _duration),
    ("decimal", "Decimal", str),
    ("uuid", "UUID", str),
)


def ordered(items: Any) -> list[Any]:
    """A set in an order that is the same on every run."""
    if any([isinstance(item, frozenset) for item in items]):  # "<" between sets is no order
        items = [ordered(item) if isinstance(item, frozenset) else item for item in items]
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda item: (type(item).__name__, repr(item)))


def _bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return b64encode(data).decode()


def _from_content(thing: Any) -> Any:
    home = sys.modules.get("tooli.contract.content")
    return thing.block() if home is not None and isinstance(thing, home.Content) else _NOTHING


def _from_model(thing: Any) -> Any:
    dump = getattr(thing, "model_dump", None)
    if dump is None or not hasattr(thing.__class__, "__pydantic_serializer__"):
        return _NOTHING
    try:
        return dump(mode="json", by_alias=True)
    except Exception:  # a field that pydantic cannot write: its parts are tried one by one
        return dict(thing)


def _from_fields(thing: Any) -> Any:
    if not hasattr(thing.__class__, "__dataclass_fields__"):
        return _NOTHING
    names = [field.name for field in sys.modules["dataclasses"].fields(thing)]
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def _from_path(thing: Any) -> Any:
    path = getattr(thing.__class__, "__fspath__", None)
    if path is None:
        return _NOTHING
    found = path(thing)
    return _bytes(found) if isinstance(found, bytes) else found


def _from_array(thing: Any) -> Any:
    for name in ("tolist", "to_dict"):  # numpy, pandas
        change = getattr(thing, name, None)
        if callable(change) and thing.__class__.__module__.partition(".")[0] in ("numpy", "pandas"):
            return change()
    return _NOTHING


def _from_iterable(thing: Any) -> Any:
    keys = getattr(thing, "keys", None)
    if callable(keys) and hasattr(thing.__class__, "__getitem__"):
        return {key: thing[key] for key in list(thing)}
    if hasattr(thing.__class__, "__iter__") and not isinstance(thing, type):
        return list(thing)
    return _NOTHING


# ------------------------------------------------------------------ the thorough way


def jsonable(value: Any, warnings: list[str]) -> Any:
    """A copy of the value in which everything is JSON's, whatever it was."""
    return _plain(value, warnings, ())


def _plain(value: Any, warnings: list[str], above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            _warn(warnings, "NaN or infinity was written as null")
            return None
        return float(value)
    if isinstance(value, int):
        return _whole(value, warnings)
    if id(value) in above:
        _warn(warnings, "a part that contains itself was left out")
        return None
    if len(above) >= DEEPEST:
        _warn(warnings, f"parts nested deeper than {DEEPEST} were left out")
        return None
    inside = (*above, id(value))
    if is_object(value):
        return {_key(key, warnings): _plain(item, warnings, inside) for key, item in value.items()}
    if is_list(value):
        return [_plain(item, warnings, inside) for item in value]
    try:
        step = replacement(value, warnings)
    except Exception as failure:
        _warn(warnings, f"a {value.__class__.__name__} could not be written: {failure}")
        return None
    return _plain(step, warnings, inside)


def _whole(value: int, warnings: list[str]) -> Any:
    try:
        int.__repr__(value)
    except ValueError:  # more digits than Python is willing to write
        _warn(warnings, "a very large integer was written in hexadecimal, as text")
        return hex(value)
    return int(value)


def _key(key: Any, warnings: list[str]) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    if isinstance(key, int):
        return str(_whole(key, warnings))
    if isinstance(key, float):
        return float.__repr__(key)
    try:
        step = str(key) if is_list(key) else replacement(key, warnings)
        return step if isinstance(step, str) else str(step)
    except Exception as failure:
        _warn(warnings, f"a {key.__class__.__name__} could not be written: {failure}")
        return f"<{key.__class__.__name__}>"


def _warn(warnings: list[str], text: str) -> None:
    if text not in warnings:
        warnings.append(text)
