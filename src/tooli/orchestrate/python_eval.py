"""Evaluate an expression about a result: `python-eval`, and the option `--python-eval`.

    mytool list --json | mytool python-eval 'sum(r["size"] for r in data)'
    mytool list --python-eval 'len(data)'

The expression is a script without tools. It runs in the sandbox, with limits of its own. An app has
to allow it: `Tooli(allow_python_eval=True)`.
"""

from __future__ import annotations

import ast
from json import dumps

from tooli.core.call import Failed, Ok
from tooli.core.event_loop import run_awaitable
from tooli.errors import AuthError, InputError, Suggestion, ToolError, ToolRuntimeError
from tooli.orchestrate.sandbox import SandboxLimits, load_monty
from tooli.orchestrate.script_check import SCRIPT_HAS_ERRORS
from tooli.orchestrate.script_run import Script, run_script
from tooli.pipeline.present import ItemPresenter
from tooli.storage.audit_log import log_event

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core import AppState
    from tooli.core.call import Call, Stage, StageRun
    from tooli.core.protocols import App
    from tooli.pipeline import StageContext

MAX_RESULT_CHARS = 16 << 20
"""Maximum size of the result of an expression, as JSON."""

LIMITS = SandboxLimits(seconds=10.0, turn_seconds=10.0, memory=256 << 20, depth=200)
_ADVICE = "Its only variable is `data`."


def check_allowed(state: AppState, call: Call) -> None:
    """Raise an AuthError if the app does not allow expressions. The audit log gets a denial."""
    if state.allow_python_eval:
        return
    error = AuthError(
        f"{state.name} does not allow Python expressions.",
        code="E2008",
        suggestion=Suggestion(
            "ask_human",
            "Its author can allow them: Tooli(allow_python_eval=True). `--filter` and `--select` "
            "need no permission.",
        ),
    )
    log_event("denial", call.replace(arguments={}), code=error.code, message=error.message)
    vars(error)["is_logged"] = True
    raise error


async def evaluate(app: App, call: Call, source: str, data: object) -> Any:
    """Return the value of an expression about `data`, which consists of JSON types.

    The audit log gets the expression. Under the policy `strict` it is not evaluated if it cannot be
    logged.
    """
    logged_call = call.replace(arguments={})  # the data may be large
    log_event("python_eval", logged_call, required=True, phase="begins", expression=source)
    script = Script(source, {}, {"data": data}, limits=LIMITS, advice=_ADVICE)
    try:
        result = await run_script(app, script, call)
        _check_size(result)
    except ToolError as error:
        log_event("python_eval", logged_call, phase="ends", ok=False, code=error.code)
        error.message = error.message.replace(SCRIPT_HAS_ERRORS, "The expression has errors.")
        error.message = error.message.replace("The script", "The expression")
        raise
    log_event("python_eval", logged_call, phase="ends", ok=True)
    return result


def _check_size(result: object) -> None:
    if len(dumps(result)) > MAX_RESULT_CHARS:
        raise ToolRuntimeError(
            f"The result of the expression has more than {MAX_RESULT_CHARS >> 20} MB.",
            code="E4081",
            suggestion=Suggestion("retry_with_modified_input", "Return less."),
        )


def evaluate_result(context: StageContext) -> Stage:
    """Replace the result by the value of an expression about it (`--python-eval`).

    Only the command line has the option. So the stage may wait for the sandbox: nothing else runs
    in the process. The expression gets the redacted result.
    """
    state = context.state

    def evaluate_expression(call: Call) -> StageRun:
        source = call.options.python_eval or ""
        check_allowed(state, call)
        _check_before_the_call(source)
        outcome = yield call
        if isinstance(outcome, Failed):
            return outcome
        data = ItemPresenter(call).value(outcome.value)
        assert state.app is not None
        try:
            return Ok(run_awaitable(evaluate(state.app, call, source, data)))
        except ToolError as error:
            if not call.tool.effects.read_only:
                error.details = {**(error.details or {}), "result": data}
                error.is_retryable = False
                fix = "The command has run: do not repeat it. `details.result` has its result."
                error.suggestion = Suggestion("abort", fix)
            return Failed(error)

    return evaluate_expression


def _check_before_the_call(source: str) -> None:
    """Raise an error before the command runs if its result cannot be evaluated."""
    load_monty()
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"The expression is not valid: {error}.",
            code="E1070",
            field="python_eval",
            suggestion=Suggestion("retry_with_modified_input", "Correct it; nothing ran."),
        ) from None
