"""Pages: how an operation pages is found out, and each page continues where the last one ended."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.openapi.api_server import parameter
from tests.providers.openapi.test_answers import FakeAnswer
from tests.providers.openapi.test_operations import single

from tooli.core.result_types import Page, PageRequest
from tooli.errors import InputError
from tooli.providers.openapi.paging import (
    Paging,
    find_paging,
    items_schema,
    page_arguments,
    read_page,
    without_credentials,
)

LIST = {"type": "array", "items": {"type": "object"}}


def number(name: str, **more: Any) -> dict[str, Any]:
    return parameter(name, schema={"type": "integer", **more})


def paging(*parameters: Any, schema: Any = LIST, method: str = "get", **more: Any) -> Paging | None:
    answer = {"200": {"content": {"application/json": {"schema": schema}}}}
    return find_paging(single("/", method, parameters=list(parameters), responses=answer, **more))


def object_with(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("parameters", "schema", "expected"),
    [
        (
            [number("limit", maximum=50), parameter("cursor")],
            LIST,
            Paging(None, "limit", "cursor", max_limit=50),
        ),
        ([number("per_page"), number("page")], LIST, Paging(None, "per_page", page="page")),
        (
            [number("$top"), number("$skip")],
            object_with(value=LIST),
            Paging("value", "top", offset="skip"),
        ),
        (
            [parameter("starting_after")],
            object_with(data=LIST, x=LIST),
            Paging("data", cursor="starting_after", is_last_id=True),
        ),
        ([parameter("pageToken")], object_with(files=LIST), Paging("files", cursor="pageToken")),
        ([parameter("page")], LIST, None),
        ([number("limit")], LIST, None),
        ([parameter("cursor")], object_with(a=LIST, b=LIST), None),
        ([parameter("cursor")], object_with(a={"type": "string"}), None),
        ([parameter("cursor", required=True)], LIST, None),
        ([parameter("cursor", "header")], LIST, None),
    ],
)
def test_what_documents_say(parameters: Any, schema: Any, expected: Paging | None) -> None:
    assert paging(*parameters, schema=schema) == expected


def test_other_operations_have_no_pages() -> None:
    assert paging(parameter("cursor"), method="post") is None
    assert paging(parameter("cursor"), **{"x-tooli-command": "x"}) is None
    assert find_paging(single(parameters=[parameter("cursor")], responses={})) is None
    nullable = paging(parameter("cursor"), parameter("limit", schema={"type": ["integer", "null"]}))
    assert nullable is not None
    assert nullable.replaced == {"limit", "cursor"}


def test_the_schema_of_the_records() -> None:
    assert items_schema(Paging(None), LIST) == LIST
    assert items_schema(Paging("data"), object_with(data=LIST)) == LIST


# ------------------------------------------------------------------ requests

ALL = Paging(None, "limit", "cursor", "offset", "page", max_limit=50)


def test_the_limit() -> None:
    assert page_arguments(ALL, PageRequest(10), {}).arguments == {"limit": 10}
    assert page_arguments(ALL, PageRequest(500), {}).arguments == {"limit": 50}
    assert page_arguments(ALL, PageRequest(10), {"limit": 3}).arguments == {"limit": 3}
    assert page_arguments(ALL, PageRequest(None), {"offset": 4}).start == 4
    assert page_arguments(Paging(None, page="page"), PageRequest(), {"page": 2}).start == 2


@pytest.mark.parametrize(
    ("cursor", "arguments", "query", "start"),
    [
        ("cursor:a:b", {"cursor": "a:b"}, None, None),
        ("offset:20", {"offset": 20}, None, 20),
        ("page:3", {"page": 3}, None, 3),
        ("link:a=1&b=%20x\r\n", {}, "a=1&b=%20x%0D%0A", None),
    ],
)
def test_cursors(cursor: str, arguments: Any, query: str | None, start: int | None) -> None:
    found = page_arguments(ALL, PageRequest(None, cursor), {})
    assert (found.arguments, found.query, found.start) == (arguments, query, start)


@pytest.mark.parametrize("cursor", ["x", "other:1", "offset:-1", "page:²", "link:" + "x" * 5000])
def test_other_cursors_are_errors(cursor: str) -> None:
    with pytest.raises(InputError) as caught:
        page_arguments(ALL, PageRequest(None, cursor), {})
    assert caught.value.code == "E1042"
    with pytest.raises(InputError):
        page_arguments(Paging(None), PageRequest(None, "offset:1"), {})


# ------------------------------------------------------------------ answers

URL = "https://api.test/v1/items?a=1"
ROWS = [{"id": "x1"}, {"id": "x2"}]


def next_cursor(
    how: Paging, value: Any, given: dict[str, Any] | None = None, **headers: str
) -> Any:
    asked = page_arguments(how, PageRequest(), given or {})
    answer: Any = FakeAnswer(b"", **headers)
    found = read_page(how, asked, answer, URL, value)
    assert isinstance(found, Page)
    return found.next_cursor


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('<https://api.test/v1/items?page=2>; rel="next"', "link:page=2"),
        (
            '<?page=1>; rel="prev", </v1/items?page=3&x=%20>; title="a"; rel="last next"',
            "link:page=3&x=%20",
        ),
        ('<https://api.test/v1/items?page=9>; rel="last"', None),
        ('<https://evil.test/v1/items?page=2>; rel="next"', None),
        ('<https://api.test/other?page=2>; rel="next"', None),
        ('<http://[>; rel="next"', None),
        ("nonsense rel=", None),
    ],
)
def test_link_headers(header: str, expected: str | None) -> None:
    assert next_cursor(Paging(None, page="page"), ROWS, Link=header) == expected


@pytest.mark.parametrize(
    ("how", "value", "given", "expected"),
    [
        (Paging("data", cursor="c"), {"data": ROWS, "next_cursor": "n"}, {}, "cursor:n"),
        (
            Paging("data", cursor="c"),
            {"data": ROWS, "meta": {"cursors": {"after": 7}}},
            {},
            "cursor:7",
        ),
        (Paging("data", cursor="c"), {"data": ROWS, "next_cursor": ""}, {}, None),
        (Paging("data", cursor="c"), {"data": ROWS}, {}, None),
        (
            Paging("data", cursor="c"),
            {"data": ROWS, "nextPageToken": "t", "has_more": False},
            {},
            None,
        ),
        (
            Paging("data", page="p"),
            {"data": ROWS, "next": "https://api.test/v1/items?p=2"},
            {},
            "link:p=2",
        ),
        (
            Paging("data", page="p"),
            {"data": ROWS, "_links": {"next": {"href": "/v1/items?p=4"}}},
            {},
            "link:p=4",
        ),
        (
            Paging("data", cursor="c", is_last_id=True),
            {"data": ROWS, "has_more": True},
            {},
            "cursor:x2",
        ),
        (Paging("data", cursor="c", is_last_id=True), {"data": ROWS}, {}, None),
        (Paging("data", cursor="c", is_last_id=True), {"data": [1], "has_more": True}, {}, None),
        (Paging(None, "l", offset="o"), ROWS, {"l": 2, "o": 4}, "offset:6"),
        (Paging(None, "l", offset="o"), ROWS, {"l": 2}, "offset:2"),
        (Paging(None, "l", offset="o"), ROWS, {"l": 3}, None),
        (Paging("data", "l", offset="o"), {"data": ROWS, "total": 2}, {"l": 2}, None),
        (
            Paging("data", "l", offset="o"),
            {"data": ROWS, "meta": {"total": 9}},
            {"l": 2},
            "offset:2",
        ),
        (Paging(None, "l", page="p"), ROWS, {"l": 2}, "page:2"),
        (Paging("data", "l", page="p"), {"data": ROWS, "total_count": 4}, {"l": 2, "p": 2}, None),
        (Paging(None, page="p"), [], {}, None),
    ],
)
def test_next_pages(how: Paging, value: Any, given: Any, expected: str | None) -> None:
    assert next_cursor(how, value, given) == expected


def test_the_end_of_pages_without_a_total() -> None:
    how = Paging(None, "l", page="p", default_limit=2)
    assert next_cursor(how, ROWS) == "page:2"
    assert next_cursor(how, ROWS[:1]) is None
    asked = page_arguments(how, PageRequest(None, "link:p=2"), {})
    answer: Any = FakeAnswer(b"")
    assert read_page(how, asked, answer, URL, ROWS).next_cursor is None


def test_pages_have_totals_and_other_answers_stay() -> None:
    answer: Any = FakeAnswer(b"")
    how = Paging("data", page="p")
    asked = page_arguments(how, PageRequest(), {})
    page = read_page(how, asked, answer, URL, {"data": ROWS, "total": 8, "x": True})
    assert (page.items, page.total) == (ROWS, 8)
    for value in ({"error": 1}, [1], None, {"data": "x"}):
        assert read_page(how, asked, answer, URL, value) == value


def test_credentials_are_removed_from_queries() -> None:
    names = frozenset(["key"])
    assert without_credentials("a=1&key=s&b=2", names) == "a=1&b=2"
    assert without_credentials("a=1", names) == "a=1"
    assert without_credentials("key=s", frozenset()) == "key=s"
