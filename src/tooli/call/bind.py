"""bind: the arguments of a call, fitted to the tool's parameters; all that is wrong, at once."""

from __future__ import annotations

from tooli.call.model import Call
from tooli.contract.fit import Given, Misfit, fit, fit_default

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.model import Outcome, Problem
    from tooli.contract.tool import Param


def bind(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Fit what was given, add defaults and what is injected, refuse what does not fit."""
    bound = fit_arguments(call)
    return (
        yield Call(
            call.tool,
            bound,
            call.caller,
            call.warnings,
            call.options,
            call.policy,
            call.approved,
            (),
            call.meta,
        )
    )


def fit_arguments(call: Call) -> dict[str, Any]:
    """The arguments as the function takes them; raises an InputError with all that is wrong."""
    given = call.arguments
    bound: dict[str, Any] = {}
    wrong: list[Problem] | None = None
    used = 0
    for param in call.tool.params:
        name = param.name
        if name in given:
            used += 1
            value = given[name]
            if type(value) is param.exact:
                bound[name] = value
                continue
            if param.kind == "injected" and type(value) is not Given:
                used -= 1
                continue
            try:
                bound[name] = fit(param, value)
            except Misfit as misfit:
                wrong = _note(wrong, param, misfit)
        elif param.settled:
            bound[name] = param.default
        elif param.kind == "injected":
            bound[name] = _inject(param, call)
        elif param.required:
            wrong = _note(wrong, param, None)
        else:
            try:
                bound[name] = fit_default(param)
            except Misfit as misfit:
                wrong = _note(wrong, param, misfit)
    if wrong is not None or call.problems or used != len(given):
        from tooli.call.repair import refusal

        raise refusal(call, wrong or [])
    return bound if call.tool.model is None else _as_model(call, bound)


def _as_model(call: Call, bound: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the one model that the function takes, with what is injected beside it."""
    from tooli.call.repair import refusal, whole_problems
    from tooli.contract.models import validate

    assert call.tool.model is not None
    name, model = call.tool.model
    fields = {param.name: bound.pop(param.name) for param in call.tool.public}
    try:
        return {name: validate(model, fields), **bound}
    except Misfit as misfit:
        raise refusal(call, list(whole_problems(misfit))) from None


ONLY_BIND = (bind,)
"""The stages of an ordinary tool: the pipeline takes a shorter way through them."""


def _note(wrong: list[Problem] | None, param: Param, misfit: Misfit | None) -> list[Problem]:
    from tooli.call.repair import problems_of

    return [*(wrong or ()), *problems_of(param, misfit)]


def _inject(param: Param, call: Call) -> Any:
    from tooli.call.context import Context, typer_context

    return Context(call) if param.shape.what == "context" else typer_context(call)  # type: ignore[union-attr]
