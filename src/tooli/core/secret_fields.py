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
    """Return the default that documents may show; MISSING if there is none or it is a secret.

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
    if isinstance(annotation, str) or annotation.__class__.__name__ == "ForwardRef":
        return True  # it is not resolved here
    if annotation is None or id(annotation) in visited_ids:
        return False
    visited_ids.add(id(annotation))
    if is_secret_type(annotation) or is_secret_type(getattr(annotation, "__origin__", None)):
        return True
    parts = [*_type_parts(annotation), *_read_fields(annotation).values()]
    return any([_may_hold_secret(part, visited_ids) for part in parts])


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
    for count, secret in enumerate(_iter_invalid(annotation, value, {})):
        if count >= MAX_INVALID_SECRETS:
            raise ConversionError(
                f"the value is not valid. It contains more than {MAX_INVALID_SECRETS:,} secrets, "
                "so its errors are not shown"
            ) from None
        secrets.append(secret)


def _iter_invalid(
    annotation: Any, value: object, known: dict[int, tuple[object, bool, dict[str, Any]]]
) -> Iterator[Any]:
    """Yield the secrets in a value that is not valid, by the annotation.

    Every value whose type is not known counts as a secret, such as the field with a misspelled
    name. `known` caches what is known about a type, because a long list has many values of it.
    """
    if id(annotation) not in known:
        holds_secret = may_hold_secret(annotation)
        fields = _read_fields(annotation) if holds_secret else {}
        known[id(annotation)] = annotation, holds_secret, fields
    _, holds_secret, fields = known[id(annotation)]
    if not holds_secret:
        return
    if is_secret_type(annotation) or is_secret_type(getattr(annotation, "__origin__", None)):
        yield from _iter_leaves(value, set())
        return
    if fields:
        if is_object(value):
            for name, item in value.items():
                if name in fields:
                    yield from _iter_invalid(fields[name], item, known)
                else:
                    yield from _iter_leaves(item, set())
        else:
            yield from _iter_leaves(value, set())
        return
    for part in _type_parts(annotation):
        is_item = isinstance(getattr(annotation, "__origin__", None), type)
        if is_item and is_object(value):
            items: Any = [*value, *value.values()]
        else:
            items = value if is_item and is_list(value) else [value]
        for item in items:
            yield from _iter_invalid(part, item, known)
            if not known[id(part)][1]:
                break


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
