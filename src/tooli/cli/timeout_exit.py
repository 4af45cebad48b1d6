"""A line whose time is over: it is interrupted; where that does not help, the process ends."""

from __future__ import annotations

import os

from tooli.cli.process import write_stderr
from tooli.cli.stream_output import render_document
from tooli.core.call import Failed
from tooli.core.output_modes import find_mode
from tooli.execution.process_tree import kill_descendants
from tooli.execution.timeouts import timeout_error
from tooli.pipeline.present import present

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.cli.process import TimeoutAlarm

TIMEOUT_EXIT_CODE = 50


def handle_alarm(alarm: TimeoutAlarm) -> None:
    """Interrupt the function the first time; the second time answer in its place, and end."""
    channel = alarm.invocation.stdout_guard
    if channel is not None and channel.is_incomplete:
        return  # an answer is on its way out: it is the reader who is slow
    has_answered = channel is not None and channel.has_written and alarm.invocation.is_document_mode
    alarm.fired_count += 1
    if alarm.is_exiting or has_answered:
        if alarm.fired_count > 1:
            write_stderr(f"The process did not end within {alarm.timeout:g} s and was stopped.")
            _kill_and_exit(alarm)
        return
    if alarm.fired_count == 1:
        stopped_processes = kill_descendants(os.getpid())
        raise timeout_error(alarm.timeout, "main thread", stopped_processes)
    _write_timeout_error(alarm)
    _kill_and_exit(alarm)


def _write_timeout_error(alarm: TimeoutAlarm) -> None:
    """What a function that cannot be interrupted does not let anybody else say."""
    from tooli.cli.info_options import call_without_tool

    invocation = alarm.invocation
    error = timeout_error(alarm.timeout, "main thread")
    mode = find_mode(invocation.mode)
    if invocation.stdout_guard is None or not mode.reports_errors:
        write_stderr(f"error: {error.message} [{error.code}]")
        return
    outcome, call = Failed(error), call_without_tool(invocation)
    if mode.is_document:
        data = render_document(mode, outcome, call, invocation.milliseconds)
    else:
        data = present(outcome, call, invocation.milliseconds).envelope_json()
    try:
        invocation.stdout_guard.write(data + b"\n")
    except (OSError, ValueError):
        pass


def _kill_and_exit(alarm: TimeoutAlarm) -> None:
    kill_descendants(os.getpid())
    os._exit(TIMEOUT_EXIT_CODE)
