"""Handle the expiry of an invocation's time limit.

The first alarm interrupts the function. If the function still runs at the second alarm, the
process writes the error and exits.
"""

from __future__ import annotations

import os

from tooli.cli.outcome_writer import render_envelope
from tooli.cli.process import write_stderr
from tooli.cli.usage_errors import make_output_call
from tooli.core.call import Failed
from tooli.core.output_modes import find_mode
from tooli.execution.processes import kill_descendants
from tooli.execution.timeouts import timeout_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.cli import CommandOutput
    from tooli.cli.process import Deadline

TIMEOUT_EXIT_CODE = 50


def handle_alarm(deadline: Deadline, output: CommandOutput) -> None:
    """Interrupt the function the first time; the second time, write the error and exit."""
    guard = output.guard
    if guard is not None and guard.is_incomplete:
        return  # an answer is being written, and its reader is slow
    is_document = output.invocation.is_document_mode
    has_answered = guard is not None and guard.has_written and is_document
    alarm_count = deadline.count_alarm()
    if deadline.is_exiting or has_answered:
        if alarm_count > 1:
            write_stderr(f"The process did not end within {deadline.timeout:g} s and was stopped.")
            _kill_and_exit()
        return
    if alarm_count == 1:
        stopped_processes = kill_descendants(os.getpid())
        raise timeout_error(deadline.timeout, "main thread", stopped_processes)
    _write_timeout_error(output, deadline.timeout)
    _kill_and_exit()


def _write_timeout_error(output: CommandOutput, timeout: float) -> None:
    """Write the error for a function that cannot be interrupted."""
    error = timeout_error(timeout, "main thread")
    mode = find_mode(output.invocation.mode)
    if output.guard is None or not mode.reports_errors:
        write_stderr(f"error: {error.message} [{error.code}]")
        return
    call = make_output_call(output)
    data = render_envelope(mode, Failed(error), call, output.invocation.milliseconds)
    try:
        output.guard.write(data + b"\n")
    except (OSError, ValueError):
        pass


def _kill_and_exit() -> None:
    kill_descendants(os.getpid())
    os._exit(TIMEOUT_EXIT_CODE)
