"""Lines on stderr: in order, complete, and without a wait for a reader that does not read."""

from __future__ import annotations

import fcntl
import os
import re
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tooli.serving import stderr_writer
from tooli.serving.stderr_writer import StderrWriter, has_room, write_line


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_a_line_is_written_at_once_if_there_is_room(pipe: tuple[int, int]) -> None:
    writer = StderrWriter(pipe[1])
    writer.write(b"one\n")
    writer.write(b"two\n")
    assert os.read(pipe[0], 100) == b"one\ntwo\n"
    assert not writer.pending
    assert "stderr" not in [thread.name for thread in threading.enumerate()]


def test_a_pipe_that_nobody_reads_does_not_stop_the_writer(pipe: tuple[int, int]) -> None:
    reader, descriptor = pipe
    writer = StderrWriter(descriptor)
    lines = [b"%06d %s\n" % (number, b"x" * 200) for number in range(2000)]
    for line in lines:
        writer.write(line)
    assert writer.pending > 0
    received = b""
    while len(received) < sum(map(len, lines)):
        received += os.read(reader, 1 << 16)
    assert received == b"".join(lines)  # all of them, in order


def test_lines_that_nobody_reads_are_dropped_and_counted(pipe: tuple[int, int]) -> None:
    reader, descriptor = pipe
    writer = StderrWriter(descriptor, max_pending=10)
    for number in range(1000):
        writer.write(b"%06d %s\n" % (number, b"x" * 200))
    assert 0 < writer.pending <= 10
    received = b""
    while received.count(b"xxx\n") + count_dropped(received) < 1000:
        assert select.select([reader], [], [], 30)[0], "lines are missing"
        received += os.read(reader, 1 << 16)
    assert received.count(b"xxx\n") + count_dropped(received) == 1000
    assert count_dropped(received) > 0


def count_dropped(received: bytes) -> int:
    """Return the sum of all messages about dropped lines."""
    return sum(map(int, re.findall(rb"^(\d+) lines were dropped, because", received, re.M)))


def test_a_reader_that_has_gone_is_no_error() -> None:
    reader, descriptor = os.pipe()
    os.close(reader)
    StderrWriter(descriptor).write(b"one\n")
    os.close(descriptor)


def test_room(pipe: tuple[int, int], tmp_path: Path) -> None:
    reader, descriptor = pipe
    with (tmp_path / "log").open("wb") as file:
        assert has_room(file.fileno(), 1 << 20)
    assert has_room(descriptor, 100)
    assert not has_room(descriptor, 1 << 20)
    os.set_blocking(descriptor, False)
    os.write(descriptor, bytes(fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) - 5000))
    assert not has_room(descriptor, 100)  # another process may write as well
    os.read(reader, 1 << 16)
    assert has_room(descriptor, 100)
    assert not has_room(-1, 100)


def test_room_of_a_socket() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert has_room(left.fileno(), 100)
        left.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                left.send(bytes(1 << 16))
        assert not has_room(left.fileno(), 100)


def test_without_poll_only_files_are_certain(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stderr_writer, "_HAS_PIPE_SIZE", False)
    assert has_room(pipe[1], 100)
    monkeypatch.delattr(stderr_writer.select, "poll")
    assert not has_room(pipe[1], 100)


@pytest.mark.parametrize("stream", [None, "closed"])
def test_a_closed_stderr_is_no_error(monkeypatch: pytest.MonkeyPatch, stream: Any) -> None:
    if stream == "closed":
        stream = open(os.devnull, "w")
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    write_line("one")
    monkeypatch.setattr(sys, "__stderr__", stream)
    monkeypatch.setattr(stderr_writer, "_writer", None)
    write_line("one")


PROGRAM = """
import os, sys
from tooli.serving.stderr_writer import write_line

for number in range(1000):
    write_line(f"{number} é" + "x" * 200)
if os.fork() == 0:
    write_line("child")
    os._exit(0)
os.wait()
print("done", flush=True)
sys.stdin.read()
"""


def test_a_process_ends_with_its_lines_written() -> None:
    """A forked process has no thread of its parent, and ends as well."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    lines = [process.stderr.readline() for _ in range(900)]
    process.stdin.close()
    lines += process.stderr.readlines()
    assert process.stdout.read() == b"done\n"
    assert process.wait() == 0
    numbered = [line for line in lines if line != b"child\n"]
    assert [int(line.split()[0]) for line in numbered] == list(range(1000))
    process.stdout.close()
    process.stderr.close()
