"""Shutdown of the stdio server: after the client disconnects, and after signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.app_process import PROCESS_TIMEOUT, environment
from tests.integration.mcp.stdio_client import (
    HANDSHAKE_VERSION,
    SERVED,
    STATELESS_VERSION,
    connect,
    serve_command,
)

from tooli.mcp.stdio_transport import StdioTransport

VERSIONS = [HANDSHAKE_VERSION, STATELESS_VERSION]


def wait_for_exit(pid: int, timeout: float = PROCESS_TIMEOUT) -> None:
    """Block until a process has ended. It may still be a zombie."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still running")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_server_exits_when_stdin_is_closed(version: str, uses_sdk: bool) -> None:
    with connect(version=version) as client:
        if uses_sdk:
            client.result("resources/list")
        assert client.shut_down() == 0
        assert client.stderr == b""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_pending_calls_are_answered_after_stdin_is_closed(version: str, uses_sdk: bool) -> None:
    with connect(version=version) as client:
        if uses_sdk:
            client.result("resources/list")
        request_ids = [client.start_call("sleep", {"seconds": 0.3}) for _ in range(3)]
        request_ids += [client.start_call("add", {"a": i}) for i in range(20)]
        answers = client.remaining_messages()
        assert sorted(answer["id"] for answer in answers) == request_ids
        assert not any(answer["result"]["isError"] for answer in answers)
        assert client.process.wait(PROCESS_TIMEOUT) == 0


def test_server_exits_without_any_message() -> None:
    with connect(initialize=False) as client:
        assert client.shut_down() == 0
        assert client.stderr == b""


def test_last_line_without_newline_is_answered() -> None:
    with connect(initialize=False) as client:
        client.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert client.remaining_messages() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        assert client.process.wait(PROCESS_TIMEOUT) == 0


CLIENT_PROGRAM = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
for line in sys.stdin:
    server.stdin.write(line.encode())
    server.stdin.flush()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_server_and_children_end_when_the_client_is_killed(uses_sdk: bool) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT_PROGRAM, *serve_command(SERVED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with client:
        assert client.stdin and client.stdout and client.stderr
        server = int(client.stdout.readline())
        initialize = (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
            b'"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
        )
        resources = b'{"jsonrpc":"2.0","id":2,"method":"resources/list"}\n' if uses_sdk else b""
        sleep = (
            b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":'
            b'{"name":"sleep","arguments":{"seconds":3600,"child":true}}}\n'
        )
        client.stdin.write(initialize + resources + sleep)
        client.stdin.flush()
        child = 0
        for line in client.stderr:
            if line.startswith(b"child "):
                child = int(line.split()[1])
            if line == b"ready\n":
                break
        assert child
        client.kill()
        wait_for_exit(server)
        wait_for_exit(child)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_signal_ends_an_idle_server(sig: signal.Signals, uses_sdk: bool) -> None:
    with connect() as client:
        if uses_sdk:
            client.result("resources/list")
        client.process.send_signal(sig)
        assert client.process.wait(PROCESS_TIMEOUT) == 0
        assert b"Traceback" not in client.stderr


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_calls_finish_after_a_signal(sig: signal.Signals, uses_sdk: bool) -> None:
    with connect() as client:
        if uses_sdk:
            client.result("resources/list")
        request_id = client.start_call("sleep", {"seconds": 0.5})
        client.wait_for_stderr(b"ready\n")
        client.process.send_signal(sig)
        assert client.response_to(request_id)["result"]["isError"] is False
        assert client.process.wait(PROCESS_TIMEOUT) == 0
        assert b"Traceback" not in client.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_signal_ends_a_server_with_an_endless_call() -> None:
    with connect() as client:
        client.start_call("sleep", {"seconds": 3600, "child": True})
        client.wait_for_stderr(b"ready\n")
        child = int(bytes(client.stderr).partition(b"child ")[2].split()[0])
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(PROCESS_TIMEOUT) == 0
        wait_for_exit(child)


@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_server_ends_when_stdout_is_closed(uses_sdk: bool) -> None:
    with connect() as client:
        if uses_sdk:
            client.result("resources/list")
        client.start_call("wait", {"key": "k"})
        assert client.value("happened", {"event": "wait k"}) == 1
        assert client.process.stdout is not None
        stop_reading(client.process)
        try:
            for _ in range(50):
                client.start_call("add", {"a": 1})
        except BrokenPipeError:  # the server has already ended
            pass
        assert client.process.wait(PROCESS_TIMEOUT) == 0
        assert client.stderr.count(b"\n") < 5
        assert b"Traceback" not in client.stderr


BLOCKING_APP = """
import sys, time
from pathlib import Path
from tooli import Tooli
from tooli.mcp import stdio_server

stdio_server.STDIO_GRACE_PERIOD = float(sys.argv.pop(1))
app = Tooli("blocking")

@app.command()
def wait(release: str) -> int:
    while not Path(release).exists():
        time.sleep(0.01)
    print("done", file=sys.stderr, flush=True)
    return 1

@app.command(help="x" * 2_500_000)
def long() -> int: ...

@app.resource("blocking://long")
def long_text() -> str:
    return "x" * 2_500_000

app()
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PROCESS_TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def all_threads_sleep(pid: int) -> bool:
    """True if every thread of a process is sleeping."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all([stat.rpartition(")")[2].split()[0] == "S" for stat in stats])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("repeat", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_signal_ends_a_server_whose_client_does_not_read(
    tmp_path: Path, uses_sdk: bool, repeat: bool
) -> None:
    import fcntl
    import termios

    app, release = tmp_path / "blocking.py", tmp_path / "release"
    app.write_text(BLOCKING_APP)
    grace = "7200" if repeat else "0.2"
    pipe = subprocess.PIPE
    command = [sys.executable, str(app), grace, "mcp", "serve"]
    with subprocess.Popen(command, 0, None, pipe, pipe, pipe, env=environment()) as server:
        assert server.stdin and server.stdout and server.stderr
        stdout_fd = server.stdout.fileno()

        def send_request(number: int, method: str, **params: object) -> None:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            assert server.stdin
            server.stdin.write(json.dumps(message).encode() + b"\n")

        try:
            client = {"name": "x", "version": "1"}
            send_request(
                1,
                "initialize",
                protocolVersion=HANDSHAKE_VERSION,
                capabilities={},
                clientInfo=client,
            )
            assert server.stdout.readline()
            send_request(2, "tools/call", name="wait", arguments={"release": str(release)})
            if uses_sdk:
                send_request(3, "resources/read", uri="blocking://long")
            else:
                send_request(3, "tools/list")
            unread_bytes = bytearray(4)
            wait_until(
                lambda: (
                    fcntl.ioctl(stdout_fd, termios.FIONREAD, unread_bytes) == 0
                    and int.from_bytes(unread_bytes, sys.byteorder)
                    == fcntl.fcntl(stdout_fd, 1032)  # F_GETPIPE_SZ: the server may widen it
                )
            )
            release.touch()
            assert server.stderr.readline() == b"done\n"
            wait_until(lambda: all_threads_sleep(server.pid))
            server.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + PROCESS_TIMEOUT
            while repeat and server.poll() is None and time.monotonic() < deadline:
                server.send_signal(signal.SIGTERM)  # signals that arrive together count as one
                time.sleep(0.05)
            assert server.wait(PROCESS_TIMEOUT) == 0
        finally:
            server.kill()


@pytest.mark.parametrize("closed", [0, 1])
def test_missing_stdin_or_stdout_is_reported(closed: int) -> None:
    close = f"import os, sys; os.close({closed}); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", close, *serve_command(SERVED)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PROCESS_TIMEOUT,
        env=environment(),
    )
    assert done.returncode == 20
    assert (b"stdin", b"stdout")[closed] in done.stderr
    assert b"Traceback" not in done.stderr


def test_closed_socket_is_detected() -> None:
    client, server = socket.socketpair()  # Node connects its child processes with sockets
    with client, server:
        transport = StdioTransport(server.fileno(), server.fileno())
        assert not transport.is_disconnected()
        client.close()
        assert transport.is_disconnected()


def test_closed_pipe_is_detected() -> None:
    reader, writer = os.pipe()
    transport = StdioTransport(-1, writer)
    assert not transport.is_disconnected()
    os.close(reader)
    assert transport.is_disconnected()
    transport.write({"jsonrpc": "2.0"})
    assert transport.is_broken
    os.close(writer)


def stop_reading(process: subprocess.Popen[bytes]) -> None:
    """Close our end of the server's stdout while a thread reads from it."""
    assert process.stdout is not None
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, process.stdout.fileno())
    os.close(devnull)
