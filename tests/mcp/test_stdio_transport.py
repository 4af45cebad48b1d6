"""StdioTransport: lines, JSON, and the ids in invalid lines."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator

import pytest

from tooli.mcp import stdio_transport
from tooli.mcp.stdio_transport import (
    OversizedLine,
    StdioTransport,
    alternate_id,
    find_request_ids,
    from_json,
    to_json,
)


@pytest.fixture
def pipes() -> Iterator[tuple[StdioTransport, int, int]]:
    """A transport, the descriptor that writes to it, and the one that reads from it."""
    (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
    yield StdioTransport(server_in, server_out), client_out, client_in
    for descriptor in (server_in, client_out, client_in, server_out):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test has closed it


def test_lines_are_split_across_reads(pipes: tuple[StdioTransport, int, int]) -> None:
    transport, writer, _ = pipes
    os.write(writer, b"one\ntw")
    lines = transport.lines()
    assert next(lines) == b"one"
    os.write(writer, b"o\n\nrest")
    os.close(writer)
    assert list(lines) == [b"two", b"", b"rest"]


def test_long_line_is_skipped(
    pipes: tuple[StdioTransport, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_LINE_BYTES", 100)
    transport = pipes[0]
    chunks = iter([b'{"id":7,"x":"' + b"y" * 200, b"y" * 200, b'"}\nnext\n'])
    monkeypatch.setattr(transport, "_read", lambda: next(chunks, b""))
    long_line, following = transport.lines()
    assert isinstance(long_line, OversizedLine)
    assert find_request_ids(long_line) == [7]
    assert following == b"next"


def test_disconnected_client_is_noticed(pipes: tuple[StdioTransport, int, int]) -> None:
    transport, _, reader = pipes
    transport.write({"id": 1})
    assert os.read(reader, 100) == b'{"id":1}\n'
    assert not transport.is_disconnected()
    os.close(reader)
    assert transport.is_disconnected()
    transport.write({"id": 2})
    assert transport.is_broken


def test_message_that_json_cannot_represent() -> None:
    assert json.loads(to_json({"x": math.inf, "y": {1, 2}})) == {"x": None, "y": [1, 2]}
    assert to_json({"x": "\ud800"}) == b'{"x":"\\ud800"}'


@pytest.mark.parametrize("line", [b"NaN", b'{"x":Infinity}', b"{", b""])
def test_invalid_json_is_rejected(line: bytes) -> None:
    with pytest.raises(ValueError):
        from_json(line)


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b'{"id": 7, "params": {"id": 8}', [7]),
        (b'{"params": {"id": 8}, "id": "a"', ["a"]),
        (b'[{"id": 1}, {"id": 2}, {"id": 1}', [1, 2]),
        (b'{"id": true', []),
        (b'{"x": "unterminated, "id": 9}', [9]),
        (b"not json", []),
    ],
)
def test_ids_in_invalid_lines(line: bytes, ids: list[int | str]) -> None:
    assert find_request_ids(line) == ids


@pytest.mark.parametrize(
    ("given", "other"), [(7, "7"), ("7", 7), ("x", "x"), ("9" * 30, "9" * 30), ("\u0667", "\u0667")]
)
def test_alternate_id(given: int | str, other: int | str) -> None:
    assert alternate_id(given) == other
