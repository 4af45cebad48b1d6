"""ServerSession: versions, requests and messages, with a transport in memory."""

from __future__ import annotations

from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fakes import wait_until

from tooli.errors import ToolError
from tooli.providers.mcp_client import server_session
from tooli.providers.mcp_client.server_process import ServerGone
from tooli.providers.mcp_client.server_session import RpcFailure, ServerSession

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryTransport:
    """Answers each message with what a function returns, in the thread that sends it."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        self.answer = answer
        self.sent: list[dict[str, Any]] = []
        self.cancelled: list[Any] = []
        self.listening = 0
        self.session = ServerSession("The server", self.changed)
        self.changes = 0
        self.is_closed = False

    def changed(self) -> None:
        self.changes += 1

    def start(self) -> None: ...

    def send(self, message: Any, request: Any = None, headers: Any = None) -> None:
        self.sent.append(message)
        answer = self.answer(message) if "id" in message and "method" in message else None
        if answer is not None:
            self.session.receive({"jsonrpc": "2.0", "id": message["id"], **answer})

    def cancel(self, request: Any) -> None:
        self.cancelled.append(request)

    def set_version(self, version: str, *, is_stateless: bool) -> None: ...

    def listen(self) -> None:
        self.listening += 1

    def output_tail(self) -> dict[str, Any]:
        return {"stderr": "x"}

    def close(self, grace: float = 1.0) -> None:
        self.is_closed = True

    def open(self, era: str | None = None, seconds: float = 60.0) -> ServerSession:
        self.session.open(self, monotonic() + seconds, era)
        return self.session


def failed(code: int = -32601) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no"}}


def handshake(message: dict[str, Any]) -> dict[str, Any] | None:
    if message["method"] == "initialize":
        return {"result": {"protocolVersion": "2025-03-26", "serverInfo": {"name": "s"}}}
    return failed()


def stateless(message: dict[str, Any]) -> dict[str, Any] | None:
    if message["method"] == "server/discover":
        return {"result": {"supportedVersions": ["2026-07-28"]}}
    return failed()


def deadline(seconds: float = 60.0) -> float:
    return monotonic() + seconds


def test_versions() -> None:
    transport = MemoryTransport(handshake)
    session = transport.open()
    assert (session.version, session.server_info) == ("2025-03-26", {"name": "s"})
    methods = [message["method"] for message in transport.sent]
    assert methods == ["server/discover", "initialize", "notifications/initialized"]
    assert not MemoryTransport(handshake).open("2025-06-18").is_stateless
    assert MemoryTransport(stateless).open().is_stateless


@pytest.mark.parametrize("found", [{}, {"supportedVersions": ["2025-11-25"]}])
def test_discover_without_a_stateless_version(found: dict[str, Any]) -> None:
    def answer(message: dict[str, Any]) -> dict[str, Any] | None:
        is_probe = message["method"] == "server/discover"
        return {"result": found} if is_probe else handshake(message)

    assert MemoryTransport(answer).open().version == "2025-03-26"


def test_servers_that_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RpcFailure, match="no"):
        MemoryTransport(lambda message: failed()).open()
    with pytest.raises(ToolError, match="speaks version '7'"):
        MemoryTransport(lambda message: {"result": {"protocolVersion": 7}}).open("")
    with pytest.raises(TimeoutError):
        MemoryTransport(lambda message: None).open(seconds=0.01)
    monkeypatch.setattr(server_session, "PROBE_SECONDS", 0.01)
    slow = MemoryTransport(lambda m: handshake(m) if m["method"] == "initialize" else None)
    assert slow.open().version == "2025-03-26"
    assert len(slow.cancelled) == 1


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ({}, "its list of tools is not valid"),
        ({"tools": [7]}, "its list of tools is not valid"),
        ({"tools": [], "nextCursor": "again"}, "too many pages"),
        ({"tools": [{}] * 11_000}, "more than 10,000 tools"),
    ],
)
def test_invalid_lists(page: dict[str, Any], text: str) -> None:
    transport = MemoryTransport(
        lambda m: stateless(m) if "disc" in m["method"] else {"result": page}
    )
    with pytest.raises(ToolError, match=text):
        transport.open().list_tools(deadline())


def test_is_alive() -> None:
    assert MemoryTransport(stateless).open().is_alive(1)
    assert MemoryTransport(handshake).open().is_alive(1)  # an error is an answer, too
    transport = MemoryTransport(handshake)
    session = transport.open()
    transport.answer = lambda message: None
    assert not session.is_alive(0.01)
    session.close()
    assert transport.is_closed and not session.is_alive(1)
    assert session.output_tail() == {"stderr": "x"}


def test_end_fails_all_requests() -> None:
    transport = MemoryTransport(handshake)
    session = transport.open()
    transport.answer = lambda message: None
    request = session.start("tools/call", {}, is_call=True)
    session.end(ServerGone("it ended"))
    session.end(ServerGone("later"))
    kind, value = request.events.get()
    assert kind == "failure" and value.reason == "it ended"
    with pytest.raises(ServerGone) as caught:
        session.start("ping", {})
    assert not caught.value.was_sent


@pytest.mark.parametrize(
    ("answer", "text"),
    [({"result": 7}, "is no result"), ({"error": {}}, "an error"), ({}, "is no result")],
)
def test_malformed_answers(answer: dict[str, Any], text: str) -> None:
    transport = MemoryTransport(stateless)
    session = transport.open()
    transport.answer = lambda message: answer
    with pytest.raises(RpcFailure, match=text):
        session.request("ping", {}, deadline())


def test_messages_that_belong_to_nothing() -> None:
    transport = MemoryTransport(handshake)
    session = transport.open()
    for message in (
        {"id": 99, "result": {}},
        {"id": "1", "result": {}},
        {"id": None, "method": "ping"},
        {"method": "notifications/progress", "params": {"progressToken": []}},
        {"method": "notifications/message", "params": 7},
        {"method": "notifications/unknown"},
    ):
        session.receive(message)
    sent = len(transport.sent)
    session.receive({"id": "a", "method": "ping"})
    session.receive({"id": "b", "method": "roots/list"})
    assert transport.sent[sent]["result"] == {}
    assert transport.sent[sent + 1]["error"]["code"] == -32601
    session.receive({"method": "notifications/tools/list_changed"})
    assert transport.changes == 1


def test_question_without_a_call_is_refused() -> None:
    transport = MemoryTransport(handshake)
    session = transport.open()
    session.receive({"id": "q", "method": "elicitation/create"})
    wait_until(lambda: transport.sent[-1].get("id") == "q")
    assert "not known" in transport.sent[-1]["error"]["message"]


def test_question_of_the_call_that_is_left() -> None:
    transport = MemoryTransport(handshake)
    session = transport.open()
    transport.answer = lambda message: None
    first, second = (session.start("tools/call", {}, is_call=True) for _ in range(2))
    session.receive({"id": "q", "method": "elicitation/create"})
    wait_until(lambda: session._open_questions)
    late: list[Any] = []
    starter = Thread(target=lambda: late.append(session.start("tools/call", {}, is_call=True)))
    starter.start()
    session.finish(first)
    assert second.events.get(timeout=60)[0] == "question"
    starter.join()
    session.receive({"id": "r", "method": "sampling/createMessage"})  # `second` already waits
    assert late[0].events.get(timeout=60)[0] == "question"
    session.reply({"id": "q"}, {})
    session.refuse({"id": "r"}, -1, "no")
    assert not session._asking


def test_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_session, "LISTEN_PAUSES", (0.0, 0.0))
    transport = MemoryTransport(stateless)
    session = transport.open()
    count: list[int] = []

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        count.append(1)
        return {"result": {}} if len(count) < 3 else failed()

    transport.answer = answer
    session.listen()
    wait_until(lambda: len(count) == 3)
    wait_until(lambda: transport.changes == 2)
    other = MemoryTransport(handshake)
    other.open().listen()
    assert other.listening == 1
