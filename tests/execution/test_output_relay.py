"""The output of an isolated command goes through pipes to the caller."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.execution.forked import run_in_child
from tests.integration.app_process import environment

from tooli.execution import output_relay
from tooli.execution.output_relay import (
    OutputRelay,
    group_outputs,
    redirect_output,
    reopen_stdin,
)
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

APP = """
import fcntl, os, shutil, sys, termios
from tooli import Tooli

app = Tooli("relayed")

@app.command(isolation="required")
def both() -> str:
    for number in range(50):
        print("out", number)
        print("err", number, file=sys.stderr)
        os.write(1, b"raw\\n")
    return "done"

@app.command(isolation="required")
def attack() -> list[str]:
    found = []
    for number in (0, 1, 2):
        for name, act in (
            ("truncate", lambda: os.ftruncate(number, 0)),
            ("seek", lambda: os.lseek(number, 0, 0) if number else 1 / 0),
            ("attributes", lambda: termios.tcgetattr(number) if number else 1 / 0),
            ("write", lambda: 1 / 0 if number else os.write(0, b"x")),
        ):
            try:
                act()
                found.append(f"{name} {number}")
            except (OSError, ZeroDivisionError, termios.error):
                pass
        fcntl.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK)
    return found

@app.command(isolation="required")
def items() -> list[int]:
    for number in range(20):
        print("before", number, flush=True)
        yield number

@app.command(isolation="required")
def terminal() -> str:
    print(sys.stdout.isatty(), os.isatty(1), shutil.get_terminal_size().columns)
    return "done"

@app.command(isolation="required")
def flood() -> str:
    while True:
        os.write(2, b"x" * 65536)

@app.command(isolation="required")
def large() -> str:
    for number in range(300):
        os.write(1, b"x" * 9999 + b"\\n")
    return "done"

@app.command(isolation="required")
def line() -> str:
    return sys.stdin.readline()

if __name__ == "__main__":
    app()
"""


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    (tmp_path / "app.py").write_text(APP)
    return [sys.executable, str(tmp_path / "app.py")]


def run(argv: list[str], command: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*argv, command, "--json"], text=True, timeout=120, env=environment(), **options
    )  # type: ignore[call-overload]


def test_order_of_stdout_and_stderr_in_one_file(argv: list[str], tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        run(argv, "both", stdout=log, stderr=log)
    lines = (tmp_path / "log").read_text().splitlines()
    expected = [line for n in range(50) for line in (f"out {n}", f"err {n}", "raw")]
    assert lines[:-1] == expected
    assert json.loads(lines[-1])["result"] == "done"


def test_log_file_and_input_file_are_not_changed(argv: list[str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text("earlier\n")
    (tmp_path / "input").write_text("input\n")
    with (tmp_path / "log").open("r+") as log, (tmp_path / "input").open("r+") as source:
        log.seek(0, os.SEEK_END)
        log.flush()
        done = run(argv, "attack", stdin=source, stdout=subprocess.PIPE, stderr=log)
        assert source.tell() == 0 and os.get_blocking(source.fileno())
        assert os.get_blocking(log.fileno())
    assert json.loads(done.stdout)["result"] == []
    assert (tmp_path / "log").read_text() == "earlier\n"
    assert (tmp_path / "input").read_text() == "input\n"


def test_text_is_written_before_the_item_that_follows(argv: list[str]) -> None:
    done = subprocess.run(
        [*argv, "items", "--jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env=environment(),
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    assert lines == [line for n in range(20) for line in (f"before {n}", str(n))]


def test_large_output_is_complete(argv: list[str]) -> None:
    done = run(argv, "large", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert len(done.stdout + done.stderr) > 3_000_000
    assert json.loads(done.stdout.splitlines()[-1])["result"] == "done"


def test_reader_that_stops_reading_does_not_stop_the_timeout(argv: list[str]) -> None:
    process = subprocess.Popen(
        [*argv, "flood", "--json", "--timeout", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # never read
        text=True,
        env=environment(),
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        assert json.loads(process.stdout.readline())["error"]["code"] == "E4050"
    assert process.wait(timeout=60) == 50


def test_closed_reader_ends_the_command(argv: list[str]) -> None:
    process = subprocess.Popen(
        [*argv, "flood", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None and process.stderr is not None
    process.stderr.close()
    with process.stdout:
        assert json.loads(process.stdout.readline())["ok"] is False
    assert process.wait(timeout=60) != 0


@pytest.mark.parametrize("content", ["first\nsecond\n", ""])
def test_stdin_is_read_from_its_position(argv: list[str], tmp_path: Path, content: str) -> None:
    (tmp_path / "input").write_text(f"header\n{content}")
    with (tmp_path / "input").open() as source:
        source.seek(7)
        os.lseek(source.fileno(), 7, os.SEEK_SET)
        done = run(argv, "line", stdin=source, stdout=subprocess.PIPE)
    assert json.loads(done.stdout)["result"] == content[:6]


def test_stdin_may_be_a_pipe_a_socket_or_closed(argv: list[str]) -> None:
    done = run(argv, "line", input="piped\n", stdout=subprocess.PIPE)
    assert json.loads(done.stdout)["result"] == "piped\n"
    here, there = socket.socketpair()
    with here, there:
        here.sendall(b"sent\n")
        done = run(argv, "line", stdin=there, stdout=subprocess.PIPE)
        assert json.loads(done.stdout)["result"] == "sent\n"
    closed = run(["/bin/sh", "-c", 'exec "$@" <&-', "sh", *argv], "both", stdout=subprocess.PIPE)
    assert json.loads(closed.stdout.splitlines()[-1])["result"] == "done"


def test_output_for_a_terminal(argv: list[str]) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (20, 91)) if sys.version_info >= (3, 11) else None
    try:
        subprocess.run(
            [*argv, "terminal"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment(), "TERM": "xterm"},
            timeout=120,
        )
        first = os.read(master, 65536).decode().split()
    finally:
        os.close(master)
        os.close(slave)
    assert first[:2] == ["True", "False"]
    if sys.version_info >= (3, 11):
        assert first[2] == "91"


def test_group_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, device, real_fstat = os.stat("/"), os.stat("/dev/null"), os.fstat
    stats: dict[int, os.stat_result | None] = {1: folder, 2: folder}

    def fstat(number: int) -> os.stat_result:
        found = stats.get(number, folder)
        if found is None:
            raise OSError
        return found if number in stats else real_fstat(number)

    monkeypatch.setattr(os, "fstat", fstat)
    assert group_outputs() == [[1, 2]]
    stats[2] = device
    assert group_outputs() == [[1], [2]]
    stats[1] = None
    assert group_outputs() == [[2]]


def test_relay_waits_for_a_full_target() -> None:
    source, end = os.pipe()
    reader, target = os.pipe()
    os.set_blocking(target, False)
    filled = 0
    try:
        while True:
            filled += os.write(target, b"y" * 65536)
    except BlockingIOError:
        pass
    relay = OutputRelay(source, target)
    os.write(end, b"text")
    relay.copy()
    relay.drain(0.0, lambda: False)  # the deadline has passed
    relay.drain(None, lambda: True)  # the call was cancelled
    while filled > 0:
        filled -= len(os.read(reader, filled))
    relay.drain(None, lambda: False)
    assert os.read(reader, 100) == b"text"
    os.close(end)
    relay.copy()
    assert relay.is_closed
    for number in (source, reader, target):
        os.close(number)


@pytest.fixture
def flooded(tmp_path: Path) -> Iterator[tuple[OutputRelay, Path]]:
    """A relay from a pipe with 200,000 bytes to a file."""
    source, end = os.pipe()
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 18)
    os.write(end, b"x" * 200_000)
    with (tmp_path / "target").open("wb") as target:
        yield OutputRelay(source, target.fileno()), tmp_path / "target"
    os.close(source)
    os.close(end)


def test_one_turn_copies_a_limited_amount(flooded: tuple[OutputRelay, Path]) -> None:
    """A process that writes for ever must not keep the caller from its other work."""
    relay, target = flooded
    relay.copy()
    assert target.stat().st_size == 16 * 4096
    relay.copy()
    assert target.stat().st_size == 32 * 4096


def test_drain_is_limited_to_the_size_of_a_pipe(
    flooded: tuple[OutputRelay, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    relay, target = flooded
    monkeypatch.setattr(output_relay, "_MAX_PIPE_BYTES", 10_000)
    relay.drain(None, lambda: False)
    assert target.stat().st_size == 10_000
    monkeypatch.undo()
    relay.drain(None, lambda: False)
    assert target.stat().st_size == 200_000


def test_relay_without_a_target_discards_the_output() -> None:
    source, end = os.pipe()
    poller, relay = select.poll(), OutputRelay(source, None)
    os.write(end, b"x" * 60_000)
    relay.update_poller(poller)
    assert poller.poll(0) == [(source, select.POLLIN)]
    relay.copy()
    relay.update_poller(poller)
    assert poller.poll(0) == []
    os.close(end)
    relay.drain(None, lambda: False)
    assert relay.is_closed
    os.close(source)


def test_relay_waits_for_data_or_for_its_target() -> None:
    source, end = os.pipe()
    reader, target = os.pipe()
    os.set_blocking(target, False)
    poller, relay = select.poll(), OutputRelay(source, target)
    relay.update_poller(poller)
    os.write(end, b"text")
    assert poller.poll(0) == [(source, select.POLLIN)]
    filled = fcntl.fcntl(target, fcntl.F_GETPIPE_SZ)
    os.write(target, b"y" * filled)
    relay.copy()
    relay.update_poller(poller)
    assert poller.poll(0) == [], "it reads nothing more before the text is written"
    os.read(reader, filled)
    assert poller.poll(0) == [(target, select.POLLOUT)]
    relay.copy()
    assert os.read(reader, 100) == b"text"
    os.close(end)
    relay.copy()
    relay.update_poller(poller)
    assert poller.poll(0) == []
    for number in (source, reader, target):
        os.close(number)


@pytest.mark.parametrize("numbers", [(1, 2), (2,)])
def test_streams_that_replace_a_terminal(numbers: tuple[int, ...]) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 91, 0, 0))
    read_end, write_end = os.pipe()

    def check() -> None:
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        for number in numbers:
            os.dup2(slave, number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
        redirect_output([list(numbers)], [write_end])
        assert not os.isatty(2)
        assert (sys.stdout.isatty(), sys.stderr.isatty()) == (1 in numbers, True)
        assert (os.environ["COLUMNS"], os.environ["LINES"]) == ("91", "20")
        print("text", file=sys.stderr)

    assert run_in_child(check) == 0
    os.close(write_end)
    assert os.read(read_end, 100) == b"text\n"
    for number in (master, slave, read_end):
        os.close(number)


def set_stdin(fd: int) -> None:
    os.dup2(fd, 0)


class TestReopenStdin:
    def test_file_opened_for_both_becomes_read_only(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("header\nrest")
        fd = os.open(tmp_path / "file", os.O_RDWR)
        os.lseek(fd, 7, os.SEEK_SET)

        def check() -> None:
            set_stdin(fd)
            reopen_stdin(is_available=True)
            with pytest.raises(OSError):
                os.write(0, b"x")
            assert os.read(0, 100) == b"rest"

        assert run_in_child(check) == 0
        assert os.lseek(fd, 0, os.SEEK_CUR) == 7, "the position of the caller is unchanged"
        os.close(fd)

    @pytest.mark.parametrize(
        ("flags", "content"), [(os.O_RDONLY, b"text"), (os.O_RDWR, b""), (os.O_WRONLY, b"")]
    )
    def test_writable_file_that_cannot_be_reopened_is_replaced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int, content: bytes
    ) -> None:
        (tmp_path / "file").write_text("text")
        fd, real_open = os.open(tmp_path / "file", flags), os.open

        def open_without_proc(path: str, *more: int) -> int:
            if path.startswith("/proc"):
                raise FileNotFoundError
            return real_open(path, *more)

        def check() -> None:
            set_stdin(fd)
            monkeypatch.setattr(os, "open", open_without_proc)
            reopen_stdin(is_available=True)
            with pytest.raises(OSError):
                os.write(0, b"x")
            assert os.read(0, 100) == content

        assert run_in_child(check) == 0
        assert (tmp_path / "file").read_text() == "text"
        os.close(fd)

    def test_terminal_that_cannot_be_reopened_is_replaced(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A terminal of another user (su, sudo -u) cannot be opened by its name."""
        master, slave = pty.openpty()
        real_open = os.open

        def open_own_files(path: str, *more: int) -> int:
            if path.startswith("/proc"):
                raise PermissionError
            return real_open(path, *more)

        def check() -> None:
            set_stdin(slave)
            monkeypatch.setattr(os, "open", open_own_files)
            reopen_stdin(is_available=True)
            with pytest.raises(OSError):
                os.write(0, b"forged")
            assert os.read(0, 100) == b""

        assert run_in_child(check) == 0
        assert select.select([master], [], [], 0)[0] == []
        os.close(master)
        os.close(slave)

    def test_socket_is_kept(self) -> None:
        here, there = socket.socketpair()

        def check() -> None:
            set_stdin(there.fileno())
            reopen_stdin(is_available=True)
            assert os.read(0, 100) == b"sent"

        with here, there:
            here.sendall(b"sent")
            assert run_in_child(check) == 0

    def test_stdin_of_another_call_is_not_available(self) -> None:
        read_end, write_end = os.pipe()
        os.write(write_end, b"private")

        def check() -> None:
            set_stdin(read_end)
            reopen_stdin(is_available=False)
            assert os.read(0, 100) == b""

        assert run_in_child(check) == 0
        os.close(read_end)
        os.close(write_end)
