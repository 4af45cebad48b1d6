"""The guardian: a small process between a caller and the process of its command.

    caller ── control ──▶ guardian ── fork ──▶ the function, whatever it starts
    caller ◀── report ─── guardian ◀── every orphan among them

It adopts what the command leaves alone, so it finds all of it, however it tried to get away; and
it lives on when the caller is killed, just long enough to end the rest. It runs no code of the
app's, and imports nothing: a thread of the caller's may have held the lock of a module. Where
there is no /proc, it ends the command's own group of processes, and no more.
"""

from __future__ import annotations

import os
from marshal import dumps
from select import POLLIN, poll
from time import monotonic

from tooli.enforce.forking import start_anew
from tooli.enforce.processes import (
    INT,
    TERM,
    adopt_orphans,
    close_all_but,
    end_descendants,
    end_group,
    reap,
    signal_to,
    signals,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from tooli.enforce.offspring import Offspring

GRACE = 0.3
"""Seconds that a command has to clean up after it was told to stop."""
TICK, BLINK = 0.5, 0.02
"""Seconds between two looks: whether the caller still lives; where nothing tells of an end."""
NO_REPORT: dict[str, Any] = {"status": None, "overran": False, "stopped": []}
"""What is known where a guardian could not tell."""
HEARD = 0.05
"""Seconds after which an interrupt that did not come to all of us was meant for the caller."""


class Guardian:
    """The watch over one process, from its beginning until nothing of it is left to be ended."""

    def __init__(self, child: int, parent: int, control: int, until: float | None) -> None:
        self.child = child
        self.parent = parent
        self.control = control
        self.until = until  # when the command has to have ended
        self.overran = False
        self.stopping: float | None = None  # when it is killed, once it was told to stop
        self.forward: float | None = None  # when an interrupt is passed on
        self.interrupted = False  # by a signal that came to the whole group
        self.status: int | None = None

    def note(self, *_: object) -> None:
        """Take a signal that the command has got as well."""
        self.interrupted = True

    def watch(self) -> dict[str, Any]:
        """Wait until the command has ended, or has been ended; what there is to report."""
        watch = poll()
        watch.register(self.control, POLLIN)
        told = _tells_of_end(self.child)
        if told is not None:
            watch.register(told, POLLIN)
        while True:
            events = watch.poll(self._wait(told is not None) * 1000)
            ended = reap()
            if self.child in ended:
                self.status = ended[self.child]
                break
            if any(descriptor == self.control for descriptor, _ in events):
                self._obey()
            if self._look():
                break
        stopped = self._end_all() if self.stopping is not None else []
        return {"status": self.status, "overran": self.overran, "stopped": stopped}

    def _wait(self, told: bool) -> float:
        times = [t for t in (self.until, self.stopping, self.forward) if t is not None]
        now = monotonic()
        return max(0.0, min([TICK if told else BLINK, *[t - now for t in times]]))

    def _obey(self) -> None:
        """Do what the caller says; where it says nothing any more, it has gone."""
        said = os.read(self.control, 64)
        if b"i" in said and self.forward is None:
            self.forward = monotonic() + HEARD
        if b"s" in said or not said:
            self._stop()

    def _look(self) -> bool:
        """Do what is due; whether it is time to kill."""
        now = monotonic()
        if self.forward is not None and now >= self.forward:
            if not self.interrupted:
                signal_to(self.child, INT)
            self.interrupted, self.forward = False, None
        if self.until is not None and now >= self.until:
            self.until, self.overran = None, True
            self._stop()
        if os.getppid() != self.parent:
            self._stop()
        return self.stopping is not None and monotonic() >= self.stopping

    def _stop(self) -> None:
        if self.stopping is None:
            signal_to(self.child, TERM)
            self.stopping = monotonic() + GRACE

    def _end_all(self) -> list[str]:
        """Kill the command and whatever it has started."""
        if self.status is None and not os.path.exists("/proc/self/stat"):
            end_group(self.child)
        elif self.status is None:
            signal_to(self.child, 9)
        return end_descendants(os.getpid(), buries=True)


def _tells_of_end(pid: int) -> int | None:
    """A descriptor that can be read once a process has ended."""
    opened: Any = getattr(os, "pidfd_open", None)
    try:
        return opened(pid) if opened is not None else None
    except OSError:
        return None


def stand_guard(
    offspring: Offspring,
    parent: int,
    strange: Sequence[int],
    control: int,
    report: int,
    until: float | None,
    mask: Any,
) -> NoReturn:
    """Start the function in a process below this one, and watch over it; never returns.

    `strange`: the ends of the pipes that are the caller's.
    """
    try:
        start_anew(strange)
        signals.set_wakeup_fd(-1)
        adopt_orphans()
        me = os.getpid()
        bury = signals.signal(signals.SIGCHLD, signals.SIG_DFL)  # an app may not want to know
        child = os.fork()
        if child == 0:
            signals.signal(signals.SIGCHLD, signals.SIG_DFL if bury is None else bury)
            os.close(control)
            os.close(report)
            offspring.live(me, mask)  # ends the process
        guardian = Guardian(child, parent, control, until)
        signals.signal(INT, signals.SIG_IGN if offspring.apart else guardian.note)
        for number in (1, 3, TERM, 13, 14):
            signals.signal(number, signals.SIG_IGN)
        close_all_but((control, report))
        signals.pthread_sigmask(signals.SIG_SETMASK, mask)
        os.write(report, dumps(guardian.watch()))
    except BaseException as failure:
        os.write(report, dumps({**NO_REPORT, "broken": str(failure) or type(failure).__name__}))
    finally:
        os._exit(0)
