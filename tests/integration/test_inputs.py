"""Inputs, secrets, prompts and outputs in real processes, with pipes and terminals.

TOOLI_BIG_INPUT=2147483648 pytest tests/integration/test_inputs.py -k memory
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.inputs.web_server import site
from tests.integration.app_process import (
    APPS,
    PROCESS_TIMEOUT,
    ProcessResult,
    command,
    environment,
    finish,
    read_envelope,
    run,
    start_app,
    wait_for_ready,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

APP = APPS / "inputs.py"
SECRET = "c4nary-5ecret"
BIG = int(os.environ.get("TOOLI_BIG_INPUT", 150 * 2**20))
"""Bytes to send through a pipe. The variable sets a larger size for manual tests."""


def envelope_without_duration(out: bytes) -> Any:
    found = read_envelope(out)
    del found["meta"]["duration_ms"]
    return found


def test_path_pipe_and_url_return_the_same_envelope(tmp_path: Path) -> None:
    rows = 50_000
    data = "".join(["n,text\n", *(f'{i},"some, text"\n' for i in range(rows))]).encode()
    file = tmp_path / "huge.csv"
    file.write_bytes(data)
    env = environment(TOOLI_ALLOW_PRIVATE_URLS="1")
    with site() as web:
        web.pages["/huge.csv"] = ("text/csv", data)
        web.pages["/nameless"] = ("application/octet-stream", data)
        answers = [
            run(APP, "process", str(file), env=env),
            run(APP, "process", "-", stdin=data, env=env),
            run(APP, "process", stdin=data, env=env),
            run(APP, "process", web("/huge.csv"), env=env),
            run(APP, "process", web("/nameless"), env=env),
        ]
        refused = run(APP, "process", web("/huge.csv"))
    assert {answer.err for answer in answers} == {b""}
    found = [envelope_without_duration(answer.out) for answer in answers]
    assert found[0]["result"] == {"rows": rows, "total": rows * (rows - 1) // 2}
    assert all(other == found[0] for other in found)
    assert read_envelope(refused.out)["error"]["code"] == "E1033"


@pytest.mark.parametrize("form", ["csv", "jsonl", "array"])
def test_input_is_read_in_constant_memory(form: str) -> None:
    """A long input needs no more memory than a short one."""
    text = "x" * 900
    row = {
        "csv": f"1,{text},{text}\n",
        "jsonl": f'{{"a":1,"b":"{text}","c":"{text}"}}\n',
        "array": f'{{"a":1,"b":"{text}","c":"{text}"}},\n',
    }[form].encode()
    head = {"csv": b"a,b,c\n", "jsonl": b"", "array": b"["}[form]
    tail = b'{"a":1}]' if form == "array" else b""
    small, big = (measure_memory(row, head, tail, size // 3) for size in (3 * 2**20, BIG))
    assert big["rows"] > 10 * small["rows"]
    assert big["peak"] - small["peak"] < 20_000, f"{small} {big}"  # kilobytes


def measure_memory(row: bytes, head: bytes, tail: bytes, size: int) -> dict[str, int]:
    """Send rows through a pipe; return the number of rows and the peak memory of the app."""
    count = size // len(row)
    batch = row * 500
    with start_app(APP, "measure-memory", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(head)
        for _ in range(count // 500 + 1):
            process.stdin.write(batch)
        process.stdin.write(tail)
        process.stdin.close()
        assert process.stdout is not None
        found = read_envelope(process.stdout.read())
    assert found["ok"], found
    assert found["result"]["rows"] == (count // 500 + 1) * 500 + bool(tail)
    return found["result"]


@pytest.mark.parametrize(
    ("parts", "items"),
    [
        ([b"a,b\n1,2\n", b"3,4\n"], [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        ([b'{"a":1}\n', b'{"a":2}\n'], [{"a": 1}, {"a": 2}]),
    ],
    ids=["csv", "jsonl"],
)
def test_rows_are_streamed(parts: list[bytes], items: list[Any]) -> None:
    """The result for the first row is received before the second row is sent."""
    with start_app(APP, "rows", "-", "--jsonl", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part, item in zip(parts, items, strict=True):
            process.stdin.write(part)
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == item


# ------------------------------------------------------------------ terminals

_CONTROLLING_TERMINAL = (
    "import fcntl, os, runpy, sys, termios\n"
    "os.setsid()\n"
    "fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)\n"
    "sys.argv[:] = sys.argv[2:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)


def run_with_controlling_terminal(
    *argv: str, stdin: bytes, answers: dict[bytes, bytes], terminals: str = "12"
) -> ProcessResult:
    """Run the app with a controlling terminal, and data on stdin.

    `answers` maps prompts to the keys to type. `terminals` lists the output streams that are the
    terminal. The displayed text is `err` of the result.
    """
    screen, terminal = pty.openpty()
    streams: dict[str, Any] = {"stdin": subprocess.PIPE}
    for number, name in (("1", "stdout"), ("2", "stderr")):
        streams[name] = terminal if number in terminals else subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", _CONTROLLING_TERMINAL, str(terminal), str(APP), *argv],
        pass_fds=[terminal],
        env=environment(TERM="dumb"),
        **streams,
    )
    os.close(terminal)
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    watchdog = threading.Timer(PROCESS_TIMEOUT, process.kill)
    watchdog.start()
    displayed = bytearray()
    waiting = dict(answers)
    with contextlib.suppress(OSError):  # no process has the terminal open
        while data := os.read(screen, 65536):
            displayed += data
            for question, answer in list(waiting.items()):
                if question in displayed:
                    del waiting[question]
                    os.write(screen, answer)
    code = process.wait(PROCESS_TIMEOUT)
    watchdog.cancel()
    os.close(screen)
    rest = process.stdout.read() if process.stdout is not None else b""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    assert not waiting, f"never asked: {waiting}, {bytes(displayed)!r}"
    return ProcessResult(code, rest, bytes(displayed))


def test_prompt_does_not_read_piped_data() -> None:
    """`producer | tool greet -`: the name comes from the terminal, the data from the pipe."""
    data = b"first line\nsecond line\n"
    done = run_with_controlling_terminal("greet", "-", stdin=data, answers={b"Who is it": b"Ada\n"})
    assert done.code == 0, done
    assert b"Ada: first line" in done.err
    assert b"second line" in done.err


def test_confirmation_does_not_read_piped_data() -> None:
    done = run_with_controlling_terminal("drop", stdin=b"y\nall", answers={b"[y/N]": b"y\n"})
    assert done.code == 0, done
    assert b"dropped y" in done.err
    done = run_with_controlling_terminal("drop", stdin=b"y\ny\ny\n", answers={b"[y/N]": b"n\n"})
    assert done.code == 2
    assert b"dropped" not in done.err


def test_secret_on_stdin_is_read_once_if_the_call_is_confirmed() -> None:
    done = run_with_controlling_terminal(
        "revoke", "--key", "-", stdin=b"hush-1234", answers={b"[y/N]": b"y\n"}
    )
    assert (done.code, b"revoked 9" in done.err) == (0, True), done


def test_question_of_a_running_command_does_not_read_piped_data() -> None:
    done = run_with_controlling_terminal(
        "confirm", "-", stdin=b"n\n", answers={b"Really? [y/N]": b"y\n"}
    )
    assert b"True n" in done.err


def test_prompt_for_a_secret_does_not_echo() -> None:
    done = run_with_controlling_terminal(
        "sign", "-", stdin=b"data", answers={b"(not shown)": SECRET.encode() + b"\n"}
    )
    assert done.code == 0, done
    assert f"data {len(SECRET)} ***".encode() in done.err
    assert SECRET.encode() not in done.err


@pytest.mark.parametrize(
    "argv",
    [("greet", "-"), ("sign", "-"), ("drop", "-")],
    ids=lambda argv: argv[0],
)
@pytest.mark.parametrize("flag", ["--no-input", "--json", "--jsonl"])
def test_no_prompt_with_no_input_or_json(argv: tuple[str, ...], flag: str) -> None:
    """There is a terminal, but no prompt is displayed."""
    done = run_with_controlling_terminal(*argv, flag, stdin=b"data", answers={}, terminals="2")
    assert done.code == 2
    for question in (b"Who is it", b"not shown", b"[y/N]"):
        assert question not in done.out + done.err


# ------------------------------------------------------------------ no terminal


@contextlib.contextmanager
def silent_pipe() -> Iterator[int]:
    """Yield the reading end of a pipe without data; reading it blocks."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (("greet", str(APP)), "--name"),
        (("greet", str(APP), "--no-input"), "--name"),
        (("sign", str(APP)), "--key"),
        (("sign", str(APP), "--no-input"), "--key"),
        (("drop", str(APP)), "--yes"),
        (("drop", str(APP), "--no-input"), "--yes"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("mode", ["auto", "json", "text", "plain"])
def test_missing_input_without_a_terminal_is_an_error(
    argv: tuple[str, ...], flag: str, mode: str
) -> None:
    """The app does not read stdin. It exits with code 2 and names the flag to pass."""
    with silent_pipe() as stdin:
        done = subprocess.run(
            command(APP, *argv, "--output", mode),
            stdin=stdin,
            capture_output=True,
            env=environment(),
            start_new_session=True,
            timeout=PROCESS_TIMEOUT,
        )
    assert done.returncode == 2, done
    assert flag.encode() in done.stdout + done.stderr


def test_question_of_a_running_command_returns_the_default() -> None:
    with silent_pipe() as stdin:
        done = subprocess.run(
            command(APP, "confirm", "/dev/null", "--text"),
            stdin=stdin,
            capture_output=True,
            env=environment(),
            start_new_session=True,
            timeout=PROCESS_TIMEOUT,
        )
    assert done.stdout.startswith(b"False")


def test_missing_argument_and_pipe_is_an_error() -> None:
    for mode in ("json", "text"):
        done = subprocess.run(
            command(APP, "size", "--output", mode),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(),
            timeout=PROCESS_TIMEOUT,
        )
        assert done.returncode == 2
        assert b"a path, a URL, - for stdin, or data through a pipe" in done.stdout + done.stderr


def test_closed_stdin_is_an_error() -> None:
    for argv in (("size",), ("size", "-")):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", *map(str, command(APP, *argv, "--json"))],
            capture_output=True,
            env=environment(),
            timeout=PROCESS_TIMEOUT,
        )
        assert done.returncode == 2, done
        assert read_envelope(done.stdout)["error"]["code"] in ("E1002", "E1035")


# ------------------------------------------------------------------ secrets


@pytest.mark.parametrize("mode", ["json", "jsonl", "text", "plain"])
@pytest.mark.parametrize("source", ["file", "env", "stdin", "literal"])
@pytest.mark.parametrize(
    "argv",
    [
        ("crash",),
        ("crash", "--where", "x"),
        ("crash", "--dry-run"),
        ("crash", "--wher", "x"),
        ("sign", str(APP)),
    ],
    ids=" ".join,
)
def test_secret_is_in_no_output(
    tmp_path: Path, mode: str, source: str, argv: tuple[str, ...]
) -> None:
    """It is not in results, errors, tracebacks with locals, plans or suggestions."""
    file = tmp_path / "key"
    file.write_text(SECRET)
    key = {"file": f"@{file}", "env": "env:KEY", "stdin": "-", "literal": SECRET}[source]
    done = run(
        APP,
        *(*argv, "--key", key, "--output", mode, "-vv"),
        stdin=SECRET.encode(),
        env=environment(KEY=SECRET, TERM="xterm"),
    )
    assert SECRET.encode() not in done.out + done.err
    if argv == ("crash",) and source != "literal":
        assert b"***" in done.out + done.err


# ------------------------------------------------------------------ NUL-separated items


def test_null_and_print0_use_nul_as_separator(tmp_path: Path) -> None:
    for name in ("a", "b c", "d\ne"):
        (tmp_path / name).touch()
    found = subprocess.run(
        ["find", ".", "-type", "f", "-print0"], cwd=tmp_path, capture_output=True, check=True
    )
    done = run(APP, "names", "--null", stdin=found.stdout)
    assert sorted(read_envelope(done.out)["result"]) == ["./a", "./b c", "./d\ne"]
    done = run(APP, "names", "--null", "first", "--print0", stdin=b"a\nb\0c")
    assert done.out == b"first\0a\nb\0c\0"
    assert read_envelope(run(APP, "names", "--null", stdin=b"").out)["error"]["code"] == "E1002"
    assert read_envelope(run(APP, "crash", "--null").out)["error"]["code"] in ("E1002", "E1007")


# ------------------------------------------------------------------ outputs


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_keeps_the_old_file(tmp_path: Path, stop: int) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with start_app(APP, "slow", "--out", str(target), "--json") as process:
        wait_for_ready(process)
        assert len(os.listdir(tmp_path)) == 2
        process.send_signal(stop)
        done = finish(process)
    assert read_envelope(done.out)["ok"] is False
    assert os.listdir(tmp_path) == ["a"]
    assert target.read_text() == "old"


def test_killed_command_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with start_app(APP, "slow", "--out", str(target), "--json") as process:
        wait_for_ready(process)
        process.kill()
    assert target.read_text() == "old"


def test_schema_describes_inputs_and_secrets() -> None:
    found = json.loads(run(APP, "sign", "--schema").out)["input_schema"]["properties"]
    assert found["key"]["writeOnly"] is True
    assert found["data"]["anyOf"][0]["type"] == "string"
