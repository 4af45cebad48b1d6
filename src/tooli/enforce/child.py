"""Child: runs a function in a process of its own, which is killed where it overruns.

    caller ── fork ──▶ guardian ── fork ──▶ the function
       ▲ ◀── what became of it ┘               │
       └◀── frames: value, items, warnings … ──┘

The guardian (enforce/guardian.py) watches the time; here it is only waited. What the function
changes in memory stays in its process: its value, its items and what it says come back.
"""

from __future__ import annotations

import os
import select
import sys
from _thread import allocate_lock
from time import monotonic

from tooli.call.model import Runner
from tooli.enforce.deadlines import died, timed_out
from tooli.enforce.forking import Deferred, fork, forking, pipes, under_way, write_out
from tooli.enforce.frames import Receiver, garbled, preload, unpack, unpack_error
from tooli.enforce.guardian import GRACE, NO_REPORT, stand_guard
from tooli.enforce.hearing import Hearing, Wary, checked_error
from tooli.enforce.offspring import Offspring
from tooli.enforce.processes import KILL, PATIENCE, load_prctl, signal_to, signals

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.call.model import Call
    from tooli.errors import ToolError

LOOK = 0.1
"""Seconds between two looks whether the client has given a call up."""
GIVE_UP = 5.0
"""Seconds after which a guardian that should have reported is not waited for any more."""
MOST_KEPT = 8
"""Answers of a process that is not trusted, before anybody has asked for them."""


class Child(Runner):
    """Runs whatever it stands around in a process of its own, for so many seconds at most."""

    def __init__(self, inner: Runner | None = None, seconds: float | None = None) -> None:
        super().__init__(inner)
        self.seconds = seconds

    def run(self, call: Call) -> Any:
        """What the function gives, or how it was stopped."""
        return Errand(self, call).result()

    async def arun(self, call: Call) -> Any:
        """The same on an event loop: a coroutine stays there, unless it has to be alone."""
        from tooli.call.pipeline import is_async
        from tooli.enforce.loops import hold

        if is_async(call.tool.fn) and not (self.inner is not None and self.inner.alone):
            assert self.seconds is not None
            return await hold(call.replace(runner=self.inner), self.seconds)
        import asyncio

        errand = Errand(self, call)
        try:
            return await asyncio.to_thread(errand.result)
        except asyncio.CancelledError:
            errand.give_up()
            raise


class Errand:
    """One call that another process runs, as whoever waits for it sees it."""

    def __init__(self, runner: Child, call: Call) -> None:
        self.call = call
        self.inner = runner.inner
        self.wary = self.inner is not None and self.inner.alone  # it runs what is not trusted
        self.seconds = runner.seconds
        self.report: dict[str, Any] | None = None
        self._hearing = (Wary if self.wary else Hearing)(call, self._say)
        self._given: list[tuple[str, Any]] = []  # frames that nobody has looked at yet
        self._ends: list[int] = []  # descriptors of ours, closed in the end
        self._ending = allocate_lock()  # whoever gives up says so to nobody else
        self._interrupts = 0
        self._begun = self._given_up = False
        self._deaf = False  # the function cannot say anything more
        self._patience: float | None = None  # until when the guardian has to have reported

    # -------------------------------------------------------------- beginning

    def _begin(self, interrupt: Any) -> None:
        """Fork the guardian, which forks the process of the function."""
        call, self._flag = self.call, None
        if call.peer is not None:
            from mmap import mmap

            self._flag = mmap(-1, 1)
        for secret in call.secrets or ():
            secret.load()  # here: what only the other process read could not be hidden by this one
        if call.tool.handles:
            from tooli.inputs.output import outputs_in

            for output in outputs_in(call.arguments):
                output.reserve()
        self._flush()
        load_prctl()
        if self.inner is not None and self.inner.alone:
            preload()
        until = None if self.seconds is None else monotonic() + self.seconds
        if until is not None:
            self._patience = until + GRACE + PATIENCE
        parent = os.getpid()
        with forking():
            if self._given_up:
                raise _not_wanted()
            try:
                data, told, heard, answers, report, reports, listens, control = pipes()
            except OSError as failure:
                raise _no_process(failure) from None
            self._ends = [data, answers, report, control]
            mask = signals.pthread_sigmask(signals.SIG_BLOCK, (1, 2, 3, 15))
            try:
                offspring = Offspring(call, self.inner, told, heard, self._flag)
                offspring.interrupt = interrupt
                self.guardian = fork()
                if self.guardian == 0:
                    stand_guard(offspring, parent, self._ends, listens, reports, until, mask)
                under_way.update(self._ends)
                self._answers, self._reports, self._control = answers, report, control
                self._begun = True
            except OSError as failure:
                for mine in self._ends:
                    os.close(mine)
                raise _no_process(failure) from None
            finally:
                signals.pthread_sigmask(signals.SIG_SETMASK, mask)
                for theirs in (told, heard, reports, listens):
                    os.close(theirs)
        self._receiver = Receiver(data, self.wary)
        self._watch = select.poll()
        self._watch.register(data, select.POLLIN)
        self._watch.register(report, select.POLLIN)
        if self._given_up:  # meanwhile
            self.give_up()

    def _flush(self) -> None:
        """Nothing that was written before may be written by both processes."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        if self.call.caller.surface == "cli":
            write_out()

    # -------------------------------------------------------------- waiting

    def result(self) -> Any:
        """The value; or the items, where the function gives them one by one."""
        try:
            with Deferred(self) as before:
                self._begin(before)
                kind, what = self._take(("value", "stream", "error"))
                if kind == "stream":
                    return Items(self)
                self._wait_for_end()
        except BaseException:
            self.end()
            raise
        self.end()
        return self._settled(kind, what)

    def _settled(self, kind: str, what: Any) -> Any:
        """What became of the call, now that its process is gone."""
        report = self.report or NO_REPORT
        if report["overran"]:
            raise timed_out(self.seconds or 0.0, "process", report["stopped"], kind in _RETURNED)
        for _, failure in self._left("error"):
            kind, what = "error", failure
        if kind == "error":
            raise unpack_error(checked_error(what) if self.wary else what, self.wary)
        if kind == "":
            raise died(report["status"], report.get("broken"))
        return unpack(what, self.wary) if what is not None else None

    def following(self) -> tuple[bool, Any]:
        """Whether there is another item, and what it is."""
        try:
            with Deferred(self):
                self._say(b"n")
                kind, what = self._take(("item", "error", "done"))
                if kind == "item":
                    return True, unpack(what, self.wary)
                self._wait_for_end()
        except BaseException:
            self.end()
            raise
        self.end()
        return False, self._settled(kind, what)

    def close(self) -> None:
        """Let the function end before its time; it may clean up, but not for ever."""
        self._say(b"c")
        until = monotonic() + GIVE_UP
        while self.report is None and monotonic() < until:
            self._listen(until - monotonic())
        self.end()

    def _take(self, kinds: tuple[str, ...]) -> tuple[str, Any]:
        """The next frame of those kinds; ("", None) where the process ended without one."""
        while True:
            for i, (kind, _) in enumerate(self._given):
                if kind in kinds:
                    return self._given.pop(i)
            if self.report is not None:
                return "", None
            self._listen()

    def _left(self, kind: str) -> list[tuple[str, Any]]:
        return [frame for frame in self._given if frame[0] == kind]

    def _wait_for_end(self) -> None:
        while self.report is None:
            self._listen()

    def _listen(self, seconds: float | None = None) -> None:
        """Wait for frames or for the guardian's report, and take them."""
        peer, patience = self.call.peer, self._patience
        waits = [s for s in (seconds, LOOK if peer is not None else None) if s is not None]
        if patience is not None:
            waits.append(max(0.0, patience - monotonic()))
        events = self._watch.poll(min(waits) * 1000 if waits else None)
        if peer is not None and peer.cancelled and self._flag is not None:
            self._flag[0] = 1
        if any(descriptor == self._reports for descriptor, _ in events):
            self.report = self._read_report()
        elif patience is not None and monotonic() >= patience:
            self._hear_out()
        for kind, what in self._receiver.frames():
            if not self._hearing.hear(kind, what):
                self._keep(kind, what)
        if self._receiver.ended and not self._deaf:  # or else it would be told of the end for ever
            self._deaf = True
            self._watch.unregister(self._receiver.descriptor)

    def _keep(self, kind: str, what: Any) -> None:
        """Keep a frame until it is asked for; nobody honest is far ahead of its reader."""
        self._given.append((kind, what))
        if self.wary and len(self._given) > MOST_KEPT:
            raise garbled("more answers than anybody has asked for")

    def _hear_out(self) -> None:
        """Give the guardian a last chance; the function dies with it, where the system can.

        From now: both of them may have been suspended until a moment ago.
        """
        if select.select((self._reports,), (), (), GIVE_UP)[0]:
            self.report = self._read_report()
            return
        signal_to(self.guardian, KILL)
        self.report = {**NO_REPORT, "overran": True}
        self.call.warnings.append(
            "the guard of the command did not answer and was killed: "
            "processes that the command started may still be running"
        )

    def _read_report(self) -> dict[str, Any]:
        from marshal import loads

        data = b""
        while piece := os.read(self._reports, 1 << 16):
            data += piece
        if data:
            return loads(data)
        return NO_REPORT  # the guardian itself was killed

    def _say(self, word: bytes, to: int | None = None) -> None:
        """Tell the function something, or the guardian."""
        view = memoryview(word)
        try:
            while view:
                view = view[os.write(self._answers if to is None else to, view) :]
        except OSError:  # it has gone: the report says how
            pass

    # -------------------------------------------------------------- ending

    def interrupt(self, *_: object) -> None:
        """Ctrl-C: it is the function's to end; the second time it is ended."""
        self._interrupts += 1
        if self._interrupts > 1 or not self._begun:
            raise KeyboardInterrupt
        self._say(b"i", self._control)

    def give_up(self) -> None:
        """Nobody waits any more: the guardian ends everything, and whoever listens hears of it."""
        self._given_up = True
        with self._ending:
            if self._begun:
                self._say(b"s", self._control)

    def end(self) -> None:
        """Leave nothing behind: no process, no descriptor, no file that is half written."""
        with self._ending:
            if not self._begun:
                return
            self._begun = False
        if self.report is None:
            self._say(b"s", self._control)
            self._hear_out()
        under_way.difference_update(self._ends)
        for descriptor in self._ends:
            os.close(descriptor)
        self._ends = []
        try:
            os.waitpid(self.guardian, 0)
        except OSError:  # somebody else waits for all children
            pass
        if self.call.tool.handles:
            from tooli.inputs.output import outputs_in

            for output in outputs_in(self.call.arguments):
                output.reclaim()


_RETURNED = ("value", "done")
"""What a function has sent that came to its end, whatever was left running."""


def _no_process(failure: OSError) -> ToolError:
    from tooli.call.failure import unrun
    from tooli.errors import Suggestion, TemporaryError

    refusal = TemporaryError(
        f"The command was not run: it could not be given a process ({failure.strerror}).",
        suggestion=Suggestion("retry_later", "Try again when less is running here."),
    )
    return unrun(refusal)


def _not_wanted() -> ToolError:
    from tooli.errors import Interrupted

    return Interrupted("The call was given up before it began.")


class Items:
    """The items of a function that another process runs, each made when it is asked for."""

    def __init__(self, errand: Errand) -> None:
        self._errand: Errand | None = errand
        self._busy = False

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        errand = self._errand
        if errand is None:
            raise StopIteration
        self._busy = True
        try:
            more, item = errand.following()
        except BaseException:
            self._errand = None
            raise
        finally:
            self._busy = False
        if not more:
            self._errand = None
            raise StopIteration
        return item

    def close(self) -> None:
        """Nobody wants the rest; where another thread waits for an item, it hears of the end."""
        errand, self._errand = self._errand, None
        if errand is not None:
            errand.give_up() if self._busy else errand.close()

    __del__ = close
