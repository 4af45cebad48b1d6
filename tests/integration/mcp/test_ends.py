"""How a server ends: in order where somebody still listens, soon where nobody does."""

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
from tests.integration.mcp.talk import HANDSHAKE_VERSION, SERVED, STATELESS_VERSION, serving, talk
from tests.integration.outside import PATIENCE, environment

from tooli.mcp.stdio_transport import StdioTransport

ERAS = [HANDSHAKE_VERSION, STATELESS_VERSION]


def wait_until_gone(pid: int, patience: float = PATIENCE) -> None:
    """Block until no process has this id, or only one that nobody has waited for."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_the_client_says_goodbye(version: str, handed: bool) -> None:
    with talk(version=version) as line:
        if handed:
            line.result("resources/list")
        assert line.end() == 0
        assert line.err == b""


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_pending_calls_are_answered_after_stdin_is_closed(version: str, handed: bool) -> None:
    with talk(version=version) as line:
        if handed:
            line.result("resources/list")
        given = [line.begin("sleep", {"seconds": 0.3}) for _ in range(3)]
        given += [line.begin("add", {"a": i}) for i in range(20)]
        answers = line.rest()
        assert sorted(answer["id"] for answer in answers) == given
        assert not any(answer["result"]["isError"] for answer in answers)
        assert line.process.wait(PATIENCE) == 0


def test_goodbye_without_a_word() -> None:
    with talk(open=False) as line:
        assert line.end() == 0
        assert line.err == b""


def test_the_last_line_needs_no_newline() -> None:
    with talk(open=False) as line:
        line.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert line.rest() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        assert line.process.wait(PATIENCE) == 0


CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
for line in sys.stdin:
    server.stdin.write(line.encode())
    server.stdin.flush()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_no_orphan_stays_when_the_client_is_killed(handed: bool) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, *serving(SERVED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with client:
        assert client.stdin and client.stdout and client.stderr
        server = int(client.stdout.readline())
        opening = (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
            b'"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
        )
        resources = b'{"jsonrpc":"2.0","id":2,"method":"resources/list"}\n' if handed else b""
        sleep = (
            b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":'
            b'{"name":"sleep","arguments":{"seconds":3600,"child":true}}}\n'
        )
        client.stdin.write(opening + resources + sleep)
        client.stdin.flush()
        child = 0
        for line in client.stderr:
            if line.startswith(b"child "):
                child = int(line.split()[1])
            if line == b"ready\n":
                break
        assert child
        client.kill()
        wait_until_gone(server)
        wait_until_gone(child)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_a_signal_ends_an_idle_server(number: signal.Signals, handed: bool) -> None:
    with talk() as line:
        if handed:
            line.result("resources/list")
        line.process.send_signal(number)
        assert line.process.wait(PATIENCE) == 0
        assert b"Traceback" not in line.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_a_signal_lets_calls_end(number: signal.Signals, handed: bool) -> None:
    with talk() as line:
        if handed:
            line.result("resources/list")
        given = line.begin("sleep", {"seconds": 0.5})
        line.wait_for_err(b"ready\n")
        line.process.send_signal(number)
        assert line.answer_to(given)["result"]["isError"] is False
        assert line.process.wait(PATIENCE) == 0
        assert b"Traceback" not in line.err


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_signal_does_not_wait_for_ever() -> None:
    with talk() as line:
        line.begin("sleep", {"seconds": 3600, "child": True})
        line.wait_for_err(b"ready\n")
        child = int(bytes(line.err).partition(b"child ")[2].split()[0])
        line.process.send_signal(signal.SIGTERM)
        assert line.process.wait(PATIENCE) == 0
        wait_until_gone(child)


@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_a_client_that_stops_reading(handed: bool) -> None:
    with talk() as line:
        if handed:
            line.result("resources/list")
        line.begin("wait", {"key": "k"})
        assert line.value("happened", {"event": "wait k"}) == 1
        assert line.process.stdout is not None
        stop_reading(line.process)
        try:
            for _ in range(50):
                line.begin("add", {"a": 1})
        except BrokenPipeError:  # it has noticed already
            pass
        assert line.process.wait(PATIENCE) == 0
        assert line.err.count(b"\n") < 5
        assert b"Traceback" not in line.err


DEAF = """
import sys, time
from pathlib import Path
from tooli import Tooli
from tooli.mcp import stdio_server

stdio_server.STDIO_GRACE_PERIOD = float(sys.argv.pop(1))
app = Tooli("deaf")

@app.command()
def wait(mark: str) -> int:
    while not Path(mark).exists():
        time.sleep(0.01)
    print("landing", file=sys.stderr, flush=True)
    return 1

@app.command(help="x" * 300_000)
def long() -> int: ...

@app.resource("deaf://long")
def book() -> str:
    return "x" * 300_000

app()
"""


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def all_asleep(pid: int) -> bool:
    """Whether every thread of a process waits for something."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all([stat.rpartition(")")[2].split()[0] == "S" for stat in stats])


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_a_signal_ends_a_server_whose_client_does_not_read(
    tmp_path: Path, handed: bool, again: bool
) -> None:
    import fcntl
    import termios

    app, mark = tmp_path / "deaf.py", tmp_path / "mark"
    app.write_text(DEAF)
    grace = "7200" if again else "0.2"
    pipe = subprocess.PIPE
    words = [sys.executable, str(app), grace, "mcp", "serve"]
    with subprocess.Popen(words, 0, None, pipe, pipe, pipe, env=environment()) as server:
        assert server.stdin and server.stdout and server.stderr
        source = server.stdout.fileno()

        def ask(number: int, method: str, **params: object) -> None:
            payload = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            assert server.stdin
            server.stdin.write(json.dumps(payload).encode() + b"\n")

        try:
            client = {"name": "x", "version": "1"}
            ask(
                1,
                "initialize",
                protocolVersion=HANDSHAKE_VERSION,
                capabilities={},
                clientInfo=client,
            )
            assert server.stdout.readline()
            ask(2, "tools/call", name="wait", arguments={"mark": str(mark)})
            if handed:
                ask(3, "resources/read", uri="deaf://long")
            else:
                ask(3, "tools/list")
            room = fcntl.fcntl(source, 1032)  # F_GETPIPE_SZ
            full = bytearray(4)
            wait_until(
                lambda: (
                    fcntl.ioctl(source, termios.FIONREAD, full) == 0
                    and int.from_bytes(full, sys.byteorder) == room
                )
            )
            mark.touch()
            assert server.stderr.readline() == b"landing\n"
            wait_until(lambda: all_asleep(server.pid))
            server.send_signal(signal.SIGTERM)
            until = time.monotonic() + PATIENCE
            while again and server.poll() is None and time.monotonic() < until:
                server.send_signal(signal.SIGTERM)  # two that come at once are one
                time.sleep(0.05)
            assert server.wait(PATIENCE) == 0
        finally:
            server.kill()


@pytest.mark.parametrize("closed", [0, 1])
def test_a_server_without_a_client_says_so(closed: int) -> None:
    close = f"import os, sys; os.close({closed}); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", close, *serving(SERVED)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        env=environment(),
    )
    assert done.returncode == 20
    assert (b"stdin", b"stdout")[closed] in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_client_at_a_socket_is_missed_as_well() -> None:
    ours, theirs = socket.socketpair()  # what Node gives its children
    with ours, theirs:
        wire = StdioTransport(theirs.fileno(), theirs.fileno())
        assert not wire.is_disconnected()
        ours.close()
        assert wire.is_disconnected()


def test_a_client_at_a_pipe_is_missed() -> None:
    reader, writer = os.pipe()
    wire = StdioTransport(-1, writer)
    assert not wire.is_disconnected()
    os.close(reader)
    assert wire.is_disconnected()
    wire.write({"jsonrpc": "2.0"})
    assert wire.is_broken
    os.close(writer)


def stop_reading(process: subprocess.Popen[bytes]) -> None:
    """Close our end of the server's stdout, although a thread reads from it."""
    assert process.stdout is not None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, process.stdout.fileno())
    os.close(nothing)
