"""Find the checks that a command makes itself before it runs.

They are the function of `pre_validate=`, and the methods `pre_validate` of the classes of its
parameters. `tooli.stages.validation` runs them.
"""

from __future__ import annotations

from inspect import Parameter, getattr_static, isfunction, signature
from typing import get_args

from tooli.core.tool import Structured, is_handle, item_shape
from tooli.errors import DefinitionError, function_location
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tooli.core.tool import Param

METHOD = "pre_validate"
"""The method of a class that checks its own value."""


def read_own_checks(
    check: Callable[..., object] | None,
    params: Sequence[Param],
    model: tuple[str, type] | None,
    fn: object,
) -> dict[str, Any]:
    """Return the fields of a Tool for its own checks. `model` is that of `input_model=`."""
    if model is not None:
        checked = (model[0],) if has_check(model[1]) else ()
    else:
        checked = tuple([param.name for param in params if _is_checked(param)])
    if check is not None:
        _require_known_parameters(check, params, model, fn)
    return {"pre_validate": check, "checked_params": checked}


def has_check(kind: object) -> bool:
    """True if values of a class check themselves: `pre_validate` is a method without parameters.

    A pydantic validator with this name takes the data that it validates, so it does not count.
    """
    method = getattr_static(kind, METHOD, None) if isinstance(kind, type) else None
    return isfunction(method) and method.__code__.co_argcount == 1


def _is_checked(param: Param) -> bool:
    shape = item_shape(param.shape)
    return isinstance(shape, Structured) and any(map(has_check, _classes_in(shape.annotation)))


def _classes_in(annotation: Any) -> Iterator[object]:
    """Yield an annotation, and all annotations in it."""
    yield annotation
    for inner in get_args(annotation):
        yield from _classes_in(inner)


def _require_known_parameters(
    check: Callable[..., object],
    params: Sequence[Param],
    model: tuple[str, type] | None,
    fn: object,
) -> None:
    """Raise DefinitionError if a check has a parameter that it cannot get."""
    known = {
        param.name
        for param in params
        if (model is None or param.kind == "injected") and not _is_opened_later(param)
    }
    known |= {model[0]} if model is not None else set()
    location = function_location(check) or function_location(fn)
    for name, parameter in signature(check).parameters.items():
        if parameter.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL):
            continue
        if name in known and parameter.kind is not Parameter.POSITIONAL_ONLY:
            continue
        if any([param.name == name and _is_opened_later(param) for param in params]):
            problem = f"cannot take {name!r}, which is made only when the command runs"
        elif parameter.kind is Parameter.POSITIONAL_ONLY:
            problem = f"takes {name!r} by position; its arguments are passed by name"
        elif parameter.default is not Parameter.empty:
            continue
        else:
            problem = f"takes {name!r}, which is not a parameter of the command"
            problem += did_you_mean(name, known)
        raise DefinitionError(f"pre_validate= {problem}", location)


def _is_opened_later(param: Param) -> bool:
    """True for inputs, secrets, output files and dependencies."""
    return is_handle(item_shape(param.shape)) or getattr(param.shape, "kind", "") == "dependency"
