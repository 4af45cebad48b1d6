"""Every kind of hang ends with the right exit code and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import (
    ProcessResult,
    environment,
    finish,
    run,
    run_on_terminal,
    start_app,
    wait_for_ready,
)

from tooli.execution import timeouts

APP = Path(__file__).parent / "hanging_app.py"
LINUX = sys.platform.startswith("linux")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HANGS = (
    *("busy", "sleep", "uninterruptible", "blocked-signals", "read-stdin", "accept", "receive"),
    *("run-sleep", "run-shell", "grandchild", "daemon", "deadlock", "thread-after-return"),
    *("blocked-loop", "uncancellable-task", "task", "stream", "async-stream", "c-code", "regex"),
    "at-exit",
)


class ProcessEnv:
    """The environment of a test's processes, which marks them so that they can be found."""

    def __init__(self, state: Path) -> None:
        self.mark = f"TOOLI_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        self.env = environment(**{name: value, "TOOLI_STATE_DIR": str(state)})

    def run(self, *argv: str, **more: str) -> ProcessResult:
        reading, writing = os.pipe()  # a stdin that never ends
        try:
            with start_app(APP, *argv, stdin=reading, env={**self.env, **more}) as process:
                return finish(process)
        finally:
            os.close(reading)
            os.close(writing)

    def remaining(self) -> list[str]:
        """Return the processes that carry the mark."""
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue
        return found


@pytest.fixture
def process_env(tmp_path: Path) -> ProcessEnv:
    return ProcessEnv(tmp_path)


def error_of(done: ProcessResult) -> dict[str, Any]:
    return json.loads(done.out.splitlines()[-1])["error"]


@pytest.mark.parametrize("hang", HANGS)
def test_explicit_limit_ends_every_hang(process_env: ProcessEnv, hang: str) -> None:
    done = process_env.run(hang, "--json", "--timeout", "0.5")
    error = error_of(done)
    assert (done.code, error["code"]) == (50, "E4050"), done
    assert error["details"]["seconds"] == 0.5
    assert error["details"]["stopped"] == "process"
    assert done.out.count(b"\n") == 1
    assert done.err == b""
    if LINUX:
        assert process_env.remaining() == []


def test_killed_processes_are_listed(process_env: ProcessEnv) -> None:
    error = error_of(process_env.run("run-shell", "--json", "--timeout", "0.5"))
    assert {"sleep", "cat"} <= set(error["details"]["processes"])


@pytest.mark.parametrize("hang", ["thread-after-return", "at-exit"])
def test_error_says_that_the_function_had_returned(process_env: ProcessEnv, hang: str) -> None:
    error = error_of(process_env.run(hang, "--json", "--timeout", "0.5"))
    assert error["details"]["returned"] is True


@pytest.mark.parametrize("hang", ["stream", "async-stream"])
def test_items_before_the_timeout_arrive(process_env: ProcessEnv, hang: str) -> None:
    done = process_env.run(hang, "--jsonl", "--timeout", "0.5")
    *items, last = map(json.loads, done.out.splitlines())
    assert items == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert last["error"]["code"] == "E4050"
    assert last["error"]["details"]["items_before_failure"] == 3
    assert done.code == 50


@pytest.mark.parametrize("mode", ["--text", "--plain"])
@pytest.mark.parametrize("hang", ["sleep", "uninterruptible", "stream"])
def test_text_modes_report_the_timeout_on_stderr(
    process_env: ProcessEnv, hang: str, mode: str
) -> None:
    done = process_env.run(hang, mode, "--timeout", "0.5")
    assert done.code == 50
    assert b"E4050" in done.err
    assert b"Traceback" not in done.err
    assert len(done.out.splitlines()) == (3 if hang == "stream" else 0)
    assert not LINUX or process_env.remaining() == []


def test_timeout_at_a_terminal_is_reported(process_env: ProcessEnv) -> None:
    done = run_on_terminal(APP, "sleep", "--timeout", "0.5", env=process_env.env)
    assert done.code == 50
    assert b"E4050" in done.err


# ------------------------------------------------------------------ which limit applies


def test_timeout_variable_sets_the_limit(process_env: ProcessEnv) -> None:
    done = process_env.run("sleep", "--json", TOOLI_TIMEOUT="0.5")
    assert error_of(done)["details"]["seconds"] == 0.5


def test_caller_can_only_shorten_the_declared_limit(process_env: ProcessEnv) -> None:
    assert error_of(process_env.run("declared", "--json"))["details"]["seconds"] == 0.4
    longer = process_env.run("declared", "--json", "--timeout", "900")
    assert error_of(longer)["details"]["seconds"] == 0.4
    shorter = process_env.run("declared", "--json", "--timeout", "0.2")
    assert error_of(shorter)["details"]["seconds"] == 0.2


@pytest.mark.parametrize("word", ["0", "-1", "soon", "nan", "1e3", ""])
def test_invalid_limits_are_rejected(process_env: ProcessEnv, word: str) -> None:
    done = process_env.run("quick", "--json", f"--timeout={word}")
    assert (done.code, error_of(done)["code"]) == (2, "E1007")


# ------------------------------------------------------------------ calls that are in time


def test_envelope_is_the_same_with_a_limit(process_env: ProcessEnv) -> None:
    limited = json.loads(process_env.run("quick", "--json", "--timeout", "50").out)
    unlimited = json.loads(process_env.run("quick", "--json").out)
    for one in (limited, unlimited):
        del one["meta"]["duration_ms"]
    assert limited == unlimited
    assert limited["meta"]["warnings"] == ["be quick"]


@pytest.mark.skipif(not LINUX, reason="/proc")
def test_daemon_of_a_finished_command_is_not_killed(process_env: ProcessEnv) -> None:
    done = process_env.run("daemon", "--returns", "--json", "--timeout", "20")
    assert json.loads(done.out)["result"] == "left"
    marked = [int(e.name) for e in Path("/proc").iterdir() if e.name.isdigit()]
    ours = [pid for pid in marked if _is_marked(pid, process_env.mark)]
    assert len(ours) == 1
    os.kill(ours[0], signal.SIGKILL)


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def test_result_arrives_if_the_app_ignores_sigchld(process_env: ProcessEnv) -> None:
    done = process_env.run("quick", "--json", "--timeout", "20", IGNORE_CHILDREN="1")
    assert json.loads(done.out)["result"] == "done"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_command_runs_with_closed_standard_streams(
    process_env: ProcessEnv, tmp_path: Path, closed: str
) -> None:
    """Pipes do not use the numbers of closed standard streams."""
    target = tmp_path / "out.txt"
    line = f'exec "$0" "$1" write "$2" --no-hangs --json --timeout 20 {closed}'
    argv = ["sh", "-c", line, sys.executable, str(APP), str(target)]
    subprocess.run(argv, env=process_env.env, capture_output=True, timeout=60, check=False)
    assert target.read_text() == "half"


def test_error_names_the_signal_that_killed_the_process(process_env: ProcessEnv) -> None:
    done = process_env.run("die", "--json", "--timeout", "20")
    error = error_of(done)
    assert (done.code, error["code"]) == (70, "E4051")
    assert error["details"] == {"signal": "SIGSEGV"}
    killed = error_of(process_env.run("die", "--number", "9", "--json", "--timeout", "20"))
    assert killed["details"] == {"signal": "SIGKILL"}


def test_error_has_the_exit_code_of_a_process_that_exits(process_env: ProcessEnv) -> None:
    done = process_env.run("exit-process", "--json", "--timeout", "20")
    assert (done.code, error_of(done)["code"]) == (70, "E4051")
    assert error_of(done)["details"] == {"exit_code": 4}


def test_shorter_limit_of_a_nested_call_applies(process_env: ProcessEnv) -> None:
    assert (
        json.loads(process_env.run("nested", "--json", "--timeout", "50").out)["result"] == "E4050"
    )


def test_inputs_are_read_in_the_process_of_the_command(process_env: ProcessEnv) -> None:
    line = ("read", "-", "env:WORD", "--json", "--timeout", "50")
    done = run(APP, *line, stdin=b"abc\n", env={**process_env.env, "WORD": "xyz"})
    assert json.loads(done.out)["result"] == "abczyx"


@pytest.mark.skipif(not LINUX, reason="/proc")
def test_forking_descendants_are_killed(process_env: ProcessEnv) -> None:
    done = process_env.run("fork-repeatedly", "--json", "--timeout", "0.5")
    assert error_of(done)["code"] == "E4050"
    assert process_env.remaining() == []


def test_closed_stdout_ends_the_command(process_env: ProcessEnv) -> None:
    with start_app(APP, "rows", "--jsonl", "--timeout", "50", env=process_env.env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        process.stdout = None
        done = finish(process)
    assert (done.code, done.err) == (0, b"")
    assert not LINUX or process_env.remaining() == []


def test_output_before_the_timeout_is_kept(process_env: ProcessEnv) -> None:
    done = process_env.run("say-and-sleep", "--json", "--timeout", "0.5")
    assert error_of(done)["details"]["printed"] == "printed before"
    assert process_env.run("say-and-sleep", "--text", "--timeout", "0.5").out == b"printed before\n"


# ------------------------------------------------------------------ output files


def test_output_file_is_complete_or_absent(process_env: ProcessEnv, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "file.txt"
    done = process_env.run("write", str(target), "--json", "--timeout", "0.5")
    assert error_of(done)["code"] == "E4050"
    assert list(folder.iterdir()) == []
    target.write_text("old")
    process_env.run("write", str(target), "--json", "--timeout", "0.5")
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("file.txt", "old")]
    done = process_env.run("write", str(target), "--no-hangs", "--json", "--timeout", "20")
    assert done.code == 0, done
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("file.txt", "half")]


# ------------------------------------------------------------------ signals


@pytest.mark.parametrize(
    ("number", "code", "error"), [(signal.SIGINT, 130, "E4130"), (signal.SIGTERM, 143, "E4143")]
)
@pytest.mark.parametrize("to_group", [False, True], ids=["process", "group"])
def test_signal_ends_caller_and_worker(
    process_env: ProcessEnv, number: signal.Signals, code: int, error: str, to_group: bool
) -> None:
    line = ("ready-and-sleep", "--json", "--timeout", "50")
    with start_app(APP, *line, env=process_env.env, start_new_session=True) as process:
        wait_for_ready(process)
        os.killpg(process.pid, number) if to_group else process.send_signal(number)
        done = finish(process)
    assert (done.code, error_of(done)["code"]) == (code, error)
    assert not LINUX or process_env.remaining() == []


@pytest.mark.parametrize("to_group", [False, True], ids=["process", "group"])
def test_function_can_handle_an_interrupt(process_env: ProcessEnv, to_group: bool) -> None:
    line = ("partial", "--json", "--timeout", "50")
    with start_app(APP, *line, env=process_env.env, start_new_session=True) as process:
        wait_for_ready(process)
        os.killpg(process.pid, 2) if to_group else process.send_signal(2)
        done = finish(process)
    assert (done.code, json.loads(done.out)["result"]) == (0, "partial result")


def test_second_interrupt_ends_the_command(process_env: ProcessEnv) -> None:
    with start_app(APP, "ignore", "--json", "--timeout", "50", env=process_env.env) as process:
        wait_for_ready(process)
        process.send_signal(signal.SIGINT)
        wait_for_ready(process)
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert (done.code, error_of(done)["code"]) == (130, "E4130")
    assert not LINUX or process_env.remaining() == []


def test_ctrl_c_at_a_terminal_ends_the_command(process_env: ProcessEnv) -> None:
    done = run_on_terminal(
        APP, "ready-and-sleep", "--timeout", "50", env=process_env.env, interrupt=True
    )
    assert done.code == 130
    assert not LINUX or process_env.remaining() == []


@pytest.mark.skipif(not LINUX, reason="a supervisor outlives its caller and ends the worker")
def test_killed_caller_leaves_no_process(process_env: ProcessEnv) -> None:
    line = ("ready-and-sleep", "--json", "--timeout", "50")
    with start_app(APP, *line, env=process_env.env) as process:
        wait_for_ready(process)
        process.kill()
        assert process.stderr is not None
        process.stderr.read()  # until the other end is closed
        assert process.stdout is not None
        process.stdout.read()
    _wait_until_none_remain(process_env)


def _wait_until_none_remain(process_env: ProcessEnv) -> None:
    """Wait until the supervisor has ended."""
    for _ in range(100_000):
        if not process_env.remaining():
            return
    raise AssertionError(process_env.remaining())


# ------------------------------------------------------------------ the default limit of agents

ALARM_HANGS = tuple(name for name in HANGS if name not in ("blocked-signals", "c-code", "daemon"))
"""Hangs that an alarm in the process can end; docs/timeouts.md names the others."""


@pytest.mark.parametrize("hang", ALARM_HANGS)
def test_default_limit_of_agents(process_env: ProcessEnv, hang: str) -> None:
    late = hang in ("thread-after-return", "at-exit")
    if late and sys.version_info < (3, 11):
        pytest.skip("Python 3.10 cannot tell whether the exit is caught")
    done = process_env.run(hang, "--json", TOOLI_CALLER="claude-code", AGENT_SECONDS="0.5")
    assert done.code == 50, done
    first = json.loads(done.out)
    if late:
        assert first["ok"], "the envelope was written before the timeout"
        assert b"did not end within 0.5 s" in done.err
    else:
        assert first["error"]["code"] == "E4050"
        assert first["error"]["details"]["stopped"] == "main thread"
    assert not LINUX or process_env.remaining() == []


def test_agent_timeout_constants_agree() -> None:
    from tooli.cli.process import AGENT_TIMEOUT_SECONDS
    from tooli.core.call import AGENT_TIMEOUT

    assert AGENT_TIMEOUT_SECONDS == AGENT_TIMEOUT


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 cannot tell whether the exit is caught"
)
def test_hanging_exit_handler_of_the_app_is_stopped(process_env: ProcessEnv) -> None:
    done = process_env.run("quick", "--json", "--timeout", "0.5", HANG_AT_EXIT="1")
    assert json.loads(done.out)["ok"]
    assert done.code == 50
    assert b"did not end within 0.5 s" in done.err


def test_caught_exit_cancels_the_alarm(process_env: ProcessEnv, tmp_path: Path) -> None:
    """An alarm must not end a process that does more than run one command line."""
    script = tmp_path / "harness.py"
    script.write_text(
        f"import sys, time; sys.path.insert(0, {str(APP.parent)!r})\n"
        "from hanging_app import app\n"
        "try:\n    app(['quick', '--json'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "time.sleep(1.5)\nprint('went on', file=sys.stderr)\n"
    )
    env = {**process_env.env, "TOOLI_CALLER": "claude-code", "AGENT_SECONDS": "0.3"}
    done = run(script, env=env)
    assert (done.code, done.err) == (0, b"went on\n")


SLOW_LISTING = """
import os, sys, time
from tooli.execution import processes
processes.adopt_orphans()
until = time.monotonic() + 5
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < until and os.fork() == 0:
            time.sleep(0.01)
        time.sleep(30)
        os._exit(0)
look = processes.list_processes
def slow():
    seen = look()
    time.sleep(0.4)  # as on a busy machine
    return seen
processes.list_processes = slow
time.sleep(0.2)
processes.kill_descendants(os.getpid(), reaps=True)
print(len(processes.find_descendants(os.getpid(), look())))
"""


@pytest.mark.skipif(not LINUX, reason="/proc")
def test_processes_forked_during_the_kill_are_killed() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW_LISTING], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


# ------------------------------------------------------------------ errors of the process


@pytest.mark.parametrize(
    ("status", "failure", "text"),
    [
        (signal.SIGKILL, None, "SIGKILL (out of memory"),
        (signal.SIGUSR1, None, "of SIGUSR1."),
        (63, None, "of "),
        (3 << 8, None, "exit code 3"),
        (None, None, "unknown reason"),
        (None, "no memory", "its supervisor failed: no memory"),
    ],
)
def test_message_explains_why_the_process_died(
    status: int | None, failure: str | None, text: str
) -> None:
    assert text in str(timeouts.process_died_error(status, failure))


def test_unknown_signal_is_named_by_its_number() -> None:
    assert timeouts._signal_name(250) == "signal 250"


def test_timeout_error_lists_processes() -> None:
    error = timeouts.timeout_error(1.5, "process", ["b", "a"], has_returned=True)
    assert error.details is not None
    assert (error.details["processes"], error.details["returned"]) == (["a", "b"], True)
    assert "had returned" in str(error)
    assert "may still be running" in str(timeouts.timeout_error(1, "nothing"))
