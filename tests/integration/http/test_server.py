"""The HTTP server in a process of its own: invalid requests, streams, shutdown, workers."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

import uvicorn
from tests.integration.http import served_app
from tests.integration.http.server_process import (
    RunningCall,
    ServerProcess,
    StartServer,
    is_running,
    server_starter,
    wait_until,
)

from tooli.http.http_server import listen
from tooli.serving.http_protocols import H11Connection
from tooli.serving.httptools_protocol import HttpToolsConnection

REQUEST_START = b"POST /tools/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Return a function that starts a server; it is stopped after the test."""
    with server_starter() as start:
        yield start


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ServerProcess]:
    server = ServerProcess()
    yield server
    server.stop()


def add_request(body: bytes = b'{"a":1}') -> bytes:
    """Return the bytes of a request that calls the tool `add`."""
    return REQUEST_START + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while chunk := sock.recv(65536):
        data += chunk
    return data


def test_server_prints_only_its_url(start_server: StartServer) -> None:
    server = start_server()
    assert server.first_line == f"demo is served at http://127.0.0.1:{server.port}\n"
    status, envelope = server.post("add", {"a": 2})
    assert envelope["meta"].pop("duration_ms") >= 0
    meta = {"tool": "demo.add", "version": "1.0"}
    assert (status, envelope) == (200, {"ok": True, "result": 3, "meta": meta})
    assert server.post("echo", {"text": "hi"})[1]["result"].splitlines() == ["hi", "from a child"]
    code, _, err = server.stop()
    assert (code, err) == (0, "")


def test_access_log_has_the_status_and_no_token(start_server: StartServer) -> None:
    server = start_server(access_log=True, environment={"TOOLI_TOKEN": "hush"})
    assert server.post("add", {"a": 2})[0] == 401
    assert server.post("add", {"a": 2}, authorization="Bearer hush")[0] == 200
    _, out, err = server.stop(signal.SIGINT)
    assert out == ""
    lines = [line.split() for line in err.splitlines()]
    assert [line[1] for line in lines] == ["tooli.access", "tooli.access"]
    assert [part for line in lines for part in line if "status" in part] == [
        "status=401",
        "status=200",
    ]
    assert "code=E2401" in lines[0] and "tool=demo.add" in lines[1]
    assert "hush" not in err


def test_connection_is_kept_alive(start_server: StartServer) -> None:
    connection = start_server().connect()
    for a in range(20):
        connection.request(
            "POST", "/tools/add", json.dumps({"a": a}), {"content-type": "application/json"}
        )
        assert json.loads(connection.getresponse().read())["result"] == a + 1
    connection.close()


def test_pipelined_requests_are_answered_in_order(start_server: StartServer) -> None:
    with start_server().open_socket() as sock:
        sock.sendall(b"".join([add_request(b'{"a":%d}' % a) for a in range(10)]))
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = read_all(sock)
    bodies = [part.partition(b"\r\n\r\n")[2] for part in data.split(b"HTTP/1.1 200 OK")[1:]]
    envelopes = [json.loads(body) for body in bodies]
    assert [envelope.get("result") for envelope in envelopes] == [*range(1, 11), None]


REFUSED_BY_HTTPTOOLS = [
    b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET /health HTTP/1.0\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET //evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (REQUEST_START + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", 400),
        (REQUEST_START + b"Content-Length: -1\r\n\r\n", 400),
        (REQUEST_START + b"Content-Length: 9999999999\r\n\r\n", 413),
        (REQUEST_START + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (REQUEST_START + b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n', 200),
        (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            200,
        ),
    ],
    ids=lambda part: repr(part)[:60],
)
def test_every_request_is_answered_with_json(
    shared_server: ServerProcess, request_bytes: bytes, status: int
) -> None:
    with shared_server.open_socket() as sock:
        sock.sendall(request_bytes)
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        body = answer.read()
    assert answer.status in (status, 400 if request_bytes in REFUSED_BY_HTTPTOOLS else status)
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(body)["ok"] == (status == 200)


def test_large_chunked_body_is_rejected_early(start_server: StartServer) -> None:
    server = start_server(max_body=1000)
    with server.open_socket() as sock:
        sock.sendall(REQUEST_START + b"Transfer-Encoding: chunked\r\n\r\n")
        sock.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n" + b"3e8\r\n" + b" " * 1000 + b"\r\n")
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        assert answer.status == 413
    assert server.post("add", {"a": 1})[0] == 200


def test_slow_body_does_not_block_other_clients(start_server: StartServer) -> None:
    server = start_server(chunk_timeout=0.2)
    with server.open_socket() as slow:
        slow.sendall(REQUEST_START + b"Content-Length: 10\r\n\r\n{")
        assert server.post("add", {"a": 1})[0] == 200
        data = read_all(slow)
    assert data.startswith(b"HTTP/1.1 408 ")
    assert b"E1408" in data


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize("tool", ["rows", "arows"])
@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_items_are_streamed_until_the_client_disconnects(
    start_server: StartServer, tmp_path: Path, tool: str, accept: str
) -> None:
    server = start_server()
    release, closed = tmp_path / "release", tmp_path / "closed"
    connection = server.connect()
    connection.request(
        "POST",
        f"/tools/{tool}",
        json.dumps({"release": str(release), "closed": str(closed)}),
        {"content-type": "application/json", "accept": accept},
    )
    answer = connection.getresponse()
    assert answer.headers["transfer-encoding"] == "chunked"
    first = answer.readline()
    assert first.rstrip() in (b"0", b"data: 0")
    release.touch()
    assert len([answer.readline() for _ in range(1000)]) == 1000
    assert not closed.exists()
    answer.close()
    connection.close()
    wait_until(closed.exists)
    assert server.post("add", {"a": 1})[0] == 200


def test_backpressure_bounds_memory(start_server: StartServer, tmp_path: Path) -> None:
    """The tool is paused while the client does not read."""
    import resource

    server = start_server()
    release, closed = tmp_path / "release", tmp_path / "closed"
    release.touch()
    connection = server.connect()
    connection.request(
        "POST",
        "/tools/rows",
        json.dumps({"release": str(release), "closed": str(closed)}),
        {"content-type": "application/json", "accept": "application/x-ndjson"},
    )
    answer = connection.getresponse()
    for _ in range(20_000):
        answer.readline()
    assert server.post("add", {"a": 1})[0] == 200
    with open(f"/proc/{server.process.pid}/statm") as file:
        assert int(file.read().split()[1]) * resource.getpagesize() < 300 << 20
    connection.close()
    wait_until(closed.exists)


# ------------------------------------------------------------------ shutdown


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_running_call_finishes_after_a_signal(
    start_server: StartServer, tmp_path: Path, sig: signal.Signals
) -> None:
    server = start_server()
    call = RunningCall(server, "wait", tmp_path)
    server.process.send_signal(sig)
    wait_until(lambda: refuses_connections(server.port))
    assert call.finish()["result"] == "done"
    assert server.stop()[0] == 0


def refuses_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=120).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("tool", ["wait", "wait_forever"])
@pytest.mark.parametrize("workers", [1, 2])
def test_call_cut_off_by_shutdown_gets_an_error(
    start_server: StartServer, tmp_path: Path, tool: str, workers: int
) -> None:
    server = start_server(grace=0, workers=workers)
    started = tmp_path / "started"
    arguments = {"started": str(started)}
    if tool == "wait":
        arguments["release"] = str(tmp_path / "never")
    responses: list[tuple[int, dict[str, Any]]] = []
    call = threading.Thread(target=lambda: responses.append(server.post(tool, arguments)))
    call.start()
    wait_until(started.exists)
    code, _, _ = server.stop()
    call.join(120)
    status, envelope = responses[0]
    assert (status, envelope["error"]["code"]) == (503, "E4143")
    assert code == 0


def test_stream_cut_off_by_shutdown_gets_an_error(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(grace=0)
    connection = server.connect()
    arguments = {"release": str(tmp_path / "never"), "closed": str(tmp_path / "closed")}
    payload = {"content-type": "application/json", "accept": "application/x-ndjson"}
    connection.request("POST", "/tools/arows", json.dumps(arguments), payload)
    answer = connection.getresponse()
    assert answer.readline() == b"0\n"
    server.process.send_signal(signal.SIGTERM)
    assert json.loads(answer.read())["error"]["code"] == "E4143"
    connection.close()
    wait_until((tmp_path / "closed").exists)


# ------------------------------------------------------------------ workers


def test_two_workers_share_a_port(start_server: StartServer) -> None:
    server = start_server(workers=2)
    worker_pids: set[int] = set()

    def both_have_answered() -> bool:
        worker_pids.add(server.post("process_id")[1]["result"])
        return len(worker_pids) == 2

    wait_until(both_have_answered)
    assert server.process.pid not in worker_pids
    assert server.stop()[0] == 0
    wait_until(lambda: not any(map(is_running, worker_pids)))


def test_dead_worker_is_replaced(start_server: StartServer) -> None:
    server = start_server(workers=2)
    first = server.post("process_id")[1]["result"]
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_running(first))

    def another_worker_answers() -> bool:
        try:
            return server.post("process_id")[1]["result"] != first
        except (OSError, http.client.HTTPException):
            return False

    wait_until(another_worker_answers)


def test_workers_end_with_their_parent(start_server: StartServer) -> None:
    server = start_server(workers=2)
    worker = server.post("process_id")[1]["result"]
    server.process.kill()
    wait_until(lambda: not is_running(worker))


# ------------------------------------------------------------------ addresses


def test_startup_error_sets_the_exit_code(start_server: StartServer) -> None:
    server = start_server(host="0.0.0.0")
    assert json.loads(server.first_line)["code"] == "E1020"
    assert server.process.wait(120) == 2


def test_wildcard_address_needs_a_token_and_a_known_host(start_server: StartServer) -> None:
    server = start_server(host="0.0.0.0", token="t")
    assert server.first_line.endswith(f"http://localhost:{server.port}\n")
    assert server.post("add", {"a": 1})[0] == 401
    token = "Bearer t"
    assert server.post("add", {"a": 1}, authorization=token)[0] == 200
    assert server.post("add", {"a": 1}, authorization=token, host="10.1.2.3:80")[0] == 200
    assert server.post("add", {"a": 1}, authorization=token, host="evil.example")[0] == 421


# ------------------------------------------------------------------ timeouts


@pytest.mark.parametrize("protocol", [H11Connection, HttpToolsConnection])
async def test_incomplete_headers_time_out(monkeypatch: pytest.MonkeyPatch, protocol: Any) -> None:
    monkeypatch.setattr(protocol, "header_timeout", 0.05)
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        served_app.app.asgi(mcp=False),
        http=protocol,
        log_config=None,
        ws="none",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    monkeypatch.setattr(server, "capture_signals", nullcontext)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    address = listener.getsockname()
    for text in (b"", b"GET /hea", b"POST /tools/add HTTP/1.1\r\nHost: localhost\r\n"):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(text)
        assert await asyncio.wait_for(reader.read(), 120) == b""
        writer.close()
    reader, writer = await asyncio.open_connection(*address)
    writer.write(add_request() + b"GET /hea")  # the timer starts again with the second request
    data = await asyncio.wait_for(reader.read(), 120)
    assert data.startswith(b"HTTP/1.1 200 ")
    assert data.count(b"HTTP/1.1 ") == 1
    writer.close()
    server.should_exit = True
    await running
