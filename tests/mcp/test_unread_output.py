"""An answer follows its progress notifications after the client has read them."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tooli.mcp import unread_output
from tooli.mcp.stdio_transport import StdioTransport
from tooli.mcp.unread_output import count_unread_bytes


@pytest.fixture(params=["pipe", "socket"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """The end of a client that reads, and the end that is written to."""
    if request.param == "pipe":
        reader, writer = os.pipe()
    else:
        reader, writer = [end.detach() for end in socket.socketpair()]
    yield reader, writer
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tell")
def test_unread_bytes_are_counted(ends: tuple[int, int]) -> None:
    reader, writer = ends
    assert count_unread_bytes(writer) == 0
    os.write(writer, b"x" * 100)
    assert (count_unread_bytes(writer) or 0) >= 100
    os.read(reader, 1000)
    assert count_unread_bytes(writer) == 0


def test_file_has_no_reader_to_wait_for(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        file.write(b"x")
        file.flush()
        assert count_unread_bytes(file.fileno()) == 0


def test_closed_descriptor_has_no_reader_to_wait_for() -> None:
    assert count_unread_bytes(-1) == 0


def test_answer_waits_until_the_progress_was_read(ends: tuple[int, int]) -> None:
    reader, writer = ends
    transport = StdioTransport(-1, writer)
    chunks: list[bytes] = []

    def read() -> None:
        while b'"id":1' not in b"".join(chunks):
            chunks.append(os.read(reader, 65536))

    transport.write({"method": "notifications/progress", "params": {"progress": 1}})
    thread = threading.Thread(target=read)
    thread.start()
    transport.write({"id": 1, "result": {}})
    thread.join(120)
    assert len(chunks) == 2
    assert b"progress" in chunks[0] and b'"id":1' not in chunks[0]


def test_client_that_does_not_read_gets_the_answer_too(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = ends
    monkeypatch.setattr(unread_output, "READ_TIMEOUT", 0.01)
    transport = StdioTransport(-1, writer)
    transport.write({"method": "notifications/progress"})
    transport.write({"id": 1})
    transport.write({"id": 2})
    lines = os.read(reader, 65536).splitlines()
    while len(lines) < 3:
        lines += os.read(reader, 65536).splitlines()
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("messages", "waits"),
    [
        ([{"id": 1}, {"id": 2}], 0),
        ([{"method": "notifications/message"}, {"id": 1}], 0),
        ([{"method": "notifications/progress"}, {"id": 1}, {"id": 2}], 1),
        (
            [
                {"method": "notifications/progress"},
                {"method": "notifications/message"},
                {"id": 1, "method": "elicitation/create"},
                {"id": 1},
            ],
            1,
        ),
    ],
)
def test_only_an_answer_after_progress_waits(
    ends: tuple[int, int], messages: list[Any], waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(unread_output, "wait_until_read", waited.append)
    transport = StdioTransport(-1, ends[1])
    for message in messages:
        transport.write(message)
    assert len(waited) == waits
