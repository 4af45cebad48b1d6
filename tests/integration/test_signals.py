"""SIGINT and SIGTERM: output, exit code and cleanup."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.integration.app_process import (
    OUTCOMES_APP,
    finish,
    is_clean,
    read_envelope,
    read_failed_stream,
    run_on_terminal,
    start_app,
    wait_for_ready,
)

SIGNALS = {signal.SIGINT: (130, "E4130"), signal.SIGTERM: (143, "E4143")}
COMMANDS = ("sleep", "spin", "sleep-async", "spin-async", "stream-then-sleep", "say-and-sleep")
STREAMS = ("stream-then-sleep", "stream-async-then-sleep")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
@pytest.mark.parametrize("line", [*COMMANDS, "stream-async-then-sleep"])
def test_json_is_an_error_envelope_after_a_signal(line: str, number: signal.Signals) -> None:
    with start_app(OUTCOMES_APP, line, "--json") as process:
        wait_for_ready(process)
        process.send_signal(number)
        done = finish(process)
    code, error = SIGNALS[number]
    assert done.code == code
    found = read_envelope(done.out)
    assert found["error"]["code"] == error
    assert found["meta"]["tool"] == f"outcomes.{line}"
    assert done.err == b""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
@pytest.mark.parametrize("line", STREAMS)
def test_jsonl_ends_with_the_error_after_a_signal(line: str, number: signal.Signals) -> None:
    with start_app(OUTCOMES_APP, line, "--jsonl") as process:
        wait_for_ready(process)
        process.send_signal(number)
        done = finish(process)
    items, last = read_failed_stream(done.out)
    assert (done.code, last["error"]["code"]) == SIGNALS[number]
    assert items == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert done.err == b""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
@pytest.mark.parametrize("line", STREAMS)
def test_csv_contains_the_rows_before_the_signal(line: str, number: signal.Signals) -> None:
    """The rows so far are written, even though the writer collects rows before the header."""
    with start_app(OUTCOMES_APP, line, "-ocsv") as process:
        wait_for_ready(process)
        process.send_signal(number)
        done = finish(process)
    assert done.code == SIGNALS[number][0]
    assert done.out == b"i\r\n0\r\n1\r\n2\r\n"
    assert done.err.count(b"\n") == 1


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
@pytest.mark.parametrize("line", ["sleep", "stream-then-sleep"])
def test_toon_is_an_error_envelope_after_a_signal(line: str, number: signal.Signals) -> None:
    with start_app(OUTCOMES_APP, line, "-otoon") as process:
        wait_for_ready(process)
        process.send_signal(number)
        done = finish(process)
    code, error = SIGNALS[number]
    assert done.code == code
    assert done.out.startswith(b"ok: false\n")
    assert f"\n  code: {error}\n".encode() in done.out


@pytest.mark.parametrize("mode", ["--plain", "--text"])
@pytest.mark.parametrize("line", [*COMMANDS, "stream-async-then-sleep"])
def test_sigint_in_text_modes_prints_one_line_or_what_typer_prints(line: str, mode: str) -> None:
    with start_app(OUTCOMES_APP, line, mode) as process:
        wait_for_ready(process)
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert done.code == 130
    assert is_clean(done.err)
    if mode == "--text" and line == "say-and-sleep":  # it declares no result: as Typer
        assert done.err == b""
    else:
        assert done.err.strip() in (b"Interrupted.", b"Aborted.")


@pytest.mark.parametrize("mode", ["--plain", "--text"])
def test_sigterm_in_text_modes_kills_the_process(mode: str) -> None:
    with start_app(OUTCOMES_APP, "sleep", mode) as process:
        wait_for_ready(process)
        process.terminate()
        done = finish(process)
    assert done.code == -signal.SIGTERM
    assert (done.out, done.err) == (b"", b"")


@pytest.mark.parametrize("terminals", ["1", "02", "012"])
def test_sigint_on_a_terminal_prints_the_error_envelope(terminals: str) -> None:
    done = run_on_terminal(OUTCOMES_APP, "sleep", "--json", terminals=terminals, interrupt=True)
    assert done.code == 130
    assert read_envelope(done.out)["error"]["code"] == "E4130"
    assert done.err == b"ready\n"


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_finally_blocks_run_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    with start_app(OUTCOMES_APP, "sleep-with-cleanup", str(tmp_path / "log"), "--json") as process:
        wait_for_ready(process)
        process.send_signal(number)
        done = finish(process)
    assert done.code == SIGNALS[number][0]
    assert (tmp_path / "log").read_text() == "cleaned up"


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_signal_while_reading_input_prints_the_error_envelope(
    number: signal.Signals, tmp_path: Path
) -> None:
    app = tmp_path / "app.py"
    app.write_text(INPUT_APP)
    import subprocess

    with start_app(app, "echo", "--input", "-", "--json", stdin=subprocess.PIPE) as process:
        wait_for_ready(process)
        process.send_signal(number)
        done = finish(process)
    assert done.code == SIGNALS[number][0]
    assert read_envelope(done.out)["error"]["code"] == SIGNALS[number][1]
    assert done.err == b""


INPUT_APP = """
import os, sys
from tooli import Tooli
app = Tooli("input", version="1")

@app.command()
def echo(text: str) -> str:
    return text

@app.command()
def other() -> str:
    return ""

class BlockingInput:
    def read(self, size=-1):
        os.write(2, b"ready\\n")
        return os.read(0, 10).decode()

sys.stdin = BlockingInput()
app()
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_signal_while_writing_to_a_full_pipe_prints_no_traceback(number: signal.Signals) -> None:
    """The process ends without a traceback."""
    with start_app(OUTCOMES_APP, "big", "1000000", "--json") as process:
        wait_for_ready(process)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"{"  # it has started to write, and the pipe fills up
        process.send_signal(number)
        process.wait(60)
        assert is_clean(process.stderr.read())
        rest = process.stdout.read()
    if process.returncode == 0:  # everything was written before the signal
        read_envelope(b"{" + rest)
    else:
        assert process.returncode in (SIGNALS[number][0], -number)


def test_sigterm_after_the_output_kills_the_process() -> None:
    with start_app(OUTCOMES_APP, "linger", "--json") as process:
        wait_for_ready(process)
        process.terminate()
        done = finish(process)
    assert done.code == -signal.SIGTERM  # 143 to a shell
    assert read_envelope(done.out)["result"] == 1
    assert done.err == b""


def test_signal_on_the_typer_path_prints_the_error_envelope() -> None:
    """Typer handles Ctrl-C itself on the Typer path; the exit code is ours."""
    app = Path(__file__).parent / "apps" / "typer_path.py"
    for number, (code, error) in SIGNALS.items():
        with start_app(app, "sleep", "--json") as process:
            wait_for_ready(process)
            process.send_signal(number)
            done = finish(process)
        assert done.code == code
        assert read_envelope(done.out)["error"]["code"] == error
        assert done.err.strip() == b""
