"""What a client's person may be going to type: values that complete the beginning of one."""

from __future__ import annotations

from tooli.contract.tool import Choice, ListOf, is_bool, plain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.contract.tool import Param, Shape


def candidates(param: Param | None, said: Any, text: str, given: Mapping[str, str]) -> Any:
    """The values to choose from: what the author listed, what a function gives, or the type's own.

    A function is called with the text and, where it takes two, with what is filled in already;
    what an async one gives is to be awaited.
    """
    if callable(said):
        return said(text, given) if _takes_two(said) else said(text)
    if said is not None:
        return said
    return _of_shape(plain(param.shape)) if param is not None else ()


def matching(values: Iterable[Any], text: str) -> list[str]:
    """The values that the text begins, then those that contain it; each once."""
    wanted = text.casefold()
    words = list(dict.fromkeys([str(value) for value in values]))
    begun = [word for word in words if word.casefold().startswith(wanted)]
    return begun + [word for word in words if wanted in word.casefold() and word not in begun]


def _of_shape(shape: Shape) -> tuple[Any, ...]:
    if isinstance(shape, ListOf):
        shape = plain(shape.item)
    if isinstance(shape, Choice):
        return tuple([c.value if shape.enum is not None else c for c in shape.values])
    return ("true", "false") if is_bool(shape) else ()


def _takes_two(function: Any) -> bool:
    from inspect import Parameter, signature

    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in signature(function).parameters.values() if p.kind in kinds]
    return len(taken) > 1
