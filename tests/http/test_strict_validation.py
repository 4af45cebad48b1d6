"""`Prefer: handling=strict`: arguments must match the schema; otherwise they are converted."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.http.asgi_client import AsgiClient, post, send
from tests.parity.sample_apps import make_app

from tooli import Tooli
from tooli.http.negotiation import prefers_strict
from tooli.http.strict_validation import StrictValidator

STRICT = (b"prefer", b"handling=strict")
ACCEPT_NDJSON, ACCEPT_SSE = (b"accept", b"application/x-ndjson"), (b"accept", b"text/event-stream")


@pytest.fixture
def api():
    return make_app().asgi(mcp=False)


def problems(client: AsgiClient) -> list[tuple[str, str | None]]:
    """Return the code and the field of each problem."""
    assert client.status == 422
    error = client.json()["error"]
    listed = [(problem["code"], problem.get("field")) for problem in error["details"]["errors"]]
    assert listed[0] == (error["code"], error.get("field"))
    return listed


# ------------------------------------------------------------------ the header


@pytest.mark.parametrize(
    "prefer",
    [
        *(b"handling=strict", b"Handling=strict", b"HANDLING = strict", b'handling="strict"'),
        *(b"respond-async, handling=strict", b'handling="strict"; foo', b"handling=strict;a=b;c"),
        *(
            b'x="a,handling=lenient", handling=strict',
            b",, handling=strict ,",
            b"\thandling=strict",
        ),
        *(
            b"handling=strict, handling=lenient",
            b'x="\\"", handling=strict',
            b"wait=1;y,handling=strict",
        ),
    ],
)
def test_header_asks_for_strict_handling(prefer: bytes) -> None:
    assert prefers_strict(prefer)


@pytest.mark.parametrize(
    "prefer",
    [
        *(b"", b"handling", b"handling=", b"handling=lenient", b"handling=stricter", b"strict"),
        *(b'x="a, handling=strict"', b"x; handling=strict", b"xhandling=strict", b"=strict", b'"'),
        *(b"handling=lenient, handling=strict", b'"handling=strict', b"\xff\x00", b",;,;=,="),
    ],
)
def test_header_does_not_ask_for_strict_handling(prefer: bytes) -> None:
    assert not prefers_strict(prefer)


def test_long_invalid_headers_do_not_ask_for_strict_handling() -> None:
    for prefer in (b'"' * 60_001, b'"\\' * 30_000, b",;=" * 20_000, b"a" * 60_000):
        assert not prefers_strict(prefer)


async def test_values_are_converted_by_default(api) -> None:
    for headers in ([], [(b"prefer", b"handling=lenient")], [(b"prefer", b"respond-async")]):
        client = await post(api, "argument-int", {"value": "7"}, *headers)
        assert client.json()["result"] == {"value": ["int", 7]}
        assert "preference-applied" not in client.headers


async def test_strict_handling_validates_against_the_schema(api) -> None:
    rejected = await post(api, "argument-int", {"value": "7"}, STRICT)
    assert problems(rejected) == [("E1003", "value")]
    assert "'7' is not of type 'integer'" in rejected.json()["error"]["message"]
    assert rejected.json()["meta"]["tool"] == "sample.argument-int"
    accepted = await post(api, "argument-int", {"value": 7}, STRICT)
    assert accepted.json()["result"] == {"value": ["int", 7]}
    for client in (rejected, accepted):
        assert client.headers["preference-applied"] == "handling=strict"


async def test_repeated_headers_are_joined(api) -> None:
    first = (b"prefer", b"respond-async")
    assert (await post(api, "argument-int", {"value": "7"}, first, STRICT)).status == 422
    lenient = (b"prefer", b"handling=lenient")
    assert (await post(api, "argument-int", {"value": "7"}, lenient, STRICT)).status == 200


async def test_cors_allows_and_exposes_the_headers() -> None:
    api = make_app().asgi(mcp=False, allowed_origins=["https://page.example"])
    origin = (b"origin", b"https://page.example")
    preflight = (b"access-control-request-method", b"POST")
    allowed = (await send(api, "OPTIONS", "/tools/old", None, origin, preflight)).headers
    assert "prefer" in allowed["access-control-allow-headers"].split(", ")
    answer = await post(api, "old", {}, origin, STRICT)
    assert "preference-applied" in answer.headers["access-control-expose-headers"]
    assert answer.headers["preference-applied"] == "handling=strict"


# ------------------------------------------------------------------ problems


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("argument-str", {}, [("E1002", "value")]),
        ("argument-str", {"value": "x", "more": 1}, [("E1004", "more")]),
        ("find-files", {"patern": "x", "limit": "7"}, [("E1003", "limit"), ("E1004", "patern")]),
        ("find-files", {"limit": 700}, [("E1003", "limit"), ("E1002", "pattern")]),
        ("option-bool", {"value": "yes"}, [("E1003", "value")]),
        ("argument-float", {"value": True}, [("E1003", "value")]),
        ("argument-int-set", {"value": [1, 2, 1.0]}, [("E1003", "value")]),
        ("argument-int-str-tuple", {"value": ["1", "x"]}, [("E1003", "value.0")]),
        ("argument-dict", {"value": {"a": "1", "b": 2}}, [("E1003", "value.a")]),
        ("argument-date-list", {"value": ["2024-02-01", 0]}, [("E1003", "value.1")]),
        ("argument-int-enum", {"value": "1"}, [("E1003", "value")]),
        (
            "option-model",
            {"value": {"name": "A", "age": "3", "address": {"city": 1}}},
            [("E1003", "value.age"), ("E1003", "value.address.city")],
        ),
        ("users/create", {"user": {"age": "3"}}, [("E1003", "user.age"), ("E1003", "user.name")]),
    ],
)
async def test_every_problem_is_reported_once(
    api, tool: str, arguments: Any, expected: Any
) -> None:
    assert sorted(problems(await post(api, tool, arguments, STRICT))) == sorted(expected)


async def test_invalid_call_does_not_run() -> None:
    app, ran = Tooli("quiet"), []

    @app.command()
    def note(n: int) -> None:
        ran.append(n)

    @app.command()
    async def anote(n: int) -> None:
        ran.append(n)

    api = app.asgi(mcp=False)
    for tool in ("note", "anote"):
        assert (await post(api, tool, {"n": "1"}, STRICT)).status == 422
        assert (await post(api, tool, {"n": "1"}, STRICT, query=b"dry_run=1")).status == 422
    assert ran == []


async def test_invalid_option_is_reported_as_well(api) -> None:
    client = await post(api, "argument-int", {"value": "7"}, STRICT, query=b"yes=maybe")
    assert problems(client) == [("E1007", "yes"), ("E1003", "value")]


async def test_empty_body_means_no_arguments(api) -> None:
    assert (await send(api, "POST", "/tools/users/list", None, STRICT)).status == 200
    assert problems(await send(api, "POST", "/tools/argument-int", None, STRICT)) == [
        ("E1002", "value")
    ]


async def test_custom_input_schema_is_used_for_validation() -> None:
    app = Tooli("own")
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/even"}, "b": {}},
        "patternProperties": {"^x": {}},
        "required": ["b"],
        "additionalProperties": False,
        "$defs": {"even": {"multipleOf": 2}},
    }

    @app.command(input_schema=schema)
    def take(a: int = 0, b: int = 0, c: int = 0, xy: int = 0) -> int:
        return a + b + c + xy

    api = app.asgi(mcp=False)
    assert problems(await post(api, "take", {"a": 3, "c": 1, "xy": 1}, STRICT)) == [
        ("E1003", "a"),
        ("E1002", "b"),
        ("E1004", "c"),
    ]
    assert (await post(api, "take", {"a": 2, "b": 1}, STRICT)).json()["result"] == 3


async def test_remote_schemas_are_not_fetched(caplog) -> None:
    app = Tooli("far")
    app.command("go", input_schema={"$ref": "http://localhost:9/x.json"})(lambda: 1)
    assert (await post(app.asgi(mcp=False), "go", {}, STRICT)).status == 500
    assert "Unresolvable" in caplog.records[0].exc_text


class Node(pydantic.BaseModel):
    name: str = ""
    children: list[Node] = []


async def test_errors_in_a_recursive_type_have_the_full_path() -> None:
    app = Tooli("tree")

    @app.command()
    def plant(tree: Node) -> str:
        return tree.name

    api = app.asgi(mcp=False)
    invalid = {"tree": {"children": [{"children": [{"name": 3}]}]}}
    assert problems(await post(api, "plant", invalid, STRICT)) == [
        ("E1003", "tree.children.0.children.0.name")
    ]
    deep: dict[str, Any] = {"name": "leaf"}
    for _ in range(70):
        deep = {"children": [deep]}
    assert (await post(api, "plant", {"tree": deep}, STRICT)).status in (200, 422)


async def test_large_body_gets_a_short_answer(api) -> None:
    client = await post(api, "argument-str-list", {"value": "x" * 100_000}, STRICT)
    assert len(client.json()["error"]["details"]["errors"][0]["message"]) < 300
    items: list[Any] = [value for n in range(30_000) for value in (n, str(n), [n], {"n": n}, None)]
    app = Tooli("bag")

    @app.command()
    def take(value: Annotated[list[Any], pydantic.Field(json_schema_extra={"uniqueItems": True})]):
        return len(value)

    assert problems(await post(app.asgi(mcp=False), "take", {"value": items}, STRICT)) == [
        ("E1003", "value")
    ]


def test_number_of_problems_is_limited() -> None:
    app = make_app()
    for name in ("argument-int-list", "option-int-list"):
        tool = app.find(name)
        assert tool is not None
        found = StrictValidator().problems(tool, {"value": ["1"] * 20_000})
        assert len(found) == 51
        assert found[50].field == "value.50"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


async def test_unions_are_validated() -> None:
    app = Tooli("pets")

    @app.command()
    def feed(pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], n: int | str = 0):
        return pet.kind

    api = app.asgi(mcp=False)
    assert (await post(api, "feed", {"pet": {"kind": "cat"}}, STRICT)).json()["result"] == "cat"
    found = problems(await post(api, "feed", {"pet": {"kind": "cat", "lives": "9"}}, STRICT))
    assert found == [("E1003", "pet")]
    found = problems(await post(api, "feed", {"pet": {"kind": "dog"}, "n": 1.5}, STRICT))
    assert {code for code, _ in found} == {"E1003"}
    both = {"properties": {"v": {"oneOf": [{"type": "integer"}, {"minimum": 3}]}}}

    @app.command(input_schema=both)
    def go(v: int) -> int:
        return v

    assert (await post(api, "go", {"v": 1}, STRICT)).status == 200
    assert problems(await post(api, "go", {"v": 3}, STRICT)) == [("E1003", "v")]


def test_unique_items_are_compared_as_json() -> None:
    app = Tooli("unique")
    schema = {"properties": {"v": {"uniqueItems": True}}}
    app.command("go", input_schema=schema)(lambda v: 1)
    tool = app.find("go")
    assert tool is not None
    validator = StrictValidator()
    different = [
        1,
        True,
        "1",
        [1],
        [True],
        {"a": 1},
        {"a": True},
        {"a": [1]},
        None,
        [],
        {},
        0,
        False,
    ]
    assert not validator.problems(tool, {"v": different})
    for pair in ([1, 1.0], [[1], [1.0]], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [None, None]):
        assert validator.problems(tool, {"v": pair})
        assert not jsonschema.Draft202012Validator(schema).is_valid({"v": pair})


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize("accept", [ACCEPT_NDJSON, ACCEPT_SSE], ids=["ndjson", "sse"])
@pytest.mark.parametrize("tool", ["count", "acount"])
async def test_arguments_of_streaming_tools_are_validated(
    api, tool: str, accept: tuple[bytes, bytes]
) -> None:
    rejected = await post(api, tool, {"n": "2"}, STRICT, accept)
    assert problems(rejected) == [("E1003", "n")]
    accepted = await post(api, tool, {"n": 2}, STRICT, accept)
    assert accepted.status == 200
    assert accepted.headers["content-type"] == accept[1].decode()
    assert b'{"i":1}' in accepted.body
    for client in (rejected, accepted):
        assert client.headers["preference-applied"] == "handling=strict"


# ------------------------------------------------------------------ without jsonschema


async def test_missing_jsonschema_is_a_dependency_error(api, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    client = await post(api, "argument-int", {"value": 7}, STRICT)
    assert (client.status, client.code) == (502, "E4040")
    assert "pip install 'tooli[http]>=7.0a1'" in client.json()["error"]["suggestion"]["fix"]
    assert "preference-applied" not in client.headers
    assert (await post(api, "argument-int", {"value": "7"})).status == 200


def test_other_requests_do_not_import_jsonschema() -> None:
    import subprocess

    code = """
import asyncio, sys
from tooli import Tooli
app = Tooli("lean")
app.command("one")(lambda n=1: n)
api, sent = app.asgi(mcp=False), []
async def receive(): return {"type": "http.request", "body": b'{"n": 2}'}
async def send(message): sent.append(message)
head = [(b"host", b"localhost"), (b"content-type", b"application/json")]
scope = {"type": "http", "method": "POST", "path": "/tools/one", "headers": head}
asyncio.run(api(scope, receive, send))
assert sent[0]["status"] == 200
print(*sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(ended.stdout.split())
    assert not {"jsonschema", "referencing", "tooli.http.strict_validation"} & modules


# ------------------------------------------------------------------ formats


@pytest.mark.parametrize(
    ("tool", "lenient"),
    [
        ("argument-datetime", "2024-02-29T01:02:03"),
        ("option-datetime", 1700000000),
        ("argument-date", "2024-02-29T00:00:00"),
        ("argument-time", "01:02"),
        ("argument-timedelta", "1 day, 01:00:00"),
        ("argument-uuid", "2eb8aa08aa9811eab4aa73b441d16380"),
        ("argument-decimal", "1_0"),
    ],
)
async def test_formats_are_checked(api, tool: str, lenient: Any) -> None:
    assert (await post(api, tool, {"value": lenient})).status == 200
    assert problems(await post(api, tool, {"value": lenient}, STRICT)) == [("E1003", "value")]


TEXTS_BY_TYPE = {
    date: st.dates().map(str),
    datetime: st.datetimes(timezones=st.timezones()).map(
        lambda moment: pydantic.TypeAdapter(datetime).dump_json(moment).decode().strip('"')
    ),
    time: st.times().map(lambda clock: f"{clock.isoformat()}Z"),
    timedelta: st.timedeltas(min_value=timedelta()).map(
        lambda length: pydantic.TypeAdapter(timedelta).dump_json(length).decode().strip('"')
    ),
    UUID: st.uuids().map(str),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False).map(str),
}


@pytest.mark.parametrize("kind", TEXTS_BY_TYPE, ids=lambda kind: kind.__name__)
def test_serialized_values_are_valid(kind: Any) -> None:
    app = Tooli("echo")

    def take(value: Any, maybe: Any = None) -> None: ...

    take.__annotations__ = {"value": kind, "maybe": kind | None, "return": None}
    app.command()(take)
    tool = app.find("take")
    assert tool is not None
    validator = StrictValidator()

    @given(TEXTS_BY_TYPE[kind])
    @settings(database=None, max_examples=200, deadline=None)
    def check(text: str) -> None:
        assert validator.problems(tool, {"value": text, "maybe": text}) == ()
        pydantic.TypeAdapter(kind).validate_python(text)

    check()


# ------------------------------------------------------------------ OpenAPI document


def test_openapi_document_has_the_same_schema() -> None:
    """The schema in the document accepts the same bodies; its definitions are elsewhere."""
    from tooli.describe.openapi_document import build_openapi

    app = Tooli("tree")

    @app.command()
    def plant(tree: Node, day: date | None = None) -> None: ...

    tool = app.find("plant")
    assert tool is not None
    document = build_openapi("tree", "1", None, app.catalog)
    operation = document["paths"]["/tools/plant"]["post"]
    published = operation["requestBody"]["content"]["application/json"]["schema"]
    schema = {**published, "components": document["components"]}
    validator = StrictValidator()
    for body in (
        *({"tree": {}}, {"tree": {"name": 3}}, {"tree": {"children": [{"children": 1}]}}),
        *({}, {"tree": {}, "day": None}, {"tree": {}, "more": 1}, {"tree": {"children": [{}]}}),
    ):
        assert jsonschema.Draft202012Validator(schema).is_valid(body) == (
            not validator.problems(tool, body)
        ), json.dumps(body)
    names = [part.get("$ref", "").rpartition("/")[2] for part in operation["parameters"]]
    assert "Prefer" in names
    assert "Preference-Applied" in operation["responses"]["200"]["headers"]
