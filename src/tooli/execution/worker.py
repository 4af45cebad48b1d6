"""The worker process: runs the function of one call and reports to the caller.

    function ── value, items, warnings, output, questions ──▶ frames ──▶ caller
    function ◀── answers, "the next item" ◀──────────────────────────────┘

After the function has returned, the process closes its output files, joins the threads that the
function started, runs the exit handlers that it registered, flushes its output, and ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock
from stat import S_ISSOCK

from tooli.core import find_loaded
from tooli.core.current_call import current_call
from tooli.core.peer import Peer
from tooli.execution.ipc import Codec, FrameSender, loads
from tooli.execution.processes import (
    SIGINT,
    SIGTERM,
    die_with_parent,
    flush_output,
    is_readable,
    signals,
)
from tooli.inputs.output import find_outputs
from tooli.pipeline.drivers import close_stream, invoke, is_stream
from tooli.pipeline.failure import explain_end_of_input
from tooli.pipeline.stdout_capture import TextSink, read_children
from tooli.text.jsonable import iter_items

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, NoReturn

    from tooli.core.call import Call, Runner
    from tooli.core.peer import Artifact, Question
    from tooli.execution.processes import SignalHandler


class StopRequested(KeyboardInterrupt):
    """Raised in the function when the command has to stop. The function may clean up."""


def _raise_stop(*_: object) -> None:
    raise StopRequested


def select_codec(runner: Runner | None) -> Codec:
    """Return the codec of the process in which a runner runs the function."""
    if runner is None or not runner.needs_own_process:
        return Codec()
    from tooli.execution.safe_codec import SafeCodec  # imports json

    return SafeCodec()


is_worker_process = False
"""True in a worker process: what its function changes in memory is lost with the process."""


class Worker:
    """Runs one call in the worker process and sends frames to the caller.

    Args:
        call: The call.
        inner: The runner of the function in this process.
        data_fd: Frames are written to it.
        answer_fd: Answers of the client, and requests for items, are read from it.
        cancel_fd: It becomes readable when the client cancels the call.
    """

    def __init__(
        self, call: Call, inner: Runner | None, data_fd: int, answer_fd: int, cancel_fd: int
    ) -> None:
        self.call = call
        self.inner = inner
        self.data_fd, self.answer_fd, self.cancel_fd = data_fd, answer_fd, cancel_fd
        # Handler of Ctrl-C in this process, if the caller defers it.
        self.interrupt_handler: SignalHandler = None
        # Replaces the standard streams of an untrusted process (execution/output_relay.py).
        self.redirect_streams: Callable[[], None] | None = None
        self.codec = select_codec(inner)
        self.send = FrameSender(data_fd, self.codec).send

    def run_and_exit(self, supervisor_pid: int, signal_mask: Iterable[int]) -> NoReturn:
        """Run the function and end the process."""
        try:
            self._prepare_process(supervisor_pid, signal_mask)
            self.run_call()
        except BaseException as exc:
            self.send_error(exc)
        finally:
            os._exit(0)

    def _prepare_process(self, supervisor_pid: int, signal_mask: Iterable[int]) -> None:
        die_with_parent()
        if os.getppid() != supervisor_pid:
            os._exit(0)
        if self.has_own_session:
            os.setsid()
        global is_worker_process
        is_worker_process = True
        signals.set_wakeup_fd(-1)  # signals must not wake the event loop of the parent
        signals.signal(SIGTERM, _raise_stop)
        if self.interrupt_handler is not None:
            signals.signal(SIGINT, self.interrupt_handler)
        if self.call.caller.is_remote:
            signals.signal(SIGINT, signals.default_int_handler)
            detach_server_sockets()
        _clear_exit_handlers()
        if self.redirect_streams is not None:
            self.redirect_streams()
        for name in ("stdout", "stderr"):
            self._redirect_stream(name)
        signals.pthread_sigmask(signals.SIG_SETMASK, signal_mask)

    @property
    def has_own_session(self) -> bool:
        """True if the worker starts a session (setsid), detached from the terminal."""
        return self.call.caller.is_remote or not sys.platform.startswith("linux")

    @property
    def is_sandboxed(self) -> bool:
        """True if the function runs in a sandbox."""
        return self.inner is not None and self.inner.needs_own_process

    def _redirect_stream(self, name: str) -> None:
        """Make a stream flush each line, or send its text to the caller if it is not fd 1 or 2."""
        stream = getattr(sys, name)
        try:
            # A message would change the order of the output that is copied from a sandbox.
            is_shown = self.is_sandboxed or stream.isatty()
            is_written = self.call.caller.owns_process and is_shown
            is_copied = "write" in vars(stream) and not is_written  # into the error
            if stream is not None and stream.fileno() in (1, 2) and not is_copied:
                stream.reconfigure(line_buffering=True)
                return
        except (OSError, ValueError, AttributeError, TypeError):
            pass
        if stream is not None:
            setattr(sys, name, ForwardedStream(name, self.send))

    # -------------------------------------------------------------- the call

    def run_call(self) -> None:
        """Run the function and send its value, its items or its error."""
        if self.inner is not None and self.is_sandboxed:
            self.inner.kept_fds = (self.data_fd, self.answer_fd, self.cancel_fd)
        own_meta = self.call.meta
        call = self.call = self._build_forwarding_call()
        try:
            value = invoke(call.replace(runner=self.inner))
            if is_stream(value):
                self._send_items(value)
            else:
                read_children(is_last=True)
                self._send_packed("value", value)
                del value
        except StopRequested:
            raise
        except BaseException as exc:
            read_children(is_last=True)
            self.send_error(explain_end_of_input(exc, self.call))
        meta = {**(own_meta or {}), **(call.meta or {})}  # code with the original call set own_meta
        if meta:
            self._send_packed("meta", meta)
        self._finish()

    def _send_packed(self, kind: str, value: object) -> None:
        """Send a value, with warnings about parts that cannot be sent as they are."""
        self.send(kind, self.codec.pack(value, self.call.warnings.append))

    def pack(self, value: object) -> bytes:
        """Pack a value without warnings."""
        return self.codec.pack(value, lambda _: None)

    def _build_forwarding_call(self) -> Call:
        """Return the call with warnings, metadata and client requests forwarded to the caller."""
        call = self.call
        warnings = ForwardedWarnings(call.warnings, self.send)
        peer = None if call.peer is None else RemotePeer(call.peer, self)
        meta = None if call.meta is None else ForwardedMeta(call.meta, self)
        context_class = find_loaded("tooli.pipeline.context", "Context")
        input_class = find_loaded("tooli.inputs.source", "Input")
        for value in call.arguments.values():
            if context_class is not None and isinstance(value, context_class):
                value._call = value._call.replace(warnings=warnings, peer=peer, meta=meta)
            for item in iter_items(value):
                if input_class is not None and isinstance(item, input_class):
                    item.warn = warnings.append
        running = current_call.get() or call
        current_call.set(running.replace(warnings=warnings, peer=peer, meta=meta))
        return call.replace(warnings=warnings, peer=peer, meta=meta)

    def _send_items(self, items: Iterator[Any]) -> None:
        """Send each item when the caller requests it."""
        self.send("stream")
        try:
            while self._wants_next():
                try:
                    item = next(items)
                except StopIteration:
                    break
                self._send_packed("item", item)
                del item
        finally:
            close_stream(items)
        read_children(is_last=True)
        self.send("done")

    def _wants_next(self) -> bool:
        return os.read(self.answer_fd, 1) == b"n"

    def read_answer(self) -> Any:
        """Return the answer of the client to a question."""
        header = self._read_exactly(8)
        return loads(self._read_exactly(int.from_bytes(header, "big")))

    def _read_exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = os.read(self.answer_fd, size - len(data))
            if not chunk:
                raise StopRequested
            data += chunk
        return data

    def send_error(self, exc: BaseException) -> None:
        """Send an exception; exit if that fails."""
        try:
            self.send("error", self.codec.pack_error(exc))
        except BaseException:
            os._exit(70)

    # -------------------------------------------------------------- exit

    def _finish(self) -> None:
        """Close outputs, join threads, run exit handlers and flush, as Python does at exit."""
        if self.call.tool.has_handles:
            for output in find_outputs(self.call.tool.arguments_by_param(self.call.arguments)):
                output.close()
        signals.signal(SIGTERM, signals.SIG_DFL)  # the function has no cleanup to do any more
        join_threads = find_loaded("threading", "_shutdown")
        try:
            if join_threads is not None:
                join_threads()
            atexit._run_exitfuncs()
        except Exception:  # atexit has printed the traceback
            pass
        flush_output(includes_files=self.call.caller.owns_process)


def _clear_exit_handlers() -> None:
    """Remove exit handlers and executors that were inherited from the parent process."""
    atexit._clear()
    for module, name in (("thread", "_threads_queues"), ("process", "_threads_wakeups")):
        getattr(sys.modules.get(f"concurrent.futures.{module}"), name, {}).clear()


def detach_server_sockets() -> None:
    """Replace inherited server sockets by /dev/null.

    Otherwise connections would stay open, and clients would wait, until this process ends.
    """
    sockets: dict[int, tuple[bool, object]] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return
    for number in numbers:
        try:
            if S_ISSOCK(os.fstat(number).st_mode):
                sockets[number] = _inspect_socket(os.dup(number))
        except (OSError, ValueError):
            continue
    addresses = {address for is_listening, address in sockets.values() if is_listening}
    devnull = os.open(os.devnull, os.O_RDWR)
    for number, (_, address) in sockets.items():
        if address in addresses:
            os.dup2(devnull, number)
    os.close(devnull)


def _inspect_socket(descriptor: int) -> tuple[bool, object]:
    """Return whether a socket listens, and its port or address. Closes the descriptor."""
    import socket

    try:
        sock = socket.socket(fileno=descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    with sock:
        is_listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        address = sock.getsockname()
        is_inet = sock.family in (socket.AF_INET, socket.AF_INET6)
        return bool(is_listening), address[1] if is_inet else address


# ------------------------------------------------------------------ messages to the caller


class ForwardedWarnings(list[str]):
    """List of warnings that also sends each new warning to the caller."""

    def __init__(self, initial: list[str], send: Callable[[str, object], None]) -> None:
        super().__init__(initial)
        self._send = send

    def append(self, text: str, /) -> None:
        """Add a warning and send it."""
        super().append(text)
        self._send("warning", str(text))

    def extend(self, texts: Iterable[str], /) -> None:
        """Add warnings and send each."""
        for text in texts:
            self.append(text)


class ForwardedMeta(dict[str, object]):
    """Metadata of the call that also sends each assigned value to the caller."""

    def __init__(self, initial: Mapping[str, object], worker: Worker) -> None:
        super().__init__(initial)
        self._worker = worker

    def __setitem__(self, name: str, value: object, /) -> None:
        super().__setitem__(name, value)
        self._worker.send("meta", self._worker.pack({name: value}))


class RemotePeer(Peer):
    """The client of the call, as the worker process sees it."""

    def __init__(self, local_peer: Peer, worker: Worker) -> None:
        self.receives_events = local_peer.receives_events
        self._local_peer = local_peer
        self._worker = worker
        self._ask_lock = allocate_lock()

    @property
    def cancelled(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if the client has cancelled the call, or if the caller has ended."""
        return is_readable(self._worker.cancel_fd)

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send progress to the client."""
        self._worker.send("progress", (done, total, message))

    def log(self, level: str, data: object) -> None:
        """Send a log entry to the client."""
        self._worker.send("log", (level, self._worker.pack(data)))

    def artifact(self, artifact: Artifact) -> None:
        """Report to the client something that the call has made."""
        self._worker.send("artifact", (artifact.name, artifact.uri, artifact.mime_type))

    def supports(self, method: str) -> bool:
        """True if the client supports a request such as "elicitation/create"."""
        return self._local_peer.supports(method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Ask the client through the caller, and return its answers."""
        with self._ask_lock:
            self._worker.send("ask", self._worker.pack(dict(questions)))
            answers = self._worker.read_answer()
        if isinstance(answers, BaseException):
            raise answers
        return answers

    def disconnect_client(self) -> None:
        """Close the connection to the client if the client can reconnect to get the answer."""
        self._worker.send("disconnect")


class ForwardedStream(TextSink):
    """Replaces sys.stdout or sys.stderr and sends text to the caller.

    It is used if the caller has replaced the stream by an object that is not a file.
    """

    def __init__(self, name: str, send: Callable[[str, object], None]) -> None:
        self._name = name
        self._send = send

    def emit(self, text: str) -> None:
        """Send a text to the caller, after the text of child processes."""
        read_children()
        self.forward(text)

    def forward(self, text: str) -> None:
        """Send a text to the caller, which writes it to its own stream."""
        if text:
            self._send("text", (self._name, text))
