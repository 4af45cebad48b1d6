"""A request in the words of a call: its options, its caller, the form of the answer."""

from __future__ import annotations

from tooli.call.model import PLAIN_OPTIONS, Caller, Options, Problem
from tooli.call.wishes import SHAPING, WISHES
from tooli.config.keys import TRUTHS
from tooli.errors import nearest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.surfaces.http.exchange import Exchange

NOBODY = Caller("http", agent=True)
_LONGEST_NAME = 200
_MOST_STRANGERS = 1000
_FORMATS = {"concise": False, "detailed": True}
OPTIONS = ("dry_run", "yes", "response_format", *WISHES, *SHAPING)
"""What may be said to the framework, behind the question mark."""


def read_options(query: bytes, key: bytes | None = None) -> tuple[Options, tuple[Problem, ...]]:
    """What the caller asks of the framework, and what is wrong with that.

    `key` is the header `Idempotency-Key`.
    """
    if not query and key is None:
        return PLAIN_OPTIONS, ()
    from urllib.parse import parse_qsl

    asked: dict[str, Any] = {}
    shaped: dict[str, str] = {}
    problems: list[Problem] = []
    wished: dict[str, str] = {}
    if key is not None:
        wished["idempotency_key"] = key.decode("latin-1").strip().strip('"')
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return PLAIN_OPTIONS, (Problem("E1007", None, "The query has too many parts"),)
    for name, value in pairs:
        if name in ("dry_run", "yes"):
            said = TRUTHS.get(value.lower())
            if said is None:
                problems.append(_misused(name, value, "true or false"))
            asked[name] = bool(said)
        elif name == "response_format":
            if value not in _FORMATS:
                problems.append(_misused(name, value, "concise or detailed"))
            asked["detailed"] = _FORMATS.get(value)
            asked["concise"] = value == "concise"
        elif name in SHAPING:
            shaped[name] = value
        elif name in WISHES:
            if wished.get(name, value) != value:
                problems.append(_twice(name, is_header=key is not None))
            wished[name] = value
        else:
            problems.append(_unknown(name))
    if shaped:
        from tooli.call.shaping import read_shaping

        asked["shaping"] = read_shaping(shaped)
    if wished:
        from tooli.call.wishes import read_wishes

        found, wrong = read_wishes(wished)
        asked.update(found)
        problems += wrong
    return Options(**asked), tuple(problems)


def _misused(name: str, value: str, wants: str) -> Problem:
    return Problem("E1007", name, f"{name}={value[:80]!r}: say {wants}")


def _twice(name: str, *, is_header: bool) -> Problem:
    """What is said two times, and not alike."""
    if is_header and name == "idempotency_key":
        twice = "The header Idempotency-Key and ?idempotency_key= differ: say one of them"
    else:
        twice = f"?{name}= is there twice, and not alike: say it once"
    return Problem("E1050" if name == "idempotency_key" else "E1007", name, twice)


def _unknown(name: str) -> Problem:
    meant = nearest(name, OPTIONS)
    hint = f"; did you mean {meant!r}?" if meant else f": there are {', '.join(OPTIONS)}"
    return Problem("E1007", None, f"There is no option {name[:80]!r}{hint}")


def caller_of(exchange: Exchange, tool: Tool) -> Caller:
    """Who calls, as they say themselves, and with which scopes, as their token says."""
    headers = exchange.headers
    name = _said(headers[b"tooli-caller"]) if b"tooli-caller" in headers else None
    session = _said(headers[b"tooli-session-id"]) if b"tooli-session-id" in headers else None
    scopes = exchange.scopes
    if scopes is None:  # every scope: as far as this tool asks for any
        scopes = frozenset(tool.guard.scopes or ())
    address, principal = exchange.address, exchange.principal
    if name is None and session is None and principal is None and not scopes:
        return _strangers.get(address) or _stranger(address)
    version = _said(headers.get(b"tooli-caller-version")) if name is not None else None
    return Caller(
        "http",
        name,
        version,
        session,
        scopes,
        agent=True,
        principal=principal,
        address=address,
    )


_strangers: dict[str, Caller] = {}
"""Those who say nothing of themselves, by where they come from: most calls are theirs."""


def _stranger(address: str) -> Caller:
    if len(_strangers) >= _MOST_STRANGERS:
        _strangers.clear()
    made = _strangers[address] = Caller("http", agent=True, address=address)
    return made


def _said(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace").strip()
    return text[:_LONGEST_NAME] if text and text.isprintable() else None


# ------------------------------------------------------------------ the form of the answer

_FORMS = {
    "application/x-ndjson": "lines",
    "application/ndjson": "lines",
    "application/jsonl": "lines",
    "text/event-stream": "events",
    "application/json": "whole",
}


def form_wanted(accept: bytes | None) -> str:
    """How a stream is to be answered: "whole", as "lines", or as "events"."""
    best, form = 0.0, "whole"
    for part in (accept or b"").decode("latin-1").lower().split(","):
        kind, *parameters = [word.strip() for word in part.split(";")]
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = _weight(parameter[2:])
        if kind in _FORMS and weight > best:
            best, form = weight, _FORMS[kind]
    return form


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
