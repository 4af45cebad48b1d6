"""Read the pages of an API: find out how an operation pages, and continue where a page ends.

    link      the header `Link: <…>; rel="next"`, or a URL in the answer
    cursor    a text in the answer: `next_cursor`, `nextPageToken`, …
    last_id   the `id` of the last record (Stripe: `starting_after`)
    offset    the number of records so far
    page      the number of the page

The cursor of a page is a text that says which, such as `offset:20`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_plus, urljoin, urlsplit

from tooli.core import Record
from tooli.core.result_types import Page
from tooli.errors import InputError
from tooli.providers.openapi.http_client import origin_of
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.core.result_types import PageRequest
    from tooli.providers.openapi.http_client import ApiAnswer
    from tooli.providers.openapi.operations import ApiParameter, Operation

_LIMITS = frozenset(
    (
        *("limit", "perpage", "pagesize", "maxresults", "top", "pagelen", "pagelimit"),
        *("maxitems", "itemsperpage", "resultsperpage"),
    )
)
_CURSORS = frozenset(
    (
        *("cursor", "pagetoken", "nexttoken", "nextpagetoken", "after", "startingafter"),
        *("continuationtoken", "continue", "marker", "paginationtoken", "nextcursor"),
        *("pagecursor", "startcursor", "scrollid"),
    )
)
_OFFSETS = frozenset(("offset", "skip", "startindex"))
_PAGES = frozenset(("page", "pagenumber", "pageindex", "pageno"))
_NEXT_NAMES = frozenset(
    (
        *("nextcursor", "nextpagetoken", "nexttoken", "cursornext", "continuationtoken"),
        *("nextpagecursor", "continue", "endcursor", "nextlink", "odatanextlink", "next"),
        *("nextmarker", "nextpage", "paginationtoken", "scrollid", "after"),
    )
)
_TOTALS = frozenset(("total", "totalcount", "totalresults", "totalitems", "totalsize"))
_LISTS = ("data", "items", "results", "values", "records", "entries", "list", "value")
_CONTAINERS = frozenset(
    (
        *("meta", "metadata", "pagination", "paging", "pageinfo", "links", "cursors"),
        *("responsemetadata", "page", "cursor"),
    )
)
_MAX_CURSOR_CHARS = 4_000
_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^,;\"]+(?:\"[^\"]*\")?)*)")


class Paging(Record):
    """How an operation pages. The names are those of its arguments."""

    items: str | None  # the property of the answer with the records; None: the answer is a list
    limit: str | None = None
    cursor: str | None = None
    offset: str | None = None
    page: str | None = None
    is_last_id: bool = False
    max_limit: int | None = None
    default_limit: int | None = None

    @property
    def replaced(self) -> frozenset[str]:
        """The arguments that the options `limit` and `cursor` of the framework replace."""
        names = ((self.limit, "limit"), (self.cursor, "cursor"))
        return frozenset([option for name, option in names if name == option])


def find_paging(operation: Operation) -> Paging | None:
    """Return how an operation pages; None if it does not, or does not document it."""
    if operation.entry.method not in ("get", "query") or operation.is_tooli:
        return None
    found, items = _list_of(operation.output_schema)
    if not found:
        return None
    query = [p for p in operation.parameters if p.location == "query" and not p.is_required]
    limit = _find(query, _LIMITS, "integer")
    cursor = _find(query, _CURSORS, None)
    offset = _find(query, _OFFSETS, "integer")
    page = _find(query, _PAGES, "integer")
    if cursor is None and offset is None and page is None:
        return None
    sizes = [None if limit is None else limit.schema.get(k) for k in ("maximum", "default")]
    max_limit, default_limit = [size if isinstance(size, int) else None for size in sizes]
    return Paging(
        items,
        *[None if p is None else p.name for p in (limit, cursor, offset, page)],
        is_last_id=cursor is not None and _fold(cursor.wire_name) == "startingafter",
        max_limit=max_limit,
        default_limit=default_limit,
    )


def _find(
    parameters: list[ApiParameter], names: frozenset[str], kind: str | None
) -> ApiParameter | None:
    for parameter in parameters:
        declared = parameter.schema.get("type")
        fits = kind is None or declared == kind or (is_list(declared) and kind in declared)
        fits = fits or (kind == "integer" and declared == "number")
        if fits and _fold(parameter.wire_name) in names:
            return parameter
    return None


def _fold(name: str) -> str:
    return "".join([char for char in name.lower() if char.isalnum()])


def _list_of(schema: JsonObject | None) -> tuple[bool, str | None]:
    """Return whether an answer has a list of records, and the property that has it."""
    if schema is None:
        return False, None
    if schema.get("type") == "array":
        return True, None
    lists = [n for n, p in schema.get("properties", {}).items() if p.get("type") == "array"]
    named = [name for name in _LISTS if name in lists]
    if named or len(lists) == 1:
        return True, (named or lists)[0]
    return False, None


def items_schema(paging: Paging, schema: JsonObject) -> JsonObject:
    """Return the schema of the records of all pages."""
    return schema if paging.items is None else schema["properties"][paging.items]


# ------------------------------------------------------------------ requests


class PageArguments(Record):
    """The arguments of a request for a page."""

    arguments: Mapping[str, Any]
    query: str | None = None  # the whole query, as the server has sent it
    start: int | None = None  # the offset, or the number of the page


def page_arguments(
    paging: Paging, requested: PageRequest, given: Mapping[str, Any]
) -> PageArguments:
    """Return the arguments with which a page is requested."""
    arguments = dict(given)
    limit = requested.limit
    if paging.limit is not None and limit and paging.limit not in arguments:
        arguments[paging.limit] = min(limit, paging.max_limit or limit)
    if requested.cursor is None:
        return PageArguments(arguments, None, _start_of(paging, arguments))
    kind, colon, value = requested.cursor.partition(":")
    if colon and len(value) <= _MAX_CURSOR_CHARS:
        if kind == "link":
            return PageArguments(arguments, quote(value, safe="-._~%!$&'()*+,;=:@/?[]"))
        name = {"cursor": paging.cursor, "offset": paging.offset, "page": paging.page}.get(kind)
        if kind == "cursor" and name is not None:
            return PageArguments({**arguments, name: value})
        if name is not None and value.isascii() and value.isdecimal() and len(value) < 16:
            return PageArguments({**arguments, name: int(value)}, None, int(value))
    raise InputError("The cursor is not one of this command.", code="E1042", field="cursor")


def _start_of(paging: Paging, arguments: Mapping[str, Any]) -> int | None:
    name = paging.page if paging.offset is None else paging.offset
    value = None if name is None else arguments.get(name)
    return value if isinstance(value, int) else None


# ------------------------------------------------------------------ answers


def read_page(paging: Paging, asked: PageArguments, answer: ApiAnswer, url: str, value: Any) -> Any:
    """Return the page in an answer. An answer that has no list is returned as it is."""
    items = value if paging.items is None else value.get(paging.items) if is_object(value) else None
    if not is_list(items):
        return value
    records = list(items)
    cursor = _next_cursor(paging, asked, answer, url, value, records)
    return Page(records, next_cursor=cursor, total=_find_total(value))


def _next_cursor(
    paging: Paging,
    asked: PageArguments,
    answer: ApiAnswer,
    url: str,
    value: Any,
    records: list[Any],
) -> str | None:
    header = answer.headers.get("link")
    if header is not None and "rel=" in header.lower():
        return _link_cursor(url, _next_link(header))
    if is_object(value) and value.get("has_more", value.get("hasMore")) is False:
        return None
    next_value = next(_next_values(value), None) if is_object(value) else None
    if isinstance(next_value, str) and next_value.startswith(("http://", "https://", "/", "?")):
        return _link_cursor(url, next_value)
    if paging.cursor is not None and not paging.is_last_id:
        return (
            f"cursor:{next_value}"
            if isinstance(next_value, (str, int)) and next_value not in ("", False)
            else None
        )
    if not records:
        return None
    if paging.is_last_id:
        last = records[-1].get("id") if is_object(records[-1]) else None
        has_more = is_object(value) and value.get("has_more") is True
        return f"cursor:{last}" if has_more and isinstance(last, (str, int)) else None
    return _counted_cursor(paging, asked, value, records)


def _counted_cursor(
    paging: Paging, asked: PageArguments, value: Any, records: list[Any]
) -> str | None:
    """Return the next offset or page; None if this page is not full, or is the last one."""
    limit = asked.arguments.get(paging.limit or "", paging.default_limit)
    if asked.query is not None:  # earlier pages had links
        return None
    if isinstance(limit, int) and len(records) < limit:
        return None
    total = _find_total(value)
    if paging.offset is not None:
        end = (asked.start or 0) + len(records)
        return f"offset:{end}" if total is None or end < total else None
    first = 1 if asked.start is None else asked.start
    if total is not None and isinstance(limit, int) and first * limit >= total:
        return None
    return f"page:{first + 1}"


def _next_link(header: str) -> str | None:
    """Return the URL with `rel="next"` in the header `Link`."""
    for url, options in _LINK.findall(header[:20_000]):
        for option in options.split(";"):
            name, _, relation = option.strip().partition("=")
            if name.strip().lower() == "rel" and "next" in relation.strip(' "').lower().split():
                return url
    return None


def _link_cursor(url: str, link: str | None) -> str | None:
    """Return the cursor for a link to the next page, which is at the same place."""
    if not link:
        return None
    try:
        target = urljoin(url, link)
        is_same = origin_of(target) == origin_of(url)
    except ValueError:
        return None
    parts = urlsplit(target)
    if not is_same or parts.path != urlsplit(url).path or len(parts.query) > _MAX_CURSOR_CHARS:
        return None
    return f"link:{parts.query}"


def without_credentials(text: str, names: frozenset[str]) -> str:
    """Return a query, or the cursor of a link, without the parameters of credentials.

    They are added to each request.
    """
    is_link = text[:5] == "link:"
    colon, query = ("link:", text[5:]) if is_link else ("", text)
    kept = [p for p in query.split("&") if unquote_plus(p.partition("=")[0]) not in names]
    return f"{colon}{'&'.join(kept)}"


def _next_values(value: JsonObject, depth: int = 0) -> Iterator[object]:
    """Yield what the answer says about the next page."""
    for key, item in value.items():
        if _fold(str(key)) in _NEXT_NAMES and isinstance(item, (str, int)):
            yield item
    for key, item in value.items():
        folded = _fold(str(key))
        if depth < 2 and is_object(item) and (folded in _CONTAINERS or folded == "next"):
            href = item.get("href")
            if folded == "next" and isinstance(href, str):
                yield href
            yield from _next_values(item, depth + 1)


def _find_total(value: Any, depth: int = 0) -> int | None:
    if not is_object(value):
        return None
    for key, item in value.items():
        if _fold(str(key)) in _TOTALS and isinstance(item, int) and not isinstance(item, bool):
            return item
    inner = [v for k, v in value.items() if depth < 1 and _fold(str(k)) in _CONTAINERS]
    return next(filter(None, [_find_total(item, depth + 1) for item in inner]), None)
