"""Record: the small frozen value that everything in the house is made of.

A dataclass in all but the import: `dataclasses` pulls in `inspect`, and that
alone costs more than starting the interpreter. A subclass lists its fields as
annotations; it gets slots, keyword and positional arguments, equality, a hash,
`replace`, and refuses to be changed.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self, dataclass_transform

    @dataclass_transform(frozen_default=True)
    class Record:
        """A frozen value with named fields."""

        def replace(self, **changes: Any) -> Self:
            """The same value with some fields changed."""
            ...

else:

    class _RecordType(type):
        def __new__(mcls, name, bases, space):
            own = [
                field
                for field, hint in space.get("__annotations__", {}).items()
                if not str(hint).startswith("ClassVar")
            ]
            defaults = {field: space.pop(field) for field in own if field in space}
            space["__slots__"] = tuple(own)
            space.setdefault("__init__", _first_init)
            cls = type.__new__(mcls, name, bases, space)
            inherited = [f for base in bases for f in getattr(base, "__match_args__", ())]
            cls.__match_args__ = (*inherited, *own)
            cls._defaults = {
                k: v for base in bases for k, v in getattr(base, "_defaults", {}).items()
            } | defaults
            return cls

    def _first_init(self, *args, **kwargs):
        """Compile the class's own `__init__` on first use, so that unused records cost nothing."""
        cls = type(self)
        signature: list[str] = []
        names: dict[str, object] = {}
        for field in cls.__match_args__:
            names[f"_set_{field}"] = getattr(cls, field).__set__
            if field in cls._defaults:
                names[f"_{field}"] = cls._defaults[field]
                signature.append(f"{field}=_{field}")
            else:
                signature.append(field)
        body = "\n ".join(f"_set_{f}(self, {f})" for f in cls.__match_args__) or "pass"
        exec(f"def __init__(self, {', '.join(signature)}):\n {body}", names)
        cls.__init__ = names["__init__"]
        cls.__init__(self, *args, **kwargs)

    class Record(metaclass=_RecordType):
        """A frozen value with named fields."""

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=…)")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is frozen")

        def _values(self):
            return tuple([getattr(self, field) for field in self.__match_args__])

        def replace(self, **changes):
            """The same value with some fields changed."""
            values = {field: getattr(self, field) for field in self.__match_args__}
            return type(self)(**(values | changes))

        def __eq__(self, other):
            if type(other) is not type(self):
                return NotImplemented
            return self._values() == other._values()

        def __hash__(self):
            return hash((type(self), self._values()))

        def __repr__(self):
            fields = ", ".join(f"{f}={getattr(self, f)!r}" for f in self.__match_args__)
            return f"{type(self).__name__}({fields})"

        def __reduce__(self):
            return type(self), self._values()
