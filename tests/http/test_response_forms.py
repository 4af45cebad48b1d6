"""Failures as problem details (RFC 9457), and the parts of an envelope that an ETag covers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.http.asgi_client import post, send

from tooli import NotFoundError, Tooli, ToolRuntimeError
from tooli.http.response_forms import _split_meta

app = Tooli("shop", version="1")


@app.command()
def fail(code: str = "E3001") -> str:
    """Fail."""
    if code == "E3001":
        raise NotFoundError("no tea", code=code, field="code", details={"row": 3})
    raise ToolRuntimeError("mine", code=code)


api: Any = app.asgi(mcp=False)
PROBLEM = (b"accept", b"application/problem+json")


@pytest.mark.parametrize(
    ("accept", "is_problem"),
    [
        (b"application/problem+json", True),
        (b"application/json, application/problem+json", True),
        (b"Application/Problem+JSON;q=0.9, */*;q=0.1", True),
        (b"application/json;q=0.9, application/problem+json;q=0.5", False),
        (b"application/problem+json;q=0", False),
        (b"application/problem+json;q=x", False),
        (b"application/json", False),
        (b"*/*", False),
    ],
)
async def test_problem_details_are_sent_if_asked_for(accept: bytes, is_problem: bool) -> None:
    client = await post(api, "fail", {}, (b"accept", accept))
    assert client.status == 404
    expected = "application/problem+json" if is_problem else "application/json"
    assert client.headers["content-type"] == expected
    assert ("error" in client.json()) != is_problem


async def test_fields_of_a_problem() -> None:
    problem = (await post(api, "fail", {}, PROBLEM)).json()
    meta = problem.pop("meta")
    assert meta["tool"] == "shop.fail"
    assert problem == {
        "type": "urn:tooli:error:E3001",
        "title": problem["title"],
        "status": 404,
        "detail": "no tea",
        "code": "E3001",
        "category": "state",
        "field": "code",
        "is_retryable": False,
        "details": {"row": 3},
    }
    assert problem["title"][0].isupper()
    own = (await post(api, "fail", {"code": "E4999"}, PROBLEM)).json()
    assert (own["title"], own["code"]) == ("Runtime", "E4999")


async def test_errors_before_the_call_are_problems_too() -> None:
    client = await send(api, "GET", "/nothing", None, PROBLEM)
    assert client.json()["code"] == "E1404"
    client = await send(api, "POST", "/tools/fail", b"[", PROBLEM)
    assert client.json()["detail"].startswith("The body is not valid JSON")


@pytest.mark.parametrize(
    ("body", "meta"),
    [
        (b'{"ok":true,"result":1,"meta":{"tool":"a"}}', {"tool": "a"}),
        (b'{"ok":true,"meta":{"tool":"a"}}', {"tool": "a"}),
        (b'{"ok":true,"result":{"a":1,"meta":{"b":2}},"meta":{"tool":"a"}}', {"tool": "a"}),
        (
            b'{"ok":true,"result":1,"meta":{"tool":"a","next":[{"x":1,"meta":{"y":2}}]}}',
            {"tool": "a", "next": [{"x": 1, "meta": {"y": 2}}]},
        ),
        (b'{"app":"shop"}', {}),
    ],
)
def test_meta_is_found_at_the_end_of_an_envelope(body: bytes, meta: Any) -> None:
    end, found = _split_meta(body)
    assert found == meta
    assert b'"tool"' not in body[:end]
