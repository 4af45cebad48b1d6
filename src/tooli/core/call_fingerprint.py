"""Fingerprints of calls. Equal calls have equal fingerprints on every interface.

Cursors, idempotency keys, approvals and plan tokens are bound to a call by its fingerprint. A
fingerprint covers every part of every argument, together with its type. It is made from the values
themselves, not from their JSON, because JSON leaves out hidden fields and mixes up types.
"""

from __future__ import annotations

import sys

from tooli.core.tool import MISSING
from tooli.errors import ToolError

try:
    from _blake2 import blake2b  # pyright: ignore
except ImportError:  # an interpreter without the C module; hashlib is slow to import
    from hashlib import blake2b

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from typing import Any, TypeAlias

    from tooli.core.call import Call
    from tooli.core.tool import Tool

    Parts: TypeAlias = Generator[Any, bytes, bytes]
    """Yields the parts of a value, receives the encoded parts, and returns the encoded value."""
    KeyedDigest: TypeAlias = Callable[[bytes], str]
    """Returns a digest that nobody can compute without its key."""

_DIGEST_BYTES = 32


def caller_arguments(call: Call) -> dict[str, Any]:
    """Return the bound arguments that come from the caller, without the injected ones."""
    tool = call.tool
    names = (
        tool.param_names if tool.input_model is None else tool.param_names | {tool.input_model[0]}
    )
    return {name: value for name, value in call.arguments.items() if name in names}


def canonical_bytes(call: Call, *more: Any, digest_secret: KeyedDigest | None) -> bytes:
    """Return bytes that identify the arguments of a call and the values in `more`."""
    return ValueEncoder(digest_secret).encode([caller_arguments(call), *more])


def fingerprint(call: Call, *more: Any, digest_secret: KeyedDigest) -> str:
    """Return a short digest of a call: of its tool, its bound arguments and `more`.

    It identifies an input by its location, a secret by a keyed digest, and an open file or iterator
    by its class. `policy/call_binding.py` makes fingerprints that include contents.
    """
    canonical = canonical_bytes(call, *more, digest_secret=digest_secret)
    return digest(requested_id(call.tool).encode() + b"\0" + canonical, 16).hex()


def requested_id(tool: Tool) -> str:
    """Return the id of a tool, with the version that the caller has named: `shop.add@1.0`.

    A call without a version stays the same call when a new version becomes the default.
    """
    _, at, version = tool.name.partition("@")
    return f"{tool.id}{at}{version}"


def make_keyed_digest(key: bytes) -> KeyedDigest:
    """Return a function that makes digests with a key."""
    return lambda data: digest(data, _DIGEST_BYTES, key).hex()


def digest(data: bytes, size: int, key: bytes = b"") -> bytes:
    """Return a BLAKE2b digest, with an optional key."""
    return blake2b(data, digest_size=size, key=key).digest()


# ------------------------------------------------------------------ values as bytes


class UnstableValue(Exception):  # noqa: N818
    """A value has no content that identifies it. The message completes "the value …"."""


class ValueEncoder:
    """Encodes any value as bytes that identify its type and its complete content.

    Dicts and sets are encoded independently of their order. Values can be nested to any depth. The
    encoding of a value with parts contains a digest of the parts. Subclasses decide how inputs,
    paths, secrets and streams are encoded.

    A secret is encoded by `digest_secret`. Without that function all secrets are equal, so that
    nobody can find a secret by comparing the digests of all possible values.
    """

    def __init__(self, digest_secret: KeyedDigest | None = None) -> None:
        self._digest_secret = digest_secret
        self._parent_ids: list[int] = []
        self._encoded: dict[int, tuple[object, bytes]] = {}

    def encode(self, value: object) -> bytes:
        """Return the bytes that identify a value."""
        encoded = self._encode_leaf(value)
        if encoded is not None:
            return encoded
        stack = [self._encode_parts(value)]
        reply: Any = None
        while stack:
            try:
                part = stack[-1].send(reply)  # pyright: ignore[reportArgumentType]
            except StopIteration as end:
                stack.pop()
                reply = end.value
            else:
                reply = self._encode_leaf(part)
                if reply is None:
                    stack.append(self._encode_parts(part))
        return reply or b""

    # -------------------------------------------------------------- values that subclasses treat

    def encode_secret(self, secret: Any, reveal: Callable[[], object]) -> bytes:
        """Encode a secret by a keyed digest of its value.

        A secret passed as `@file` or `env:NAME` is read. If that fails, its location identifies
        it, and the call fails when it runs.
        """
        try:
            value = reveal()
        except ToolError:
            return frame("unreadable secret", _to_bytes(str(secret.tooli_cli_text)))
        if value is secret:  # a class of the author that has such a method by chance
            return self.encode_unstable(secret, "has no content that can be compared")
        if self._digest_secret is None:
            return frame("secret", b"")
        encoded = ValueEncoder(self._digest_secret).encode(value)
        return frame("secret", self._digest_secret(encoded).encode())

    def encode_input(self, source: Any) -> bytes:
        """Encode an input by its location. (If the caller passed the content, that is encoded.)"""
        return frame("input", _to_bytes(str(source.source)))

    def encode_path(self, path: Any) -> bytes:
        """Encode a path, or an output with a path, by its text."""
        return frame("path", path_bytes(path))

    def encode_stream(self, stream: object) -> bytes:
        """Encode an open file or an iterator, which can be read only once, by its class."""
        return frame("stream", _to_bytes(type(stream).__qualname__))

    def encode_unstable(self, value: object, reason: str) -> bytes:
        """Encode a value whose content is unknown by its class."""
        return frame("unknown content", _to_bytes(type(value).__qualname__))

    # -------------------------------------------------------------- values without parts

    def _encode_leaf(self, value: Any) -> bytes | None:
        """Encode a value without parts; return None for other values."""
        kind = type_of(value)
        encode_scalar = _SCALARS.get(kind)
        if encode_scalar is not None:
            return frame(kind.__name__, encode_scalar(value))
        if kind in _CONTAINERS:
            return None
        if hasattr(kind, "tooli_digest") and value.tooli_digest is not None:
            return frame("upload", _to_bytes(f"{value.tooli_json} {value.tooli_digest}"))
        for name in ("reveal", "get_secret_value"):
            if callable(getattr(kind, name, None)):
                return self.encode_secret(value, getattr(value, name))
        if is_input(kind):
            return None if value.content is not MISSING else self.encode_input(value)
        if hasattr(kind, "tooli_dry_run") or is_loaded_instance(value, "pathlib", "PurePath"):
            return self.encode_path(value)
        if is_stream(value):
            return self.encode_stream(value)
        for module, name, encode_loaded in _LOADED_SCALARS:
            if is_loaded_instance(value, module, name):
                return frame(f"{name} {kind.__qualname__}", _to_bytes(encode_loaded(value)))
        if issubclass(kind, type) or is_importable(value):
            return frame("global", _to_bytes(global_name(value)))
        return None

    # -------------------------------------------------------------- values with parts

    def _encode_parts(self, value: Any) -> Parts:
        if id(value) in self._parent_ids:
            distance = len(self._parent_ids) - self._parent_ids.index(id(value))
            return frame("parent", b"%d" % distance)
        if id(value) in self._encoded:
            return self._encoded[id(value)][1]
        self._parent_ids.append(id(value))
        try:
            encoded = yield from self._encode_composite(value)
        except UnstableValue as unstable:
            encoded = self.encode_unstable(value, str(unstable))
        except ToolError:
            raise
        except Exception as failure:  # the value's own code failed
            encoded = self.encode_unstable(value, f"cannot be read ({type(failure).__name__})")
        finally:
            self._parent_ids.pop()
        self._encoded[id(value)] = (value, encoded)  # the reference keeps the ID unique
        return encoded

    def _encode_composite(self, value: Any) -> Parts:
        kind = type_of(value)
        if is_input(kind):
            return frame("input content", (yield value.content))
        if is_loaded_instance(value, "enum", "Enum"):
            return frame(f"enum {kind.__qualname__}", (yield value.value))
        for base in _CONTAINERS:
            if issubclass(kind, base):
                items = yield from self._encode_items(value, base)
                if kind is base:
                    return frame(base.__name__, items)
                state = yield instance_state(value)
                return frame(f"{base.__name__} {kind.__qualname__}", items + state)
        for base, encode_scalar in _SCALARS.items():
            if issubclass(kind, base):  # a subclass of a scalar
                state = yield instance_state(value)
                return frame(f"{base.__name__} {kind.__qualname__}", encode_scalar(value) + state)
        encoded = yield instance_state(value)
        if hasattr(kind, "__fspath__"):
            encoded += self.encode_path(value)
        hidden_state = reduce_hidden_state(value)
        if hidden_state is not None:
            encoded += yield hidden_state
        return frame(f"object {kind.__qualname__}", digest(encoded, _DIGEST_BYTES))

    def _encode_items(self, value: Any, base: Any) -> Parts:
        """Return a digest of the items of a container."""
        rows: list[bytes] = []
        if base is _DICT:
            pairs: Iterable[tuple[Any, Any]] = base.items(value)
            for key, item in pairs:
                encoded_key = yield key
                rows.append(encoded_key + (yield item))
        else:
            for item in base.__iter__(value):
                rows.append((yield item))
        if base not in (list, tuple):
            rows.sort()
        return digest(b"".join(rows), _DIGEST_BYTES)


def type_of(value: Any) -> Any:
    """Return the type of a value. `__class__` is not used, because a value can replace it."""
    return type(value)  # pyright: ignore[reportUnknownVariableType]


def frame(kind: str, data: bytes) -> bytes:
    """Return data with its kind and its length, so that concatenated frames are unambiguous."""
    name = _to_bytes(kind)
    return b"%d:%b%d:%b" % (len(name), name, len(data), data)


def is_stream(value: object) -> bool:
    """True for a value that can be read only once: an open file or an iterator."""
    kind = type(value)
    if hasattr(kind, "tooli_json"):
        return False
    return any([callable(getattr(kind, name, None)) for name in ("__next__", "__anext__", "read")])


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _encode_int(value: int) -> bytes:
    return _to_bytes(hex(value))  # hex has no limit on the number of digits


_SCALARS: dict[type, Callable[[Any], bytes]] = {
    bool: lambda value: b"1" if value else b"0",
    int: _encode_int,
    str: lambda value: str.encode(value, "utf-8", "surrogatepass"),
    float: lambda value: float.hex(value).encode(),
    type(None): lambda _: b"",
    bytes: lambda value: b"".join((value,)),
    bytearray: lambda value: b"".join((value,)),
    memoryview: lambda value: value.tobytes(),
    complex: lambda value: complex.__repr__(value).encode(),
    type(...): lambda _: b"",
}
"""The types of plain values. A subclass is encoded together with its attributes."""
_CONTAINERS: tuple[type, ...] = (dict, list, tuple, set, frozenset)
_DICT: Any = dict


def _time_text(value: Any) -> str:
    """Return a date or time with its offset, its fold and the name of its time zone."""
    zone = getattr(getattr(value, "tzinfo", None), "key", "")
    return f"{value.isoformat()} {getattr(value, 'fold', 0)} {zone}"


_LOADED_SCALARS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("datetime", "datetime", _time_text),
    ("datetime", "date", _time_text),
    ("datetime", "time", _time_text),
    ("datetime", "timedelta", lambda value: f"{value.days} {value.seconds} {value.microseconds}"),
    ("decimal", "Decimal", str),
    ("uuid", "UUID", str),
)
"""Types of the standard library that exist only if their module is loaded."""


def path_bytes(path: Any) -> bytes:
    """Return the text of a path, or of the target of an output, as bytes."""
    text = path.tooli_json if hasattr(path, "tooli_json") else path.__fspath__()
    return text if isinstance(text, bytes) else _to_bytes(text)


def is_input(kind: type) -> bool:
    """True for the class of an input."""
    return hasattr(kind, "is_stdin") and hasattr(kind, "tooli_json")


def is_loaded_instance(value: object, module: str, name: str) -> bool:
    """True if a value has a type of a module. If the module is not loaded, it cannot."""
    loaded_type = getattr(sys.modules.get(module), name, None)
    return loaded_type is not None and issubclass(type_of(value), loaded_type)


def is_importable(value: Any) -> bool:
    """True for a function or class that its name identifies."""
    kind = type(value).__name__
    if kind not in ("function", "builtin_function_or_method"):
        return False
    is_bound = kind != "function" and getattr(value, "__module__", None) is None
    return not is_bound and "<" not in value.__qualname__


def global_name(value: Any) -> str:
    """Return the name of a function or class."""
    # The module of a script is `__main__` or its own name, depending on how it is run.
    return str(getattr(value, "__qualname__", value))


def instance_state(value: Any) -> dict[str, object]:
    """Return all attributes of an instance, including those that its JSON leaves out."""
    state: dict[str, object] = dict(getattr(value, "__dict__", None) or {})
    for cls in type(value).__mro__:
        for name in _slot_names(cls):
            try:
                state.setdefault(f"slot {name}", getattr(value, name))
            except AttributeError:  # the slot is empty
                continue
    return state


def _slot_names(cls: type) -> Iterable[str]:
    slots: Any = cls.__dict__.get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        if name not in ("__dict__", "__weakref__"):
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{cls.__name__.lstrip('_')}{name}" if is_private else name


_POINTER_BYTES = tuple.__itemsize__


def _has_hidden_state(kind: type) -> bool:
    """True for a class whose instances have state besides their attributes and slots.

    Such a class, or one of its bases, is implemented in C and needs additional space.
    """
    for cls in kind.__mro__[:-1]:
        base: type = cls.__base__ or object
        own = [
            *_slot_names(cls),
            *[name for name in ("__dict__", "__weakref__") if name in vars(cls)],
        ]
        if cls.__itemsize__ or cls.__basicsize__ - base.__basicsize__ > _POINTER_BYTES * len(own):
            return True
    return False


def reduce_hidden_state(value: Any) -> list[Any] | str | None:
    """Return the parts that `pickle` would store; None for a value without hidden state.

    Raises UnstableValue if there are no such parts.
    """
    if not _has_hidden_state(type_of(value)):
        return None
    registered: Mapping[type, Any] = getattr(sys.modules.get("copyreg"), "dispatch_table", {})
    kind = type_of(value)
    reduce = registered.get(kind)
    try:
        reduced: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception as failure:
        raise UnstableValue(f"has no content that can be compared ({failure})") from None
    if isinstance(reduced, str):
        return reduced
    constructor, arguments, *state = reduced
    return [
        global_name(constructor),
        arguments,
        *[list(part) if is_stream(part) else part for part in state],
    ]
