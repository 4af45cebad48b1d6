"""Read the headers in which a client states what it prefers: Accept, Accept-Encoding, Prefer."""

from __future__ import annotations

import re

from tooli.http.call_events import has_context

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.tool import Tool

_FORMAT_BY_MEDIA_TYPE = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/event-stream": "sse",
    "application/json": "json",
}


def iter_qualities(header: bytes | None) -> Iterator[tuple[str, float]]:
    """Yield the values of a header and their qualities: `("gzip", 0.8)` for `gzip;q=0.8`."""
    for value, _, quality in _iter_values(header):
        yield value, quality


def _iter_values(header: bytes | None) -> Iterator[tuple[str, list[str], float]]:
    """Yield the values of a header, their parameters and their qualities."""
    for part in (header or b"").decode("latin-1").lower().split(","):
        value, *parameters = [item.strip() for item in part.split(";")]
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                quality = _parse_quality(parameter[2:])
        yield value, parameters, quality


def _parse_quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def negotiate_stream_format(accept: bytes | None) -> str:
    """Return the response format for a stream: "json" (one envelope), "ndjson", "sse" or "events".

    "events" is NDJSON with the parameter `events=true`: all events, not only the items.
    """
    best, stream_format = 0.0, "json"
    for media_type, parameters, quality in _iter_values(accept):
        if media_type in _FORMAT_BY_MEDIA_TYPE and quality > best:
            best, stream_format = quality, _FORMAT_BY_MEDIA_TYPE[media_type]
            if stream_format == "ndjson" and "events=true" in parameters:
                stream_format = "events"
    return stream_format


def choose_format(tool: Tool, accept: bytes | None) -> str:
    """Return the format of the answer: "json", "ndjson", "sse" or "events".

    A command that yields no items sends server-sent events only if it takes a Context.
    """
    stream_format = "json" if accept is None else negotiate_stream_format(accept)
    if tool.is_streaming or stream_format == "events":
        return stream_format
    return "sse" if stream_format == "sse" and has_context(tool) else "json"


def prefers_problem_details(accept: bytes | None) -> bool:
    """True if a client asks for problem details, and does not prefer the envelope."""
    if accept is None or b"problem+json" not in accept.lower():
        return False
    qualities = dict(iter_qualities(accept))
    quality = qualities.get("application/problem+json", 0.0)
    return quality > 0 and quality >= qualities.get("application/json", 0.0)


def accepts_gzip(accept_encoding: bytes | None) -> bool:
    """True if a client can read a compressed response."""
    qualities = dict(iter_qualities(accept_encoding))
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def prefers_strict(prefer: bytes) -> bool:
    """True if a Prefer header asks for strict handling. Only the first `handling` in it counts."""
    for preference in _split_outside_quotes(prefer.decode("latin-1"), ","):
        name, _, value = next(_split_outside_quotes(preference, ";"), "").partition("=")
        if name.strip().lower() == "handling":
            return value.strip().strip('"').lower() == "strict"
    return False


def _split_outside_quotes(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of a text between separators that are outside quotes."""
    for found in re.finditer(rf'(?:[^{separator}"]|"(?:[^"\\]|\\.)*"?)+', text):
        yield found.group()
