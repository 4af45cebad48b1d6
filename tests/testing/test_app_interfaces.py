"""The interfaces: registration, requests, answers, envelopes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.testing.shop import make_app

from tooli.mcp.protocol import ENVELOPE_KEY, META_KEY
from tooli.testing import (
    Case,
    HandshakeInterface,
    HttpInterface,
    Interface,
    InterfaceResponse,
    StatelessInterface,
    app_interfaces,
    assert_parity,
    interfaces,
    register_interface,
)
from tooli.testing.app_interfaces import (
    HttpLinesInterface,
    HttpResponse,
    MemoryTransport,
    envelope_from_reply,
    post_case,
    run_lifespan,
    send_request,
)

SERVERS = (HttpInterface, HandshakeInterface, StatelessInterface)

# ------------------------------------------------------------------ registration


def test_all_interfaces_are_listed_in_order() -> None:
    names = [each.name for each in interfaces(make_app())]
    python, lines = ["call", "acall", "stream", "astream"], ["cli", "jsonl", "--stream", "typer"]
    assert names == [*python, *lines, "http", "http-lines", "mcp", "mcp-stateless"]


def test_registered_interface_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_interfaces, "_INTERFACES", list(app_interfaces._INTERFACES))

    @register_interface
    class Wrong(Interface):
        name, surface = "wrong", "wrong"

        def send_case(self, case: Case) -> InterfaceResponse:
            return InterfaceResponse({"ok": True, "result": "nonsense"}, 0)

    with pytest.raises(AssertionError, match=r"\+\+\+ wrong"):
        assert_parity(make_app(), Case("count", {"n": 1}))
    assert_parity(make_app(), Case("count", {"n": 1}, skip={"wrong": "it is"}))


# ------------------------------------------------------------------ HTTP


async def test_send_request_builds_the_scope_and_reads_the_response() -> None:
    scopes: list[Any] = []

    async def api(scope: Any, receive: Any, send: Any) -> None:
        scopes.append((scope, await receive()))
        await send({"type": "http.response.start", "status": 201, "headers": [(b"a", b"\xe9")]})
        await send({"type": "http.response.body", "body": b'{"n":', "more_body": True})
        await send({"type": "http.response.body", "body": b" 1}\n"})

    response = await send_request(
        api, "POST", "/x", body=b"{}", headers={"X-Name": "é"}, query="a=b"
    )
    ((scope, message),) = scopes
    assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/x", b"a=b")
    assert dict(scope["headers"]) == {
        b"host": b"localhost",
        b"content-type": b"application/json",
        b"x-name": b"\xe9",
    }
    assert message == {"type": "http.request", "body": b"{}", "more_body": False}
    assert (response.status, response.headers, response.json()) == (201, {"a": "é"}, {"n": 1})
    assert response.chunks == (b'{"n":', b" 1}\n")


async def test_request_without_a_body_has_no_content_type() -> None:
    async def api(scope: Any, receive: Any, send: Any) -> None:
        names = b",".join(name for name, _ in scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": names})

    assert (await send_request(api, "GET", "/")).body == b"host"
    replaced = await send_request(api, "GET", "/", headers={"Host": "other"})
    assert replaced.body == b"host"


def test_response_lines_are_parsed_as_json() -> None:
    response = HttpResponse(200, {}, (b'{"a":1}\n', b'\n{"b"', b":2}\n"))
    assert response.lines() == [{"a": 1}, {"b": 2}]
    assert HttpResponse(200, {}, ()).lines() == []


async def test_lifespan_ends_after_an_exception() -> None:
    seen: list[str] = []

    async def api(scope: Any, receive: Any, send: Any) -> None:
        seen.append((await receive())["type"])
        await send({"type": "lifespan.startup.complete"})
        seen.append((await receive())["type"])

    with pytest.raises(ValueError, match="failed"):
        async with run_lifespan(api):
            raise ValueError("failed")
    assert seen == ["lifespan.startup", "lifespan.shutdown"]


async def test_failed_startup_raises_assertion_error() -> None:
    async def api(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(AssertionError):
        async with run_lifespan(api):
            pytest.fail("the application did not start")


def post(case: Case, accept: str = "application/json") -> HttpResponse:
    return asyncio.run(post_case(make_app(), case, accept))


def test_http_status_depends_on_the_outcome() -> None:
    assert post(Case("buy", {"item": "tea"})).status == 200
    assert post(Case("buy", {"item": "moon"})).status == 404
    assert post(Case("no such tool")).status == 404


def test_options_are_sent_in_the_http_query() -> None:
    assert post(Case("burn", options={"yes": True})).json()["result"] == "ash"
    assert not post(Case("burn", options={"yes": False})).json()["ok"]
    assert post(Case("count", {"n": 3}, options={"limit": 2})).json()["result"] == [0, 1]


def test_option_that_http_does_not_have_is_skipped() -> None:
    interface = HttpInterface(make_app())
    assert interface.skip_reason(Case("buy", options={"no_such_option": 1})) == (
        "HTTP does not have the option"
    )
    assert interface.skip_reason(Case("buy", options={"yes": True, "concise": True})) is None
    assert interface.skip_reason(Case("buy", skip={"http": "broken"})) == "broken"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case("count", {"n": 2}), {"ok": True, "result": [0, 1]}),
        (Case("count", {"n": 0}), {"ok": True, "result": []}),
        (
            Case("buy", {"item": "tea"}),
            {"ok": True, "result": [{"item": "tea", "count": 1}]},
        ),
    ],
    ids=repr,
)
def test_http_lines_are_collected_into_an_envelope(case: Case, expected: Any) -> None:
    assert HttpLinesInterface(make_app()).send_case(case).envelope == expected


def test_envelope_of_a_failed_stream_has_only_the_error() -> None:
    envelope = HttpLinesInterface(make_app()).send_case(Case("buy", {"item": "moon"})).envelope
    assert envelope.keys() == {"ok", "error"}
    assert envelope["error"]["message"] == "no moon"


# ------------------------------------------------------------------ all servers


@pytest.mark.parametrize("kind", SERVERS)
def test_servers_return_result_and_error(kind: type[Interface]) -> None:
    interface = kind(make_app())
    done = interface.send_case(Case("buy", {"item": "tea", "count": 2})).envelope
    assert (done["ok"], done["result"]) == (True, {"item": "tea", "count": 2})
    failed = interface.send_case(Case("buy", {"item": "moon"})).envelope
    assert (failed["ok"], failed["error"]["message"]) == (False, "no moon")


@pytest.mark.parametrize("kind", SERVERS)
def test_metadata_of_a_server_response_does_not_name_the_client(kind: type[Interface]) -> None:
    meta = kind(make_app()).send_case(Case("buy", {"item": "tea"})).envelope["meta"]
    assert meta["tool"] == "shop.buy"
    assert not {"caller_id", "caller_version"} & meta.keys()


@pytest.mark.parametrize("kind", SERVERS)
def test_printed_text_is_the_result(
    kind: type[Interface], capsys: pytest.CaptureFixture[str]
) -> None:
    assert kind(make_app()).send_case(Case("say", {"text": "hi"})).envelope["result"] == "hi"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", SERVERS)
def test_servers_return_an_error_for_an_unknown_tool(kind: type[Interface]) -> None:
    envelope = kind(make_app()).send_case(Case("missing")).envelope
    assert not envelope["ok"]
    assert "missing" in envelope["error"]["message"]


# ------------------------------------------------------------------ MCP


def test_transport_collects_messages() -> None:
    transport = MemoryTransport()
    transport.send(b'{"id": 1}')
    transport.send(b'{"id": 2}')
    assert transport.sent == [{"id": 1}, {"id": 2}]
    assert not transport.is_disconnected()


def test_only_the_older_generation_sends_a_handshake() -> None:
    assert StatelessInterface(make_app()).transport.sent == []
    (hello,) = HandshakeInterface(make_app()).transport.sent
    assert hello["result"]["protocolVersion"] == "2025-11-25"


def reply(content: list[Any], **more: Any) -> Any:
    return {"result": {"isError": False, "content": content, "_meta": {META_KEY: {}}, **more}}


TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply([]), {"ok": True, "meta": {}}),
        (reply([TEXT]), {"ok": True, "result": "hello", "meta": {}}),
        (reply([IMAGE]), {"ok": True, "result": [IMAGE], "meta": {}}),
        (reply([TEXT, TEXT]), {"ok": True, "result": [TEXT, TEXT], "meta": {}}),
        (reply([TEXT], structuredContent={"a": 1}), {"ok": True, "result": {"a": 1}, "meta": {}}),
        ({"result": {"isError": True, "_meta": {ENVELOPE_KEY: {"ok": False}}}}, {"ok": False}),
        ({"error": {"data": {ENVELOPE_KEY: {"ok": False}}}}, {"ok": False}),
    ],
)
def test_mcp_reply_becomes_an_envelope(answer: Any, expected: Any) -> None:
    assert envelope_from_reply(answer, None, False) == expected


def test_wrapped_result_is_unwrapped() -> None:
    tool = make_app().find("count")
    answer = reply([TEXT], structuredContent={"result": [0, 1]})
    assert envelope_from_reply(answer, tool, False)["result"] == [0, 1]
