"""Run the callbacks of Typer around the function of a command."""

from __future__ import annotations

import sys

from tooli.core.call import Ok
from tooli.core.command_route import EXIT_KEY
from tooli.pipeline.stdout_capture import CallbackOutput
from tooli.pipeline.typer_calls import RoutedCall

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, StageRun


def run_callbacks(call: Call) -> StageRun:
    """Run the callbacks of the app and its groups, and custom command classes, as Typer does.

    They run only if the function runs, immediately before it. If a callback ends the call with
    exit code 0, the text that it printed is the result.
    """
    routed = RoutedCall(call, call.arguments)
    try:
        with CallbackOutput() as printed:
            outcome = yield call.replace(tool=call.tool.replace(fn=routed))
    finally:
        routed.close()
    is_ended = call.meta is not None and call.meta.pop(EXIT_KEY, False)
    if is_ended and printed.text() and isinstance(outcome, Ok):
        return Ok(printed.text())
    if printed.raw_text() and not printed.is_passed_on:
        sys.stdout.write(printed.raw_text())
    return outcome
