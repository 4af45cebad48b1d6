"""stdout: readers who leave, disks that are full, streams that are closed, and noise."""

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
    """Run a line of bash in which $APP is the app; nothing of it outlives the call."""
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


# ------------------------------------------------------------------ readers who leave


@pytest.mark.parametrize("mode", ["--jsonl", "--plain", "--text", "-ocsv", "-omd"])
def test_head_ends_an_endless_stream(mode: str) -> None:
    done = shell(f"$APP endless {mode} | head -3; echo ${{PIPESTATUS[0]}}")
    third, code = done.stdout.split(b"\n")[2:4]
    assert b"x" * 100 in third
    assert code == b"0"
    assert done.stderr == b""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("line", ["big 1000000", "say-much 2", "add 1 2", "--help", "--schema"])
def test_nobody_reads(line: str, mode: str) -> None:
    """The reader has left before the first byte."""
    reading, writing = os.pipe()
    os.close(reading)
    with start_app(OUTCOMES_APP, *line.split(), mode, stdout=writing) as process:
        os.close(writing)
        assert process.stderr is not None
        err = process.stderr.read().replace(b"ready\n", b"")
    assert process.returncode == 0
    assert err == b""


def test_a_failing_command_whose_reader_has_left_keeps_its_code() -> None:
    done = shell("$APP crash --json | true; echo ${PIPESTATUS[0]}")
    assert done.stdout in (b"70\n",)
    assert done.stderr == b""


def test_a_connection_that_breaks_is_not_a_reader_who_left() -> None:
    done = run(OUTCOMES_APP, "broken-socket", "--plain")
    assert done.code == 40
    assert done.err.startswith(b"error: ")


# ------------------------------------------------------------------ nowhere to write


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "line",
    ["add 1 2", "big 1000000", "crash-late", "say-little", "endless", "--help", "--schema"],
)
def test_full(line: str, mode: str) -> None:
    if line == "endless" and find_mode(mode[2:]).is_document:
        return  # one document needs all of a stream first
    done = shell(f"exec $APP {line} {mode} > /dev/full")
    err = done.stderr.replace(b"ready\n", b"")
    assert done.returncode == 70
    assert err.count(b"\n") == 1, err
    assert b"No space left on device" in err


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("line", ["add 1 2", "crash-late", "--help", "--schema"])
def test_closed(line: str, mode: str) -> None:
    done = shell(f"$APP {line} {mode} >&-")
    assert done.returncode == 70
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"could not be written to stdout" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_closed_for_reading_only(mode: str) -> None:
    done = shell(f"$APP add 1 2 {mode} 1< /dev/null")
    assert done.returncode == 70
    assert done.stderr.count(b"\n") == 1, done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streams", [">&- 2>&-", "<&- >&- 2>&-", "> /dev/full 2>&-"])
def test_nothing_at_all(streams: str, mode: str) -> None:
    done = shell(f"$APP add 1 2 {mode} {streams}")
    assert done.returncode == 70
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("streams", ["2>&-", "<&- 2>&-", "<&-"])
@pytest.mark.parametrize("kind", ["print", "write", "child", "shell", "unflushed", "stderr"])
def test_without_stderr_the_answer_is_still_alone(kind: str, streams: str) -> None:
    done = shell(f"$APP noise {kind} --json {streams}")
    assert read_envelope(done.stdout)["result"] == {"answer": 42}
    assert done.returncode == 0


@pytest.mark.parametrize("streams", ["2>&-", "<&- 2>&-"])
def test_failures_without_stderr(streams: str) -> None:
    for line, code in (("crash", 70), ("add", 2), ("say-and-return", 0), ("add 1 2", 0)):
        done = shell(f"$APP {line} --json {streams}")
        read_envelope(done.stdout)
        assert done.returncode == code
    assert shell(f"$APP crash --plain {streams}").returncode == 70


def test_input_from_a_closed_stdin() -> None:
    done = shell("$APP add --input - --json <&-")
    assert done.returncode == 2
    assert read_envelope(done.stdout)["error"]["code"] == "E1008"


def test_a_pipe_that_somebody_made_non_blocking() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with start_app(OUTCOMES_APP, "big", "1000000", "--json", stdout=writing) as process:
        os.close(writing)
        with open(reading, "rb") as file:
            out = file.read()
        process.wait(PROCESS_TIMEOUT)
    assert process.returncode == 0
    assert read_envelope(out)["result"] == "x" * 1000000


# ------------------------------------------------------------------ noise

NOISE = (
    *("print", "unflushed", "write", "dunder", "buffer", "child", "shell", "c", "thread"),
    *("atexit", "swap", "fork"),
)


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("command", ["noise", "noisy-async"])
def test_noise_does_not_reach_the_envelope(command: str, kind: str) -> None:
    done = run(OUTCOMES_APP, command, kind, "--json")
    assert read_envelope(done.out)["result"] == {"answer": 42}
    assert done.code == 0
    assert is_clean(done.err)
    assert (b"NOISE" in done.err) == (kind != "fork")


@pytest.mark.parametrize("kind", ["print", "unflushed", "write", "child", "c", "atexit"])
def test_noise_does_not_reach_a_stream(kind: str) -> None:
    done = run(OUTCOMES_APP, "noisy-stream", kind, "--jsonl")
    assert done.out == b"0\n1\n2\n"
    assert done.err.count(b"NOISE") >= 3
    assert done.code == 0


def test_a_command_that_closes_stdout_still_answers() -> None:
    done = run(OUTCOMES_APP, "noise", "close", "--json")
    assert read_envelope(done.out)["result"] == {"answer": 42}
    assert done.code == 0
    assert is_clean(done.err)


def test_what_a_command_prints_is_its_result() -> None:
    assert read_envelope(run(OUTCOMES_APP, "say", "--json").out)["result"] == "hello"
    done = run(OUTCOMES_APP, "say", "--child", "--json")
    assert read_envelope(done.out)["result"] == "hello\nfrom a child\nfrom os.write"
    assert done.err == b""
    assert run(OUTCOMES_APP, "say", "--child").out == b"hello\nfrom a child\nfrom os.write\n"
    assert run(OUTCOMES_APP, "say", "--jsonl").out == b'"hello"\n'
    agent = run(OUTCOMES_APP, "say", env=environment(TOOLI_CALLER="somebody"))
    assert read_envelope(agent.out)["result"] == "hello"


def test_what_was_printed_before_a_failure_is_told() -> None:
    found = read_envelope(run(OUTCOMES_APP, "say-and-fail", "--json").out)
    assert found["error"]["details"]["printed"] == "so far"


def test_a_result_wins_over_what_was_printed() -> None:
    done = run(OUTCOMES_APP, "say-and-return", "--json")
    assert read_envelope(done.out)["result"] == {"returned": 1}
    assert done.err == b"printed\n"


def test_printed_bytes_that_are_no_text() -> None:
    assert read_envelope(run(OUTCOMES_APP, "say-raw", "--json").out)["result"] == "\ufffd\ufffd raw"


def test_much_print_is_cut() -> None:
    done = run(OUTCOMES_APP, "say-much", "50", "--json")
    found = read_envelope(done.out)
    assert len(found["result"]) == 1 << 20
    assert "cut" in found["meta"]["warnings"][0]
    assert done.err == b""


def test_typer_path_keeps_stdout_clean() -> None:
    app = APPS / "typer_path.py"
    assert (
        read_envelope(run(app, "say", "--child", "--json").out)["result"] == "spoken\nfrom a child"
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

TWICE = """
import os, sys
sys.path.insert(0, {apps!r})
from outcomes import app

def ran(*argv, **more):
    try:
        return app([*argv], **more)
    except SystemExit as end:
        return end.code

def inode():
    found = os.fstat(1)
    return found.st_dev, found.st_ino

before, stdout = inode(), sys.stdout
codes = [
    ran("add", "1", "2", "--json"),
    ran("crash", "--json"),
    ran("add", "3", "4", "--json"),
    ran("say", "--word", "five", "--text"),
    ran("add", "3", "4", "--json", standalone_mode=False),
    ran("add", "x", "4", "--json", standalone_mode=False),
]
print("after")
sys.stdout.flush()
os.write(1, b"and below\\n")
assert inode() == before, "fd 1 leads elsewhere"
assert sys.stdout is stdout
print(codes, file=sys.stderr)
"""


def test_an_app_runs_again_and_again(tmp_path: Path) -> None:
    script = tmp_path / "twice.py"
    script.write_text(TWICE.format(apps=str(APPS)))
    done = run(script)
    lines = done.out.splitlines()
    assert [parse_json(line)["ok"] for line in lines[:3]] == [True, False, True]
    assert lines[3] == b"five"
    assert [parse_json(line)["ok"] for line in lines[4:6]] == [True, False]
    assert lines[6:] == [b"after", b"and below"]
    assert json.loads(done.err) == [0, 70, 0, 0, 7, 2]
    assert done.code == 0


def test_many_at_once() -> None:
    many = [
        subprocess.Popen(
            command(OUTCOMES_APP, "add", str(i), "1", "--json"),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for i in range(24)
    ]
    for i, process in enumerate(many):
        out, err = process.communicate(timeout=PROCESS_TIMEOUT)
        assert read_envelope(out)["result"] == i + 1
        assert err == b""
        assert process.returncode == 0


def test_many_into_one_pipe() -> None:
    """Envelopes of many processes that share a pipe stay whole lines."""
    done = shell("for i in $(seq 20); do $APP add $i 0 --json & done; wait")
    results = sorted(parse_json(line)["result"] for line in done.stdout.splitlines())
    assert results == list(range(1, 21))
