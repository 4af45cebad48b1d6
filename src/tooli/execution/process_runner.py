"""Run a function in a process of its own, which can be killed at a deadline.

    caller ── fork ──▶ supervisor ── fork ──▶ worker: the function
       ▲ ◀── report ─────────┘                   │
       └◀── frames: value, items, warnings … ────┘

The supervisor (execution/processes.py) enforces the deadline; the caller only waits. Changes that
the function makes in memory stay in the worker process. Its value, its items, its warnings and its
output are sent back.
"""

from __future__ import annotations

import os
import select
from _thread import allocate_lock
from marshal import loads
from time import monotonic

from tooli.core.call import Runner
from tooli.errors import Interrupted, Suggestion, TemporaryError
from tooli.execution.ipc import ChildMessages, FrameReceiver, invalid_message_error, preload_modules
from tooli.execution.processes import (
    EMPTY_REPORT,
    KILL_TIMEOUT,
    SIGINT,
    SIGKILL,
    TERM_GRACE_SECONDS,
    flush_output,
    fork,
    fork_lock,
    is_readable,
    load_prctl,
    open_pipe_ends,
    open_pipes,
    run_supervisor,
    send_signal,
    signals,
)
from tooli.execution.timeouts import process_died_error, timeout_error
from tooli.execution.worker import Worker, select_codec
from tooli.inputs.output import find_outputs
from tooli.pipeline.drivers import is_async
from tooli.pipeline.failure import mark_not_started
from tooli.pipeline.stdout_capture import is_output_discarded

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.call import Call
    from tooli.errors import ToolError
    from tooli.execution.output_relay import OutputRelay
    from tooli.execution.processes import SignalHandler, SupervisorReport

CANCEL_POLL_INTERVAL = 0.1
"""Seconds between two checks whether the client has cancelled the call."""
SIGNAL_CHECK_INTERVAL = 1.0
"""Maximum seconds of a wait.

If a signal arrives immediately before poll(), CPython runs its handler when poll() returns.
"""
REPORT_TIMEOUT = 5.0
"""Seconds to wait for an overdue report of the supervisor."""
MAX_PENDING_FRAMES = 8
"""Maximum number of results that an untrusted process may send before they are requested."""
PENDING_FRAMES_MARGIN = 1 << 20
"""Bytes that these results may have together, in addition to one result of the maximum size."""


class ProcessRunner(Runner):
    """Runs a function, or another runner, in a process of its own with an optional timeout."""

    def __init__(self, inner: Runner | None = None, timeout: float | None = None) -> None:
        super().__init__(inner)
        self.timeout = timeout

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        return ChildCall(self, call).result()

    async def arun(self, call: Call) -> Any:
        """Run the call from an event loop.

        A coroutine function runs on the loop itself, unless the inner runner needs its own process.
        """
        if is_async(call.tool.fn) and not (self.inner is not None and self.inner.needs_own_process):
            from tooli.execution.cooperative_timeouts import run_with_timeout

            assert self.timeout is not None
            return await run_with_timeout(call.replace(runner=self.inner), self.timeout)
        import asyncio

        child_call = ChildCall(self, call)
        try:
            return await asyncio.to_thread(child_call.result)
        except asyncio.CancelledError:
            child_call.cancel()
            raise


class ChildCall:
    """One call that runs in another process, as the calling process sees it."""

    def __init__(self, runner: ProcessRunner, call: Call) -> None:
        self.call = call
        self.inner = runner.inner
        # A sandboxed process is not trusted, so its messages are validated.
        self.is_untrusted = self.inner is not None and self.inner.needs_own_process
        self.timeout = runner.timeout
        self.report: SupervisorReport | None = None
        self._codec = select_codec(self.inner)
        messages_class = ChildMessages
        if self.is_untrusted:
            from tooli.execution.untrusted_messages import (
                UntrustedMessages as messages_class,  # noqa: N813
            )
        self._messages = messages_class(call, self._codec, self._write)
        # Frames that were received but not requested yet: kind, payload, size.
        self._pending_frames: list[tuple[str, Any, int]] = []
        self._relays: list[OutputRelay] = []  # of the output of an untrusted process
        self._pipe_ends: tuple[int, ...] = ()  # the descriptors of this process
        self._end_lock = allocate_lock()  # cancel() and shut_down() may run in different threads
        self._interrupt_count = 0
        self._is_running = self._is_cancelled = False
        self._has_sent_cancel = False  # the worker knows that the client has cancelled the call
        self._report_deadline: float | None = None  # after this the supervisor's report is overdue

    # -------------------------------------------------------------- start

    def _start(self, interrupt_handler: SignalHandler) -> None:
        """Fork the supervisor, which forks the worker process."""
        self._prepare_fork()
        deadline = None if self.timeout is None else monotonic() + self.timeout
        if deadline is not None:
            self._report_deadline = deadline + TERM_GRACE_SECONDS + KILL_TIMEOUT
        if self.call.peer is not None:
            self.call.peer.deadline = deadline
        with fork_lock():
            if self._is_cancelled:
                raise Interrupted("The call was cancelled before it started.")
            data_fd = self._fork_supervisor(interrupt_handler, deadline)
        self._receiver = FrameReceiver(data_fd, self._codec)
        self._poller = select.poll()
        self._poller.register(data_fd, select.POLLIN)
        self._poller.register(self._report_fd, select.POLLIN)
        for relay in self._relays:
            relay.update_poller(self._poller)
        if self._is_cancelled:  # cancelled while the processes were started
            self.cancel()

    def _prepare_fork(self) -> None:
        """Do the work that must happen before the fork: load secrets, create output files, flush.

        This work does not count towards the time limit. asyncio is imported here, so that the
        worker processes do not have to import it.
        """
        call = self.call
        for secret in call.secrets or ():
            secret.load()  # this process redacts secrets, so it needs their values
        preload = getattr(call.session_data, "preload", None)
        if preload is not None and any([param.kind == "injected" for param in call.tool.params]):
            preload()  # the worker process has no connection to the store
        if call.tool.has_handles:
            for output in find_outputs(call.tool.arguments_by_param(call.arguments)):
                output.create_marked_file()
        if is_async(call.tool.fn):
            for name in ("asyncio", "tooli.core.event_loop"):
                __import__(name)
        flush_output(includes_files=call.caller.owns_process)
        load_prctl()
        if self.is_untrusted:
            preload_modules()

    def _fork_supervisor(self, interrupt_handler: SignalHandler, deadline: float | None) -> int:
        """Open the pipes and fork the supervisor; return the descriptor to read frames from."""
        try:
            child_ends, redirect_streams = self._open_pipes()
        except OSError as failure:
            raise _fork_failed_error(failure) from None
        data_in, self._answer_fd, self._cancel_fd, self._report_fd, self._control_fd = (
            self._pipe_ends[:5]
        )
        data_out, answer_in, cancel_in, report_out, control_in = child_ends[:5]
        caller_pid = os.getpid()
        signal_mask = signals.pthread_sigmask(signals.SIG_BLOCK, (1, 2, 3, 15))
        try:
            worker = Worker(self.call, self.inner, data_out, answer_in, cancel_in)
            worker.interrupt_handler = interrupt_handler
            worker.redirect_streams = redirect_streams
            self.supervisor_pid = fork()
            if self.supervisor_pid == 0:
                run_supervisor(
                    worker,
                    caller_pid,
                    self._pipe_ends,
                    control_in,
                    report_out,
                    deadline,
                    signal_mask,
                )
            for own_end in (self._answer_fd, self._cancel_fd, self._control_fd):
                os.set_blocking(own_end, False)  # a full pipe must not block this process
            open_pipe_ends.update(self._pipe_ends)
            self._is_running = True
            if self.inner is not None:
                self.inner.process_started()
        except OSError as failure:
            for own_end in self._pipe_ends:
                os.close(own_end)
            raise _fork_failed_error(failure) from None
        finally:
            signals.pthread_sigmask(signals.SIG_SETMASK, signal_mask)
            for child_end in child_ends:
                os.close(child_end)
        return data_in

    def _open_pipes(self) -> tuple[tuple[int, ...], Callable[[], None] | None]:
        """Open the pipes and return the ends of the child processes.

        The second value is a function that replaces the standard streams of an untrusted process.
        """
        if not self.is_untrusted:
            self._pipe_ends, child_ends = open_pipes()
            return child_ends, None
        from tooli.execution.output_relay import OutputRelay, group_outputs, redirect_streams

        is_discarded = is_output_discarded()
        outputs, has_stdin = group_outputs(), not (self.call.caller.is_remote or is_discarded)
        self._pipe_ends, child_ends = open_pipes(len(outputs))
        self._relays = [
            OutputRelay(source, None if is_discarded else numbers[0])
            for source, numbers in zip(self._pipe_ends[5:], outputs, strict=True)
        ]
        return child_ends, lambda: redirect_streams(outputs, child_ends[5:], has_stdin)

    # -------------------------------------------------------------- wait

    def result(self) -> Any:
        """Return the value, or an iterator if the function is a stream."""
        try:
            with DeferredInterrupt(self) as previous_handler:
                self._start(previous_handler)
                kind, payload = self._next_frame(("value", "stream", "error"))
                if kind == "stream":
                    self._drain_output()
                    return ChildStream(self)
                self._wait_for_end()
        except BaseException:
            self.shut_down()
            raise
        self.shut_down()
        return self._build_result(kind, payload)

    def _build_result(self, kind: str, payload: Any) -> Any:
        """Return the value or raise the error of a call whose process has ended."""
        report = self.report or EMPTY_REPORT
        if report["timed_out"]:
            raise timeout_error(
                self.timeout or 0.0, "process", report["killed"], kind in _COMPLETED_KINDS
            )
        for pending_kind, pending_payload, _ in self._pending_frames:
            if pending_kind == "error":
                kind, payload = "error", pending_payload
        if kind == "error":
            raise self._codec.unpack_error(payload)
        if kind == "":
            raise process_died_error(report["status"], report.get("error"))
        return self._codec.unpack(payload) if payload is not None else None

    def next_item(self) -> tuple[bool, Any]:
        """Return True and the next item, or False and None at the end of the stream."""
        try:
            with DeferredInterrupt(self):
                self._write(b"n")
                kind, payload = self._next_frame(("item", "error", "done"))
                if kind == "item":
                    self._drain_output()
                    return True, self._codec.unpack(payload)
                self._wait_for_end()
        except BaseException:
            self.shut_down()
            raise
        self.shut_down()
        return False, self._build_result(kind, payload)

    def close(self) -> None:
        """End the stream early. The function has a limited time to clean up."""
        self._write(b"c")
        deadline = monotonic() + REPORT_TIMEOUT
        while self.report is None and monotonic() < deadline:
            self._receive(deadline - monotonic())
        self.shut_down()

    def _next_frame(self, kinds: tuple[str, ...]) -> tuple[str, Any]:
        """Return the next frame of one of these kinds.

        Return ("", None) if the process ends without one.
        """
        while True:
            for i, (kind, payload, _) in enumerate(self._pending_frames):
                if kind in kinds:
                    del self._pending_frames[i]
                    return kind, payload
            if self.report is not None:
                return "", None
            self._receive()

    def _wait_for_end(self) -> None:
        while self.report is None:
            self._receive()
        self._drain_output()

    def _drain_output(self) -> None:
        """Write everything that an untrusted process has printed so far."""
        for relay in self._relays:
            relay.drain(self._report_deadline, lambda: self._is_cancelled)

    def _copy_output(self) -> None:
        for relay in self._relays:
            relay.copy()

    def _receive(self, timeout: float | None = None) -> None:
        """Wait for frames or for the report of the supervisor, and handle them."""
        peer, report_deadline = self.call.peer, self._report_deadline
        timeouts = [SIGNAL_CHECK_INTERVAL if timeout is None else timeout]
        if peer is not None:
            timeouts.append(CANCEL_POLL_INTERVAL)
        if report_deadline is not None:
            timeouts.append(max(0.0, report_deadline - monotonic()))
        events = self._poller.poll(min(timeouts) * 1000)
        if peer is not None and peer.cancelled and not self._has_sent_cancel:
            self._has_sent_cancel = True
            self._write(b"c", self._cancel_fd)
        if any(fd == self._report_fd for fd, _ in events):
            self.report = self._read_report()
        elif report_deadline is not None and monotonic() >= report_deadline:
            self._await_final_report()
        was_closed = self._receiver.is_closed
        self._copy_output()
        for kind, payload in self._receiver.read_frames():
            self._copy_output()  # what was printed before a message is written before it
            if not self._messages.handle(kind, payload):
                self._queue_frame(kind, payload, self._receiver.frame_bytes)
        if self._receiver.is_closed and not was_closed:
            # Every poll() would return at once for a closed pipe.
            self._poller.unregister(self._receiver.fd)
        for relay in self._relays:
            relay.update_poller(self._poller)

    def _queue_frame(self, kind: str, payload: Any, size: int) -> None:
        """Keep a frame until it is requested; fail if an untrusted process sends too many.

        `size` is the number of bytes that were received, whatever they were decoded to.
        """
        self._pending_frames.append((kind, payload, size))
        limit = self._codec.max_frame_bytes
        if limit is not None:  # the process is not trusted
            total = sum([frame[2] for frame in self._pending_frames])
            is_too_large = total > limit + PENDING_FRAMES_MARGIN
            if len(self._pending_frames) > MAX_PENDING_FRAMES or is_too_large:
                raise invalid_message_error("more results than were requested")

    def _await_final_report(self) -> None:
        """Wait once more for the report; kill the supervisor if it sends none.

        On Linux the worker dies with the supervisor. The wait takes up to REPORT_TIMEOUT seconds
        even after the deadline, because the whole process tree may have been suspended.
        """
        if is_readable(self._report_fd, REPORT_TIMEOUT):
            self.report = self._read_report()
            return
        send_signal(self.supervisor_pid, SIGKILL)
        self.report = {**EMPTY_REPORT, "timed_out": True}
        self.call.warnings.append(
            "the supervisor of the command did not answer and was killed: "
            "processes that the command started may still be running"
        )

    def _read_report(self) -> SupervisorReport:
        data = b""
        while chunk := os.read(self._report_fd, 1 << 16):
            data += chunk
        return loads(data) if data else EMPTY_REPORT  # empty: the supervisor was killed

    def _write(self, data: bytes, fd: int | None = None) -> None:
        """Write bytes to the worker, or to another descriptor such as the supervisor's.

        Stop when the process has ended: another process may hold the full pipe open.
        """
        fd, view = self._answer_fd if fd is None else fd, memoryview(data)
        try:
            while view:
                try:
                    view = view[os.write(fd, view) :]
                except BlockingIOError:
                    if not self._wait_until_writable(fd):
                        return
        except OSError:  # the process has ended; its report says how
            pass

    def _wait_until_writable(self, fd: int) -> bool:
        """Wait for space in a pipe; return False if the process ends or its deadline passes."""
        if self.report is not None:
            return False
        poller, deadline = select.poll(), self._report_deadline
        poller.register(fd, select.POLLOUT)
        poller.register(self._report_fd, select.POLLIN)
        events = poller.poll(None if deadline is None else max(0.0, deadline - monotonic()) * 1000)
        return any([number == fd for number, _ in events])

    # -------------------------------------------------------------- end

    def interrupt(self, *_: object) -> None:
        """Handle Ctrl-C: the first one goes to the function, the second one ends the call."""
        self._interrupt_count += 1
        if self._interrupt_count > 1 or not self._is_running:
            raise KeyboardInterrupt
        self._write(b"i", self._control_fd)

    def cancel(self) -> None:
        """Stop the processes of the call; a thread that waits for its result gets an error."""
        self._is_cancelled = True
        with self._end_lock:
            if self._is_running:
                self._write(b"s", self._control_fd)

    def shut_down(self) -> None:
        """End the processes, close the pipes and take over the output files of the worker."""
        with self._end_lock:
            if not self._is_running:
                return
            self._is_running = False
        if self.report is None:
            self._write(b"s", self._control_fd)
            self._await_final_report()
        self._copy_output()
        open_pipe_ends.difference_update(self._pipe_ends)
        for fd in self._pipe_ends:
            os.close(fd)
        self._pipe_ends = ()
        try:
            os.waitpid(self.supervisor_pid, 0)
        except OSError:  # other code of the app has reaped it
            pass
        if self.call.tool.has_handles:
            for output in find_outputs(self.call.tool.arguments_by_param(self.call.arguments)):
                output.discard_if_unwritten()
        if self.inner is not None:
            self.inner.process_ended()


class DeferredInterrupt:
    """Context manager that passes the first Ctrl-C to the function instead of raising here."""

    def __init__(self, child_call: ChildCall) -> None:
        self._child_call = child_call
        self._previous_handler: SignalHandler = None

    def __enter__(self) -> SignalHandler:
        """Replace the SIGINT handler and return the old one, which the worker installs.

        Returns None if the handler was not replaced.
        """
        is_default = signals.getsignal(SIGINT) is signals.default_int_handler
        if is_default and self._child_call.call.caller.owns_process:
            try:
                self._previous_handler = signals.signal(SIGINT, self._child_call.interrupt)
            except ValueError:  # only the main thread can set signal handlers
                pass
        return self._previous_handler

    def __exit__(self, *_: object) -> None:
        if self._previous_handler is not None:
            signals.signal(SIGINT, self._previous_handler)


_COMPLETED_KINDS = ("value", "done")
"""Kinds of frames that show that the function has returned."""


def _fork_failed_error(failure: OSError) -> ToolError:
    error = TemporaryError(
        f"The command was not run: no process could be started ({failure.strerror}).",
        suggestion=Suggestion("retry_later", "Try again when fewer processes are running."),
    )
    return mark_not_started(error)


class ChildStream:
    """Iterator of the items of a stream that runs in another process."""

    def __init__(self, child_call: ChildCall) -> None:
        self._child_call: ChildCall | None = child_call
        self._is_busy = False

    def __iter__(self) -> ChildStream:
        return self

    def __next__(self) -> Any:
        child_call = self._child_call
        if child_call is None:
            raise StopIteration
        self._is_busy = True
        try:
            has_more, item = child_call.next_item()
        except BaseException:
            self._child_call = None
            raise
        finally:
            self._is_busy = False
        if not has_more:
            self._child_call = None
            raise StopIteration
        return item

    def close(self) -> None:
        """End the stream; a thread that waits for an item gets an error."""
        child_call, self._child_call = self._child_call, None
        if child_call is not None:
            child_call.cancel() if self._is_busy else child_call.close()

    __del__ = close
