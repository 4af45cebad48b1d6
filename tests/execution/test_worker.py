"""The worker process: streams, sockets of servers, messages to the caller, exit handlers."""

from __future__ import annotations

import io
import os
import socket
import sys
from typing import Any

import pytest
from tests.execution.calls import make_call
from tests.execution.forked import refuse, run_in_child

from tooli.execution import worker
from tooli.execution.ipc import Codec, FrameReceiver, dumps
from tooli.execution.worker import ForwardedStream, ForwardedWarnings, StopRequested, Worker

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Pipes:
    """A worker with pipes whose other ends the test holds."""

    def __init__(self, surface: Any = "python") -> None:
        self.data_read, self.data_write = os.pipe()
        self.answer_read, self.answer_write = os.pipe()
        self.cancel_read, self.cancel_write = os.pipe()
        call = make_call(lambda: 1, surface=surface)
        self.worker = Worker(call, None, self.data_write, self.answer_read, self.cancel_read)

    def messages(self) -> list[tuple[str, Any]]:
        """Return the messages that have arrived."""
        return list(FrameReceiver(self.data_read, Codec()).read_frames())

    def close(self) -> None:
        for number in (
            *(self.data_read, self.data_write, self.answer_read, self.answer_write),
            *(self.cancel_read, self.cancel_write),
        ):
            try:
                os.close(number)
            except OSError:
                pass


@pytest.fixture
def pipes() -> Any:
    found = Pipes()
    yield found
    found.close()


def test_answers_are_read_in_parts(pipes: Pipes) -> None:
    data = dumps({"name": "Ada"})
    os.write(pipes.answer_write, len(data).to_bytes(8, "big") + data)
    assert pipes.worker.read_answer() == {"name": "Ada"}


def test_closed_answer_pipe_stops_the_function(pipes: Pipes) -> None:
    os.write(pipes.answer_write, b"\0\0")
    os.close(pipes.answer_write)
    with pytest.raises(StopRequested):
        pipes.worker.read_answer()


def test_error_that_cannot_be_sent_ends_the_process(pipes: Pipes) -> None:
    def work() -> None:
        os.close(pipes.data_write)
        pipes.worker.send_error(ValueError("x"))

    assert run_in_child(work) == 70


def test_worker_whose_supervisor_has_ended_exits(pipes: Pipes) -> None:
    def work() -> None:
        pipes.worker.run_and_exit(1 if os.getppid() != 1 else 2, ())

    assert run_in_child(work) == 0
    assert pipes.messages() == []


def test_exception_before_the_call_is_sent(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        monkeypatch.setattr(worker, "die_with_parent", refuse)
        pipes.worker.run_and_exit(os.getppid(), ())

    assert run_in_child(work) == 0
    ((kind, packed),) = pipes.messages()
    assert (kind, str(Codec().unpack_error(packed))) == ("error", "not available")


def test_warnings_are_forwarded() -> None:
    sent: list[tuple[str, Any]] = []
    warnings = ForwardedWarnings(["old"], lambda kind, payload: sent.append((kind, payload)))
    warnings.extend(["a", "b"])
    assert warnings == ["old", "a", "b"]
    assert sent == [("warning", "a"), ("warning", "b")]


def test_text_and_bytes_are_forwarded() -> None:
    sent: list[Any] = []
    stream = ForwardedStream("stdout", lambda kind, payload: sent.append((kind, payload)))
    assert stream.writable() and stream.buffer.writable()
    assert stream.write("ä") == 1
    assert stream.buffer.write("ö".encode()) == 2
    assert sent == [("text", ("stdout", "ä")), ("text", ("stdout", "ö"))]
    with pytest.raises(TypeError, match="not bytes"):
        stream.write(b"x")  # type: ignore[arg-type]


def test_replaced_streams_are_forwarded(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    pipes.worker._redirect_stream("stdout")
    assert isinstance(sys.stdout, ForwardedStream)
    monkeypatch.setattr(sys, "stderr", None)
    pipes.worker._redirect_stream("stderr")
    assert sys.stderr is None


def test_standard_streams_are_line_buffered(pipes: Pipes) -> None:
    def work() -> None:
        sys.stdout = open(1, "w", closefd=False)
        pipes.worker._redirect_stream("stdout")
        assert sys.stdout.line_buffering

    assert run_in_child(work) == 0


def test_sockets_of_a_server_are_detached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
        ours, theirs = socket.socketpair()

        def work() -> None:
            worker.detach_server_sockets()
            null = os.stat(os.devnull)
            for detached in (server, connection):
                assert os.fstat(detached.fileno()).st_rdev == null.st_rdev
            ours.send(b"x")  # other sockets stay
            assert theirs.recv(1) == b"x"

        with client, connection, ours, theirs:
            assert run_in_child(work) == 0


def test_detaching_sockets_without_proc_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", refuse)
    assert worker.detach_server_sockets() is None  # type: ignore[func-returns-value]


def test_inspecting_a_file_as_a_socket_raises_and_closes_it() -> None:
    number = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(OSError):
        worker._inspect_socket(number)
    with pytest.raises(OSError):
        os.fstat(number)  # closed


def test_exit_handlers_run_and_failures_are_ignored(pipes: Pipes) -> None:
    def work() -> None:
        import atexit

        worker._clear_exit_handlers()
        atexit.register(lambda: os.write(pipes.data_write, b"handler"))
        atexit.register(refuse)
        sys.stderr = open(os.devnull, "w")
        pipes.worker._finish()

    assert run_in_child(work) == 0
    assert os.read(pipes.data_read, 100) == b"handler"
