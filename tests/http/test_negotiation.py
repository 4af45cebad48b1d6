"""What a client prefers, from the headers Accept, Accept-Encoding and Prefer."""

from __future__ import annotations

import pytest

from tooli.http.negotiation import (
    accepts_gzip,
    iter_qualities,
    negotiate_stream_format,
    prefers_problem_details,
    prefers_strict,
)


def test_qualities() -> None:
    header = b"Gzip;q=0.5, br ; x=1;q=0, *;q=many"
    assert list(iter_qualities(header)) == [("gzip", 0.5), ("br", 0.0), ("*", 0.0)]


@pytest.mark.parametrize(
    ("accept", "stream_format"),
    [
        (None, "json"),
        (b"text/event-stream", "sse"),
        (b"application/x-ndjson;q=0.4, text/event-stream;q=0.5", "sse"),
        (b"application/json, application/x-ndjson;q=0.9", "json"),
        (b"application/x-ndjson; events=true", "events"),
        (b"application/jsonl;q=0.5;EVENTS=true, application/json;q=0.1", "events"),
        (b"application/x-ndjson;events=false", "ndjson"),
    ],
)
def test_format_of_a_stream(accept: bytes | None, stream_format: str) -> None:
    assert negotiate_stream_format(accept) == stream_format


def test_preferences() -> None:
    assert prefers_problem_details(b"application/problem+json")
    assert not prefers_problem_details(None)
    assert not prefers_problem_details(b"application/json, application/problem+json;q=0.1")
    assert accepts_gzip(b"br, gzip")
    assert accepts_gzip(b"*")
    assert not accepts_gzip(b"*, gzip;q=0")
    assert not accepts_gzip(None)
    assert prefers_strict(b'foo; bar="a,b", handling=strict')
    assert not prefers_strict(b"handling=lenient, handling=strict")
