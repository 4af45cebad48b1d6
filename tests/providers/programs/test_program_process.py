from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from tooli.errors import DependencyError, InputError
from tooli.execution.processes import list_processes
from tooli.providers.programs import program_process
from tooli.providers.programs.program_process import run_process

ENV = dict(os.environ)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_output_and_exit_code() -> None:
    code = "import sys; print(sys.stdin.read(), end=''); print('e', file=sys.stderr); sys.exit(3)"
    finished = run_process(python(code), env=ENV, cwd=None, stdin=b"hello")
    assert (finished.exit_code, finished.stdout, finished.stderr) == (3, b"hello", b"e\n")
    assert not finished.timed_out and not finished.stopped
    assert run_process(python("input()"), env=ENV, cwd=None).exit_code == 1  # stdin is empty


def test_large_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_process, "MAX_OUTPUT_BYTES", 1000)
    monkeypatch.setattr(program_process, "MAX_ERROR_BYTES", 10)
    code = "import sys; print('x' * 10**6, end=''); print('y' * 10**6 + 'end', file=sys.stderr)"
    finished = run_process(python(code), env=ENV, cwd=None)
    assert finished.stdout == b"x" * 1000 and finished.discarded_bytes == 10**6 - 1000
    assert finished.stderr == b"yyyyyyend\n"


def test_large_input_that_nobody_reads() -> None:
    finished = run_process(python("pass"), env=ENV, cwd=None, stdin=b"x" * 10**6)
    assert finished.exit_code == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_stopping_kills_the_whole_family(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )

    def stop_when_ready(stop: Callable[[], None]) -> None:
        def wait() -> None:
            while not (pids.exists() and " " in pids.read_text()):
                sleep(0.01)
            stop()

        threading.Thread(target=wait, daemon=True).start()

    finished = run_process(python(code), env=ENV, cwd=None, on_start=stop_when_ready)
    assert finished.stopped and finished.exit_code == -9
    for pid in pids.read_text().split():
        wait_until_ended(int(pid))


def wait_until_ended(pid: int) -> None:
    deadline = monotonic() + 30
    while pid in list_processes():  # without those that only wait to be reaped
        assert monotonic() < deadline, f"{pid} is still running"
        sleep(0.01)


def test_the_time_limit() -> None:
    code = "import time; time.sleep(600)"
    finished = run_process(python(code), env=ENV, cwd=None, timeout=0.2)
    assert finished.timed_out and finished.stopped


def test_stop_from_another_thread() -> None:
    started: list[threading.Timer] = []

    def stop_soon(stop: object) -> None:
        timer = threading.Timer(0.0, stop)  # type: ignore[arg-type]
        started.append(timer)
        timer.start()

    finished = run_process(
        python("import time; time.sleep(600)"), env=ENV, cwd=None, on_start=stop_soon
    )
    assert finished.stopped and finished.exit_code != 0


def test_a_background_process_is_left_alone(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    finished = run_process(python(code), env=ENV, cwd=None)
    pid = int(finished.stdout)
    os.kill(pid, 9)  # it was still running
    assert finished.exit_code == 0


def test_an_interrupt_ends_the_process() -> None:
    def interrupt(stop: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_process(python("import time; time.sleep(600)"), env=ENV, cwd=None, on_start=interrupt)


def test_programs_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(DependencyError, match="cannot be started: No such file"):
        run_process([str(tmp_path / "nope")], env=ENV, cwd=None)
    with pytest.raises(DependencyError, match=r"folder .* does not exist"):
        run_process(python("pass"), env=ENV, cwd=str(tmp_path / "nope"))
    with pytest.raises(InputError, match="too long"):
        run_process([*python("pass"), "x" * 10**7], env=ENV, cwd=None)
