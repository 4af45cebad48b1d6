"""The stdio connection: lines, JSON, ids in invalid lines, and pending calls."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from tooli import Context, Tooli
from tooli.errors import Interrupted, TimeoutExceeded
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.mcp import stdio_transport
from tooli.mcp.stdio_server import StdioServer
from tooli.mcp.stdio_transport import (
    OversizedLine,
    StdioPeer,
    StdioTransport,
    alternate_id,
    find_request_ids,
    from_json,
    to_json,
)
from tooli.pipeline.context import YES_NO_SCHEMA, build_elicit
from tooli.testing.app_interfaces import MemoryTransport

QUESTIONS = {"q": build_elicit("Sure?", YES_NO_SCHEMA)}


@pytest.fixture
def pipes() -> Iterator[tuple[StdioTransport, int, int]]:
    """Yield a transport, the descriptor that writes to it, and the one that reads from it."""
    (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
    yield StdioTransport(server_in, server_out), client_out, client_in
    for descriptor in (server_in, client_out, client_in, server_out):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test has closed it


def test_client_may_make_stdout_non_blocking(pipes: tuple[StdioTransport, int, int]) -> None:
    transport, _, reader = pipes
    os.set_blocking(transport._write_fd, False)
    data = b"x" * (1 << 20)  # more than a pipe holds
    received: list[bytes] = []

    def read_all() -> None:
        while not b"".join(received[-1:]).endswith(b"\n"):
            received.append(os.read(reader, 1 << 16))

    thread = threading.Thread(target=read_all)
    thread.start()
    transport.send(data)
    thread.join()
    assert b"".join(received) == data + b"\n"
    assert not transport.is_broken


def test_lines_are_split_across_reads(pipes: tuple[StdioTransport, int, int]) -> None:
    transport, writer, _ = pipes
    os.write(writer, b"one\ntw")
    lines = transport.lines()
    assert next(lines) == b"one"
    os.write(writer, b"o\n\nrest")
    os.close(writer)
    assert list(lines) == [b"two", b"", b"rest"]


def test_closed_input_has_no_more_lines(pipes: tuple[StdioTransport, int, int]) -> None:
    transport, writer, _ = pipes
    os.write(writer, b"first\n")
    lines = transport.lines()
    assert next(lines) == b"first"
    os.write(writer, b"second\n")
    transport.close_input()
    assert [*lines] == []


def test_long_line_is_skipped(
    pipes: tuple[StdioTransport, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_LINE_BYTES", 100)
    transport = pipes[0]
    chunks = iter([b'{"id":7,"x":"' + b"y" * 200, b"y" * 200, b'"}\nnext\n'])
    monkeypatch.setattr(transport, "_read", lambda: next(chunks, b""))
    long_line, following = transport.lines()
    assert isinstance(long_line, OversizedLine)
    assert find_request_ids(long_line) == [7]
    assert following == b"next"


def test_disconnected_client_is_detected(pipes: tuple[StdioTransport, int, int]) -> None:
    transport, _, reader = pipes
    transport.write({"id": 1})
    assert os.read(reader, 100) == b'{"id":1}\n'
    assert not transport.is_disconnected()
    os.close(reader)
    assert transport.is_disconnected()
    transport.write({"id": 2})
    assert transport.is_broken


def test_values_that_json_cannot_represent_are_replaced() -> None:
    assert json.loads(to_json({"x": math.inf, "y": {1, 2}})) == {"x": None, "y": [1, 2]}
    assert to_json({"x": "\ud800"}) == b'{"x":"\\ud800"}'


@pytest.mark.parametrize("line", [b"NaN", b'{"x":Infinity}', b"{", b""])
def test_invalid_json_is_rejected(line: bytes) -> None:
    with pytest.raises(ValueError):
        from_json(line)


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b'{"id": 7, "params": {"id": 8}', [7]),
        (b'{"params": {"id": 8}, "id": "a"', ["a"]),
        (b'[{"id": 1}, {"id": 2}, {"id": 1}', [1, 2]),
        (b'{"id": true', []),
        (b'{"x": "unterminated, "id": 9}', [9]),
        (b"not json", []),
    ],
)
def test_request_ids_are_found_in_invalid_lines(line: bytes, ids: list[int | str]) -> None:
    assert find_request_ids(line) == ids


@pytest.mark.parametrize(
    ("request_id", "other"),
    [(7, "7"), ("7", 7), ("x", "x"), ("9" * 30, "9" * 30), ("\u0667", "\u0667")],
)
def test_alternate_id_converts_between_integer_and_string(
    request_id: int | str, other: int | str
) -> None:
    assert alternate_id(request_id) == other


# ------------------------------------------------------------------ pending calls


def make_server(app: Tooli | None = None) -> StdioServer:
    server = StdioServer(app or Tooli("asking"), MemoryTransport())
    server.handle_message(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
    )
    return server


def call(server: StdioServer, request_id: int, name: str) -> None:
    params = {"name": name, "arguments": {}}
    server.handle_message(
        {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    )


def test_cancelled_call_cannot_ask_the_client() -> None:
    server = make_server()
    request = StdioPeer(server.pending, 7, {}, {"elicitation": {}})
    server.pending.requests[request.id] = request
    assert server.pending.cancel(7)
    with pytest.raises(Interrupted, match="cancelled"):
        request.ask(QUESTIONS)
    assert [message for message in server.transport.sent if "method" in message] == []
    assert server.pending._pending_questions == {}


def test_cancellation_ends_an_open_question() -> None:
    server = make_server()
    request = StdioPeer(server.pending, 7, {}, {"elicitation": {}})
    server.pending.requests[request.id] = request
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            request.ask(QUESTIONS)
        except Interrupted as failure:
            failures.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    while not server.pending._pending_questions:
        thread.join(0.01)
    assert server.pending.cancel("7")  # some clients send the id as another type
    thread.join(120)
    assert not thread.is_alive()
    assert len(failures) == 1
    assert server.pending._pending_questions == {}


@pytest.mark.parametrize("isolation", [None, "required"])
def test_timeout_ends_an_open_question(isolation: Any) -> None:
    if isolation and detect_sandbox_support().missing:
        pytest.skip("no sandbox")
    app = Tooli("asking")

    @app.command(timeout=3, isolation=isolation)  # the worker needs time to ask
    def ask(ctx: Context) -> str:
        return str(ctx.elicit("Sure?", {"sure": bool}))

    server = make_server(app)
    call(server, 1, "ask")
    server.pending.wait(120)
    assert not server.pending.is_busy
    *_, question, answer = server.transport.sent
    assert question["method"] == "elicitation/create"
    assert "E4050" in json.dumps(answer["result"])
    assert server.pending._pending_questions == {}
    server.shut_down()


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_question_that_is_open_at_the_deadline_is_a_timeout(seconds: float) -> None:
    request = StdioPeer(make_server().pending, 7, {}, {"elicitation": {}})
    request.deadline = monotonic() + seconds
    with pytest.raises(TimeoutExceeded, match="before the timeout of the call"):
        request.ask(QUESTIONS)


def test_disconnection_ends_open_questions() -> None:
    app = Tooli("asking")

    @app.command()
    def ask(ctx: Context) -> str:
        return str(ctx.elicit("Sure?", {"sure": bool}))

    server = make_server(app)
    call(server, 1, "ask")
    while not server.pending._pending_questions:
        server.pending.wait(0.01)
    server.pending.close()
    server.pending.wait(120)
    assert not server.pending.is_busy
    assert "did not answer" in json.dumps(server.transport.sent[-1])
    request = StdioPeer(server.pending, 7, {}, {"elicitation": {}})
    with pytest.raises(Interrupted, match="did not answer"):
        request.ask(QUESTIONS)
    server.shut_down()


def test_answered_call_cannot_ask_the_client() -> None:
    server = make_server()
    request = StdioPeer(server.pending, 7, {}, {"elicitation": {}})
    request.run_and_reply(dict)
    with pytest.raises(Interrupted, match="did not answer"):
        request.ask(QUESTIONS)


def test_tool_that_is_cancelled_before_it_asks_ends() -> None:
    app, started, release = Tooli("asking"), threading.Event(), threading.Event()
    failures: list[str] = []

    @app.command()
    def ask(ctx: Context) -> str:
        started.set()
        release.wait(120)
        try:
            return str(ctx.elicit("Sure?", {"sure": bool}))
        except Interrupted as failure:
            failures.append(str(failure))
            raise

    server = make_server(app)
    call(server, 1, "ask")
    assert started.wait(120)
    server.handle_message(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    )
    release.set()
    server.pending.wait(120)
    assert not server.pending.is_busy
    assert [message["id"] for message in server.transport.sent] == [0]
    assert len(failures) == 1
    server.shut_down()


def test_call_without_a_thread_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Tooli("busy")
    app.command("one")(lambda: 1)
    server = make_server(app)

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        call(server, 1, "one")
    error = server.transport.sent[-1]["result"]["_meta"]["io.tooli/envelope"]["error"]
    assert (server.transport.sent[-1]["id"], error["code"]) == (1, "E4075")
    assert not server.pending.is_busy
    call(server, 1, "one")
    server.pending.wait(120)
    assert server.transport.sent[-1]["result"]["isError"] is False
    server.shut_down()
