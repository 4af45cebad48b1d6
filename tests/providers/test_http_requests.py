"""HTTP requests of providers: connections, limits, redirects, headers and secrets."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fakes import wait_until

from tooli.errors import AuthError, DefinitionError, DependencyError, TemporaryError
from tooli.providers.http_requests import (
    AnswerTooLarge,
    ConnectionFailed,
    EventStream,
    HttpServer,
    _is_readable,
    abort_connection,
    check_headers,
    check_server_url,
    read_headers,
    read_reference,
    status_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        self.server.connections.add(self.client_address)
        self.server.received.append((self.path, dict(self.headers)))
        if self.path.startswith("/redirect"):
            self.send_response(307)
            self.send_header("location", self.path.partition("?")[2])
            self.send_header("content-length", "0")
            self.end_headers()
            return
        body = b"x" * 1000 if self.path == "/large" else b"a\r\nb\nc"
        self.send_response(200)
        self.send_header("content-type", "Text/Plain; charset=utf-8")
        short = self.path == "/short"
        self.send_header("content-length", str(len(body) + (5 if short else 0)))
        self.end_headers()
        self.wfile.write(body)
        if self.path in ("/close", "/short"):
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections: set[Any] = set()
        self.received: list[tuple[str, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def get(client: HttpServer, path: str, max_bytes: int = 10_000) -> bytes:
    answer = client.send("GET", path)
    try:
        return answer.read(max_bytes)
    finally:
        answer.release()


def test_connection_is_used_again(server: Server) -> None:
    client = HttpServer(server.url, lambda: {"X-Key": "k"})
    for _ in range(3):
        assert get(client, "text") == b"a\r\nb\nc"
    assert len(server.connections) == 1
    assert server.received[0][1]["X-Key"] == "k"
    client._pid = -1  # a forked process does not use the connections of its parent
    get(client, "text")
    assert len(server.connections) == 2
    client.close()
    get(client, "text")
    assert len(server.connections) == 3
    client.close()


def test_closed_connection_is_not_used_again(server: Server) -> None:
    client = HttpServer(server.url, dict)
    get(client, "close")
    wait_until(lambda: _is_readable(client._idle[0].sock))
    assert get(client, "text") == b"a\r\nb\nc"
    client.close()


def test_few_connections_stay_open(server: Server) -> None:
    client = HttpServer(server.url, dict)
    answers = [client.send("GET", "text") for _ in range(6)]
    for answer in answers:
        answer.read(100)
        answer.release()
    assert len(client._idle) == 4
    client.close()


def test_lines(server: Server) -> None:
    client = HttpServer(server.url, dict)
    answer = client.send("GET", "text")
    assert answer.content_type == "text/plain"
    assert list(answer.lines(100)) == [b"a", b"b", b"c"]
    with pytest.raises(AnswerTooLarge):
        list(client.send("GET", "large").lines(100))


def test_limits(server: Server) -> None:
    client = HttpServer(server.url, dict)
    with pytest.raises(AnswerTooLarge, match="more than 100 bytes"):
        get(client, "large", 100)
    with pytest.raises(ConnectionFailed):
        get(client, "short")
    assert get(client, "text")
    client.close()


def test_redirects(server: Server) -> None:
    client = HttpServer(server.url, lambda: {"Authorization": "secret"})
    assert get(client, "redirect?/text") == b"a\r\nb\nc"
    with pytest.raises(ConnectionFailed, match="too often"):
        get(client, "redirect?/redirect?/redirect?/redirect?/redirect?/text")
    for target in ("https://127.0.0.1/", "http://localhost:1/", "http://127.0.0.1:99999/"):
        with pytest.raises(ConnectionFailed, match="to another server") as caught:
            get(client, f"redirect?{target}")
        assert not caught.value.was_sent
    client.close()


def test_server_that_is_not_there(server: Server) -> None:
    client = HttpServer("http://127.0.0.1:1/", dict)
    with pytest.raises(ConnectionFailed) as caught:
        client.send("GET")
    assert not caught.value.was_sent
    with pytest.raises(ConnectionFailed):
        HttpServer(server.url.replace("http:", "https:"), dict).send("GET")


def test_abort(server: Server) -> None:
    client = HttpServer(server.url, dict)
    with pytest.raises(ConnectionFailed):
        client.send("GET", on_open=abort_connection)


# ------------------------------------------------------------------ events


def read_events(text: str, stream: EventStream | None = None) -> list[tuple[str, bytes]]:
    return list((stream or EventStream(100)).read([line.encode() for line in text.split("\n")]))


def test_events() -> None:
    stream = EventStream(100)
    text = ": hi\nid: 7\ndata: a\ndata:b\n\nevent: end\nretry: 20\ndata: c\n\nid: 8\n\ndata: lost"
    assert read_events(text, stream) == [("message", b"a\nb"), ("end", b"c")]
    assert (stream.last_event_id, stream.retry_seconds) == ("8", 0.02)


def test_odd_events() -> None:
    stream = EventStream(100)
    assert read_events("id: é\nretry: x\nother\ndata\n\n", stream) == []
    assert stream.last_event_id is None
    read_events("retry: 999999999999\n\n", stream)
    assert stream.retry_seconds == 10.0
    with pytest.raises(AnswerTooLarge):
        read_events(f"data: {'x' * 101}\n\n")


# ------------------------------------------------------------------ definitions and secrets


@pytest.mark.parametrize(
    "url", ["", "ftp://h/", "http:///", "http://h:x/", "http://a@h/", "http://h/ä", "http://h/ b"]
)
def test_invalid_urls(url: str) -> None:
    with pytest.raises(DefinitionError):
        check_server_url(url, "P")


@pytest.mark.parametrize(
    "headers", [{"a b": "x"}, {"é": "x"}, {"": "x"}, {"A": "\n"}, {"A": 7}, {"content-length": "1"}]
)
def test_invalid_headers(headers: Any) -> None:
    with pytest.raises(DefinitionError):
        check_headers(headers, "P")
    assert check_headers(None, "P") == {}


def test_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k")
    secret = tmp_path / "a secret"
    secret.write_text("s\n")
    assert read_reference("env:KEY", "P") == "k"
    assert read_reference("Bearer env:KEY", "P") == "Bearer k"
    assert read_reference(f"Bearer @{secret}", "P") == "Bearer s"
    assert read_reference("plain text", "P") == "plain text"
    with pytest.raises(AuthError, match="P: the secret '@/nowhere' cannot be used"):
        read_reference("@/nowhere", "P")


@pytest.mark.parametrize("secret", ["s3cret\n", "s3\r\nX: cret", "s3\x07cret", "s3cret€"])
def test_secret_that_no_header_can_have(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", secret)
    with pytest.raises(AuthError, match="P: the secret in the header X-Key contains") as caught:
        read_headers({"X-Key": "env:KEY"}, "P")
    assert "cret" not in str(caught.value).partition("secret in")[2]
    monkeypatch.setenv("KEY", "k")
    assert read_headers({"X-Key": "Bearer env:KEY", "Y": "a\tb"}, "P") == {
        "X-Key": "Bearer k",
        "Y": "a\tb",
    }


def test_status_errors() -> None:
    assert isinstance(status_error("S", 403), AuthError)
    assert isinstance(status_error("S", 418, "a\x1b[0m"), DependencyError)
    error = status_error("S", 429, retry_after="30")
    assert isinstance(error, TemporaryError) and error.details == {"status": 429, "retry_after": 30}
    assert status_error("S", 503, retry_after="soon").details == {"status": 503}
