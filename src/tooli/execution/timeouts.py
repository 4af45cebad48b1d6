"""Find the time limit of a call, and build the errors of calls that exceed it.

    where                           how it is stopped                   what is not stopped
    ------------------------------  ----------------------------------  -------------------------
    command line, explicit limit    runs in a process that is killed    nothing (Linux)
    sync function in servers and    runs in a process that is killed    nothing (Linux)
      `app.call`
    async function on a loop        the task is cancelled               code that blocks the loop
    command line, default limit     an alarm in the main thread         C code that never returns
      of an agent (120 s)
    no fork (Windows)               the caller stops waiting            the function itself
    function that stops itself      it is told to, or its task is       a function that ignores it
                                    cancelled

Explicit limits are `timeout=` of the command, `--timeout`, `?timeout=`, `app.call(timeout=…)` and
the setting `timeout`. The shortest one applies.
"""

from __future__ import annotations

import os

from tooli.errors import Suggestion, TimeoutExceeded, ToolRuntimeError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call
    from tooli.errors import ToolError


def effective_timeout(call: Call, settings: Mapping[str, Any]) -> float | None:
    """Return the time limit of a call in seconds, or None.

    The setting does not apply to commands that run servers. On the command line, it is the default
    of the option.
    """
    tool, options = call.tool, call.options
    is_long_running = hasattr(tool.fn, "tooli_long_running")
    requested = None if options.has_default_timeout and is_long_running else options.timeout
    has_setting = not is_long_running and not call.caller.owns_process
    limits = (tool.limits.timeout, requested, settings.get("timeout") if has_setting else None)
    return min([seconds for seconds in limits if seconds is not None], default=None)


def can_fork() -> bool:
    """True if a function can run in a process of its own."""
    return hasattr(os, "fork")


def timeout_error(
    timeout: float, stopped: str, processes: Sequence[str] = (), has_returned: bool = False
) -> ToolError:
    """Return the error for a call that exceeded its time limit.

    Args:
        timeout: The time limit in seconds.
        stopped: What was stopped, a key of _STOP_DESCRIPTIONS.
        processes: Names of the processes that were killed.
        has_returned: True if the function had returned and only its threads or processes still ran.
    """
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
        suffix = (
            ": the function had returned, but processes or threads that it started had not ended"
        )
    is_abandoned = stopped in ("nothing", "no task")
    ending = "was abandoned: it may still be running" if is_abandoned else "was stopped"
    return TimeoutExceeded(
        f"The command did not finish within {timeout:g} s and {ending}{suffix}.",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Request less at a time, or set a longer timeout (in seconds). "
            "The limit of the command itself still applies.",
        ),
        details=details,
    )


_STOP_DESCRIPTIONS = {
    "process": "its process was asked to stop, then killed with all processes that it had started",
    "main thread": "the function was interrupted, and its child processes were killed",
    "task": "its task was cancelled",
    "call": "the function was told to stop, and ended",
    "nothing": "its thread was abandoned and is still running",
    "no task": "its task ignored the cancellation and was abandoned",
}


def process_died_error(status: int | None, supervisor_error: str | None = None) -> ToolRuntimeError:
    """Return the error for a call whose process ended without a result."""
    details: dict[str, Any] = {}
    reason = (
        "for an unknown reason"
        if supervisor_error is None
        else f"because its supervisor failed: {supervisor_error}"
    )
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = _signal_name(number)
        details = {"signal": name}
        reason = f"of {name}{_SIGNAL_CAUSES.get(name, '')}"
    elif status is not None:
        details = {"exit_code": os.WEXITSTATUS(status)}
        reason = f"with exit code {details['exit_code']} and without a result"
    return ToolRuntimeError(
        f"The process of the command died {reason}.",
        code="E4051",
        suggestion=Suggestion(
            "abort", "Inspect the command: its process ended before the function returned."
        ),
        details=details,
    )


_SIGNAL_CAUSES = {
    "SIGKILL": " (out of memory, or killed by another process)",
    "SIGSEGV": " (a fault in native code)",
    "SIGABRT": " (native code aborted)",
    "SIGBUS": " (a fault in native code, or a truncated memory-mapped file)",
    "SIGFPE": " (a fault in native code)",
    "SIGXCPU": " (limit of CPU time)",
    "SIGTERM": " (terminated by another process)",
}


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
