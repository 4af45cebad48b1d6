"""A line whose time is over: it is interrupted; where that does not help, the process ends."""

from __future__ import annotations

import os

from tooli.call.envelope import document
from tooli.call.model import Failed
from tooli.enforce.deadlines import timed_out
from tooli.enforce.processes import end_descendants
from tooli.surfaces.cli.channel import complain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.surfaces.cli.channel import Alarm

EXIT = 50


def ring(alarm: Alarm) -> None:
    """Interrupt the function the first time; the second time answer in its place, and end."""
    channel = alarm.session.channel
    if channel is not None and channel.torn:
        return  # an answer is on its way out: it is the reader who is slow
    answered = channel is not None and channel.begun and alarm.session.whole
    alarm.rings += 1
    if alarm.leaving or answered:
        if alarm.rings > 1:
            complain(f"The process did not end within {alarm.seconds:g} s and was stopped.")
            _leave(alarm)
        return
    if alarm.rings == 1:
        stopped = end_descendants(os.getpid())
        raise timed_out(alarm.seconds, "main thread", stopped)
    _answer(alarm)
    _leave(alarm)


def _answer(alarm: Alarm) -> None:
    """What a function that cannot be interrupted does not let anybody else say."""
    from tooli.surfaces.cli.answers import call_without_tool

    session = alarm.session
    error = timed_out(alarm.seconds, "main thread")
    if session.channel is None or session.mode not in ("json", "jsonl", "toon"):
        complain(f"error: {error.message} [{error.code}]")
        return
    outcome, call = Failed(error), call_without_tool(session)
    if session.mode == "toon":
        from tooli.surfaces.cli.toon import document as toon_document

        data = toon_document(outcome, call, session.milliseconds)
    else:
        data = document(outcome, call, session.milliseconds)
    try:
        session.channel.write(data + b"\n")
    except (OSError, ValueError):
        pass


def _leave(alarm: Alarm) -> None:
    end_descendants(os.getpid())
    os._exit(EXIT)
