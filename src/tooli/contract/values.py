"""Fit values that come from code or JSON, and defaults, to what a parameter wants.

A value of just the right class needs no thought; in doubt pydantic decides. Typer's own
bounds and the author's parser and callback hold here, too.
"""

from __future__ import annotations

from tooli.contract.fit import (
    Doubt,
    Misfit,
    check_number,
    check_path,
    choose,
    each,
    fit_path,
    is_refined,
    not_one_of,
    within,
)
from tooli.contract.tool import Choice, Foreign, Handle, ListOf, PathShape, Scalar, TupleOf, plain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.contract.tool import Param, Shape


def fit_value(param: Param, value: Any) -> Any:
    """A value from code or JSON, fitted; raises Misfit. The author's own checks are run, too."""
    parser = param.settings.get("parser")
    if parser is not None:
        fitted = _authors(parser, value) if isinstance(value, str) else value
    elif isinstance(param.shape, Foreign):
        fitted = value
    else:
        fitted = _fit_to_shape(param, value)
    callback = param.settings.get("callback")
    if callback is not None:
        from tooli.contract.models import call_back

        return _authors(call_back(callback), fitted)
    return fitted


def _authors(function: Callable[[Any], Any], value: Any) -> Any:
    """What the author's own parser or callback makes of a value; its complaint is a Misfit."""
    try:
        return function(value)
    except (ValueError, TypeError) as refused:
        raise Misfit(str(refused) or type(refused).__name__) from refused
    except Exception as refused:
        if hasattr(refused, "format_message"):  # one of Typer's
            raise Misfit(getattr(refused, "message", str(refused))) from refused
        raise


def _fit_to_shape(param: Param, value: Any) -> Any:
    shape = plain(param.shape)
    if value is None and param.shape is not shape:
        return None
    try:
        if is_refined(param):
            raise Doubt
        return _value(shape, value, param)
    except Doubt:
        from tooli.contract.models import validate

        try:
            valid = validate(param.annotation, value)
        except Misfit:
            if isinstance(shape, Choice) and isinstance(value, (str, int)):
                raise not_one_of(shape, str(value)) from None
            raise
        return _recheck(shape, valid, param)


def _value(shape: Shape, value: Any, param: Param) -> Any:
    kind = value.__class__
    if isinstance(shape, Scalar):
        if kind is shape.type:
            return check_number(value, param) if kind in (int, float) else value
        if shape.type is float and kind is int and -(2**53) <= value <= 2**53:
            return check_number(float(value), param)
    elif isinstance(shape, PathShape):
        if kind is str or isinstance(value, shape.type):
            return check_path(shape.type(value) if kind is str else value, param)
    elif isinstance(shape, Choice):
        if shape.enum is not None and isinstance(value, shape.enum):
            return value
        if kind is str:
            return _choose_value(shape, value, param)
    elif isinstance(shape, ListOf) and kind is list and shape.into is list:
        return each(_value, [shape.item] * len(value), value, param)
    elif isinstance(shape, TupleOf) and kind is tuple and len(value) == len(shape.items):
        return tuple(each(_value, shape.items, value, param))
    elif isinstance(shape, Handle):
        return shape.take(value, param, False)
    raise Doubt


def _choose_value(shape: Choice, value: str, param: Param) -> Any:
    values = [c.value for c in shape.values] if shape.enum is not None else shape.values
    for choice, word in zip(shape.values, values, strict=True):
        if word == value:
            return choice
    if any([type(v) is not str for v in values]) or _looks_again(shape.enum):
        raise Doubt
    return choose(shape, value, param)


def _looks_again(enum: Any) -> bool:
    """Whether an Enum finds members by other values than theirs."""
    return enum is not None and enum._missing_.__func__.__module__ != "enum"


def _recheck(shape: Shape, value: Any, param: Param) -> Any:
    """Typer's own bounds hold for what pydantic accepted, too."""
    if not param.settings or value is None:
        return value
    if isinstance(shape, ListOf):
        return shape.into([_recheck(shape.item, item, param) for item in value])
    if isinstance(shape, TupleOf):
        return tuple([_recheck(s, v, param) for s, v in zip(shape.items, value, strict=True)])
    if isinstance(shape, PathShape):
        return check_path(value, param)
    if isinstance(shape, Scalar) and not param.settings.keys().isdisjoint(("min", "max")):
        if not isinstance(value, shape.type):  # pydantic's int takes an Enum's value as it is
            raise Misfit(f"{value!r} is not a valid number")
        return within(value, param) if shape.type in (int, float) else value
    return value


# ------------------------------------------------------------------ defaults


def fit_default(param: Param) -> Any:
    """The default, looked at as Typer looks at it: converted and checked like a given value."""
    factory = _factory(param)
    default = factory() if factory is not None else param.default
    shape = plain(param.shape)
    if default is None and factory is not None and isinstance(shape, ListOf):
        return shape.into()
    if default is None or isinstance(shape, Foreign):
        return default
    try:
        try:
            return _default(shape, default, param)
        except Doubt:
            return fit_value(param, default)
    except Misfit as misfit:  # nobody gave its parts, so none of them is named
        misfit.at, misfit.others = (), ()
        raise


def is_doubtful(param: Param) -> bool:
    """Whether only Typer can say what it makes of the default of a plain shape."""
    shape = plain(param.shape)
    if param.default is None or (param.settled and not isinstance(shape, Choice)):
        return False
    parts = shape.items if isinstance(shape, TupleOf) else (getattr(shape, "item", shape),)
    light = all([isinstance(part, (Scalar, PathShape, Choice)) for part in parts])
    if not light or is_refined(param) or _factory(param) is not None:
        return False
    try:
        _default(shape, param.default, param)
    except Doubt:
        return True
    except Misfit:
        pass
    return False


def _factory(param: Param) -> Callable[[], Any] | None:
    return param.default if callable(param.default) else param.settings.get("default_factory")


def _default(shape: Shape, default: Any, param: Param) -> Any:
    if is_refined(param):
        raise Doubt
    kind = default.__class__
    if isinstance(shape, ListOf) and kind in (list, tuple, shape.into):
        return shape.into([_default(shape.item, item, param) for item in default])
    if isinstance(shape, TupleOf) and kind is tuple and len(default) == len(shape.items):
        return tuple([_default(s, v, param) for s, v in zip(shape.items, default, strict=True)])
    if isinstance(shape, PathShape) and kind is str:
        return fit_path(shape, default, param)
    if isinstance(shape, Handle):  # the author names a source, as somebody at a terminal does
        return shape.take(default, param, True)
    if isinstance(shape, Choice):
        is_member = hasattr(kind, "_member_map_")
        return choose(shape, str(default.value if is_member else default), param)
    if isinstance(shape, Scalar) and shape.type is str and kind is not bytes:
        return str(default)
    return _value(shape, default, param)
