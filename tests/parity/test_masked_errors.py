"""Clients of a server get no text of an unexpected exception, on any interface. The log has it."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from tests.http.asgi_client import JSON, post, send
from tests.mcp.test_http_transport import ACCEPT, INITIALIZE, run_lifespan

from tooli import Context, SecretInput, StateError, Tooli
from tooli.mcp.protocol import CAPABILITIES_KEY, STATELESS_VERSIONS, VERSION_KEY
from tooli.mcp.stdio_server import StdioServer
from tooli.testing.app_interfaces import MemoryTransport

PASSWORD = "hunter2-hunter2"
ENVELOPE: dict[str, Any] = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {}}


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def fail(key: SecretInput[str] | None = None) -> str:
        raise ValueError(f"postgres://u:{PASSWORD}@h {key.reveal() if key else ''}")

    @app.command()
    async def afail() -> str:
        raise ConnectionError(f"postgres://u:{PASSWORD}@h")

    @app.command(timeout=30)
    def forked() -> str:
        raise RuntimeError(PASSWORD)

    @app.command()
    def items() -> list[int]:
        yield 1  # type: ignore[misc]
        raise RuntimeError(PASSWORD)

    @app.command()
    async def aitems() -> list[int]:  # type: ignore[misc]
        yield 1  # type: ignore[misc]
        raise RuntimeError(PASSWORD)

    @app.command()
    def deliberate() -> str:
        raise StateError("The shop is closed.")

    @app.resource("shop://item/{name}")
    def item(name: str) -> str:
        raise RuntimeError(PASSWORD)

    @app.prompt()
    def order(name: str) -> str:
        raise RuntimeError(PASSWORD)

    return app


FAILING = ["fail", "afail", "forked", "items", "aitems"]


def check_log(caplog: pytest.LogCaptureFixture, request_id: str) -> None:
    (record,) = [record for record in caplog.records if record.name == "tooli.error"]
    assert f"request_id={request_id}" in record.getMessage()
    assert PASSWORD in str(record.exc_text)  # a password in the code is the server's own
    caplog.clear()


def ask_stdio(app: Tooli, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    transport = MemoryTransport()
    server = StdioServer(app, transport, **options)
    message = {"jsonrpc": "2.0", "id": 7, "method": method}
    server.handle_message({**message, "params": {**params, "_meta": ENVELOPE}})
    server.wait(60)
    (answer,) = transport.sent
    return answer


@pytest.mark.parametrize("tool", FAILING)
async def test_http_masks(tool: str, caplog: pytest.LogCaptureFixture) -> None:
    response = await post(make_app().asgi(), tool)
    assert PASSWORD.encode() not in response.body
    envelope = response.json()
    assert envelope["error"]["message"].startswith("The command failed unexpectedly")
    assert envelope["meta"]["request_id"] == response.headers["x-request-id"]
    check_log(caplog, response.headers["x-request-id"])


@pytest.mark.parametrize("tool", ["items", "aitems"])
@pytest.mark.parametrize("accept", [b"application/x-ndjson", b"text/event-stream"])
async def test_http_streams_mask(
    tool: str, accept: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    response = await post(make_app().asgi(), tool, {}, (b"accept", accept))
    assert PASSWORD.encode() not in response.body
    assert b"failed unexpectedly" in response.body
    check_log(caplog, response.headers["x-request-id"])


@pytest.mark.parametrize("tool", FAILING)
def test_mcp_over_stdio_masks(tool: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = ask_stdio(make_app(), "tools/call", {"name": tool, "arguments": {}})
    assert PASSWORD not in json.dumps(answer)
    envelope = answer["result"]["_meta"]["io.tooli/envelope"]
    assert envelope["meta"]["request_id"].endswith("-7")
    check_log(caplog, envelope["meta"]["request_id"])


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "shop://item/x"}),
        ("prompts/get", {"name": "order", "arguments": {"name": "x"}}),
    ],
)
def test_resources_and_prompts_mask(
    method: str, params: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask_stdio(make_app(), method, params)
    assert PASSWORD not in json.dumps(answer)
    check_log(caplog, answer["error"]["data"]["meta"]["request_id"])


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "fail", "arguments": {}}),
        ("resources/read", {"uri": "shop://item/x"}),
        ("prompts/get", {"name": "order", "arguments": {"name": "x"}}),
    ],
)
async def test_mcp_over_http_masks(
    era: str, method: str, params: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tooli.access")
    api = make_app().asgi(json_response=True, stateless=True)
    headers = [JSON, ACCEPT, (b"x-request-id", b"r-1")]
    if era == "stateless":
        params = {**params, "_meta": ENVELOPE}
        name = params.get("name") or params["uri"]
        headers += [(b"mcp-protocol-version", STATELESS_VERSIONS[-1].encode())]
        headers += [(b"mcp-method", method.encode()), (b"mcp-name", name.encode())]
    else:
        headers += [(b"mcp-protocol-version", b"2025-11-25")]
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    async with run_lifespan(api):
        response = await send(api, "POST", "/mcp", json.dumps(message).encode(), *headers)
    assert response.status == 200, response.body
    assert PASSWORD.encode() not in response.body
    assert b'"request_id":"r-1"' in response.body.replace(b'\\"', b'"').replace(b'": "', b'":"')
    assert response.headers["x-request-id"] == "r-1"
    lines = [record for record in caplog.records if record.name == "tooli.access"]
    assert [(vars(line)["interface"], vars(line)["method"]) for line in lines] == [("mcp", method)]
    assert vars(lines[0])["rpc_id"] == 7
    check_log(caplog, "r-1")
    assert INITIALIZE["method"] == "initialize"


async def test_secret_of_the_caller_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    response = await post(make_app().asgi(mcp=False), "fail", {"key": "sesame-sesame"})
    assert response.status == 500
    (record,) = caplog.records
    assert "sesame" not in str(vars(record))
    assert "***" in str(record.exc_text)


@pytest.mark.parametrize("tool", FAILING)
async def test_development_servers_expose_errors(tool: str) -> None:
    response = await post(make_app().asgi(mcp=False, expose_errors=True), tool)
    assert PASSWORD.encode() in response.body
    answer = ask_stdio(make_app(), "tools/call", {"name": tool}, expose_errors=True)
    assert PASSWORD in json.dumps(answer)


async def test_errors_of_the_author_are_not_masked(caplog: pytest.LogCaptureFixture) -> None:
    response = await post(make_app().asgi(mcp=False), "deliberate")
    assert response.json()["error"]["message"] == "The shop is closed."
    assert "request_id" not in response.json()["meta"]
    answer = ask_stdio(make_app(), "tools/call", {"name": "deliberate"})
    assert "The shop is closed." in json.dumps(answer)
    assert caplog.records == []


async def test_repeated_failures_and_replays_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    api = make_app().asgi(mcp=False)
    key = (b"idempotency-key", b"k-1")
    session = (b"tooli-session-id", b"s-1")
    for _ in range(6):
        assert PASSWORD.encode() not in (await post(api, "fail", {}, session)).body
        assert PASSWORD.encode() not in (await post(api, "fail", {}, key)).body


async def test_function_can_read_the_request_id() -> None:
    app = Tooli("shop")

    @app.command()
    def find(ctx: Context) -> str | None:
        return ctx.request_id

    response = await post(app.asgi(mcp=False), "find", {}, (b"x-request-id", b"r-2"))
    assert response.json()["result"] == response.json()["meta"]["request_id"] == "r-2"
    assert app.call("find").result is None


def test_python_and_the_command_line_are_not_masked() -> None:
    result = make_app().call("fail")
    assert result.error is not None and PASSWORD in result.error.message
    assert "request_id" not in result.meta
