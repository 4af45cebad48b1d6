"""GET requests call the commands that only read, with the arguments in the query."""

from __future__ import annotations

import datetime
import enum
import gzip
import json
from typing import Any, Literal

import pydantic
import pytest
from tests.http.asgi_client import AsgiClient, post, send

from tooli import InputError, SecretInput, Tooli
from tooli.annotations import Destructive, ReadOnly


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Filter(pydantic.BaseModel):
    text: str


app = Tooli("shop", version="1")


@app.command(annotations=ReadOnly)
def show(
    text: str,
    count: int = 1,
    price: float = 0,
    deep: bool = False,
    names: list[str] | None = None,
    sizes: list[Size] | None = None,
    level: Literal[1, 2, "auto"] = 1,
    day: datetime.date | None = None,
    pair: tuple[int, str] | None = None,
    filter: Filter | None = None,
    token: SecretInput[str] | None = None,
) -> dict[str, Any]:
    """Return the arguments."""
    given = {name: value for name, value in locals().items() if value is not None}
    given.pop("token", None)
    return {name: repr(value) for name, value in given.items()}


@app.command(annotations=ReadOnly, paginated=True)
def rows(total: int = 5, cursor_like: str = "") -> list[dict[str, int]]:
    """Return rows."""
    return [{"i": i} for i in range(total)]


@app.command(annotations=ReadOnly, paginated=True)
def own(cursor: str = "", limit: int = 0) -> list[str]:
    """Take parameters with the names of options."""
    return [f"{cursor}{limit}{i}" for i in range(3)]


@app.command(annotations=ReadOnly)
def text(size: int = 10) -> str:
    """Return a text."""
    return "x" * size


@app.command(annotations=ReadOnly)
def needs_object(filter: Filter) -> str:
    """Need an object, which a query cannot contain."""
    return filter.text


@app.command(annotations=ReadOnly)
def fail() -> str:
    """Fail."""
    raise InputError("no", code="E1404")


@app.command(annotations=Destructive)
def drop(name: str = "a") -> str:
    """Change something."""
    return name


@app.command()
def touch() -> str:
    """Declare nothing."""
    return "touched"


api: Any = app.asgi(mcp=False)


async def get(path: str, query: str = "", *headers: Any, method: str = "GET") -> AsgiClient:
    return await send(api, method, f"/tools/{path}", None, *headers, query=query.encode())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("text=7", {"text": "'7'", "count": "1"}),
        ("text=&count=-3", {"text": "''", "count": "-3"}),
        ("text=a%20b+c%C3%A9", {"text": "'a b cé'"}),
        ("text=a&price=1.5&deep=true", {"price": "1.5", "deep": "True"}),
        ("text=a&price=2&deep=False", {"price": "2.0", "deep": "False"}),
        ("text=a&names=x&names=y", {"names": "['x', 'y']"}),
        ("text=a&names=x", {"names": "['x']"}),
        ("text=a&sizes=1&sizes=2", {"sizes": "[<Size.SMALL: 1>, <Size.LARGE: 2>]"}),
        ("text=a&level=2", {"level": "2"}),
        ("text=a&level=auto", {"level": "'auto'"}),
        ("text=a&day=2024-02-29", {"day": "datetime.date(2024, 2, 29)"}),
        ("text=a&pair=1&pair=b", {"pair": "(1, 'b')"}),
        ("text=a&timeout=5&response_format=concise", {"text": "'a'"}),
    ],
)
async def test_query_is_read_like_a_body(query: str, expected: dict[str, str]) -> None:
    client = await get("show", query)
    assert client.status == 200, client.body
    result = client.json()["result"]
    assert {name: result[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("query", "status", "code", "part"),
    [
        ("", 422, "E1002", "text"),
        ("text=a&count=many", 422, "E1003", "many"),
        ("text=a&count=1&count=2", 422, "E1003", "2 times"),
        ("text=a&txt=b", 422, "E1004", "txt"),
        ("text=a&filter=%7B%7D", 422, "E1003", "JSON body of a POST request"),
        ("text=a&token=geheim", 422, "E1003", "JSON body of a POST request"),
        ("text=a&pair=1", 422, "E1003", "pair"),
        ("text=%FF", 400, "E1400", "UTF-8"),
        ("&".join(["names=a"] * 2001), 400, "E1400", "2000 parameters"),
        ("text=a&timeout=never", 422, "E1007", "timeout"),
    ],
)
async def test_problems_with_a_query(query: str, status: int, code: str, part: str) -> None:
    client = await get("show", query)
    assert (client.status, client.code) == (status, code), client.body
    assert part in json.dumps(client.json()["error"])
    assert "geheim" not in client.body.decode()


@pytest.mark.parametrize("path", ["drop", "touch", "needs-object"])
async def test_other_commands_do_not_allow_get(path: str) -> None:
    for method in ("GET", "HEAD"):
        client = await get(path, method=method)
        assert (client.status, client.headers["allow"]) == (405, "POST, OPTIONS")
    assert (await get("show", method="OPTIONS")).headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert (await get("show", method="PUT")).headers["allow"] == "GET, HEAD, POST, OPTIONS"


async def test_get_from_a_page_of_another_site_is_refused() -> None:
    for header in ((b"sec-fetch-site", b"cross-site"), (b"origin", b"https://evil.example")):
        client = await get("show", "text=a", header)
        assert (client.status, client.code) == (403, "E2403")
    client = await get("show", "text=a", (b"sec-fetch-site", b"same-origin"))
    assert client.status == 200
    client = await get("show", "text=a", (b"content-length", b"5"))
    assert (client.status, client.code) == (400, "E1400")


async def test_head_has_the_headers_of_get() -> None:
    head, full = await get("text", method="HEAD"), await get("text")
    assert head.body == b""
    for name in ("content-length", "content-type", "etag", "cache-control"):
        assert head.headers[name] == full.headers[name] or name == "content-length"


async def test_unchanged_answer_is_not_sent_again() -> None:
    first = await get("rows", "total=3")
    tag = first.headers["etag"].encode()
    assert first.headers["cache-control"] == "private, no-cache"
    for given in (tag, b'"other", ' + tag, tag.removeprefix(b"W/"), b"*"):
        again = await get("rows", "total=3", (b"if-none-match", given))
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag.decode())
        assert "content-length" not in again.headers
    other = await get("rows", "total=4", (b"if-none-match", tag))
    assert other.status == 200
    posted = await post(api, "rows", {"total": 3}, (b"if-none-match", tag))
    assert posted.status == 200
    assert "etag" not in posted.headers


async def test_link_leads_to_the_next_page() -> None:
    seen, path, query = [], "rows", "total=5&cursor_like=a%26b&limit=2"
    while True:
        client = await get(path, query)
        seen += [row["i"] for row in client.json()["result"]]
        if "link" not in client.headers:
            break
        url, _, rel = client.headers["link"].partition("; ")
        assert rel == 'rel="next"'
        start, _, query = url.strip("<>").partition("?")
        assert start == "/tools/rows"
        assert "cursor_like=a%26b" in query
    assert seen == [0, 1, 2, 3, 4]


async def test_options_with_the_name_of_a_parameter_have_a_prefix() -> None:
    client = await get("own", "cursor=c&limit=9&tooli_limit=2")
    assert client.json()["result"] == ["c90", "c91"]
    query = client.headers["link"].partition("?")[2].partition(">")[0]
    assert query.startswith("cursor=c&limit=9&tooli_limit=2&tooli_cursor=")
    last = await get("own", query)
    assert last.json()["result"] == ["c92"]
    assert (await get("rows", "tooli_total=1")).code == "E1004"


async def test_large_answers_are_compressed() -> None:
    accepts = (b"accept-encoding", b"br;q=1.0, gzip;q=0.8")
    plain, packed = await get("text", "size=100000"), await get("text", "size=100000", accepts)
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < 2000
    assert int(packed.headers["content-length"]) == len(packed.body)
    assert json.loads(gzip.decompress(packed.body))["result"] == plain.json()["result"]
    assert packed.headers["etag"] == plain.headers["etag"]
    for query, headers in (
        ("size=10", [accepts]),
        ("size=100000", [(b"accept-encoding", b"gzip;q=0, *;q=0")]),
        ("size=100000", [(b"accept-encoding", b"br")]),
        ("size=100000", [accepts, (b"origin", b"http://localhost:8000")]),
    ):
        assert "content-encoding" not in (await get("text", query, *headers)).headers


async def test_answers_of_commands_with_secrets_are_not_compressed() -> None:
    accepts = (b"accept-encoding", b"gzip")
    client = await get("show", f"text={'a' * 5000}", accepts)
    assert client.status == 200
    assert "content-encoding" not in client.headers


async def test_failures_are_not_stored() -> None:
    client = await get("fail")
    assert client.status == 404
    assert client.headers["cache-control"] == "no-store"
    assert "etag" not in client.headers


async def test_pages_have_an_etag_too() -> None:
    first = await send(api, "GET", "/openapi.json", None, (b"accept-encoding", b"gzip"))
    assert json.loads(gzip.decompress(first.body))["openapi"] == "3.1.1"
    again = await send(
        api, "GET", "/openapi.json", None, (b"if-none-match", first.headers["etag"].encode())
    )
    assert again.status == 304


async def test_plan_of_a_call() -> None:
    plan = await send(api, "POST", "/plans/drop", b'{"name": "b"}')
    assert plan.json()["meta"]["dry_run"] is True
    assert plan.json()["result"]["arguments"] == {"name": "b"}
    both = await send(api, "POST", "/plans/drop", b"{}", query=b"response_format=concise")
    assert both.json()["meta"]["dry_run"] is True
    contradictory = await send(api, "POST", "/plans/drop", b"{}", query=b"dry_run=false")
    assert contradictory.json()["meta"]["dry_run"] is True
    for method, status in (("GET", 405), ("OPTIONS", 204)):
        client = await send(api, method, "/plans/drop")
        assert (client.status, client.headers["allow"]) == (status, "POST, OPTIONS")
    missing = await send(api, "POST", "/plans/dorp", b"{}")
    assert (missing.status, missing.code) == (404, "E1001")


async def test_plan_and_get_need_the_token() -> None:
    secured: Any = app.asgi(mcp=False, token="secret")
    assert (await send(secured, "GET", "/tools/text")).status == 401
    assert (await send(secured, "POST", "/plans/drop", b"{}")).status == 401
    token = (b"authorization", b"Bearer secret")
    assert (await send(secured, "GET", "/tools/text", None, token)).status == 200
