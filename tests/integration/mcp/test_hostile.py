"""Random invalid lines on stdin: the server keeps running and answers every request with an id."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.example_count import example_count
from tests.integration.mcp.lines import BATCHES, Generator, Line
from tests.integration.mcp.talk import HANDSHAKE_VERSION, SERVED, STATELESS_VERSION, Talk, talk

WITHOUT_SDK = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
SLACK = 48 << 20
"""Bytes by which a server may grow after it has received lines of every kind."""

HUGE = 100 << 20
"""Bytes of a line that is too long; more than SLACK, so that keeping one is noticed."""


def memory_of(pid: int) -> int:
    """The resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


class Bombardment:
    """Lines sent to a server, and what it says meanwhile."""

    def __init__(self, line: Talk, generator: Generator) -> None:
        self.line = line
        self.generator = generator
        self.counts: Counter[tuple[type, Any]] = Counter()
        self.answers: dict[tuple[type, Any], dict[str, Any]] = {}
        self.wanted: list[Line] = []

    def send(self, lines: list[Line], key: str) -> None:
        """Send all of them, then a last good one, and hear everything up to its answer."""
        self.wanted += [line for line in lines if line.wanted]
        last = self.generator.call("greet", name=key)
        last["id"] = f"last-{key}"
        data = b"\n".join([line.data for line in lines]) + b"\n"
        writer = threading.Thread(
            target=self._write, args=(data, json.dumps(last).encode()), daemon=True
        )
        writer.start()
        while (str, f"last-{key}") not in self.answers:
            assert self.hear(), bytes(self.line.err)
        writer.join()

    def _write(self, data: bytes, last: bytes) -> None:
        self.line.write(data + last + b"\n")

    def hear(self) -> bool:
        """Take one message; False where there is none any more."""
        message = self.line.read()
        if message is None:
            return False
        if "method" not in message and message["id"] is not None:
            key = (type(message["id"]), message["id"])
            self.counts[key] += 1
            self.answers[key] = message
        return True

    def check(self) -> None:
        """Every id that had to be answered was, once; the good requests rightly."""
        twice = {given: count for given, count in self.counts.items() if count > 1}
        assert not twice
        for line in self.wanted:
            for given in line.wanted:
                assert (type(given), given) in self.answers, (given, line.data[:300])
            if line.expected is not None:
                text = self.answers[type(line.wanted[0]), line.wanted[0]]
                structured = text["result"]["structuredContent"]
                value = structured if self.line.stateless else structured["result"]
                assert value == line.expected
        for given in self.generator.unwanted:
            assert (type(given), given) not in self.answers


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("version", [BATCHES, HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("handed", [False, True], ids=["front", "sdk"])
def test_the_server_lives(version: str, handed: bool, tmp_path: Path) -> None:
    app = tmp_path / "served.py"
    app.write_text(("" if handed else WITHOUT_SDK) + SERVED.read_text())
    generator = Generator(7, version)
    number = example_count(1000 if handed else 5000)
    if version == BATCHES:
        number //= 4
    with talk(app, version) as line:
        if handed:
            line.result("resources/list")
        storm = Bombardment(line, generator)
        storm.send([*generator.make(number), generator.huge(HUGE, last=False)], "half")
        before = memory_of(line.process.pid)
        storm.send([*generator.make(number), generator.huge(HUGE, last=True)], "whole")
        for key in generator.gates:
            release = generator.call("release", key=key)
            line.send(release)
            storm.wanted.append(Line(b"", (release["id"],), key))
        after = memory_of(line.process.pid)
        final = generator.call("greet", name="end")
        storm.wanted.append(Line(b"", (final["id"],), "Hello end!"))
        line.write(json.dumps(final).encode())  # without a newline
        line.close_stdin()
        while storm.hear():
            pass
        storm.check()
        assert line.process.wait(60) == 0
        assert b"Traceback" not in line.err
        assert after - before < SLACK
