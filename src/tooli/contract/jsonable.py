"""How a value that JSON does not know becomes one that it does."""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

DEEPEST = 150
"""Deeper than this nothing is written: the reader's parser would give up, too."""


def replacement(thing: Any, warnings: list[str]) -> Any:
    """One step towards JSON for an object that is not JSON's."""
    for module, name, change in _KINDS:
        home = sys.modules.get(module)
        if home is not None and isinstance(thing, getattr(home, name)):
            return change(thing)
    if isinstance(thing, (set, frozenset)):
        return ordered(thing)
    if isinstance(thing, (bytes, bytearray, memoryview)):
        return _bytes(bytes(thing))
    for change in (_from_model, _from_fields, _from_path, _from_array, _from_iterable):
        found = change(thing)
        if found is not _NOTHING:
            return found
    _warn(warnings, f"a {type(thing).__name__} was written as its text")
    try:
        return str(thing)
    except Exception:
        return f"<{type(thing).__name__}>"


class _Nothing: ...


_NOTHING = _Nothing()


def _duration(value: Any) -> str:
    """ISO 8601, as pydantic writes it."""
    from tooli.contract.models import adapter

    return adapter(type(value)).dump_python(value, mode="json")


_KINDS: tuple[tuple[str, str, Any], ...] = (
    ("enum", "Enum", lambda v: v.value),
    ("datetime", "datetime", lambda v: v.isoformat().replace("+00:00", "Z")),
    ("datetime", "date", lambda v: v.isoformat()),
    ("datetime", "time", lambda v: v.isoformat()),
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


def _from_model(thing: Any) -> Any:
    dump = getattr(thing, "model_dump", None)
    if dump is None or not hasattr(type(thing), "__pydantic_serializer__"):
        return _NOTHING
    try:
        return dump(mode="json", by_alias=True)
    except Exception:  # a field that pydantic cannot write: its parts are tried one by one
        return dict(thing)


def _from_fields(thing: Any) -> Any:
    if not hasattr(type(thing), "__dataclass_fields__"):
        return _NOTHING
    names = [field.name for field in sys.modules["dataclasses"].fields(thing)]
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def _from_path(thing: Any) -> Any:
    path = getattr(type(thing), "__fspath__", None)
    if path is None:
        return _NOTHING
    found = path(thing)
    return _bytes(found) if isinstance(found, bytes) else found


def _from_array(thing: Any) -> Any:
    for name in ("tolist", "to_dict"):  # numpy, pandas
        change = getattr(thing, name, None)
        if callable(change) and type(thing).__module__.partition(".")[0] in ("numpy", "pandas"):
            return change()
    return _NOTHING


def _from_iterable(thing: Any) -> Any:
    keys = getattr(thing, "keys", None)
    if callable(keys) and hasattr(type(thing), "__getitem__"):
        return {key: thing[key] for key in list(thing)}
    if hasattr(type(thing), "__iter__") and not isinstance(thing, type):
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
    if isinstance(value, dict):
        pairs: Any = value
        return {
            _key(key, warnings): _plain(item, warnings, inside) for key, item in pairs.items()
        }
    if isinstance(value, (list, tuple)):
        items: Any = value
        return [_plain(item, warnings, inside) for item in items]
    try:
        step = replacement(value, warnings)
    except Exception as failure:
        _warn(warnings, f"a {type(value).__name__} could not be written: {failure}")
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
        step = replacement(key, warnings) if not isinstance(key, tuple) else key
        return step if isinstance(step, str) else str(step)
    except Exception as failure:
        _warn(warnings, f"a {type(key).__name__} could not be written: {failure}")
        return f"<{type(key).__name__}>"


def _warn(warnings: list[str], text: str) -> None:
    if text not in warnings:
        warnings.append(text)
