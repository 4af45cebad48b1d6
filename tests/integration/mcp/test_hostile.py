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
from tests.integration.mcp.hostile_lines import BATCH_VERSION, Line, LineGenerator
from tests.integration.mcp.stdio_client import (
    HANDSHAKE_VERSION,
    SERVED,
    STATELESS_VERSION,
    WITHOUT_SDK,
    StdioClient,
    connect,
)

MAX_MEMORY_GROWTH = 48 << 20
"""Bytes by which the memory of a server may grow after lines of every kind."""

HUGE_LINE_BYTES = 100 << 20
"""Size of a line that is too long. The test fails if the server keeps such a line in memory."""


def resident_memory(pid: int) -> int:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


class HostileExchange:
    """Sends lines to a server and collects its answers."""

    def __init__(self, client: StdioClient, generator: LineGenerator) -> None:
        self.client = client
        self.generator = generator
        self.counts: Counter[tuple[type, Any]] = Counter()
        self.answers: dict[tuple[type, Any], dict[str, Any]] = {}
        self.answered_lines: list[Line] = []

    def send(self, lines: list[Line], key: str) -> None:
        """Send the lines and a valid one, and read all messages up to its answer."""
        self.answered_lines += [line for line in lines if line.answered_ids]
        last = self.generator.call("greet", name=key)
        last["id"] = f"last-{key}"
        data = b"\n".join([line.data for line in lines]) + b"\n"
        writer = threading.Thread(
            target=self._write, args=(data, json.dumps(last).encode()), daemon=True
        )
        writer.start()
        while (str, f"last-{key}") not in self.answers:
            assert self.read(), bytes(self.client.stderr)
        writer.join()

    def _write(self, data: bytes, last: bytes) -> None:
        self.client.write(data + last + b"\n")

    def read(self) -> bool:
        """Read one message; return False after the last one."""
        message = self.client.read()
        if message is None:
            return False
        if "method" not in message and message["id"] is not None:
            key = (type(message["id"]), message["id"])
            self.counts[key] += 1
            self.answers[key] = message
        return True

    def check(self) -> None:
        """Assert that each id was answered once, and each valid request correctly."""
        repeated = {key: count for key, count in self.counts.items() if count > 1}
        assert not repeated
        for line in self.answered_lines:
            for request_id in line.answered_ids:
                key = (type(request_id), request_id)
                assert key in self.answers, (request_id, line.data[:300])
            if line.expected is not None:
                first_id = line.answered_ids[0]
                answer = self.answers[type(first_id), first_id]
                assert self._value(answer["result"]) == line.expected
        for request_id in self.generator.unanswered_ids:
            assert (type(request_id), request_id) not in self.answers

    def _value(self, result: Any) -> Any:
        """Return the value of a tool. The version with batches has text only."""
        if self.client.version == BATCH_VERSION:
            assert "structuredContent" not in result
            return json.loads(result["content"][0]["text"])["result"]
        structured = result["structuredContent"]
        return structured if self.client.stateless else structured["result"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("version", [BATCH_VERSION, HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("uses_sdk", [False, True], ids=["stdio-server", "sdk"])
def test_server_survives_invalid_lines(version: str, uses_sdk: bool, tmp_path: Path) -> None:
    app = tmp_path / "served.py"
    app.write_text(("" if uses_sdk else WITHOUT_SDK) + SERVED.read_text())
    generator = LineGenerator(7, version)
    number = example_count(1000 if uses_sdk else 5000)
    if version == BATCH_VERSION:
        number //= 4
    with connect(app, version) as client:
        if uses_sdk:
            client.result("resources/list")
        exchange = HostileExchange(client, generator)
        exchange.send(
            [*generator.make(number), generator.huge(HUGE_LINE_BYTES, id_at_end=False)],
            "first-half",
        )
        before = resident_memory(client.process.pid)
        exchange.send(
            [*generator.make(number), generator.huge(HUGE_LINE_BYTES, id_at_end=True)],
            "second-half",
        )
        for key in generator.gates:
            release = generator.call("release", key=key)
            client.send(release)
            exchange.answered_lines.append(Line(b"", (release["id"],), key))
        after = resident_memory(client.process.pid)
        final = generator.call("greet", name="end")
        exchange.answered_lines.append(Line(b"", (final["id"],), "Hello end!"))
        client.write(json.dumps(final).encode())  # without a newline
        client.close_stdin()
        while exchange.read():
            pass
        exchange.check()
        assert client.process.wait(60) == 0
        assert b"Traceback" not in client.stderr
        assert after - before < MAX_MEMORY_GROWTH
