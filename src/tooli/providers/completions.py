"""Completions of the values of resources and prompts: from the author, or else from the type."""

from __future__ import annotations

from tooli.core.tool import Choice, is_bool, item_shape

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tooli.core.tool import Param, Shape


def completion_candidates(
    param: Param | None,
    completer: Sequence[object] | Callable[..., object] | None,
    text: str,
    arguments: Mapping[str, str],
) -> Any:
    """Return the values that may complete a text: from `completer`, or else from the type.

    A completer that is a function is called with the text and, if it takes two parameters, with
    the arguments filled in so far. The result of an async function must be awaited.
    """
    if callable(completer):
        return completer(text, arguments) if _takes_arguments(completer) else completer(text)
    if completer is not None:
        return completer
    return _values_of_shape(item_shape(param.shape)) if param is not None else ()


def filter_matches(values: Iterable[object], text: str) -> list[str]:
    """Return the values that start with a text, then those that contain it, without duplicates."""
    folded = text.casefold()
    texts = list(dict.fromkeys([str(value) for value in values]))
    prefixed = [option for option in texts if option.casefold().startswith(folded)]
    return prefixed + [
        option for option in texts if folded in option.casefold() and option not in prefixed
    ]


def _values_of_shape(shape: Shape) -> Sequence[object]:
    if isinstance(shape, Choice):
        return shape.raw_values
    return ("true", "false") if is_bool(shape) else ()


def _takes_arguments(function: Callable[..., object]) -> bool:
    from inspect import Parameter, signature

    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in signature(function).parameters.values() if p.kind in kinds]
    return len(taken) > 1
