"""Start the processes of the benchmarks, and measure them round by round."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from harness.envs import Environments, clean_environment
from harness.model import Benchmark, Measurements, Run
from harness.spawn import SEPARATOR, VARIABLE_SEPARATOR

RSS_UNIT = 1 if sys.platform == "darwin" else 1024
ABSOLUTE_PATH = re.compile(r"(?:/[\w.+-]+){2,}/")


class Spawner:
    """The client of `spawn.py`, a small process that starts the benchmarks and measures them."""

    def __init__(self, app_folder: Path) -> None:
        self.app_folder = app_folder
        self.out, self.err = app_folder / ".out", app_folder / ".err"
        self.pipe, self.stdin = app_folder / ".pipe", app_folder / ".stdin"
        self._replies = b""  # what was read of the replies
        for pipe in (self.pipe, self.stdin):
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("spawn.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=app_folder,
            env=clean_environment(),
            text=True,
        )

    def __enter__(self) -> Spawner:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
        for path in (self.out, self.err, self.pipe, self.stdin):
            path.unlink(missing_ok=True)

    def run(self, benchmark: Benchmark, argv: Sequence[str]) -> Run:
        """Run a program to its end; its output goes to files."""
        pid = self._start(benchmark, argv, self.out)
        code, cpu, wall, rss = self._wait(pid, benchmark.timeout_s)
        return Run(code, cpu, wall, rss, self.out.read_text(errors="replace"), self._errors())

    def stream(self, benchmark: Benchmark, argv: Sequence[str]) -> Run:
        """Run a program and read its output from a pipe while it runs."""
        reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            began = time.perf_counter()
            pid = self._start(benchmark, argv, self.pipe)
            first = lines = 0
            while chunk := read_chunk(reader, benchmark.timeout_s):
                first = first or time.perf_counter()
                lines += chunk.count(b"\n")
        finally:
            os.close(reader)
        code, cpu, wall, rss = self._wait(pid, benchmark.timeout_s)
        first_ms = (first - began) * 1000 if first else 0.0
        return Run(code, cpu, wall, rss, "", self._errors(), lines, first_ms)

    def run_server(self, benchmark: Benchmark, argv: Sequence[str]) -> Run:
        """Send requests to a server, wait for each answer, and kill the server after the last.

        The shutdown of the server is not measured.
        """
        reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(self.stdin, os.O_RDWR)  # opening both ends of a FIFO does not block
        try:
            pid = self._start(benchmark, argv, self.pipe, self.stdin)
            answers: list[bytes] = []
            for request in benchmark.requests:
                os.write(writer, request.encode())
                answers.append(read_line(reader, benchmark.timeout_s))
                if not answers[-1]:
                    break
            else:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        finally:
            os.close(reader)
            os.close(writer)
        code, cpu, wall, rss = self._wait(pid, benchmark.timeout_s)
        code = 0 if answers[-1] and code == -signal.SIGKILL else code
        text = b"".join(answers).decode(errors="replace")
        return Run(code, cpu, wall, rss, text, self._errors())

    def _start(
        self,
        benchmark: Benchmark,
        argv: Sequence[str],
        out: Path,
        stdin: str | Path = os.devnull,
    ) -> int:
        assert self.process.stdin is not None
        folder = self.app_folder / benchmark.folder
        variables = VARIABLE_SEPARATOR.join(benchmark.variables)
        fields = [str(stdin), str(out), str(self.err), str(folder), variables, *argv]
        self.process.stdin.write(SEPARATOR.join(fields) + "\n")
        self.process.stdin.flush()
        return int(self._read_reply())

    def _wait(self, pid: int, timeout_s: float) -> tuple[int, float, float, float]:
        assert self.process.stdout is not None
        is_received = b"\n" in self._replies  # a short program has ended with its first reply
        if not is_received and not select.select([self.process.stdout], [], [], timeout_s)[0]:
            os.kill(pid, signal.SIGKILL)
        code, cpu, wall, rss = self._read_reply().split(SEPARATOR)
        return int(code), float(cpu) * 1000, float(wall) * 1000, float(rss) * RSS_UNIT / 1e6

    def _read_reply(self) -> str:
        assert self.process.stdout is not None
        while b"\n" not in self._replies:
            received = os.read(self.process.stdout.fileno(), 1 << 16)
            if not received:
                raise SystemExit("The spawner ended unexpectedly.")
            self._replies += received
        line, _, self._replies = self._replies.partition(b"\n")
        return line.decode()

    def _errors(self) -> str:
        return self.err.read_text(errors="replace")


def read_chunk(reader: int, timeout_s: float) -> bytes:
    """Return the next bytes of a pipe; empty at its end or after the timeout."""
    ready = select.select([reader], [], [], timeout_s)[0]
    return os.read(reader, 1 << 16) if ready else b""


def read_line(reader: int, timeout_s: float) -> bytes:
    """Return the next line of a pipe; empty if the pipe ends or times out before the line ends."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = read_chunk(reader, timeout_s)
        if not chunk:
            return b""
        line += chunk
    return line


def summarize_stderr(text: str) -> str:
    """Return the most informative line of stderr, without absolute paths."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    errors = [line for line in lines if "error:" in line.lower()]
    best = lines[-1] if lines[0].startswith("Traceback") else (errors or lines)[0]
    return ABSOLUTE_PATH.sub("…/", best)[:160]


def failure_reason(benchmark: Benchmark, run: Run) -> str | None:
    """Return why a run is not valid, with a line of its stderr, or None."""
    wrong = benchmark.check(run)
    if wrong is None:
        return None
    message = summarize_stderr(run.stderr)
    return f"{wrong}: {message}" if message else wrong


def is_tolerated(benchmark: Benchmark, run: Run) -> bool:
    """Return whether a run with wrong output is measured anyway. A crash never is."""
    return benchmark.lenient and run.code == 0


def collect_metrics(benchmark: Benchmark, run: Run) -> dict[str, float]:
    """Return the metrics of a run."""
    metrics = {"cpu_ms": run.cpu_ms, "wall_ms": run.wall_ms, "rss_mb": run.rss_mb}
    if benchmark.streamed:
        metrics["first_ms"] = run.first_ms
        metrics["rows_per_s"] = run.lines / (run.wall_ms / 1000)
    if benchmark.read_metrics is not None:
        metrics.update(benchmark.read_metrics(run))
    return metrics


class Runner:
    """Runs the benchmarks in their environments and collects the measurements."""

    def __init__(
        self, benchmarks: Sequence[Benchmark], envs: Environments, spawner: Spawner
    ) -> None:
        self.benchmarks = benchmarks
        self.envs = envs
        self.spawner = spawner
        self.measurements = Measurements()

    def run_once(self, benchmark: Benchmark) -> Run:
        """Run a benchmark once."""
        argv = [self.envs.python(benchmark.venv), *benchmark.args]
        if benchmark.requests:
            return self.spawner.run_server(benchmark, argv)
        run = self.spawner.stream if benchmark.streamed else self.spawner.run
        return run(benchmark, argv)

    def warm_up(self) -> None:
        """Run each benchmark twice, to write bytecode and fill caches, and check its output."""
        for benchmark in self.benchmarks:
            reason = self.envs.problem(benchmark.venv)
            if reason is None and benchmark.max_rounds != 1:
                self.run_once(benchmark)
                run = self.run_once(benchmark)
                reason = failure_reason(benchmark, run)
                if reason and is_tolerated(benchmark, run):
                    self.measurements.remarks[benchmark.key] = reason
                    continue
            if reason:
                self.measurements.missing[benchmark.key] = reason

    def run_rounds(self, count: int, show_progress: Callable[[int, int], None]) -> Measurements:
        """Run each benchmark once per round, in an order that changes with the round."""
        running = [one for one in self.benchmarks if one.key not in self.measurements.missing]
        for number in range(count):
            show_progress(number + 1, count)
            order = [one for one in running if number < (one.max_rounds or count)]
            random.Random(number).shuffle(order)
            for benchmark in order:
                self._measure(benchmark)
        return self.measurements

    def _measure(self, benchmark: Benchmark) -> None:
        run = self.run_once(benchmark)
        reason = failure_reason(benchmark, run)
        if reason is None or is_tolerated(benchmark, run):
            self.measurements.add(benchmark.key, collect_metrics(benchmark, run))
        else:
            self.measurements.remarks[benchmark.key] = f"failed in some rounds: {reason}"
