"""Shapes of annotations that are not plain: unions, generics, enums, paths, models.

An annotation from `typing` can only be here if somebody imported `typing`, an Enum
only if somebody imported `enum`: so their classes are looked up in `sys.modules`,
never imported.
"""

from __future__ import annotations

import sys

from tooli.contract.tool import (
    PLAIN,
    Choice,
    Foreign,
    Injected,
    ListOf,
    Maybe,
    PathShape,
    Scalar,
    Structured,
    Text,
    TupleOf,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Shape

_COLLECTIONS = {
    **{t: t for t in (list, set, frozenset)},
    "collections.abc.Sequence": list,
    "collections.abc.Iterable": list,
    "collections.abc.Set": set,
}


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation; what is not plain goes to pydantic, as Text or Structured."""
    known = PLAIN.get(annotation) if annotation.__hash__ else None
    if known is not None:
        return known
    if hasattr(annotation, "__metadata__"):
        inner = shape_of(annotation.__origin__)
        return Structured(annotation) if isinstance(inner, Structured) else Text(annotation)
    origin = getattr(annotation, "__origin__", None)
    if type(annotation).__name__ == "UnionType" or _is_typing(origin, "Union"):
        return _union(annotation)
    if origin is not None:
        if hasattr(origin, "tooli_shape"):
            return origin.tooli_shape(annotation.__args__[0])
        if not hasattr(annotation, "__args__"):  # a bare `typing.List`
            return shape_of(origin)
        return _generic(annotation, origin, annotation.__args__)
    if hasattr(annotation, "__supertype__"):
        return shape_of(annotation.__supertype__)
    if isinstance(annotation, type):
        return _class(annotation)
    return Text(annotation)


def _is_typing(thing: Any, name: str) -> bool:
    typing = sys.modules.get("typing")
    return thing is not None and typing is not None and thing is getattr(typing, name)


def _union(annotation: Any) -> Shape:
    members = [arg for arg in annotation.__args__ if arg is not type(None)]
    if len(members) == 1 and len(annotation.__args__) == 2:
        inner = shape_of(members[0])
        return inner if isinstance(inner, (Injected, Foreign)) else Maybe(inner)
    shapes = [shape_of(member) for member in members]
    if any([isinstance(s, (Structured, ListOf, TupleOf)) for s in shapes]):
        return Structured(annotation)
    return Text(annotation)


def _generic(annotation: Any, origin: Any, args: tuple[Any, ...]) -> Shape:
    if _is_typing(origin, "Literal"):
        simple = all([type(a) in (str, int) for a in args])
        return Choice(args) if simple else Text(annotation)
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return _list_of(args[0], tuple)
        shapes = tuple([shape_of(arg) for arg in args])
        if any([isinstance(s, Foreign) for s in shapes]):
            return Foreign(annotation)
        simple = all([isinstance(s, (Scalar, PathShape, Choice, Text)) for s in shapes])
        return TupleOf(shapes) if simple and shapes else Structured(annotation)
    into = _collection(origin)
    if into is not None:
        return _list_of(args[0], into)
    return Structured(annotation)


def _collection(cls: Any) -> type | None:
    """What a class of many values is gathered into."""
    return _COLLECTIONS.get(cls) or _COLLECTIONS.get(f"{cls.__module__}.{cls.__name__}")


def _list_of(item: Any, into: type) -> Shape:
    shape = shape_of(item)
    if isinstance(shape, (ListOf, TupleOf, Maybe)):
        shape = Structured(item)
    return shape if isinstance(shape, Foreign) else ListOf(shape, into)


def _class(cls: Any) -> Shape:
    if hasattr(cls, "tooli_shape"):
        return cls.tooli_shape()
    enum = sys.modules.get("enum")
    if enum is not None and issubclass(cls, enum.Enum):
        members: Any = cls
        return Choice(tuple(members), cls)
    pathlib = sys.modules.get("pathlib")
    if pathlib is not None and issubclass(cls, pathlib.Path):
        return PathShape(cls)
    into = _collection(cls)
    if into is not None or cls is tuple:
        return ListOf(PLAIN[str], into or tuple)
    if (
        cls is dict
        or hasattr(cls, "__dataclass_fields__")
        or hasattr(cls, "__pydantic_fields__")
        or hasattr(cls, "__required_keys__")
        or (hasattr(cls, "_fields") and issubclass(cls, tuple))
    ):
        return Structured(cls)
    for base in cls.__mro__:
        house = base.__module__.partition(".")[0]
        if base.__name__ == "Context" and house in ("tooli", "typer", "click"):
            return Injected("context" if house == "tooli" else "typer")
        if base.__module__ == "typer.models" and base.__name__.startswith("File"):
            return Foreign(cls)
    return Text(cls)


def resolved(fn: Any, name: str, annotation: Any) -> Any:
    """An annotation with names in quotes inside, such as `Optional["Color"]`, put in place."""
    import typing

    from tooli.errors import DefinitionError

    try:
        return typing.get_type_hints(fn, include_extras=True).get(name, annotation)
    except Exception as failure:
        raise DefinitionError(f"{name}: {annotation!r} cannot be read ({failure})") from failure
