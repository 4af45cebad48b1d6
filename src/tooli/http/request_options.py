"""A request in the words of a call: its options, its caller, the form of the answer."""

from __future__ import annotations

from tooli.config.setting_definitions import BOOLEAN_VALUES
from tooli.core._hot_tables import CHOICES, HTTP_OPTIONS, OPTION_KINDS, RUN_OPTIONS
from tooli.core.call import DEFAULT_OPTIONS, Caller, Options, Problem
from tooli.errors import closest_match
from tooli.pipeline.option_values import build_options

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.http.http_request import HttpRequest

ANONYMOUS_CALLER = Caller("http", maybe_agent=True)
_MAX_NAME_LENGTH = 200
_MAX_ANONYMOUS_CALLERS = 1000


def read_options(query: bytes, key: bytes | None = None) -> tuple[Options, tuple[Problem, ...]]:
    """Return the framework options of a request, and the problems with them.

    `key` is the header `Idempotency-Key`.
    """
    if not query and key is None:
        return DEFAULT_OPTIONS, ()
    from urllib.parse import parse_qsl

    values: dict[str, Any] = {}
    problems: list[Problem] = []
    if key is not None:
        values["idempotency_key"] = key.decode("latin-1").strip().strip('"')
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return DEFAULT_OPTIONS, (Problem("E1007", None, "The query has too many parameters"),)
    for name, value in pairs:
        kind = OPTION_KINDS[name] if name in HTTP_OPTIONS else None
        if kind is None:
            problems.append(_unknown_option_problem(name))
        elif kind == "flag":
            flag = BOOLEAN_VALUES.get(value.lower())
            if flag is None:
                problems.append(_invalid_option_problem(name, value, "true or false"))
            values[name] = bool(flag)
        elif kind == "choice":
            if value in CHOICES[name]:
                values[name] = value
            else:
                expected = " or ".join(CHOICES[name])
                problems.append(_invalid_option_problem(name, value, expected))
        else:
            if name in RUN_OPTIONS and values.get(name, value) != value:
                problems.append(_conflicting_option_problem(name, is_header=key is not None))
            values[name] = value
    options, option_problems = build_options(values)
    return options, (*problems, *option_problems)


def _invalid_option_problem(name: str, value: str, expected: str) -> Problem:
    return Problem("E1007", name, f"{name} must be {expected}, not {value[:80]!r}")


def _conflicting_option_problem(name: str, *, is_header: bool) -> Problem:
    """Return the problem for an option that is given twice with different values."""
    if is_header and name == "idempotency_key":
        message = "The header Idempotency-Key and ?idempotency_key= differ: send only one of them"
    else:
        message = f"?{name}= is given twice with different values: send it once"
    return Problem("E1050" if name == "idempotency_key" else "E1007", name, message)


def _unknown_option_problem(name: str) -> Problem:
    suggestion = closest_match(name, HTTP_OPTIONS)
    hint = (
        f"; did you mean {suggestion!r}?"
        if suggestion
        else f"; the options are {', '.join(HTTP_OPTIONS)}"
    )
    return Problem("E1007", None, f"Unknown option {name[:80]!r}{hint}")


def caller_from_request(request: HttpRequest, tool: Tool) -> Caller:
    """Who calls, as they say themselves, and with which scopes, as their token says."""
    headers = request.headers
    name = _header_text(headers[b"tooli-caller"]) if b"tooli-caller" in headers else None
    session = _header_text(headers[b"tooli-session-id"]) if b"tooli-session-id" in headers else None
    scopes = request.scopes
    if scopes is None:  # every scope: as far as this tool asks for any
        scopes = frozenset(tool.guard.scopes or ())
    address, principal = request.address, request.principal
    if name is None and session is None and principal is None and not scopes:
        return _anonymous_callers.get(address) or _anonymous_caller(address)
    version = _header_text(headers.get(b"tooli-caller-version")) if name is not None else None
    return Caller(
        "http",
        name,
        version,
        session,
        scopes,
        maybe_agent=True,
        principal=principal,
        address=address,
    )


_anonymous_callers: dict[str, Caller] = {}
"""Those who say nothing of themselves, by where they come from: most calls are theirs."""


def _anonymous_caller(address: str) -> Caller:
    if len(_anonymous_callers) >= _MAX_ANONYMOUS_CALLERS:
        _anonymous_callers.clear()
    caller = _anonymous_callers[address] = Caller("http", maybe_agent=True, address=address)
    return caller


def _header_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace").strip()
    return text[:_MAX_NAME_LENGTH] if text and text.isprintable() else None


# ------------------------------------------------------------------ the form of the answer

_FORMAT_BY_MEDIA_TYPE = {
    "application/x-ndjson": "lines",
    "application/ndjson": "lines",
    "application/jsonl": "lines",
    "text/event-stream": "events",
    "application/json": "whole",
}


def negotiate_stream_format(accept: bytes | None) -> str:
    """How a stream is to be answered: "whole", as "lines", or as "events"."""
    best, stream_format = 0.0, "whole"
    for part in (accept or b"").decode("latin-1").lower().split(","):
        media_type, *parameters = [item.strip() for item in part.split(";")]
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                quality = _parse_quality(parameter[2:])
        if media_type in _FORMAT_BY_MEDIA_TYPE and quality > best:
            best, stream_format = quality, _FORMAT_BY_MEDIA_TYPE[media_type]
    return stream_format


def _parse_quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
