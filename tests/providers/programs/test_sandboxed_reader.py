from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tooli.execution.interpreter import isolated_argv
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.providers.programs import sandboxed_reader
from tooli.providers.programs.sandboxed_reader import NO_SANDBOX, TIMED_OUT

pytestmark = pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="this system has no sandbox"
)


def start(code: str, seconds: float = 20, python: str = sys.executable) -> subprocess.Popen[str]:
    payload = {
        "argv": [python, "-c", code],
        "env": {"MODE": "fast"},
        "reads": [os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)],
        "lists": [],
        "programs": [os.path.realpath(sys.executable)],
        "seconds": seconds,
    }
    main = f"from {sandboxed_reader.__name__} import main; main()"
    return subprocess.Popen(
        [*isolated_argv(main), json.dumps(payload)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str, **options: object) -> tuple[int, str, str]:
    with start(code, **options) as process:  # type: ignore[arg-type]
        assert process.stdin is not None and process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
        return process.wait(), out, err


def test_the_program_runs_with_a_home_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os; print(os.environ['MODE'], os.getcwd() == os.path.expanduser('~'), os.getcwd());"
        "open('file', 'w').close(); os._exit(7)"
    )
    status, out, _ = run(code)
    mode, is_home, home = out.split()
    assert (status, mode, is_home) == (7, "fast", "True") and not os.path.exists(home)


def test_the_time_limit() -> None:
    assert run("import time; time.sleep(600)", seconds=0.5)[0] == TIMED_OUT


def test_a_killed_program() -> None:
    assert run("import os; os.kill(os.getpid(), 9)")[0] == 1


def test_an_interpreter_that_cannot_start(tmp_path: Path) -> None:
    status, _, err = run("", python=str(tmp_path / "python"))
    assert status == NO_SANDBOX and "Error: [Errno" in err


def test_the_end_of_tooli_ends_the_program() -> None:
    process = start("import time; print('ready', flush=True); time.sleep(600)", seconds=600)
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.close()  # as when the process of tooli ends
    assert process.wait(30) == TIMED_OUT
    assert process.stdout.read() == ""  # nobody holds it open
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
