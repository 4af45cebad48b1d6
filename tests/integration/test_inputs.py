"""Inputs, secrets, prompts and outputs, as a user meets them: processes, pipes, terminals.

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
from tests.inputs.served import site
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
CANARY = "c4nary-5ecret"
BIG = int(os.environ.get("TOOLI_BIG_INPUT", 150 * 2**20))
"""How much goes through a pipe; 2 GiB by hand, because it takes its time."""


def timeless(out: bytes) -> Any:
    found = read_envelope(out)
    del found["meta"]["duration_ms"]
    return found


def test_a_path_a_pipe_and_a_url_give_the_same_envelope(tmp_path: Path) -> None:
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
    found = [timeless(answer.out) for answer in answers]
    assert found[0]["result"] == {"rows": rows, "total": rows * (rows - 1) // 2}
    assert all(other == found[0] for other in found)
    assert read_envelope(refused.out)["error"]["code"] == "E1033"


@pytest.mark.parametrize("form", ["csv", "jsonl", "array"])
def test_constant_memory(form: str) -> None:
    """A long input takes no more memory than a short one."""
    text = "x" * 900
    row = {
        "csv": f"1,{text},{text}\n",
        "jsonl": f'{{"a":1,"b":"{text}","c":"{text}"}}\n',
        "array": f'{{"a":1,"b":"{text}","c":"{text}"}},\n',
    }[form].encode()
    head = {"csv": b"a,b,c\n", "jsonl": b"", "array": b"["}[form]
    tail = b'{"a":1}]' if form == "array" else b""
    small, big = (weigh(row, head, tail, size // 3) for size in (3 * 2**20, BIG))
    assert big["rows"] > 10 * small["rows"]
    assert big["peak"] - small["peak"] < 20_000, f"{small} {big}"  # kilobytes


def weigh(row: bytes, head: bytes, tail: bytes, size: int) -> dict[str, int]:
    """Send rows through a pipe without ever having all of them."""
    count = size // len(row)
    batch = row * 500
    with start_app(APP, "weigh", "-", stdin=subprocess.PIPE) as process:
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
def test_rows_are_there_as_soon_as_they_come(parts: list[bytes], items: list[Any]) -> None:
    """The answer to the first row is read before the second one is written."""
    with start_app(APP, "rows", "-", "--jsonl", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part, item in zip(parts, items, strict=True):
            process.stdin.write(part)
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == item


# ------------------------------------------------------------------ terminals

_OWN_TERMINAL = (
    "import fcntl, os, runpy, sys, termios\n"
    "os.setsid()\n"
    "fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)\n"
    "sys.argv[:] = sys.argv[2:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)


def with_terminal(
    *argv: str, stdin: bytes, typed: dict[bytes, bytes], shows: str = "12"
) -> ProcessResult:
    """Run the app with a terminal of its own, and data on stdin.

    What is typed is typed when the terminal shows what it answers.
    """
    person, terminal = pty.openpty()
    streams: dict[str, Any] = {"stdin": subprocess.PIPE}
    for number, name in (("1", "stdout"), ("2", "stderr")):
        streams[name] = terminal if number in shows else subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, str(terminal), str(APP), *argv],
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
    screen = bytearray()
    waiting = dict(typed)
    with contextlib.suppress(OSError):  # the terminal is gone when nobody holds it
        while data := os.read(person, 65536):
            screen += data
            for question, answer in list(waiting.items()):
                if question in screen:
                    del waiting[question]
                    os.write(person, answer)
    code = process.wait(PROCESS_TIMEOUT)
    watchdog.cancel()
    os.close(person)
    rest = process.stdout.read() if process.stdout is not None else b""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    assert not waiting, f"never asked: {waiting}, {bytes(screen)!r}"
    return ProcessResult(code, rest, bytes(screen))


def test_a_prompt_does_not_eat_the_data() -> None:
    """`producer | tool greet -`: the name comes from the person, the data from the pipe."""
    data = b"first line\nsecond line\n"
    done = with_terminal("greet", "-", stdin=data, typed={b"Who is it": b"Ada\n"})
    assert done.code == 0, done
    assert b"Ada: first line" in done.err
    assert b"second line" in done.err


def test_nor_does_a_question_about_a_destructive_command() -> None:
    done = with_terminal("drop", stdin=b"y\nall", typed={b"[y/N]": b"y\n"})
    assert done.code == 0, done
    assert b"dropped y" in done.err
    done = with_terminal("drop", stdin=b"y\ny\ny\n", typed={b"[y/N]": b"n\n"})
    assert done.code == 2
    assert b"dropped" not in done.err


def test_nor_a_question_of_a_running_tool() -> None:
    done = with_terminal("confirm", "-", stdin=b"n\n", typed={b"Really? [y/N]": b"y\n"})
    assert b"True n" in done.err


def test_a_secret_is_asked_for_and_not_shown() -> None:
    done = with_terminal(
        "sign", "-", stdin=b"data", typed={b"(not shown)": CANARY.encode() + b"\n"}
    )
    assert done.code == 0, done
    assert f"data {len(CANARY)} ***".encode() in done.err
    assert CANARY.encode() not in done.err


@pytest.mark.parametrize(
    "words",
    [("greet", "-"), ("sign", "-"), ("drop", "-")],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("how", ["--no-input", "--json", "--jsonl"])
def test_nobody_is_asked_who_does_not_want_it(words: tuple[str, ...], how: str) -> None:
    """There is a terminal, and a question would be in its text."""
    done = with_terminal(*words, how, stdin=b"data", typed={}, shows="2")
    assert done.code == 2
    for question in (b"Who is it", b"not shown", b"[y/N]"):
        assert question not in done.out + done.err


# ------------------------------------------------------------------ no terminal at all


@contextlib.contextmanager
def silent_pipe() -> Iterator[int]:
    """The end of a pipe that nobody writes to, and nobody closes: to read it is to wait."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    ("words", "flag"),
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
def test_without_a_terminal_nothing_waits(words: tuple[str, ...], flag: str, mode: str) -> None:
    """Exit code 2, and the flag to pass, though stdin would never give an answer."""
    with silent_pipe() as stdin:
        done = subprocess.run(
            command(APP, *words, "--output", mode),
            stdin=stdin,
            capture_output=True,
            env=environment(),
            start_new_session=True,
            timeout=PROCESS_TIMEOUT,
        )
    assert done.returncode == 2, done
    assert flag.encode() in done.stdout + done.stderr


def test_a_running_tool_gets_the_default() -> None:
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


def test_neither_a_word_nor_a_pipe() -> None:
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


def test_stdin_may_be_closed() -> None:
    for words in (("size",), ("size", "-")):
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", *map(str, command(APP, *words, "--json"))],
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
    "words",
    [
        ("crash",),
        ("crash", "--where", "x"),
        ("crash", "--dry-run"),
        ("crash", "--wher", "x"),
        ("sign", str(APP)),
    ],
    ids=" ".join,
)
def test_a_secret_is_nowhere(
    tmp_path: Path, mode: str, source: str, words: tuple[str, ...]
) -> None:
    """Not in results, errors, tracebacks with locals, plans or suggestions."""
    file = tmp_path / "key"
    file.write_text(CANARY)
    key = {"file": f"@{file}", "env": "env:KEY", "stdin": "-", "literal": CANARY}[source]
    done = run(
        APP,
        *(*words, "--key", key, "--output", mode, "-vv"),
        stdin=CANARY.encode(),
        env=environment(KEY=CANARY, TERM="xterm"),
    )
    assert CANARY.encode() not in done.out + done.err
    if words == ("crash",) and source != "literal":
        assert b"***" in done.out + done.err


# ------------------------------------------------------------------ items that end with NUL


def test_null(tmp_path: Path) -> None:
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
def test_a_stopped_tool_leaves_the_old_file(tmp_path: Path, stop: int) -> None:
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


def test_a_killed_tool_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with start_app(APP, "slow", "--out", str(target), "--json") as process:
        wait_for_ready(process)
        process.kill()
    assert target.read_text() == "old"


def test_the_schema_says_what_is_taken() -> None:
    found = json.loads(run(APP, "sign", "--schema").out)["input_schema"]["properties"]
    assert found["key"]["writeOnly"] is True
    assert found["data"]["anyOf"][0]["type"] == "string"
