"""Run the checks that a command makes itself, and answer a call that is only validated."""

from __future__ import annotations

from functools import partial

from tooli.core.call import Failed, Ok, Problem, Work
from tooli.core.event_loop import run_awaitable
from tooli.core.tool import MAX_PROBLEMS, count_text, join_path
from tooli.errors import InputError, InternalError, ToolError
from tooli.pipeline import CONFINEMENT_STAGES
from tooli.pipeline.drivers import is_awaitable, run
from tooli.pipeline.input_errors import problem_details
from tooli.schema.own_checks import METHOD, has_check

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tooli.core.call import Call, Outcome, Stage, StageRun
    from tooli.core.tool import Tool
    from tooli.pipeline import StageContext


def answer_valid(call: Call) -> StageRun:
    """Answer a valid call with `--validate`, without running it."""
    if call.options.validate:
        return Ok({"valid": True})
    return (yield call)


def run_own_checks(context: StageContext) -> Stage:
    """Run the checks of a command: the function of `pre_validate=`, and the methods of models.

    They may read files or call a server, so the driver runs them: in async code, in a thread. They
    are code of the command, so they are confined as its function is.
    """
    confinement = context.select(CONFINEMENT_STAGES)

    def check_call(call: Call) -> StageRun:
        check = call.replace(
            tool=call.tool.replace(fn=_make_check(call.tool), is_streaming=False),
            flow=None,
            meta={},
        )
        outcome = yield Work(lambda: _run_check(check, confinement))
        if isinstance(outcome, Failed):
            return outcome
        return (yield call)

    return check_call


def _run_check(check: Call, confinement: tuple[Stage, ...]) -> Outcome:
    outcome = run(check, confinement)
    return outcome.replace(has_started=False) if isinstance(outcome, Failed) else outcome


def _make_check(tool: Tool) -> Callable[..., None]:
    """Return a function that checks the arguments of a tool in place of its own function."""
    own = tool.pre_validate

    def check(**arguments: Any) -> None:
        errors: list[ToolError] = []
        for name in tool.checked_params:
            start = "" if tool.input_model is not None else name  # its fields are the parameters
            for path, value in _checked_values(start, arguments.get(name)):
                errors += _find_errors(getattr(value, METHOD), path)
        if own is not None:
            names = _parameters(own)
            given = {name: arguments[name] for name in names or arguments if name in arguments}
            errors += _find_errors(partial(own, **given))
        if errors:
            raise _join(errors)

    return check


def _parameters(check: Callable[..., object]) -> list[str]:
    """Return the names of the parameters of a check; none if it takes all arguments."""
    from inspect import Parameter, signature

    parameters = signature(check).parameters
    takes_all = any([p.kind is Parameter.VAR_KEYWORD for p in parameters.values()])
    return [] if takes_all else list(parameters)


def _checked_values(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values with a check of their own, each with its path: `order`, `items.0`."""
    kind: type[object] = value.__class__
    if has_check(kind):
        yield path, value
        return
    items: list[tuple[object, Any]] = []
    if issubclass(kind, dict):
        items = [*value.items()]
    elif issubclass(kind, (list, tuple, set, frozenset)):
        items = [*enumerate(value)]
    for key, item in items:
        yield from _checked_values(join_path(path, str(key)), item)


def _find_errors(check: Callable[[], object], path: str = "") -> list[ToolError]:
    """Run a check of the value at a path; return its error in a list, if it has one.

    A ValueError says what is wrong with the input.
    """
    try:
        result = check()
        if is_awaitable(result):
            result = run_awaitable(result)
    except ToolError as error:
        error.field = join_path(path, error.field) if path and error.field else error.field or path
        error.field = error.field or None
        return [error]
    except ValueError as error:
        invalid = InputError(str(error) or "The value is invalid.", field=path or None)
        invalid.__cause__ = error
        return [invalid]
    if result is None:
        return []
    return [
        InternalError(
            f"pre_validate returned {type(result).__name__}: it must return None, and raise a "
            "ToolError or a ValueError if the call is invalid"
        )
    ]


def _join(errors: Sequence[ToolError]) -> ToolError:
    """Return the first error, with the list of all in its details if there are several."""
    first = errors[0]
    if len(errors) > 1:
        problems = [Problem(error.code, error.field, error.message) for error in errors]
        details = problem_details(problems[:MAX_PROBLEMS], len(errors))
        first.details = {**(first.details or {}), **details}
        first.message += count_text(len(errors), is_minimum=False)
    return first
