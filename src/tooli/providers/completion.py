"""What a client's person may be going to type: values that complete the beginning of one."""

from __future__ import annotations

from tooli.core.tool import Choice, ListOf, is_bool, unwrap_optional

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core.tool import Param, Shape


def completion_candidates(
    param: Param | None, completer: Any, text: str, arguments: Mapping[str, str]
) -> Any:
    """The values to choose from: what the author listed, what a function gives, or the type's own.

    A function is called with the text and, where it takes two, with what is filled in already;
    what an async one gives is to be awaited.
    """
    if callable(completer):
        return completer(text, arguments) if _takes_arguments(completer) else completer(text)
    if completer is not None:
        return completer
    return _values_of_shape(unwrap_optional(param.shape)) if param is not None else ()


def filter_matches(values: Iterable[Any], text: str) -> list[str]:
    """The values that the text begins, then those that contain it; each once."""
    wanted = text.casefold()
    texts = list(dict.fromkeys([str(value) for value in values]))
    prefixed = [option for option in texts if option.casefold().startswith(wanted)]
    return prefixed + [
        option for option in texts if wanted in option.casefold() and option not in prefixed
    ]


def _values_of_shape(shape: Shape) -> tuple[Any, ...]:
    if isinstance(shape, ListOf):
        shape = unwrap_optional(shape.item)
    if isinstance(shape, Choice):
        return tuple([c.value if shape.enum is not None else c for c in shape.values])
    return ("true", "false") if is_bool(shape) else ()


def _takes_arguments(function: Any) -> bool:
    from inspect import Parameter, signature

    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in signature(function).parameters.values() if p.kind in kinds]
    return len(taken) > 1
