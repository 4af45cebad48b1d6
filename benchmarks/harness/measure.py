"""Run the contestants round by round, interleaved, and fill a ledger."""

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
from harness.model import Contestant, Ledger, Run
from harness.spawn import SEPARATOR

PATIENCE_S = 180.0
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
ABSOLUTE_PATH = re.compile(r"(?:/[\w.+-]+){2,}/")


class Spawner:
    """A very small process that starts the contestants for us (see `spawn.py`)."""

    def __init__(self, workshop: Path) -> None:
        self.out, self.err = workshop / ".out", workshop / ".err"
        self.pipe, self.words = workshop / ".pipe", workshop / ".words"
        for pipe in (self.pipe, self.words):
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("spawn.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=workshop,
            env=clean_environment(),
            text=True,
        )

    def __enter__(self) -> Spawner:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
        for path in (self.out, self.err, self.pipe, self.words):
            path.unlink(missing_ok=True)

    def run(self, argv: Sequence[str]) -> Run:
        """Run a program to its end with its output in files."""
        pid = self._request(self.out, argv)
        code, cpu, wall, rss = self._wait(pid)
        return Run(code, cpu, wall, rss, self.out.read_text(errors="replace"), self._errors())

    def stream(self, argv: Sequence[str]) -> Run:
        """Run a program and read its output from a pipe as it comes."""
        reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            began = time.perf_counter()
            pid = self._request(self.pipe, argv)
            first = lines = 0
            while chunk := read_chunk(reader):
                first = first or time.perf_counter()
                lines += chunk.count(b"\n")
        finally:
            os.close(reader)
        code, cpu, wall, rss = self._wait(pid)
        first_ms = (first - began) * 1000 if first else 0.0
        return Run(code, cpu, wall, rss, "", self._errors(), lines, first_ms)

    def talk(self, argv: Sequence[str], dialogue: Sequence[str]) -> Run:
        """Tell a server one thing after the other, and end it as soon as the last is answered.

        It is killed: what counts is what it cost to answer, not how it takes its leave.
        """
        reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(self.words, os.O_RDWR)  # both ends: neither side has to wait for the other
        try:
            pid = self._request(self.pipe, argv, self.words)
            answers: list[bytes] = []
            for turn in dialogue:
                os.write(writer, turn.encode())
                answers.append(read_line(reader))
                if not answers[-1]:
                    break
            else:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        finally:
            os.close(reader)
            os.close(writer)
        code, cpu, wall, rss = self._wait(pid)
        code = 0 if answers[-1] and code == -signal.SIGKILL else code
        text = b"".join(answers).decode(errors="replace")
        return Run(code, cpu, wall, rss, text, self._errors())

    def _request(self, out: Path, argv: Sequence[str], source: str | Path = os.devnull) -> int:
        assert self.process.stdin is not None
        words = [str(source), str(out), str(self.err), *argv]
        self.process.stdin.write(SEPARATOR.join(words) + "\n")
        self.process.stdin.flush()
        return int(self._answer())

    def _wait(self, pid: int) -> tuple[int, float, float, float]:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            os.kill(pid, signal.SIGKILL)
        code, cpu, wall, rss = self._answer().split(SEPARATOR)
        return int(code), float(cpu) * 1000, float(wall) * 1000, float(rss) * RSS_UNIT / 1e6

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("The spawner ended unexpectedly.")
        return line.rstrip("\n")

    def _errors(self) -> str:
        return self.err.read_text(errors="replace")


def read_chunk(reader: int) -> bytes:
    """What a pipe holds next; nothing at its end, or when it stays silent for too long."""
    ready = select.select([reader], [], [], PATIENCE_S)[0]
    return os.read(reader, 1 << 16) if ready else b""


def read_line(reader: int) -> bytes:
    """The next line that a pipe holds; nothing when it ends or falls silent before that."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = read_chunk(reader)
        if not chunk:
            return b""
        line += chunk
    return line


def first_line(text: str) -> str:
    """The line of an error output that says what happened, without absolute paths."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    complaints = [line for line in lines if "error:" in line.lower()]
    telling = lines[-1] if lines[0].startswith("Traceback") else (complaints or lines)[0]
    return ABSOLUTE_PATH.sub("…/", telling)[:160]


def complaint(contestant: Contestant, run: Run) -> str | None:
    """Return why a run does not count, with its first line of stderr."""
    wrong = contestant.check(run)
    if wrong is None:
        return None
    message = first_line(run.stderr)
    return f"{wrong}: {message}" if message else wrong


def tolerated(contestant: Contestant, run: Run) -> bool:
    """Whether a wrong answer is timed all the same; a crash never is."""
    return contestant.lenient and run.code == 0


def metrics_of(contestant: Contestant, run: Run) -> dict[str, float]:
    """The numbers of one run."""
    metrics = {"cpu_ms": run.cpu_ms, "wall_ms": run.wall_ms, "rss_mb": run.rss_mb}
    if contestant.streamed:
        metrics["first_ms"] = run.first_ms
        metrics["rows_per_s"] = run.lines / (run.wall_ms / 1000)
    if contestant.harvest is not None:
        metrics.update(contestant.harvest(run))
    return metrics


class Race:
    """All contestants, the environments that they run in and what came out."""

    def __init__(
        self, contestants: Sequence[Contestant], envs: Environments, spawner: Spawner
    ) -> None:
        self.contestants = contestants
        self.envs = envs
        self.spawner = spawner
        self.ledger = Ledger()

    def run_once(self, contestant: Contestant) -> Run:
        """Run one contestant."""
        argv = [self.envs.python(contestant.venv), *contestant.args]
        if contestant.dialogue:
            return self.spawner.talk(argv, contestant.dialogue)
        return self.spawner.stream(argv) if contestant.streamed else self.spawner.run(argv)

    def warm_up(self) -> None:
        """Write the bytecode, fill the disk cache and see who does the job at all."""
        for contestant in self.contestants:
            reason = self.envs.problem(contestant.venv)
            if reason is None:
                self.run_once(contestant)
                run = self.run_once(contestant)
                reason = complaint(contestant, run)
                if reason and tolerated(contestant, run):
                    self.ledger.remarks[contestant.key] = reason
                    continue
            if reason:
                self.ledger.missing[contestant.key] = reason

    def rounds(self, count: int, tell: Callable[[int, int], None]) -> Ledger:
        """Let everybody run once per round, in an order that changes from round to round."""
        running = [one for one in self.contestants if one.key not in self.ledger.missing]
        for number in range(count):
            tell(number + 1, count)
            order = [one for one in running if number < (one.most_rounds or count)]
            random.Random(number).shuffle(order)
            for contestant in order:
                self._measure(contestant)
        return self.ledger

    def _measure(self, contestant: Contestant) -> None:
        run = self.run_once(contestant)
        reason = complaint(contestant, run)
        if reason is None or tolerated(contestant, run):
            self.ledger.add(contestant.key, metrics_of(contestant, run))
        else:
            self.ledger.remarks[contestant.key] = f"failed in some rounds: {reason}"
