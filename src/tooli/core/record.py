"""Record: a frozen dataclass that does not import `dataclasses`.

`dataclasses` imports `inspect`, which takes longer than starting the interpreter. A subclass lists
its fields as annotations. It gets slots, keyword and positional arguments, equality, a hash and
`replace`. Its fields are read-only.

A class that is instantiated often gets a compiled `__init__`. Compiling takes longer than a few
generic calls, so it is done after 20 instances.
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
            """Return a copy with some fields changed."""
            ...

else:

    class _RecordMeta(type):
        def __new__(mcls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            namespace["__slots__"] = fields
            namespace.setdefault("__init__", _init_fields)
            for base in bases:
                if isinstance(base, _RecordMeta):
                    fields = base.__match_args__ + fields
                    defaults = {**base._defaults, **defaults}
            namespace["__match_args__"] = fields
            namespace["_defaults"] = defaults
            namespace["_instance_count"] = 0
            return type.__new__(mcls, name, bases, namespace)

    def _init_fields(self, *args, **kwargs):
        """Set the fields of a new record."""
        cls = type(self)
        cls._instance_count += 1
        if cls._instance_count > 20:
            cls.__init__ = _compile_init(cls)
            return cls.__init__(self, *args, **kwargs)
        fields, defaults = cls.__match_args__, cls._defaults
        set_field = object.__setattr__
        if len(args) > len(fields):
            raise TypeError(f"{cls.__name__}() takes {len(fields)} fields, {len(args)} given")
        positional_count = len(args)
        for i in range(positional_count):
            set_field(self, fields[i], args[i])
        for field in fields[positional_count:]:
            if field in kwargs:
                set_field(self, field, kwargs.pop(field))
            elif field in defaults:
                set_field(self, field, defaults[field])
            else:
                raise TypeError(f"{cls.__name__}() needs {field!r}")
        if kwargs:
            raise TypeError(f"{cls.__name__}() has no field {next(iter(kwargs))!r}")

    def _compile_init(cls):
        """Compile an `__init__` for one class."""
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
        return names["__init__"]

    class Record(metaclass=_RecordMeta):
        """A frozen value with named fields."""

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=…)")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is frozen")

        def _values(self):
            return tuple([getattr(self, field) for field in self.__match_args__])

        def replace(self, **changes):
            """Return a copy with some fields changed."""
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
