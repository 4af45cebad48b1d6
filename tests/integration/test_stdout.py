"""stdout: closed readers, full disks, closed streams, and output of the command itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.integration.app_process import (
    APPS,
    OUTCOMES_APP,
    PROCESS_TIMEOUT,
    command,
    environment,
    is_clean,
    parse_json,
    read_envelope,
    run,
    start_app,
)

from tooli.core.output_modes import OUTPUT_MODES, find_mode

if TYPE_CHECKING:
    from pathlib import Path

MODES = tuple(f"-o{name}" for name in OUTPUT_MODES if name != "auto")


def shell(script: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run a bash script in which $APP is the app; kill all its processes at the end."""
    env = environment(APP=f"{sys.executable} {OUTCOMES_APP}", **more)
    with subprocess.Popen(
        ["bash", "-c", script],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=PROCESS_TIMEOUT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(script, process.returncode, out, err)


# ------------------------------------------------------------------ closed readers


@pytest.mark.parametrize("mode", ["--jsonl", "--plain", "--text", "-ocsv", "-omd"])
def test_head_ends_an_endless_stream(mode: str) -> None:
    done = shell(f"$APP endless {mode} | head -3; echo ${{PIPESTATUS[0]}}")
    third, code = done.stdout.split(b"\n")[2:4]
    assert b"x" * 100 in third
    assert code == b"0"
    assert done.stderr == b""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("line", ["big 1000000", "say-much 2", "add 1 2", "--help", "--schema"])
def test_closed_reader_is_not_an_error(line: str, mode: str) -> None:
    """The reading end is closed before the first byte is written."""
    reading, writing = os.pipe()
    os.close(reading)
    with start_app(OUTCOMES_APP, *line.split(), mode, stdout=writing) as process:
        os.close(writing)
        assert process.stderr is not None
        err = process.stderr.read().replace(b"ready\n", b"")
    assert process.returncode == 0
    assert err == b""


def test_failure_keeps_its_exit_code_if_the_reader_is_closed() -> None:
    done = shell("$APP crash --json | true; echo ${PIPESTATUS[0]}")
    assert done.stdout in (b"70\n",)
    assert done.stderr == b""


def test_broken_pipe_of_a_socket_is_a_failure() -> None:
    done = run(OUTCOMES_APP, "broken-socket", "--plain")
    assert done.code == 40
    assert done.err.startswith(b"error: ")


# ------------------------------------------------------------------ unwritable streams


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "line",
    ["add 1 2", "big 1000000", "crash-late", "say-little", "endless", "--help", "--schema"],
)
def test_full_disk_is_reported_in_one_line(line: str, mode: str) -> None:
    if line == "endless" and find_mode(mode[2:]).is_document:
        return  # a document is written after the last item
    done = shell(f"exec $APP {line} {mode} > /dev/full")
    err = done.stderr.replace(b"ready\n", b"")
    assert done.returncode == 70
    assert err.count(b"\n") == 1, err
    assert b"No space left on device" in err


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("line", ["add 1 2", "crash-late", "--help", "--schema"])
def test_closed_stdout_is_reported_in_one_line(line: str, mode: str) -> None:
    done = shell(f"$APP {line} {mode} >&-")
    assert done.returncode == 70
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"could not be written to stdout" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_stdout_open_for_reading_only_is_reported_in_one_line(mode: str) -> None:
    done = shell(f"$APP add 1 2 {mode} 1< /dev/null")
    assert done.returncode == 70
    assert done.stderr.count(b"\n") == 1, done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streams", [">&- 2>&-", "<&- >&- 2>&-", "> /dev/full 2>&-"])
def test_unwritable_stdout_and_closed_stderr_set_the_exit_code(streams: str, mode: str) -> None:
    done = shell(f"$APP add 1 2 {mode} {streams}")
    assert done.returncode == 70
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("streams", ["2>&-", "<&- 2>&-", "<&-"])
@pytest.mark.parametrize("kind", ["print", "write", "child", "shell", "unflushed", "stderr"])
def test_envelope_is_written_with_closed_stderr(kind: str, streams: str) -> None:
    done = shell(f"$APP noise {kind} --json {streams}")
    assert read_envelope(done.stdout)["result"] == {"answer": 42}
    assert done.returncode == 0


@pytest.mark.parametrize("streams", ["2>&-", "<&- 2>&-"])
def test_failures_keep_their_exit_code_with_closed_stderr(streams: str) -> None:
    for line, code in (("crash", 70), ("add", 2), ("say-and-return", 0), ("add 1 2", 0)):
        done = shell(f"$APP {line} --json {streams}")
        read_envelope(done.stdout)
        assert done.returncode == code
    assert shell(f"$APP crash --plain {streams}").returncode == 70


def test_input_from_a_closed_stdin_is_an_error() -> None:
    done = shell("$APP add --input - --json <&-")
    assert done.returncode == 2
    assert read_envelope(done.stdout)["error"]["code"] == "E1008"


def test_output_to_a_non_blocking_pipe_is_complete() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with start_app(OUTCOMES_APP, "big", "1000000", "--json", stdout=writing) as process:
        os.close(writing)
        with open(reading, "rb") as file:
            out = file.read()
        process.wait(PROCESS_TIMEOUT)
    assert process.returncode == 0
    assert read_envelope(out)["result"] == "x" * 1000000


# ------------------------------------------------------------------ output of the command

OUTPUT_KINDS = (
    *("print", "unflushed", "write", "dunder", "buffer", "child", "shell", "c", "thread"),
    *("atexit", "swap", "fork"),
)


@pytest.mark.parametrize("kind", OUTPUT_KINDS)
@pytest.mark.parametrize("command", ["noise", "noisy-async"])
def test_output_of_a_command_goes_to_stderr(command: str, kind: str) -> None:
    done = run(OUTCOMES_APP, command, kind, "--json")
    assert read_envelope(done.out)["result"] == {"answer": 42}
    assert done.code == 0
    assert is_clean(done.err)
    assert (b"NOISE" in done.err) == (kind != "fork")


@pytest.mark.parametrize("kind", ["print", "unflushed", "write", "child", "c", "atexit"])
def test_output_of_a_streaming_command_goes_to_stderr(kind: str) -> None:
    done = run(OUTCOMES_APP, "noisy-stream", kind, "--jsonl")
    assert done.out == b"0\n1\n2\n"
    assert done.err.count(b"NOISE") >= 3
    assert done.code == 0


def test_envelope_is_written_if_the_command_closes_stdout() -> None:
    done = run(OUTCOMES_APP, "noise", "close", "--json")
    assert read_envelope(done.out)["result"] == {"answer": 42}
    assert done.code == 0
    assert is_clean(done.err)


def test_printed_text_is_the_result() -> None:
    assert read_envelope(run(OUTCOMES_APP, "say", "--json").out)["result"] == "hello"
    done = run(OUTCOMES_APP, "say", "--child", "--json")
    assert read_envelope(done.out)["result"] == "hello\nfrom a child\nfrom os.write"
    assert done.err == b""
    assert run(OUTCOMES_APP, "say", "--child").out == b"hello\nfrom a child\nfrom os.write\n"
    assert run(OUTCOMES_APP, "say", "--jsonl").out == b'"hello"\n'
    agent = run(OUTCOMES_APP, "say", env=environment(TOOLI_CALLER="somebody"))
    assert read_envelope(agent.out)["result"] == "hello"


def test_text_printed_before_a_failure_is_in_the_details() -> None:
    found = read_envelope(run(OUTCOMES_APP, "say-and-fail", "--json").out)
    assert found["error"]["details"]["printed"] == "so far"


def test_returned_value_takes_precedence_over_printed_text() -> None:
    done = run(OUTCOMES_APP, "say-and-return", "--json")
    assert read_envelope(done.out)["result"] == {"returned": 1}
    assert done.err == b"printed\n"


def test_printed_bytes_that_are_not_utf_8_are_replaced() -> None:
    assert read_envelope(run(OUTCOMES_APP, "say-raw", "--json").out)["result"] == "\ufffd\ufffd raw"


def test_long_printed_text_is_truncated() -> None:
    done = run(OUTCOMES_APP, "say-much", "50", "--json")
    found = read_envelope(done.out)
    assert len(found["result"]) == 1 << 20
    assert "cut" in found["meta"]["warnings"][0]
    assert done.err == b""


def test_typer_path_keeps_stdout_clean() -> None:
    app = APPS / "typer_path.py"
    assert (
        read_envelope(run(app, "say", "--child", "--json").out)["result"] == "printed\nfrom a child"
    )
    for line, code, error in (
        (["leave", "3"], 3, "E4001"),
        (["abort"], 1, "E4001"),
        (["refuse"], 2, "E1003"),
        (["crash"], 70, "E5000"),
        (["echo", "bad"], 2, "E1003"),
        (["echo"], 2, "E1002"),
        (["nosuch"], 2, "E1001"),
        (["--loud", "echo", "a", "b"], 2, "E1005"),
        (["echo", "a", "--bogus"], 2, "E1004"),
    ):
        done = run(app, *line, "--json")
        assert done.code == code, line
        assert read_envelope(done.out)["error"]["code"] == error, line
        assert done.err == b"", line
    for line in (["leave", "0"], ["--leave-with", "0", "say"]):
        done = run(app, *line, "--json")
        assert (done.code, read_envelope(done.out)["ok"]) == (0, True)
    done = run(app, "--leave-with", "4", "say", "--json")
    assert (done.code, read_envelope(done.out)["error"]["code"]) == (4, "E4001")


# ------------------------------------------------------------------ in one process

REPEATED_RUNS = """
import os, sys
sys.path.insert(0, {apps!r})
from outcomes import app

def run(*argv, **more):
    try:
        return app([*argv], **more)
    except SystemExit as end:
        return end.code

def inode():
    found = os.fstat(1)
    return found.st_dev, found.st_ino

before, stdout = inode(), sys.stdout
codes = [
    run("add", "1", "2", "--json"),
    run("crash", "--json"),
    run("add", "3", "4", "--json"),
    run("say", "--word", "five", "--text"),
    run("add", "3", "4", "--json", standalone_mode=False),
    run("add", "x", "4", "--json", standalone_mode=False),
]
print("after")
sys.stdout.flush()
os.write(1, b"from os.write\\n")
assert inode() == before, "fd 1 is another file"
assert sys.stdout is stdout
print(codes, file=sys.stderr)
"""


def test_repeated_runs_in_one_process_are_independent(tmp_path: Path) -> None:
    script = tmp_path / "repeated_runs.py"
    script.write_text(REPEATED_RUNS.format(apps=str(APPS)))
    done = run(script)
    lines = done.out.splitlines()
    assert [parse_json(line)["ok"] for line in lines[:3]] == [True, False, True]
    assert lines[3] == b"five"
    assert [parse_json(line)["ok"] for line in lines[4:6]] == [True, False]
    assert lines[6:] == [b"after", b"from os.write"]
    assert json.loads(done.err) == [0, 70, 0, 0, 7, 2]
    assert done.code == 0


def test_concurrent_processes_print_their_own_results() -> None:
    processes = [
        subprocess.Popen(
            command(OUTCOMES_APP, "add", str(i), "1", "--json"),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for i in range(24)
    ]
    for i, process in enumerate(processes):
        out, err = process.communicate(timeout=PROCESS_TIMEOUT)
        assert read_envelope(out)["result"] == i + 1
        assert err == b""
        assert process.returncode == 0


def test_processes_that_share_a_pipe_write_whole_lines() -> None:
    """Each envelope is written as one line."""
    done = shell("for i in $(seq 20); do $APP add $i 0 --json & done; wait")
    results = sorted(parse_json(line)["result"] for line in done.stdout.splitlines())
    assert results == list(range(1, 21))


FAILING_APP = """
import sys
from collections.abc import AsyncIterator, Iterator

import typer

from tooli import Tooli

app = Tooli("failing")


def fail() -> None:
    print("it is broken", file=sys.stderr)
    raise typer.Exit(1)


@app.command()
def value() -> int:
    fail()


@app.command()
def stream() -> Iterator[int]:
    yield 1
    fail()


@app.command()
async def async_stream() -> AsyncIterator[int]:
    yield 1
    fail()


app()
"""


@pytest.mark.parametrize("options", [(), ("--timeout", "60")], ids=["direct", "worker"])
@pytest.mark.parametrize("name", ["value", "stream", "async-stream"])
def test_error_contains_what_a_failed_command_wrote_to_stderr(
    tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING_APP)
    done = run(file, name, "--json", *options)
    error = read_envelope(done.out)["error"]
    assert error["details"]["stderr"] == "it is broken"
    assert error["message"].endswith("ended with exit code 1: it is broken")
    assert done.err == b"it is broken\n"
