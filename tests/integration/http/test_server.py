"""The HTTP server in a process of its own: invalid requests, streams, shutdown, workers."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import threading

import pytest

pytest.importorskip("uvicorn")

from tests.integration.http import served

from tooli.http import http_server as serving
from tooli.serving.uvicorn_server import TimeoutProtocol

REQUEST = b"POST /tools/add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

JSON = {"content-type": "application/json"}


def whole(body: bytes = b'{"a":1}') -> bytes:
    return REQUEST + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def test_url_is_printed_and_nothing_else(serve) -> None:
    server = serve()
    assert server.line == f"served is served at http://127.0.0.1:{server.port}\n"
    status, envelope = server.post("add", {"a": 2})
    assert envelope["meta"].pop("duration_ms") >= 0
    meta = {"tool": "served.add", "version": "1.0"}
    assert (status, envelope) == (200, {"ok": True, "result": 3, "meta": meta})
    assert server.post("say", {"text": "hi"})[1]["result"] == "hi"
    code, _, err = server.stop()
    assert (code, err) == (0, "")


def test_access_log(serve) -> None:
    server = serve(access_log=True, environment={"TOOLI_TOKEN": "hush"})
    assert server.post("add", {"a": 2})[0] == 401
    assert server.post("add", {"a": 2}, authorization="Bearer hush")[0] == 200
    _, out, err = server.stop(signal.SIGINT)
    assert out == ""
    assert [line.rpartition('" ')[2] for line in err.splitlines()] == ["401", "200"]
    assert "hush" not in err


def test_keep_alive(serve) -> None:
    connection = serve().connect()
    for a in range(20):
        connection.request(
            "POST", "/tools/add", json.dumps({"a": a}), {"content-type": "application/json"}
        )
        assert json.loads(connection.getresponse().read())["result"] == a + 1
    connection.close()


def test_pipelined_requests_are_answered_in_order(serve) -> None:
    with serve().raw() as sock:
        bodies = [b'{"a":%d}' % a for a in range(10)]
        sock.sendall(b"".join(map(whole, bodies)))
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = read_all(sock)
    answers = [part.partition(b"\r\n\r\n")[2] for part in data.split(b"HTTP/1.1 200 OK")[1:]]
    told = [json.loads(body) for body in answers]
    assert [one.get("result") for one in told] == [*range(1, 11), None]


@pytest.mark.parametrize(
    ("request_", "status"),
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
        (REQUEST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", 400),
        (REQUEST + b"Content-Length: -1\r\n\r\n", 400),
        (REQUEST + b"Content-Length: 9999999999\r\n\r\n", 413),
        (REQUEST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (REQUEST + b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n', 200),
        (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            200,
        ),
    ],
    ids=lambda part: repr(part)[:60],
)
def test_every_request_is_answered_with_json(serve_once, request_: bytes, status: int) -> None:
    with serve_once.raw() as sock:
        sock.sendall(request_)
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        body = answer.read()
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(body)["ok"] == (status == 200)


@pytest.fixture(scope="module")
def serve_once():
    from tests.integration.http.conftest import Served

    server = Served()
    yield server
    server.stop()


def test_large_chunked_body_is_rejected_early(serve) -> None:
    server = serve(max_body=1000)
    with server.raw() as sock:
        sock.sendall(REQUEST + b"Transfer-Encoding: chunked\r\n\r\n")
        sock.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n" + b"3e8\r\n" + b" " * 1000 + b"\r\n")
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        assert answer.status == 413
    assert server.post("add", {"a": 1})[0] == 200


def test_slow_body_does_not_block_other_clients(serve) -> None:
    server = serve(chunk_timeout=0.2)
    with server.raw() as slow:
        slow.sendall(REQUEST + b"Content-Length: 10\r\n\r\n{")
        assert server.post("add", {"a": 1})[0] == 200
        data = read_all(slow)
    assert data.startswith(b"HTTP/1.1 408 ")
    assert b"E1408" in data


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize("tool", ["rows", "arows"])
@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_items_are_streamed_until_the_client_disconnects(
    serve, until, tmp_path, tool: str, accept: str
) -> None:
    server = serve()
    go, closed = tmp_path / "go", tmp_path / "closed"
    connection = server.connect()
    connection.request(
        "POST",
        f"/tools/{tool}",
        json.dumps({"go": str(go), "closed": str(closed)}),
        {"content-type": "application/json", "accept": accept},
    )
    answer = connection.getresponse()
    assert answer.headers["transfer-encoding"] == "chunked"
    first = answer.readline()
    assert first.rstrip() in (b"0", b"data: 0")
    go.write_text("")
    assert len([answer.readline() for _ in range(1000)]) == 1000
    assert not closed.exists()
    answer.close()
    connection.close()
    until(closed.exists)
    assert server.post("add", {"a": 1})[0] == 200


def test_backpressure_bounds_memory(serve, until, tmp_path) -> None:
    """The tool is paused while the client does not read."""
    import resource

    server = serve()
    go, closed = tmp_path / "go", tmp_path / "closed"
    go.write_text("")
    connection = server.connect()
    connection.request(
        "POST",
        "/tools/rows",
        json.dumps({"go": str(go), "closed": str(closed)}),
        {"content-type": "application/json", "accept": "application/x-ndjson"},
    )
    answer = connection.getresponse()
    for _ in range(20_000):
        answer.readline()
    assert server.post("add", {"a": 1})[0] == 200
    with open(f"/proc/{server.process.pid}/statm") as file:
        assert int(file.read().split()[1]) * resource.getpagesize() < 300 << 20
    connection.close()
    until(closed.exists)


# ------------------------------------------------------------------ the end


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_running_call_is_finished(serve, until, tmp_path, sig) -> None:
    server = serve()
    begun, go = tmp_path / "begun", tmp_path / "go"
    told: list[tuple[int, dict]] = []
    call = threading.Thread(
        target=lambda: told.append(server.post("wait", {"begun": str(begun), "go": str(go)}))
    )
    call.start()
    until(begun.exists)
    server.process.send_signal(sig)
    until(lambda: refuses(server.port))
    go.write_text("")
    call.join(120)
    assert told[0][1]["result"] == "done"
    assert server.stop()[0] == 0


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=120).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("tool", ["wait", "await-for-ever"])
@pytest.mark.parametrize("workers", [1, 2])
def test_call_cut_off_by_shutdown_gets_an_error(serve, until, tmp_path, tool: str, workers) -> None:
    server = serve(grace=0, workers=workers)
    begun = tmp_path / "begun"
    arguments = {"begun": str(begun)}
    if tool == "wait":
        arguments["go"] = str(tmp_path / "never")
    told: list[tuple[int, dict]] = []
    call = threading.Thread(target=lambda: told.append(server.post(tool, arguments)))
    call.start()
    until(begun.exists)
    code, _, _ = server.stop()
    call.join(120)
    status, envelope = told[0]
    assert (status, envelope["error"]["code"]) == (503, "E4143")
    assert code == 0


def test_stream_cut_off_by_shutdown_gets_an_error(serve, until, tmp_path) -> None:
    server = serve(grace=0)
    connection = server.connect()
    arguments = {"go": str(tmp_path / "never"), "closed": str(tmp_path / "closed")}
    payload = {"content-type": "application/json", "accept": "application/x-ndjson"}
    connection.request("POST", "/tools/arows", json.dumps(arguments), payload)
    answer = connection.getresponse()
    assert answer.readline() == b"0\n"
    server.process.send_signal(signal.SIGTERM)
    assert json.loads(answer.read())["error"]["code"] == "E4143"
    connection.close()
    until((tmp_path / "closed").exists)


# ------------------------------------------------------------------ workers


def test_two_workers_share_a_port(serve, until) -> None:
    server = serve(workers=2)
    seen: set[int] = set()

    def both() -> bool:
        seen.add(server.post("which")[1]["result"])
        return len(seen) == 2

    until(both)
    assert server.process.pid not in seen
    assert server.stop()[0] == 0
    until(lambda: not any(map(lives, seen)))


def test_dead_worker_is_replaced(serve, until) -> None:
    import os

    server = serve(workers=2)
    first = server.post("which")[1]["result"]
    os.kill(first, signal.SIGKILL)
    until(lambda: not lives(first))

    def answers() -> bool:
        try:
            return server.post("which")[1]["result"] != first
        except (OSError, http.client.HTTPException):
            return False

    until(answers)


def test_workers_end_with_their_parent(serve, until) -> None:
    server = serve(workers=2)
    worker = server.post("which")[1]["result"]
    server.process.kill()
    until(lambda: not lives(worker))


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ------------------------------------------------------------------ what cannot be started


def test_startup_error_sets_the_exit_code(serve) -> None:
    server = serve(host="0.0.0.0")
    assert json.loads(server.line)["code"] == "E1020"
    assert server.process.wait(120) == 2


def test_wildcard_address_with_a_token(serve) -> None:
    server = serve(host="0.0.0.0", token="t")
    assert server.line.endswith(f"http://localhost:{server.port}\n")
    assert server.post("add", {"a": 1})[0] == 401
    token = "Bearer t"
    assert server.post("add", {"a": 1}, authorization=token)[0] == 200
    assert server.post("add", {"a": 1}, authorization=token, host="10.1.2.3:80")[0] == 200
    assert server.post("add", {"a": 1}, authorization=token, host="evil.example")[0] == 421


# ------------------------------------------------------------------ slow heads


async def test_incomplete_headers_time_out(monkeypatch) -> None:
    import uvicorn

    monkeypatch.setattr(TimeoutProtocol, "header_timeout", 0.05)
    listener = serving.listen("127.0.0.1", 0)
    config = uvicorn.Config(
        served.app.asgi(mcp=False), http=TimeoutProtocol, log_config=None, ws="none", lifespan="off"
    )
    server = uvicorn.Server(config)
    monkeypatch.setattr(server, "capture_signals", lambda: __import__("contextlib").nullcontext())
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    address = listener.getsockname()
    for text in (b"", b"GET /hea", b"POST /tools/add HTTP/1.1\r\nHost: localhost\r\n"):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(text)
        assert await asyncio.wait_for(reader.read(), 120) == b""
        writer.close()
    reader, writer = await asyncio.open_connection(*address)
    writer.write(whole() + b"GET /hea")  # the second head of a connection, too
    data = await asyncio.wait_for(reader.read(), 120)
    assert data.startswith(b"HTTP/1.1 200 ")
    assert data.count(b"HTTP/1.1 ") == 1
    writer.close()
    server.should_exit = True
    await running
