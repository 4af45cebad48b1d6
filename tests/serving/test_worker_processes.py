"""Worker processes: crashes, failed starts, signals, exit codes."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from tests.integration.http.server_process import (
    PROCESS_TIMEOUT,
    RunningCall,
    ServerProcess,
    is_running,
    wait_until,
)

from tooli.serving.worker_processes import is_repeated_signal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers need fork")

# Each script runs workers whose servers are plain functions.
PREFIX = """
import os, signal, sys, time
from pathlib import Path
from tooli.errors import ToolError
from tooli.serving import worker_processes
from tooli.serving.worker_processes import run_workers

folder = Path(sys.argv[1])

def note():
    (folder / str(os.getpid())).touch()

def main(run, count=2, grace=0):
    try:
        run_workers(run, count, grace, lambda: None)
    except ToolError as error:
        print(error.code, error.message)
        sys.exit(error.exit_code)
"""


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PREFIX + script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_crashing_requests_do_not_end_the_server() -> None:
    server = ServerProcess(workers=2)
    for _ in range(7):
        with pytest.raises((OSError, http.client.HTTPException)):
            server.post("crash")
    assert server.post("add", {"a": 2})[1]["result"] == 3
    code, _, err = server.stop()
    assert code == 0
    assert err.count("exited with code 3; it is replaced") == 7
    assert "Traceback" not in err


def test_connections_are_refused_while_the_workers_finish_their_calls(tmp_path: Path) -> None:
    server = ServerProcess(workers=2)
    call = RunningCall(server, "wait", tmp_path)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not _accepts_connections(server))
    assert call.finish()["ok"]
    server.process.communicate(timeout=PROCESS_TIMEOUT)  # a second signal would kill the workers
    assert server.process.returncode == 0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_ends_the_server_at_once(
    workers: int, second: signal.Signals, tmp_path: Path
) -> None:
    """Only a second SIGINT did; after a second SIGTERM, the server waited for its calls."""
    server = ServerProcess(workers=workers, grace=100_000)
    call = RunningCall(server, "wait", tmp_path, may_fail=True)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not _accepts_connections(server))
    server.process.send_signal(second)
    server.process.communicate(timeout=PROCESS_TIMEOUT)
    assert server.process.returncode in (0, 143)
    call.abandon()


@pytest.mark.parametrize(
    ("sig", "earlier", "is_repeated"),
    [
        (signal.SIGTERM, set(), False),
        (signal.SIGINT, set(), False),
        (signal.SIGTERM, {signal.SIGTERM}, True),
        (signal.SIGINT, {signal.SIGINT}, True),
        (signal.SIGINT, {signal.SIGTERM}, True),
        (signal.SIGTERM, {signal.SIGINT}, False),
    ],
)
def test_repeated_signal(sig: int, earlier: set[int], is_repeated: bool) -> None:
    assert is_repeated_signal(sig, earlier) is is_repeated


def _accepts_connections(server: ServerProcess) -> bool:
    try:
        server.open_socket().close()
    except ConnectionError:
        return False
    return True


def test_workers_that_never_start_end_the_server_with_an_error(tmp_path: Path) -> None:
    process = start("main(lambda pipe, started: (note(), sys.exit(3)))", tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 70
    assert out == "E4000 The workers failed to start; see the errors above.\n"
    assert 4 <= len(list(tmp_path.iterdir())) <= 5
    assert "exited with code 1" in err


def test_one_running_worker_keeps_the_server_alive(tmp_path: Path) -> None:
    script = """
def run(pipe, started):
    note()
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        sys.exit(3)
    started()
    os.read(pipe, 1)

worker_processes.FIRST_DELAY = worker_processes.MAX_DELAY = 0.01
main(run)
"""
    process = start(script, tmp_path)
    wait_until(lambda: len(list(tmp_path.iterdir())) > 10)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_signal_during_the_delay_ends_the_server(tmp_path: Path) -> None:
    script = """
worker_processes.FIRST_DELAY = worker_processes.MAX_DELAY = 1000
main(lambda pipe, started: (started(), note(), os._exit(3)))
"""
    process = start(script, tmp_path)
    wait_until(lambda: len(list(tmp_path.iterdir())) >= 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_worker_that_does_not_end_is_killed(tmp_path: Path) -> None:
    script = """
def run(pipe, started):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    started()
    note()
    time.sleep(1000)

worker_processes.KILL_DELAY = 0
main(run)
"""
    process = start(script, tmp_path)
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 143
    assert out.startswith("E4143")
    assert not any(is_running(int(path.name)) for path in tmp_path.iterdir())


def test_failed_fork_is_retried(tmp_path: Path) -> None:
    script = """
fork, attempts = os.fork, []

def failing_fork():
    attempts.append(1)
    if len(attempts) < 3:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()

def run(pipe, started):
    started()
    note()
    os.read(pipe, 1)

os.fork = failing_fork
main(run)
"""
    process = start(script, tmp_path)
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err.count("A worker cannot be started: Resource temporarily unavailable.") == 2


def test_child_of_a_worker_does_not_block_the_parent(tmp_path: Path) -> None:
    script = """
def run(pipe, started):
    note()
    if os.fork() == 0:
        os.read(pipe, 1)  # keeps the status pipe open
        os._exit(0)
    sys.exit(3)

main(run)
"""
    process = start(script, tmp_path)
    process.communicate(timeout=120)
    assert process.returncode == 70
