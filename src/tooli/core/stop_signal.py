"""StopSignal: tells a function that stops itself when its call has to end.

    deadline ─────────┐
    client cancels ───┼─▶ StopSignal ─▶ the callbacks of `ctx.on_stop(…)`: kill, cancel, close
    Ctrl-C ───────────┘

A function that reaches into another process or another machine cannot be stopped by killing a copy
of this process. It registers a function that stops its work, and the work then fails with an error
of its own.
"""

from __future__ import annotations

from threading import Event, Lock, Thread
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.peer import Peer

_POLL_SECONDS = 0.1
"""Seconds between two checks whether the client has cancelled the call."""


class StopSignal:
    """When a call has to end, and what to call then."""

    def __init__(self, seconds: float | None = None, peer: Peer | None = None) -> None:
        self.seconds = seconds
        self.deadline = None if seconds is None else monotonic() + seconds
        self.grace = 0.0  # seconds after the deadline that a coroutine needs to end its work
        self.is_stopped = False  # True once the callbacks were called
        self._peer = peer
        self._callbacks: list[Callable[[], object]] = []
        self._lock = Lock()
        self._ended = Event()
        self._has_thread = False

    def remaining_time(self) -> float | None:
        """Return the seconds until the deadline; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Call a function when the call has to end; at once, if it has to end already."""
        with self._lock:
            if not self.is_stopped:
                self._callbacks.append(callback)
                needs_thread = not self._has_thread and not self._ended.is_set()
                needs_thread = needs_thread and (self.deadline is not None or self._is_cancellable)
                self._has_thread = self._has_thread or needs_thread
                if needs_thread:
                    Thread(target=self._wait, name="tooli-stop", daemon=True).start()
                return
        _call_quietly(callback)

    def stop(self) -> None:
        """Call the callbacks, once."""
        with self._lock:
            self.is_stopped = True
            callbacks, self._callbacks = self._callbacks, []
        self._ended.set()
        for callback in callbacks:
            _call_quietly(callback)

    def end(self) -> None:
        """Forget the callbacks: the call has ended."""
        with self._lock:
            self._callbacks = []
        self._ended.set()

    @property
    def _is_cancellable(self) -> bool:
        return self._peer is not None

    def _wait(self) -> None:
        while not self._ended.is_set():
            left = self.remaining_time()
            if left == 0 or (self._peer is not None and self._peer.cancelled):
                self.stop()
            elif self._peer is not None:
                self._ended.wait(_POLL_SECONDS if left is None else min(left, _POLL_SECONDS))
            else:
                self._ended.wait(left)


def _call_quietly(callback: Callable[[], object]) -> None:
    """Call a callback and ignore its errors: what it stops may have ended already."""
    try:
        callback()
    except Exception:
        return
