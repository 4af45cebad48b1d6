"""MCP servers at a URL: both eras, streams, sessions, and servers that fail."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fake_http_server import FakeHttpServer
from tests.providers.mcp_client.fakes import AnsweringPeer, call_with, wait_until

from tooli import Tooli
from tooli.errors import AuthError, DependencyError, NotFoundError, TemporaryError
from tooli.providers import MCPProvider
from tooli.providers.mcp_client.http_endpoint import (
    encode_header,
    find_param_headers,
    make_param_headers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeHttpServer]:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    made = FakeHttpServer(getattr(request, "param", "handshake"))
    yield made
    made.stop()


both_eras = pytest.mark.parametrize("server", ["handshake", "stateless"], indirect=True)


def make_app(server: FakeHttpServer, **options: Any) -> tuple[Tooli, MCPProvider]:
    app = Tooli("app")
    provider = MCPProvider(server.url, **options)
    app.add_provider(provider)
    return app, provider


def call(app: Tooli, name: str, **arguments: Any) -> Any:
    return app.options(yes=True).call(name, **arguments)


@both_eras
@pytest.mark.parametrize("sse", [False, True])
def test_call(server: FakeHttpServer, sse: bool) -> None:
    server.sse = sse
    app, provider = make_app(server)
    arguments = {"text": "é", "deep": {"flag": True}}
    for _ in range(3):
        assert json.loads(call(app, "echo", **arguments).unwrap()) == arguments
    headers = server.headers_of("tools/call")
    if server.era == "stateless":
        assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "echo")
        assert (
            headers["mcp-param-text"] == "=?base64?w6k=?=" and headers["mcp-param-flag"] == "true"
        )
        assert headers["mcp-protocol-version"] == "2026-07-28"
    else:
        assert headers["mcp-session-id"] == "0"
        assert headers["mcp-protocol-version"] == "2025-06-18"
    provider.close()
    assert ("DELETE" in server.methods()) == (server.era == "handshake")


def test_calls_at_the_same_time(server: FakeHttpServer) -> None:
    app, _ = make_app(server)
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda n: call(app, "echo", text=str(n)).unwrap(), range(12)))
    assert [json.loads(text)["text"] for text in texts] == [str(n) for n in range(12)]
    assert server.methods().count("initialize") == 1


def test_list_from_disk_sends_nothing(server: FakeHttpServer) -> None:
    assert len(list(make_app(server)[0].catalog)) == 5
    sent = len(server.requests)
    assert len(list(make_app(server)[0].catalog)) == 5
    assert len(server.requests) == sent


def test_headers(server: FakeHttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "secret-7")
    headers = {"Authorization": "Bearer env:KEY", "X-Plain": "a b"}
    app, _ = make_app(server, headers=headers)
    assert call(app, "echo").ok
    sent = server.headers_of("tools/call")
    assert (sent["authorization"], sent["x-plain"]) == ("Bearer secret-7", "a b")


@both_eras
def test_progress_and_questions(server: FakeHttpServer) -> None:
    app, _ = make_app(server)
    answer = {"action": "accept", "content": {}}
    peer = AnsweringPeer({"elicitation/create": answer})
    assert json.loads(call_with(app, "ask", peer)) == answer
    assert peer.reports == [(1, None, None)]


def test_ended_session_is_renewed(server: FakeHttpServer) -> None:
    app, _ = make_app(server)
    assert call(app, "echo").ok
    server.session += 1
    assert call(app, "echo").ok
    assert server.methods().count("initialize") == 2


def test_stream_that_breaks_off_is_resumed(server: FakeHttpServer) -> None:
    app, _ = make_app(server)
    assert call(app, "resume").unwrap().startswith("resumed after ")


def test_stream_without_a_result(server: FakeHttpServer) -> None:
    error = call(make_app(server)[0], "break").error
    assert error is not None and error.code == "E4040"
    assert "closed the connection before the result" in error.message


@both_eras
def test_timeout(server: FakeHttpServer) -> None:
    app, _ = make_app(server)
    error = app.options(yes=True, timeout=1.5).call("hang").error
    assert error is not None and error.code == "E4050"
    if server.era == "handshake":
        wait_until(lambda: "notifications/cancelled" in server.methods())
    assert call(app, "echo").ok


@both_eras
def test_changed_list(server: FakeHttpServer) -> None:
    server.sse = True
    _, provider = make_app(server)
    changes: list[int] = []
    assert len(list(provider.tools())) == 5
    provider.watch(lambda: changes.append(1))
    wait_until(lambda: server.listeners)
    server.tools.append({"name": "new", "inputSchema": {"type": "object"}})
    server.listeners[-1].event({"method": "notifications/tools/list_changed"})
    wait_until(lambda: changes)
    assert len(list(provider.tools())) == 6
    provider.close()


FAULTS = [
    ((401, {}, b"no"), AuthError, "HTTP 401: no"),
    ((429, {"retry_after": "7"}, b""), TemporaryError, "HTTP 429"),
    ((503, {}, b"<html>down</html>"), TemporaryError, "HTTP 503\\.$"),
    ((500, {}, b"oh\x1b[31m"), DependencyError, "HTTP 500: oh$"),
    ((404, {}, b"<html>"), NotFoundError, "there is no MCP server at http"),
    ((200, {"content_type": "text/html"}, b"<html>"), DependencyError, "not MCP"),
    ((200, {"content_type": "application/json"}, b"[" * 10_000), DependencyError, "not MCP"),
    ((200, {"content_type": "application/json"}, b"[]"), DependencyError, "did not answer"),
    ((307, {"location": "http://localhost:1/"}, b""), DependencyError, "to another server"),
    ((307, {"location": "/again"}, b""), DependencyError, "redirects too often"),
]


@pytest.mark.parametrize(("fault", "error", "text"), FAULTS)
def test_server_that_fails(
    server: FakeHttpServer, fault: Any, error: type[Exception], text: str
) -> None:
    server.fault = fault
    with pytest.raises(error, match=text):
        make_app(server)[1].tools()


def test_server_that_is_not_there(server: FakeHttpServer) -> None:
    _, provider = make_app(server)
    server.stop()
    with pytest.raises(DependencyError, match="Connection refused"):
        provider.tools()


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("plain text", "plain text"),
        (" edge", "=?base64?IGVkZ2U=?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("a\nb", "=?base64?YQpi?="),
    ],
)
def test_header_values(value: str, header: str) -> None:
    assert encode_header(value) == header


def test_param_headers() -> None:
    schema = {
        "properties": {
            "n": {"type": "integer", "x-mcp-header": "N"},
            "bad": {"type": "string", "x-mcp-header": "a b"},
            "flag": True,
        }
    }
    headers = find_param_headers(schema)
    assert make_param_headers(headers, {"n": 3, "bad": "x"}) == {"Mcp-Param-N": "3"}
    assert make_param_headers(headers, {}) == {}
