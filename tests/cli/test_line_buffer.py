"""Lines of a stream are written in groups, in order, and never wait for the next line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from tooli.cli import line_buffer
from tooli.cli.line_buffer import MAX_DIRECT_LINES, LineBuffer

APP = """
import os, sys, time
from collections.abc import Iterator
from tooli import Tooli

app = Tooli("rows")


@app.command()
def many(count: int, fork: bool = False, fail: bool = False) -> Iterator[dict]:
    for number in range(count):
        if fork and number == 5000:
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        yield {"id": number}
    if fail:
        raise ValueError("out of rows")


@app.command()
def slow(count: int) -> Iterator[int]:
    yield from range(count)
    sys.stdin.read(1)
    yield count


@app.command()
def ping() -> str:
    return "pong"


app()
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rows") / "rows.py"
    file.write_text(APP)
    return file


def fill(buffer: LineBuffer) -> None:
    for _ in range(MAX_DIRECT_LINES):
        buffer.write(b"direct")


class TestLineBuffer:
    def test_first_lines_are_written_at_once(self) -> None:
        written: list[bytes] = []
        buffer = LineBuffer(written.append)
        fill(buffer)
        assert written == [b"direct\n"] * MAX_DIRECT_LINES

    def test_later_lines_are_written_without_another_line(self) -> None:
        arrived = Event()
        written: list[bytes] = []

        def write(data: bytes) -> None:
            written.append(data)
            if b"last" in data:
                arrived.set()

        buffer = LineBuffer(write)
        fill(buffer)
        buffer.write(b"one")
        buffer.write(b"last")
        assert arrived.wait(30)
        assert b"".join(written).endswith(b"one\nlast\n")
        buffer.close()

    def test_close_writes_the_rest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(line_buffer, "MAX_DELAY_SECONDS", 3600)
        written: list[bytes] = []
        buffer = LineBuffer(written.append)
        fill(buffer)
        buffer.write(b"rest")
        assert b"rest\n" not in written
        buffer.close()
        assert written[-1] == b"rest\n"

    def test_many_bytes_are_written_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(line_buffer, "MAX_DELAY_SECONDS", 3600)
        written: list[bytes] = []
        buffer = LineBuffer(written.append)
        fill(buffer)
        buffer.write(b"x" * line_buffer.MAX_BUFFERED_BYTES)
        assert len(written[-1]) == line_buffer.MAX_BUFFERED_BYTES + 1
        buffer.close()

    def test_failure_in_the_thread_is_raised_later(self) -> None:
        failed = Event()

        def write(data: bytes) -> None:
            if b"bad" in data:
                failed.set()
                raise BrokenPipeError

        buffer = LineBuffer(write)
        fill(buffer)
        buffer.write(b"bad")
        assert failed.wait(30)
        assert buffer._thread is not None
        buffer._thread.join(30)
        with pytest.raises(BrokenPipeError):
            buffer.write(b"next")
        with pytest.raises(BrokenPipeError):
            buffer.close()
        buffer.discard()

    def test_discard_does_not_wait_for_a_reader_that_stopped(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(line_buffer, "MAX_WAIT_SECONDS", 0)
        started, release = Event(), Event()

        def write(data: bytes) -> None:
            if b"stuck" in data:
                started.set()
                release.wait(30)

        buffer = LineBuffer(write)
        fill(buffer)
        buffer.write(b"stuck")
        assert started.wait(30)
        buffer.discard()
        release.set()


class TestCommandLine:
    def run(self, app: Path, *argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", str(app), *argv, "--jsonl"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_all_rows_arrive_in_order(self, app: Path) -> None:
        lines = self.run(app, "many", "20000").stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == list(range(20_000))

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_stream_that_forks(self, app: Path) -> None:
        done = self.run(app, "many", "20000", "--fork")
        lines = done.stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == list(range(20_000))
        assert done.stderr == ""

    def test_failure_follows_all_rows(self, app: Path) -> None:
        lines = self.run(app, "many", "5000", "--fail").stdout.splitlines()
        assert len(lines) == 5001
        assert json.loads(lines[-1])["ok"] is False

    def test_row_does_not_wait_for_the_next_one(self, app: Path) -> None:
        command = [sys.executable, str(app), "slow", "1000", "--jsonl"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            assert [int(process.stdout.readline()) for _ in range(1000)] == list(range(1000))
            process.stdin.write(b"x")
            process.stdin.close()
            assert process.stdout.read() == b"1000\n"

    def test_closed_pipe_ends_the_stream(self, app: Path) -> None:
        command = f"'{sys.executable}' '{app}' many 3000000 --jsonl | head -n 3"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines() == ['{"id":0}', '{"id":1}', '{"id":2}']
        assert done.stderr == ""
