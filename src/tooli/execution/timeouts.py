"""Deadlines: how long a call may take, what stops it then, and how that is said.

    where                           what stops it                       what that cannot stop
    ------------------------------  ----------------------------------  -------------------------
    command line, a stated limit    a process of its own, killed        nothing (Linux)
    sync function, servers and      the same                            nothing (Linux)
      `app.call`
    async function on a loop        the task is cancelled, else left    code that blocks the loop
    command line, an agent's 120 s  an alarm in the main thread         C code that never returns
    no fork (Windows)               nobody waits; the thread runs on    the function itself

A limit is stated by `timeout=` of the command, `--timeout`, `?timeout=`, `app.call(timeout=…)`, or
the setting; the shortest one holds.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.errors import ToolError, ToolRuntimeError


def effective_timeout(call: Call, settings: Mapping[str, Any]) -> float | None:
    """How long a call may take, where anybody has said so.

    What is only set somewhere is meant for calls, not for the servers that take them.
    """
    tool, options = call.tool, call.options
    is_long_running = hasattr(tool.fn, "tooli_long_running")
    requested = None if options.has_default_timeout and is_long_running else options.timeout
    limits = (tool.limits.timeout, requested, None if is_long_running else settings.get("timeout"))
    return min([seconds for seconds in limits if seconds is not None], default=None)


def can_fork() -> bool:
    """Whether a function can have a process of its own."""
    return hasattr(os, "fork")


def timeout_error(
    timeout: float, stopped: str, processes: Sequence[str] = (), has_returned: bool = False
) -> ToolError:
    """The failure of a call that took longer than it may."""
    from tooli.errors import Suggestion, TimeoutExceeded

    details: dict[str, Any] = {
        "seconds": timeout,
        "stopped": stopped,
        "how": _STOP_DESCRIPTIONS[stopped],
    }
    if processes:
        details["processes"] = sorted(processes)[:20]
    suffix = ""
    if has_returned:
        details["returned"] = True
        suffix = ": it had returned, but what it started had not ended"
    ending = _ENDINGS.get(stopped, " and was stopped")
    return TimeoutExceeded(
        f"The command did not end within {timeout:g} s{ending}{suffix}.",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Ask for less at a time, or allow more time (timeout, in seconds), "
            "as far as the command itself allows that.",
        ),
        details=details,
    )


_STOP_DESCRIPTIONS = {
    "process": "its process was told to stop, then killed with all that it had started",
    "main thread": "the function was interrupted; the processes below it were killed",
    "task": "its task was cancelled",
    "nothing": "nobody waits for it any more; its thread runs on",
    "no task": "it did not heed its cancellation; nobody waits for it any more",
}


_STILL_RUNNING = ": nobody waits for it any more, but it may still be running"
_ENDINGS = {"nothing": _STILL_RUNNING, "no task": _STILL_RUNNING}


def process_died_error(status: int | None, supervisor_error: str | None = None) -> ToolRuntimeError:
    """The failure of a call whose process ended without a word; `broken`: what its guard says."""
    from tooli.errors import Suggestion, ToolRuntimeError

    details: dict[str, Any] = {}
    reason = (
        "for a reason that nobody knows"
        if supervisor_error is None
        else f"with its guard: {supervisor_error}"
    )
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = _signal_name(number)
        details = {"signal": name}
        reason = f"of {name}{_SIGNAL_CAUSES.get(name, '')}"
    elif status is not None:
        details = {"exit_code": os.WEXITSTATUS(status)}
        reason = f"with exit code {details['exit_code']}, without an answer"
    return ToolRuntimeError(
        f"The process of the command died {reason}.",
        code="E4051",
        suggestion=Suggestion("abort", "Look into the command: it did not end as a function does."),
        details=details,
    )


_SIGNAL_CAUSES = {
    "SIGKILL": " (out of memory, or somebody killed it)",
    "SIGSEGV": " (a fault in native code)",
    "SIGABRT": " (native code gave up)",
    "SIGBUS": " (a fault in native code, or a file that became shorter)",
    "SIGFPE": " (a fault in native code)",
    "SIGXCPU": " (its limit of CPU time)",
    "SIGTERM": " (somebody asked it to end)",
}


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
