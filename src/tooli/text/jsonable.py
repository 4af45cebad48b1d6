"""Convert any value to JSON types: dicts, lists, strings, numbers, booleans and None.

Types of the standard library are looked up in `sys.modules`. A value can have such a type only if
its module is loaded, so nothing needs to be imported.
"""

from __future__ import annotations

import sys
from time import gmtime, strftime

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeGuard

MAX_JSON_DEPTH = 150
"""Maximum nesting depth. Deeper parts are left out, because many JSON parsers fail on them."""


def convert_one_step(value: Any, warnings: list[str]) -> Any:
    """Convert a value that is not a JSON type. The result may contain such values again."""
    for module, name, converter in _TYPE_CONVERTERS:
        # The attribute is missing while another thread imports the module.
        loaded_type = getattr(sys.modules.get(module), name, None)
        if loaded_type is not None and isinstance(value, loaded_type):
            return converter(value)
    if is_set(value):
        return sort_set(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        data: bytes = bytes(value)  # pyright: ignore[reportUnknownArgumentType]
        return _bytes_to_text(data)
    if hasattr(value.__class__, "tooli_json"):  # content, an input, a secret, an output
        return value.tooli_json
    if hasattr(value.__class__, "get_secret_value"):  # a secret of pydantic: its text is a mask
        return str(value)
    for converter in (_from_model, _from_dataclass, _from_path, _from_array, _from_iterable):
        found = converter(value)
        if found is not _NOT_CONVERTED:
            return found
    _add_warning(warnings, f"a {value.__class__.__name__} was written as its text")
    try:
        return str(value)
    except Exception:
        return f"<{value.__class__.__name__}>"


def is_object(value: object) -> TypeGuard[dict[Any, Any]]:
    """True for a dict."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """True for a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_set(value: object) -> TypeGuard[set[Any] | frozenset[Any]]:
    """True for a set or a frozenset."""
    return isinstance(value, (set, frozenset))


def iter_items(value: object) -> Iterable[Any]:
    """Return the items of a list, tuple or set; for any other value, a tuple of that value."""
    return value if is_list(value) or is_set(value) else (value,)


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value in which `change` has replaced every string, including keys."""
    if isinstance(value, str):
        return change(value)
    if is_object(value):
        return {map_strings(key, change): map_strings(item, change) for key, item in value.items()}
    return [map_strings(item, change) for item in value] if is_list(value) else value


class _NotConverted: ...


_NOT_CONVERTED = _NotConverted()


def _iso_duration(value: object) -> str:
    """Return a duration in ISO 8601, as pydantic writes it."""
    from pydantic import TypeAdapter

    kind = value.__class__
    adapter = _duration_adapters.get(kind)
    if adapter is None:
        adapter = _duration_adapters[kind] = TypeAdapter(kind)
    return adapter.dump_python(value, mode="json")


_duration_adapters: dict[type, Any] = {}


def _iso_datetime(value: Any) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _enum_value(value: Any) -> Any:
    return value.value


_TYPE_CONVERTERS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("enum", "Enum", _enum_value),
    ("datetime", "datetime", _iso_datetime),
    ("datetime", "date", _iso_datetime),
    ("datetime", "time", _iso_datetime),
    ("datetime", "timedelta", _iso_duration),
    ("decimal", "Decimal", str),
    ("uuid", "UUID", str),
    # An iterable of its addresses: a short IPv6 prefix has more than fit into memory.
    ("ipaddress", "IPv4Network", str),
    ("ipaddress", "IPv6Network", str),
    ("ipaddress", "IPv4Address", str),
    ("ipaddress", "IPv6Address", str),
)


def sort_set(items: Any) -> list[Any]:
    """Return the items of a set in an order that is the same on every run."""
    if any([isinstance(item, frozenset) for item in items]):  # "<" of sets means subset
        items = [sort_set(item) if isinstance(item, frozenset) else item for item in items]
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda item: (type(item).__name__, repr(item)))


def _bytes_to_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return b64encode(data).decode()


def _from_model(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None or not hasattr(value.__class__, "__pydantic_serializer__"):
        return _NOT_CONVERTED
    try:
        return dump(mode="json", by_alias=True)
    except Exception:  # pydantic cannot write a field: convert the fields one by one
        return dict(value)


def _from_dataclass(value: object) -> Any:
    if not hasattr(value.__class__, "__dataclass_fields__"):
        return _NOT_CONVERTED
    names = [field.name for field in sys.modules["dataclasses"].fields(value)]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _from_path(value: object) -> Any:
    path = getattr(value.__class__, "__fspath__", None)
    if path is None:
        return _NOT_CONVERTED
    found = path(value)
    return _bytes_to_text(found) if isinstance(found, bytes) else found


def _from_array(value: object) -> Any:
    for name in ("tolist", "to_dict"):  # numpy, pandas
        converter = getattr(value, name, None)
        if callable(converter) and value.__class__.__module__.partition(".")[0] in (
            "numpy",
            "pandas",
        ):
            return converter()
    return _NOT_CONVERTED


def _from_iterable(value: Any) -> Any:
    keys = getattr(value, "keys", None)
    if callable(keys) and hasattr(value.__class__, "__getitem__"):
        return {key: value[key] for key in list(value)}
    if hasattr(value.__class__, "__iter__") and not isinstance(value, type):
        return list(value)
    return _NOT_CONVERTED


# ------------------------------------------------------------------ whole values


def to_jsonable(value: object, warnings: list[str]) -> Any:
    """Return a copy of a value in JSON types. Replacements are reported in `warnings`."""
    return _convert(value, warnings, ())


def _convert(value: object, warnings: list[str], parent_ids: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)  # such as a member of a StrEnum
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            _add_warning(warnings, "NaN or infinity was written as null")
            return None
        return float(value)
    if isinstance(value, int):
        return _convert_int(value, warnings)
    if id(value) in parent_ids:
        _add_warning(warnings, "a part that contains itself was left out")
        return None
    if len(parent_ids) >= MAX_JSON_DEPTH:
        _add_warning(warnings, f"parts nested deeper than {MAX_JSON_DEPTH} were left out")
        return None
    ids = (*parent_ids, id(value))
    if is_object(value):
        return {
            _convert_key(key, warnings): _convert(item, warnings, ids)
            for key, item in value.items()
        }
    if is_list(value):
        return [_convert(item, warnings, ids) for item in value]
    try:
        step = convert_one_step(value, warnings)
    except Exception as failure:
        _add_warning(warnings, f"a {value.__class__.__name__} could not be written: {failure}")
        return None
    return _convert(step, warnings, ids)


def _convert_int(value: int, warnings: list[str]) -> Any:
    try:
        int.__repr__(value)
    except ValueError:  # more digits than Python's limit for int to str
        _add_warning(warnings, "a very large integer was written in hexadecimal, as text")
        return hex(value)
    return int(value)


def _convert_key(key: object, warnings: list[str]) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    if isinstance(key, int):
        return str(_convert_int(key, warnings))
    if isinstance(key, float):
        return float.__repr__(key)
    try:
        step = str(key) if is_list(key) else convert_one_step(key, warnings)
        return step if isinstance(step, str) else str(step)
    except Exception as failure:
        _add_warning(warnings, f"a {key.__class__.__name__} could not be written: {failure}")
        return f"<{key.__class__.__name__}>"


def _add_warning(warnings: list[str], text: str) -> None:
    if text not in warnings:
        warnings.append(text)


def format_timestamp(timestamp: float) -> str:
    """Return a time as ISO 8601, in UTC."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(timestamp))


# ------------------------------------------------------------------ parts of values

_ATOMIC_TYPES = (str, int, float, bool, bytes, type(None), type)


class _SlotSample:
    __slots__ = ("slot",)


_SLOT_DESCRIPTOR: Any = type(vars(_SlotSample)["slot"])  # pyright: ignore[reportUnknownVariableType]


def iter_children(value: Any) -> Iterator[Any]:
    """Yield the keys and items of a collection, and the attributes and slots of an object.

    Iterators are skipped, because they can be read only once.
    """
    kind = value.__class__
    if isinstance(value, _ATOMIC_TYPES) or hasattr(kind, "__next__"):
        return
    if is_object(value):
        yield from value
        yield from value.values()
    elif is_list(value) or is_set(value) or _is_deque(value):
        yield from value
    yield from getattr(value, "__dict__", {}).values()
    for cls in kind.__mro__:
        for slot in cls.__dict__.values() if "__slots__" in cls.__dict__ else ():
            if type(slot) is _SLOT_DESCRIPTOR:
                try:
                    yield slot.__get__(value)
                except AttributeError:  # the slot is empty
                    continue


def _is_deque(value: object) -> bool:
    collections_module = sys.modules.get("collections")  # loaded if a deque exists
    return collections_module is not None and isinstance(value, collections_module.deque)
