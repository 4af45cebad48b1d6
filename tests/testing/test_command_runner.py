"""Run command lines in this process and in a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.testing.shop import FAILURES, make_app

from tooli.testing import (
    Case,
    assert_parity,
    invoke,
    run,
)
from tooli.testing.command_runner import invoke_callable

# ------------------------------------------------------------------ invoke


def test_invoke_returns_the_envelope() -> None:
    done = invoke(make_app(), "buy", "tea", "--count", "2")
    assert done.ok
    assert done.exit_code == 0
    assert done.result == {"item": "tea", "count": 2}
    assert done.error is None
    assert done.envelope["meta"]["tool"] == "shop.buy"
    assert done.stderr == ""
    assert done.exception is None
    assert done.argv == ("shop", "buy", "tea", "--count", "2")


def test_failure_has_error_and_exit_code() -> None:
    done = invoke(make_app(), "buy", "moon")
    assert not done.ok
    assert done.exit_code == 10
    assert done.result is None
    assert done.error is not None
    assert done.error["code"] == "E3010"


def test_mode_selects_the_output_format() -> None:
    app = make_app()
    assert invoke(app, "count", "3", mode="jsonl").lines == [0, 1, 2]
    assert invoke(app, "count", "3", mode="plain").stdout == "0\n1\n2\n"
    assert invoke(app, "say", "hi").stdout == "hi\n"
    assert invoke(app, "say", "hi", mode="json").result == "hi"


def test_input_is_sent_to_stdin() -> None:
    assert invoke(make_app(), "echo", input="naïve").result == "naïve"
    assert invoke(make_app(), "echo", input=b"raw").result == "raw"
    assert invoke(make_app(), "echo", mode="json").envelope["ok"]


def test_caller_of_the_test_process_is_not_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLI_CALLER", "TOOLI_OUTPUT", "CLAUDECODE", "CI", "AI_AGENT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MINE", "kept")
    state = invoke(make_app(), "show-process", env={"ADDED": "x", "MINE": None}, mode="json").result
    assert state["argv"] == ["shop", "show-process"]
    assert state["tty"] is False
    assert state["env"]["ADDED"] == "x"
    kept = {"TOOLI_CALLER", "CLAUDECODE", "CI", "AI_AGENT", "MINE"} & state["env"].keys()
    assert not kept
    assert os.environ["MINE"] == "kept"
    assert os.environ["TOOLI_CALLER"] == "1"


def test_env_sets_the_caller() -> None:
    done = invoke(make_app(), "say", "hi", env={"TOOLI_CALLER": "robot"})
    assert done.result == "hi"
    assert done.envelope["meta"]["caller_id"] == "robot"


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("mode", ["json", "text"])
def test_process_state_is_restored(how: str, mode: str) -> None:
    before = _process_state()
    invoke(make_app(), "fail", how, mode=mode)
    assert _process_state() == before


def test_no_color_flag_does_not_change_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    before = _process_state()
    assert invoke(make_app(), "buy", "tea", "--no-color", "--json").ok
    assert _process_state() == before


def _process_state() -> tuple[Any, ...]:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return (*streams, sys.argv, dict(os.environ), sys.excepthook, signal.getsignal(signal.SIGTERM))


def test_system_exit_is_caught() -> None:
    done = invoke(make_app(), "fail", "exit", mode="text")
    assert done.exit_code == 1
    assert "bye" in done.stderr


def test_system_exit_without_stderr_is_caught() -> None:
    def close_and_exit() -> None:
        sys.stderr = None  # type: ignore[assignment]
        sys.exit("bye")

    done = invoke_callable(close_and_exit, ["program"])
    assert (done.exit_code, done.exception) == (1, None)


def test_uncaught_exception_is_reported() -> None:
    done = invoke(make_app(pretty_exceptions_enable=False), "fail", "environment", mode="text")
    assert done.exit_code == 1
    assert isinstance(done.exception, RuntimeError)
    assert "after all that" in done.stderr


def test_envelope_of_output_that_is_not_json_fails() -> None:
    with pytest.raises(AssertionError, match=r"not JSON[\s\S]*hi"):
        _ = invoke(make_app(), "say", "hi").envelope


def test_envelope_of_two_documents_fails() -> None:
    with pytest.raises(AssertionError, match="not JSON"):
        _ = invoke(make_app(), "count", "2", mode="jsonl").envelope


def test_invoke_works_in_another_thread() -> None:
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(invoke(make_app(), "buy", "tea")))
    thread.start()
    thread.join()
    assert done[0].ok


async def test_invoke_works_inside_an_event_loop() -> None:
    assert invoke(make_app(), "buy", "tea").ok
    assert assert_parity(make_app(), Case("count", {"n": 2}))["result"] == [0, 1]


# ------------------------------------------------------------------ run

SCRIPT = """
import os, subprocess, sys
from tooli import Tooli

app = Tooli("script")

@app.command()
def noisy(code: int = 0) -> str:
    os.write(1, b"below Python\\n")
    subprocess.run([sys.executable, "-c", "print('a child')"])
    if code:
        os._exit(code)
    return sys.stdin.read()

@app.command()
def quiet() -> None: ...

app()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_run_starts_a_process(script: Path) -> None:
    done = run(script, "noisy", mode="json", input="in")
    assert done.result == "in"
    assert "below Python" in done.stderr
    assert "a child" in done.stderr
    assert done.argv[0] == sys.executable


def test_run_starts_any_program(script: Path) -> None:
    done = run(sys.executable, script.name, "noisy", "--code", "7", cwd=script.parent)
    assert done.exit_code == 7
    assert not done.ok


def test_invoke_returns_to_a_script_without_a_try_block(tmp_path: Path) -> None:
    """The fast exit of a command line must not end the process of its caller."""
    script = tmp_path / "script.py"
    script.write_text(
        "from tooli import Tooli\n"
        "from tooli.testing import invoke\n"
        "app = Tooli('app')\n"
        "@app.command()\n"
        "def double(number: int) -> int:\n"
        "    return 2 * number\n"
        "print(invoke(app, 'double', 'x', mode='json').exit_code)\n"
        "print(invoke(app, 'double', '2', mode='json').result)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "4"], done.stderr
