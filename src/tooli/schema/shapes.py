"""Shapes of annotations that are not plain types: unions, generics, enums, paths, models.

`typing`, `enum` and `pathlib` are slow to import, so this module looks them up in `sys.modules`: an
annotation can use them only if they have been imported.
"""

from __future__ import annotations

from tooli.core import find_loaded
from tooli.core.tool import (
    SCALAR_SHAPES,
    Choice,
    Handle,
    Injected,
    ListOf,
    Maybe,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    TyperOnly,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Shape

_CONTAINER_TYPES = {
    **{t: t for t in (list, set, frozenset)},
    "collections.abc.Sequence": list,
    "collections.abc.Iterable": list,
    "collections.abc.Set": set,
}


def infer_complex_shape(annotation: Any) -> Shape:
    """Return the shape of an annotation. pydantic handles ParsedText and Structured."""
    known = SCALAR_SHAPES.get(annotation) if annotation.__hash__ else None
    if known is not None:
        return known
    if hasattr(annotation, "__metadata__"):
        inner = infer_complex_shape(annotation.__origin__)
        return Structured(annotation) if isinstance(inner, Structured) else ParsedText(annotation)
    origin = getattr(annotation, "__origin__", None)
    if type(annotation).__name__ == "UnionType" or _is_typing(origin, "Union"):
        return _union_shape(annotation)
    if origin is not None:
        if hasattr(origin, "tooli_shape"):
            return origin.tooli_shape(annotation.__args__[0])
        if not hasattr(annotation, "__args__"):  # a bare `typing.List`
            return infer_complex_shape(origin)
        return _generic_shape(annotation, origin, annotation.__args__)
    if hasattr(annotation, "__supertype__"):
        return infer_complex_shape(annotation.__supertype__)
    if isinstance(annotation, type):
        return _class_shape(annotation)
    return (
        annotation.tooli_shape() if hasattr(annotation, "tooli_schema") else ParsedText(annotation)
    )


def _is_typing(thing: object, name: str) -> bool:
    return thing is not None and thing is find_loaded("typing", name)


def _union_shape(annotation: Any) -> Shape:
    members = [arg for arg in annotation.__args__ if arg is not type(None)]
    if len(members) == 1 and len(annotation.__args__) == 2:
        inner = infer_complex_shape(members[0])
        return inner if isinstance(inner, (Injected, TyperOnly)) else Maybe(inner)
    shapes = [infer_complex_shape(member) for member in members]
    if any([isinstance(s, (Structured, ListOf, TupleOf)) for s in shapes]):
        return Structured(annotation)
    return ParsedText(annotation)


def _generic_shape(annotation: Any, origin: Any, args: tuple[Any, ...]) -> Shape:
    if _is_typing(origin, "Literal"):
        simple = all([type(a) in (str, int) for a in args])
        return Choice(args) if simple else ParsedText(annotation)
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return _list_shape(args[0], tuple)
        shapes = tuple([infer_complex_shape(arg) for arg in args])
        if any([isinstance(s, TyperOnly) for s in shapes]):
            return TyperOnly(annotation)
        is_plain = shapes and all([_is_plain_item(shape) for shape in shapes])
        return TupleOf(shapes) if is_plain else Structured(annotation)
    container = _container_type(origin)
    if container is not None:
        return _list_shape(args[0], container)
    return Structured(annotation)


def _is_plain_item(shape: Shape) -> bool:
    """True if one word of a command line is an item of this shape in a tuple."""
    is_secret = isinstance(shape, Handle) and shape.is_secret
    return is_secret or isinstance(shape, (Scalar, PathShape, Choice, ParsedText))


def _container_type(cls: Any) -> type | None:
    """Return the container that values of a collection class are put into, or None."""
    return _CONTAINER_TYPES.get(cls) or _CONTAINER_TYPES.get(f"{cls.__module__}.{cls.__name__}")


def _list_shape(item: object, container: type) -> Shape:
    shape = infer_complex_shape(item)
    if isinstance(shape, (ListOf, TupleOf, Maybe)):
        shape = Structured(item)
    return shape if isinstance(shape, TyperOnly) else ListOf(shape, container)


def _class_shape(cls: Any) -> Shape:
    if hasattr(cls, "tooli_shape"):
        return cls.tooli_shape()
    enum_class, path_class = find_loaded("enum", "Enum"), find_loaded("pathlib", "Path")
    if enum_class is not None and issubclass(cls, enum_class):
        members: Any = cls
        return Choice(tuple(members), cls)
    if path_class is not None and issubclass(cls, path_class):
        return PathShape(cls)
    container = _container_type(cls)
    if container is not None or cls is tuple:
        return ListOf(SCALAR_SHAPES[str], container or tuple)
    if (
        cls is dict
        or hasattr(cls, "__dataclass_fields__")
        or hasattr(cls, "__pydantic_fields__")
        or hasattr(cls, "__required_keys__")
        or (hasattr(cls, "_fields") and issubclass(cls, tuple))
    ):
        return Structured(cls)
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        if base.__name__ == "Context" and package in ("tooli", "typer", "click"):
            return Injected("context" if package == "tooli" else "typer")
        if base.__module__ == "typer.models" and base.__name__.startswith("File"):
            return TyperOnly(cls)
    return ParsedText(cls)


def resolve_forward_references(fn: object, name: str, annotation: object) -> object:
    """Evaluate forward references inside an annotation, such as `Optional["Color"]`."""
    import typing

    from tooli.errors import DefinitionError

    try:
        return typing.get_type_hints(fn, include_extras=True).get(name, annotation)
    except Exception as failure:
        raise DefinitionError(
            f"{name}: {annotation!r} cannot be evaluated ({failure})"
        ) from failure
