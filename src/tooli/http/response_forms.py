"""Other forms of a response: problem details, answers that clients can cache, compressed answers.

    failure, Accept: application/problem+json ─▶ RFC 9457
    answer to GET ─▶ ETag, Link, 304 if the client has it, gzip

Answers to POST requests that succeed do not come here.
"""

from __future__ import annotations

import asyncio
from gzip import compress
from hashlib import sha256
from json import dumps, loads

from tooli.core import Record
from tooli.errors import ERROR_CODES
from tooli.http.negotiation import accepts_gzip, prefers_problem_details
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import JsonObject
    from tooli.http.asgi import Headers
    from tooli.http.http_request import HttpRequest

MIN_COMPRESSED, MAX_COMPRESSED = 1_000, 8 << 20
"""Sizes of the answers that are compressed, in bytes."""

_LARGE_BYTES = 1 << 16
"""A larger answer is compressed in a thread."""

_COMPRESSION_LEVEL = 5
_PROBLEM_TYPE = b"application/problem+json"
_VARY = (b"vary", b"accept, accept-encoding, authorization")


class CachedForm(Record):
    """How the answer to a GET request is sent: with an ETag, and compressed if the client asks.

    `next_page_url` returns the URL of the page after a cursor.
    """

    next_page_url: Callable[[str], str] | None = None
    may_compress: bool = True


async def adapt_response(
    request: HttpRequest, status: int, body: bytes, headers: Headers
) -> tuple[int, bytes, Headers]:
    """Return the status, body and headers of a response in the form that the client asks for."""
    if status >= 400:
        if b'"error":' in body and prefers_problem_details(request.headers.get(b"accept")):
            headers = ((b"content-type", _PROBLEM_TYPE), *headers)
            body = to_problem(status, body)
        no_store = () if request.cached_form is None else ((b"cache-control", b"no-store"), _VARY)
        return status, body, (*headers, *no_store)
    if status == 200 and request.cached_form is not None:
        return await _cached_response(request, request.cached_form, body, headers)
    return status, body, headers


# ------------------------------------------------------------------ problem details


def to_problem(status: int, envelope: bytes) -> bytes:
    """Return the envelope of a failure as problem details (RFC 9457)."""
    fields: JsonObject = loads(envelope)
    error: JsonObject = fields["error"]
    code = str(error["code"])
    row = ERROR_CODES.get(code)
    title = row[0] if row is not None else str(error["category"])
    problem: JsonObject = {
        "type": f"urn:tooli:error:{code}",
        "title": f"{title[:1].upper()}{title[1:]}",
        "status": status,
        "detail": error["message"],
    }
    more = {name: value for name, value in error.items() if name != "message"}
    return dumps({**problem, **more, "meta": fields["meta"]}, ensure_ascii=False).encode()


# ------------------------------------------------------------------ answers to GET


async def _cached_response(
    request: HttpRequest, form: CachedForm, body: bytes, headers: Headers
) -> tuple[int, bytes, Headers]:
    end, meta = _split_meta(body)
    tag = _entity_tag(body[:end], meta)
    more: Headers = ((b"etag", tag), (b"cache-control", b"private, no-cache"), _VARY)
    page = meta.get("page")
    cursor = page.get("next_cursor") if is_object(page) else None
    if isinstance(cursor, str) and form.next_page_url is not None:
        url = form.next_page_url(cursor)
        more = (*more, (b"link", f'<{url}>; rel="next"'.encode("ascii")))
    if _matches(request.headers.get(b"if-none-match"), tag):
        return 304, b"", more
    headers = (*headers, *more)
    if not form.may_compress or not _may_compress(request, len(body)):
        return 200, body, headers
    if len(body) > _LARGE_BYTES:
        body = await asyncio.to_thread(_compress, body)
    else:
        body = _compress(body)
    return 200, body, (*headers, (b"content-encoding", b"gzip"))


def _compress(body: bytes) -> bytes:
    return compress(body, _COMPRESSION_LEVEL, mtime=0)


_CHANGING_FIELDS = ("duration_ms", "request_id")
_META_START = b',"meta":{'


def _split_meta(body: bytes) -> tuple[int, JsonObject]:
    """Return where the `meta` of an envelope starts, and the `meta`; ({} for another body)."""
    start = body.rfind(_META_START)
    while start >= 0:
        try:
            found: JsonObject = loads(b"{" + body[start + 1 :])
            return start, found["meta"]
        except ValueError:  # this one is inside another object
            start = body.rfind(_META_START, 0, start)
    return len(body), {}


def _entity_tag(result: bytes, meta: JsonObject) -> bytes:
    """Return the ETag of an answer. It does not depend on when the call was made, and how long."""
    stable = {name: value for name, value in meta.items() if name not in _CHANGING_FIELDS}
    digest = sha256(result)
    digest.update(dumps(stable, sort_keys=True).encode())
    return b'W/"%b"' % digest.hexdigest()[:32].encode()


def _matches(if_none_match: bytes | None, tag: bytes) -> bool:
    if if_none_match is None:
        return False
    tags = [item.strip().removeprefix(b"W/") for item in if_none_match.split(b",")]
    return b"*" in tags or tag.removeprefix(b"W/") in tags


def _may_compress(request: HttpRequest, size: int) -> bool:
    """True if an answer may be compressed for this client.

    The length of a compressed answer shows how similar its parts are. If a page of another origin
    chooses the arguments, this would reveal the rest of the answer (the attack BREACH).
    """
    if not MIN_COMPRESSED <= size <= MAX_COMPRESSED or b"origin" in request.headers:
        return False
    return accepts_gzip(request.headers.get(b"accept-encoding"))
