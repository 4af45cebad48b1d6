"""The process of a command line: stdout, exit, environment, time limit."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from tooli import Tooli
from tooli.cli import process, read_invocation
from tooli.cli.process import Deadline, Exit, StdoutGuard, Terminated, capture_outcome
from tooli.core.call import Failed, Ok
from tooli.errors import InputError


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


# ------------------------------------------------------------------ stdout


def test_guard_sends_prints_to_stderr() -> None:
    done = run_python(
        "import os\n"
        "from tooli.cli.process import StdoutGuard\n"
        "guard = StdoutGuard()\n"
        "print('printed'); os.system('echo child'); os.write(1, b'raw\\n')\n"
        "guard.write(b'answer\\n'); guard.release(is_final=False); print('after')\n"
    )
    assert done.stdout == "answer\nafter\n"
    assert sorted(done.stderr.split()) == ["child", "printed", "raw"]


def test_guard_captures_prints() -> None:
    done = run_python(
        "import os\n"
        "from tooli.cli.process import StdoutGuard\n"
        "guard = StdoutGuard(capture=True)\n"
        "print('one'); os.system('echo two')\n"
        "text = guard.printed(); guard.write(repr(text).encode())\n"
    )
    assert (done.stdout, done.stderr) == ("'one\\ntwo'", "")


def test_guard_restores_a_replaced_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    guard = StdoutGuard(capture=True)
    print("inside")
    assert guard.printed() == "inside"
    guard.write(b"answer")
    guard.release(is_final=True)
    assert sys.stdout is stream
    assert stream.getvalue() == "answer"


def test_guard_writes_nothing_in_a_forked_child() -> None:
    done = run_python(
        "import os\n"
        "from tooli.cli.process import StdoutGuard\n"
        "guard = StdoutGuard()\n"
        "if os.fork() == 0: guard.write(b'child'); os._exit(0)\n"
        "os.wait(); guard.write(b'parent')\n"
    )
    assert done.stdout == "parent"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_missing_or_replaced_stream_is_not_a_terminal(stream: io.StringIO | None) -> None:
    assert not process.is_terminal(stream)


def test_closed_stream_is_not_a_terminal() -> None:
    stream = io.StringIO()
    stream.close()
    assert not process.is_terminal(stream)


# ------------------------------------------------------------------ exit


def test_exit_returns_the_value_if_not_standalone() -> None:
    end = Exit(standalone=False)
    end.set_outcome(Ok([1]))
    assert end.exit_or_return(0) == [1]
    assert end.exit_or_return(3) == 3


@pytest.mark.parametrize(("code", "expected"), [(2, 2), (256, 70), (300, 44)])
def test_exit_code_of_a_failure_fits_in_a_byte(code: int, expected: int) -> None:
    end = Exit(standalone=True)
    error = InputError("no")
    error.exit_code = code
    end.set_outcome(Failed(error))
    assert end.code == expected


def test_fast_exit_runs_atexit_functions_and_flushes_files(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    done = run_python(
        "import atexit, sys\n"
        "from tooli.cli.process import fast_exit\n"
        "atexit.register(print, 'bye')\n"
        f"file = open({str(path)!r}, 'w'); file.write('kept')\n"
        "sys.exit(fast_exit(3))\n"
    )
    assert (done.returncode, done.stdout, path.read_text()) == (3, "bye\n", "kept")


# ------------------------------------------------------------------ signals


def test_sigterm_handler_is_restored() -> None:
    previous = process.set_sigterm_handler()
    try:
        assert process.set_sigterm_handler(previous) is not previous
    finally:
        process.set_sigterm_handler(previous)


def test_interruption_becomes_a_failure() -> None:
    def interrupted() -> Ok:
        raise Terminated("Terminated.")

    outcome = capture_outcome(interrupted)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E4143"


def test_capture_outcome_raises_other_exceptions() -> None:
    def fails() -> Ok:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        capture_outcome(fails)


# ------------------------------------------------------------------ environment


def test_program_argv_starts_with_python_for_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tools/app.py"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    assert process.program_argv() == ("python", "tools/app.py")
    monkeypatch.setattr("sys.argv", ["/usr/bin/app"])
    assert process.program_argv() == ("app",)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".tooli.yaml", "", True),
        ("pyproject.toml", '[tool . "tooli"]\n', True),
        ("pyproject.toml", "[tool.other]\n", False),
        (".env", "TOOLI_COLOR=never\n", True),
        (".env", "OTHER=1\n", False),
        ("unrelated", "", False),
    ],
)
def test_configuration_file_is_found_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: bool
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    for variable in ("TOOLI_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert process.sniff_environment()[2] is expected


def test_completion_variable_is_a_completion_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not process.is_completing()
    monkeypatch.setenv("_SHOP_COMPLETE", "complete_bash")
    assert process.is_completing()


# ------------------------------------------------------------------ time limit


def make_deadline(app: Tooli, *argv: str, is_agent: bool = False) -> Deadline:
    line = read_invocation(app, argv, "shop").line
    return Deadline(line.tool, line.options.get("timeout"), is_agent, lambda _: None)


def test_timeout_is_the_smallest_one(shop: Tooli) -> None:
    @shop.command(timeout=5)
    def slow() -> None: ...

    assert make_deadline(shop, "slow").timeout == 5
    assert make_deadline(shop, "slow", "--timeout", "2").timeout == 2
    assert make_deadline(shop, "slow", "--timeout", "9", is_agent=True).timeout == 5


def test_only_agents_have_a_default_timeout(shop: Tooli) -> None:
    assert make_deadline(shop, "price", "x").timeout == 0
    assert make_deadline(shop, "price", "x", is_agent=True).timeout == 120


def test_server_has_no_time_limit(shop: Tooli) -> None:
    assert make_deadline(shop, "mcp", "serve", "--timeout", "1", is_agent=True).timeout == 0


def test_deadline_returns_the_result_and_counts_alarms(shop: Tooli) -> None:
    deadline = make_deadline(shop, "price", "x")
    assert deadline.run(lambda: "done", lambda: 0) == "done"
    assert deadline.is_exiting
    assert (deadline.count_alarm(), deadline.count_alarm()) == (1, 2)


# ------------------------------------------------------------------ garbage collection


@pytest.mark.parametrize(("file", "is_frozen"), [("/site/ext.so", False), ("/site/pure.py", True)])
def test_garbage_collector_is_frozen_unless_a_foreign_extension_is_loaded(
    tmp_path: Path, file: str, is_frozen: bool
) -> None:
    """Extensions made with nanobind report objects that are never collected as leaks."""
    program = tmp_path / "app.py"
    program.write_text(
        "import gc, sys, types\n"
        "from tooli import Tooli\n"
        "sys.modules['ext'] = types.ModuleType('ext')\n"
        f"sys.modules['ext'].__file__ = {file!r}\n"
        "app = Tooli()\n"
        "@app.command()\n"
        "def count() -> bool:\n"
        "    return gc.get_freeze_count() > 0\n"
        "app()\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(program), "--text"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == ("yes\n" if is_frozen else "no\n")
