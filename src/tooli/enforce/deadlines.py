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

    from tooli.call.model import Call
    from tooli.errors import ToolError, ToolRuntimeError


def seconds_for(call: Call, rules: Mapping[str, Any]) -> float | None:
    """How long a call may take, where anybody has said so.

    What is only set somewhere is meant for calls, not for the servers that take them.
    """
    tool, options = call.tool, call.options
    lasts = hasattr(tool.fn, "tooli_lasts")
    said = None if options.assumed and lasts else options.timeout
    limits = (tool.limits.timeout, said, None if lasts else rules.get("timeout"))
    return min([seconds for seconds in limits if seconds is not None], default=None)


def can_fork() -> bool:
    """Whether a function can have a process of its own."""
    return hasattr(os, "fork")


def timed_out(
    seconds: float, what: str, processes: Sequence[str] = (), returned: bool = False
) -> ToolError:
    """The failure of a call that took longer than it may."""
    from tooli.errors import Suggestion, TimeoutExceeded

    details: dict[str, Any] = {"seconds": seconds, "stopped": what, "how": _HOW[what]}
    if processes:
        details["processes"] = sorted(processes)[:20]
    after = ""
    if returned:
        details["returned"] = True
        after = ": it had returned, but what it started had not ended"
    ended = _ENDED.get(what, " and was stopped")
    return TimeoutExceeded(
        f"The command did not end within {seconds:g} s{ended}{after}.",
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Ask for less at a time, or allow more time (timeout, in seconds), "
            "as far as the command itself allows that.",
        ),
        details=details,
    )


_HOW = {
    "process": "its process was told to stop, then killed with all that it had started",
    "main thread": "the function was interrupted; the processes below it were killed",
    "task": "its task was cancelled",
    "nothing": "nobody waits for it any more; its thread runs on",
    "no task": "it did not heed its cancellation; nobody waits for it any more",
}


_LEFT = ": nobody waits for it any more, but it may still be running"
_ENDED = {"nothing": _LEFT, "no task": _LEFT}


def died(status: int | None, broken: str | None = None) -> ToolRuntimeError:
    """The failure of a call whose process ended without a word; `broken`: what its guard says."""
    from tooli.errors import Suggestion, ToolRuntimeError

    details: dict[str, Any] = {}
    said = "for a reason that nobody knows" if broken is None else f"with its guard: {broken}"
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = _name_of(number)
        details = {"signal": name}
        said = f"of {name}{_MEANING.get(name, '')}"
    elif status is not None:
        details = {"exit_code": os.WEXITSTATUS(status)}
        said = f"with exit code {details['exit_code']}, without an answer"
    return ToolRuntimeError(
        f"The process of the command died {said}.",
        code="E4051",
        suggestion=Suggestion("abort", "Look into the command: it did not end as a function does."),
        details=details,
    )


_MEANING = {
    "SIGKILL": " (out of memory, or somebody killed it)",
    "SIGSEGV": " (a fault in native code)",
    "SIGABRT": " (native code gave up)",
    "SIGBUS": " (a fault in native code, or a file that became shorter)",
    "SIGFPE": " (a fault in native code)",
    "SIGXCPU": " (its limit of CPU time)",
    "SIGTERM": " (somebody asked it to end)",
}


def _name_of(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
