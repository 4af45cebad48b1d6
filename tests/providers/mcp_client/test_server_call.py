"""ServerCall: the events of one call, with a server in memory."""

from __future__ import annotations

from threading import Timer
from typing import Any

import pytest
from tests.providers.mcp_client.fakes import AnsweringPeer
from tests.providers.mcp_client.test_caller_questions import make_context
from tests.providers.mcp_client.test_server_session import (
    MemoryTransport,
    failed,
    handshake,
    stateless,
)

from tooli.core.stop_signal import StopSignal
from tooli.errors import ApprovalRequired, Interrupted, ToolError
from tooli.pipeline.context import Context
from tooli.providers.mcp_client import server_call
from tooli.providers.mcp_client.server_call import ServerCall
from tooli.providers.mcp_client.server_process import ServerGone

DONE = {"result": {"content": [{"type": "text", "text": "done"}]}}
FORM = {"method": "elicitation/create", "params": {"message": "?"}}
ACCEPT = {"action": "accept", "content": {}}


def make_call(transport: MemoryTransport, answer: Any) -> ServerCall:
    session = transport.open()
    transport.answer = answer
    return ServerCall(session, "run", {"a": 1}, False, {})


def ask_with(*results: dict[str, Any]) -> tuple[ServerCall, MemoryTransport]:
    """Return a call of a stateless server that answers with these results."""
    transport, rest = MemoryTransport(stateless), iter(results)
    return make_call(transport, lambda message: next(rest)), transport


def required(**requests: Any) -> dict[str, Any]:
    result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
    return {"result": result}


def test_several_questions_at_once() -> None:
    call, transport = ask_with(required(a=FORM, b=FORM, c=7), DONE)
    peer = AnsweringPeer({"elicitation/create": ACCEPT})
    assert call.run(make_context(peer)) == "done"
    params = transport.sent[-1]["params"]
    assert params["inputResponses"] == {"a": ACCEPT, "b": ACCEPT}
    assert (params["requestState"], params["arguments"]) == ("s", {"a": 1})


def test_server_that_wants_to_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_call, "_PAUSE_SECONDS", 0.01)
    call, transport = ask_with({"result": {"resultType": "input_required"}}, DONE)
    assert call.run(make_context()) == "done"
    assert "inputResponses" not in transport.sent[-1]["params"]


def test_endless_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = AnsweringPeer({"elicitation/create": ACCEPT})
    call, _ = ask_with(*[required(a=FORM)] * 30)
    with pytest.raises(ToolError, match="asks too many questions"):
        call.run(make_context(peer))
    transport = MemoryTransport(handshake)
    call = make_call(transport, lambda message: None)
    call._start({})
    assert call._request is not None
    for number in range(server_call.MAX_QUESTIONS + 1):
        call._request.put("question", {"id": number, **FORM})
    with pytest.raises(ToolError, match="asks too many questions"):
        call.run(make_context(peer))
    assert transport.cancelled


def test_questions_that_nobody_answers() -> None:
    sample = {"method": "sampling/createMessage", "params": {}}
    call, _ = ask_with(required(a=sample))
    with pytest.raises(ApprovalRequired):
        call.run(make_context())
    call, _ = ask_with(required(a=FORM), {"result": {"isError": True, "content": []}})
    with pytest.raises(ApprovalRequired):
        call.run(make_context())
    call, _ = ask_with(required(a=FORM), failed())
    with pytest.raises(ApprovalRequired) as caught:
        call.run(make_context())
    assert caught.value.details is not None and caught.value.details["result"] == {"error": "no"}


def test_failures() -> None:
    call, _ = ask_with(failed(-32602))
    with pytest.raises(ToolError, match="refused the call of run: no"):
        call.run(make_context())
    assert call.was_sent and call.open_question is None
    call, transport = ask_with()
    transport.session.end(ServerGone("it ended"))
    with pytest.raises(ServerGone):
        call.run(make_context())
    assert not call.was_sent
    call.cancel()  # nothing to cancel


@pytest.mark.parametrize("answer", [None, {"result": {"resultType": "input_required"}}])
def test_stop(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_call, "_PAUSE_SECONDS", 60.0)
    transport = MemoryTransport(stateless)
    call = make_call(transport, lambda message: answer)
    stop = StopSignal(60.0)
    context = make_context()
    timer = Timer(0.05, stop.stop)
    timer.start()
    with pytest.raises(Interrupted):
        call.run(Context(context._call.replace(stop=stop)))
    timer.join()
    assert answer is not None or transport.cancelled


def test_stop_while_the_request_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = MemoryTransport(stateless)
    call = make_call(transport, lambda message: None)
    start = call.session.start

    def start_and_stop(*args: Any, **kwargs: Any) -> Any:
        request = start(*args, **kwargs)
        call.stop()  # another thread, before `start` returns
        return request

    monkeypatch.setattr(call.session, "start", start_and_stop)
    with pytest.raises(Interrupted):
        call.run(make_context())
    assert transport.cancelled


def test_malformed_progress_and_logs() -> None:
    transport = MemoryTransport(handshake)
    call = make_call(transport, lambda message: None)
    call._start({})
    request = call._request
    assert request is not None
    request.put("progress", {"progress": "x"})
    request.put("progress", {"progress": 1, "total": "x", "message": 7})
    request.put("log", {"level": "loud", "data": {"a": 1}})
    request.put("result", DONE["result"])
    peer = AnsweringPeer()
    assert call.run(make_context(peer)) == "done"
    assert peer.reports == [(1, None, None)]
    assert peer.logs == [("info", "{'a': 1}")]
