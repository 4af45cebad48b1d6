"""Find the secrets in types and in values that are not valid.

pydantic shows a value that is not valid in its errors, and so may the validators of an author. The
secrets in such a value are still plain text. The annotation tells where they are.
"""

from __future__ import annotations

from tooli.core.call_secrets import (
    ReceivedSecret,
    call_secrets,
    is_secret_type,
    iter_secrets,
    record_secrets,
)
from tooli.core.tool import (
    MISSING,
    Choice,
    ConversionError,
    Handle,
    Injected,
    PathShape,
    Scalar,
    item_shape,
)
from tooli.text.jsonable import is_list, is_object, iter_children

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tooli.core.tool import Param

MAX_INVALID_SECRETS = 1000
"""If a value that is not valid has more secrets, its errors are not shown."""


def may_contain_secret(param: Param) -> bool:
    """True if an argument may be a secret or contain one."""
    shape = item_shape(param.shape)
    if isinstance(shape, (Scalar, PathShape, Choice, Injected)):
        return False
    if isinstance(shape, Handle):
        return shape.is_secret or may_hold_secret(getattr(shape, "annotation", None))
    return may_hold_secret(param.annotation)


def documented_default(param: Param) -> Any:
    """Return the default that documents show; MISSING if there is none or it is a secret.

    The default of a required parameter is the one of a question to a person. It is not shown.
    """
    return MISSING if param.required else public_default(param)


def public_default(param: Param) -> Any:
    """Return the default; MISSING if there is none or it is a secret.

    The location of a secret may be shown.
    """
    default = param.default
    if default is MISSING or default is None or not may_contain_secret(param):
        return default
    is_location = isinstance(default, str) and default.startswith(("env:", "@", "-"))
    return default if is_location and isinstance(item_shape(param.shape), Handle) else MISSING


def may_hold_secret(annotation: object) -> bool:
    """True if values of a type may be secrets or contain secrets."""
    return _may_hold_secret(annotation, set())


def _may_hold_secret(annotation: Any, visited_ids: set[int]) -> bool:
    if _is_unresolved(annotation):
        return True
    if annotation is None or id(annotation) in visited_ids:
        return False
    visited_ids.add(id(annotation))
    if _is_secret(annotation):
        return True
    parts = [*_type_parts(annotation), *_read_fields(annotation).values()]
    return any([_may_hold_secret(part, visited_ids) for part in parts])


def _is_unresolved(annotation: object) -> bool:
    """True for the name of a type. Names are not resolved here."""
    return isinstance(annotation, str) or annotation.__class__.__name__ == "ForwardRef"


def _is_secret(annotation: Any) -> bool:
    return is_secret_type(annotation) or is_secret_type(getattr(annotation, "__origin__", None))


def _type_parts(annotation: Any) -> Iterator[object]:
    """Yield the types that a type consists of: the arguments of a generic, the type of an alias."""
    if type(annotation).__name__ == "_LiteralGenericAlias":
        return  # its arguments are values
    yield from getattr(annotation, "__args__", ())
    for name in ("__origin__", "__value__", "__supertype__", "__bound__", "annotation"):
        part = getattr(annotation, name, None)
        if part is not None and not callable(getattr(part, "fget", None)):
            yield part


def _read_fields(annotation: Any) -> dict[str, Any]:
    """Return the types of the fields of a class by name and alias; {} if it has no fields."""
    model_fields = getattr(annotation, "__pydantic_fields__", None)
    if is_object(model_fields):
        fields: dict[str, Any] = {}
        for name, field in model_fields.items():
            alias = getattr(field, "validation_alias", None)
            for key in (name, field.alias, *(getattr(alias, "choices", None) or (alias,))):
                fields[key if isinstance(key, str) else name] = field.annotation
        return fields
    has_fields = (
        hasattr(annotation, "__dataclass_fields__")
        or hasattr(annotation, "__required_keys__")
        or hasattr(annotation, "_fields")
    )
    if not has_fields:
        return {}
    import typing

    try:
        return typing.get_type_hints(annotation, include_extras=True)
    except Exception:  # a name that is not defined, or an annotation that is no expression
        return dict.fromkeys(getattr(annotation, "__annotations__", {}), "unresolved")


# ------------------------------------------------------------------ values


def validate_with_secrets(
    annotation: object, value: object, validate: Callable[[object, object], Any]
) -> Any:
    """Return the validated value, and record its secrets, also if it is not valid."""
    try:
        valid = validate(annotation, value)
    except Exception:  # validators of the author may raise any error
        if may_hold_secret(annotation):
            _record_invalid(annotation, value)
        raise
    record_secrets(valid)
    return valid


def _record_invalid(annotation: object, value: object) -> None:
    secrets = call_secrets.get()
    if secrets is None:
        return
    try:
        for count, secret in enumerate(_InvalidValueReader().iter_secrets(annotation, value)):
            if count >= MAX_INVALID_SECRETS:
                raise ConversionError(
                    f"the value is not valid. It contains more than {MAX_INVALID_SECRETS:,} "
                    "secrets, so its errors are not shown"
                ) from None
            secrets.append(secret)
    except RecursionError:
        raise ConversionError(
            "the value is not valid. It is nested too deeply, so its errors are not shown"
        ) from None


class _InvalidValueReader:
    """Finds the secrets in a value that is not valid, by its annotation.

    A type may refer to itself, and a value may have several types (a union). Each value is
    therefore read once for each type, so that the work stays linear.
    """

    def __init__(self) -> None:
        self._types: dict[int, tuple[object, dict[str, Any] | None, set[int]]] = {}
        self._visited_leaf_ids: set[int] = set()

    def iter_secrets(self, annotation: Any, value: object) -> Iterator[Any]:
        """Yield the secrets. Every value whose type is not known counts as one.

        An example is the field with a misspelled name.
        """
        fields, visited_ids = self._read_type(annotation)
        if fields is None or id(value) in visited_ids:
            return
        visited_ids.add(id(value))
        if _is_unresolved(annotation) or _is_secret(annotation):
            yield from self._iter_leaves(value)
        elif not fields:
            yield from self._iter_parts(annotation, value)
        elif not is_object(value):
            yield from self._iter_leaves(value)
        else:
            for name, item in value.items():
                if name in fields:
                    yield from self.iter_secrets(fields[name], item)
                else:
                    yield from self._iter_leaves(item)

    def _read_type(self, annotation: object) -> tuple[dict[str, Any] | None, set[int]]:
        """Return the fields of a type, None if it holds no secret, and the values read as it."""
        found = self._types.get(id(annotation))
        if found is None:
            fields = _read_fields(annotation) if may_hold_secret(annotation) else None
            # It refers to the type, so that its id stays in use.
            found = self._types[id(annotation)] = annotation, fields, set()
        return found[1:]

    def _iter_parts(self, annotation: Any, value: object) -> Iterator[Any]:
        is_generic = isinstance(getattr(annotation, "__origin__", None), type)
        items: Any = [value]
        if is_generic and is_object(value):
            items = [*value, *value.values()]
        elif is_generic and is_list(value):
            items = value
        for part in _type_parts(annotation):
            if self._read_type(part)[0] is not None:
                for item in items:
                    yield from self.iter_secrets(part, item)

    def _iter_leaves(self, value: object) -> Iterator[Any]:
        return _iter_leaves(value, self._visited_leaf_ids)


def _iter_leaves(value: Any, visited_ids: set[int]) -> Iterator[Any]:
    """Yield every text, number and secret in a value as a secret."""
    if isinstance(value, (str, bytes, int, float)):
        yield ReceivedSecret(value)
    elif hasattr(value.__class__, "get_secret_value") or is_secret_type(value.__class__):
        yield from iter_secrets(value, visited_ids)
    elif id(value) not in visited_ids:
        visited_ids.add(id(value))
        children = value.values() if is_object(value) else iter_children(value)
        for child in children:
            yield from _iter_leaves(child, visited_ids)
