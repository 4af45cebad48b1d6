"""Pending calls of the stdio server: cancellation, questions, calls that cannot start."""

from __future__ import annotations

import threading

import pytest

from tooli import Context, Tooli
from tooli.errors import Interrupted
from tooli.mcp.pending_calls import StdioPeer
from tooli.mcp.stdio_server import StdioServer
from tooli.pipeline.context import YES_NO_SCHEMA, build_elicit
from tooli.testing.app_interfaces import MemoryTransport

QUESTIONS = {"q": build_elicit("Sure?", YES_NO_SCHEMA)}


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


def test_cancelled_call_cannot_ask() -> None:
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


def test_tool_that_is_cancelled_before_it_asks_ends() -> None:
    app, begun, go = Tooli("asking"), threading.Event(), threading.Event()
    failures: list[str] = []

    @app.command()
    def ask(ctx: Context) -> str:
        begun.set()
        go.wait(120)
        try:
            return str(ctx.elicit("Sure?", {"sure": bool}))
        except Interrupted as failure:
            failures.append(str(failure))
            raise

    server = make_server(app)
    call(server, 1, "ask")
    assert begun.wait(120)
    server.handle_message(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    )
    go.set()
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
