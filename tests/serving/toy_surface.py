"""A surface for tests: JSON lines over a socket. It contains no redaction code.

    client ── {"tool": "login", "arguments": {…}, "options": {…}, "stream": true} ──▶ server
    client ◀── {"log": …} │ {"progress": …} │ {"question": …} │ {"item": …} │ {"answer": …} ──

It uses the dispatcher, PreparedCall and a Peer, as any new surface does.
"""

from __future__ import annotations

import json
import socket
from threading import Thread
from typing import TYPE_CHECKING, Any

from tooli.core.call import Caller
from tooli.core.peer import Peer
from tooli.pipeline.stdout_capture import route_stdout
from tooli.serving.dispatcher import (
    ToolDispatcher,
    present_request_error,
    split_options,
    unknown_tool_error,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli import Tooli
    from tooli.core.peer import Question

TOY_CALLER = Caller("toy", "toy-client", maybe_agent=True)


class ToyClient(Peer):
    """The client of a running call, as the tool talks to it."""

    def __init__(self, server: ToyServer) -> None:
        self._server = server

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        self._server.write({"progress": [done, total, message]})

    def log(self, level: str, data: Any) -> None:
        self._server.write({"log": [level, data]})

    def supports(self, method: str) -> bool:
        return True

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        self._server.write(
            {"question": {name: question.params() for name, question in questions.items()}}
        )
        return {name: {"action": "decline"} for name in questions}


class ToyServer:
    """Answers one request after another."""

    def __init__(self, app: Tooli, connection: socket.socket) -> None:
        self.dispatcher = ToolDispatcher(app)
        self.connection = connection

    def serve(self) -> None:
        restore = route_stdout()
        try:
            for line in self.connection.makefile("rb"):
                self.answer(json.loads(line))
        finally:
            restore()

    def answer(self, request: dict[str, Any]) -> None:
        tool = self.dispatcher.tools.get(request["tool"])
        if tool is None:
            error = unknown_tool_error(self.dispatcher.app, request["tool"])
            presented = present_request_error(self.dispatcher.app, TOY_CALLER, error)
            self.write_json(b'{"answer":' + presented.envelope_json() + b"}")
            return
        arguments, options, problems = split_options(
            tool, request.get("arguments", {}), request.get("options")
        )
        prepared = self.dispatcher.prepare(
            tool,
            arguments,
            TOY_CALLER,
            options=options,
            problems=problems,
            peer=ToyClient(self),
        )
        if request.get("stream"):
            items = prepared.stream()
            try:
                while True:
                    self.write_json(b'{"item":' + next(items) + b"}")
            except StopIteration as end:
                presented = end.value
        else:
            presented = prepared.run()
        self.write_json(b'{"answer":' + presented.envelope_json() + b"}")

    def write(self, message: dict[str, Any]) -> None:
        self.write_json(json.dumps(message, ensure_ascii=False).encode())

    def write_json(self, data: bytes) -> None:
        self.connection.sendall(data + b"\n")


def exchange(app: Tooli, *requests: dict[str, Any]) -> list[bytes]:
    """Send requests to a server of an app; return every line it sent."""
    client, server = socket.socketpair()
    with client, server:
        thread = Thread(target=ToyServer(app, server).serve, daemon=True)
        thread.start()
        with client.makefile("rwb") as stream:
            lines: list[bytes] = []
            for request in requests:
                stream.write(json.dumps(request).encode() + b"\n")
                stream.flush()
                while not lines or not lines[-1].startswith(b'{"answer"'):
                    lines.append(stream.readline())
                    assert lines[-1], "the server has ended"
                lines.append(b"")
            client.shutdown(socket.SHUT_WR)
        thread.join(10)
    return [line for line in lines if line]
