"""The form of results: structured content, text, and the `meta` that a model must know."""

from __future__ import annotations

import json
from typing import Any, TypedDict

import jsonschema
import pydantic
import pytest

from tooli import Context, Image, Next, NotFoundError, Tooli
from tooli.annotations import Destructive
from tooli.core.call import Caller
from tooli.mcp.protocol import META_KEY
from tooli.mcp.service import McpService, RequestContext

CALLER = Caller("mcp", "client", maybe_agent=True)


class Closed(pydantic.BaseModel, extra="forbid"):
    """A result that allows no other fields."""

    count: int


class Owner(TypedDict):
    """A result with its own `meta`."""

    meta: str


class Extra(pydantic.BaseModel, extra="allow"):
    """A result with any other fields."""

    count: int


class Tree(pydantic.BaseModel, extra="forbid"):
    """A recursive result."""

    children: list[Tree] = []


RESULTS: dict[str, tuple[Any, Any]] = {
    "number": (int, 1),
    "text": (str, "a"),
    "numbers": (list[int], [1, 2]),
    "nothing": (int | None, None),
    "union": (Closed | Owner, {"meta": "x"}),
    "closed": (Closed, Closed(count=1)),
    "own": (Owner, {"meta": "x"}),
    "extra": (Extra, Extra(count=1)),
    "extra_own": (Extra, Extra(count=1, meta=3)),  # type: ignore[call-arg]
    "tree": (Tree, Tree(children=[Tree()])),
    "trees": (list[Tree], [Tree(children=[Tree()])]),
    "mapping": (dict[str, int], {"meta": 1}),
    "objects": (dict[str, Any], {"a": 1}),
    "objects_own": (dict[str, Any], {"meta": 1}),
    "anything": (Any, {"meta": 1}),
}


def make_app(*, destructive: bool = False) -> Tooli:
    app = Tooli("shop")

    def add(name: str, kind: Any, value: Any) -> None:
        def fn(ctx: Context, warn: bool = False) -> Any:
            if warn:
                ctx.warn("careful")
            return value

        fn.__annotations__["return"] = kind
        keywords: Any = {"annotations": Destructive} if destructive else {}
        app.command(name.replace("_", "-"), **keywords)(fn)

    for name, (kind, value) in RESULTS.items():
        add(name, kind, value)

    @app.command(paginated=2)
    def rows() -> list[int]:
        """Show the rows."""
        return [1, 2, 3]

    @app.command()
    def undeclared(ctx: Context, kind: str):  # type: ignore[no-untyped-def]
        """Return a value of no declared type."""
        ctx.warn("careful")
        return {"dict": {"a": 1}, "list": [1], "text": "a", "none": None}[kind]

    @app.command()
    def picture(ctx: Context) -> Image:
        """Return a picture."""
        ctx.warn("careful")
        return Image(b"x", "image/png")

    @app.command()
    def make(ctx: Context, fail: bool = False) -> int:
        """Make a page."""
        ctx.artifact("page", "https://example.org/page")
        ctx.artifact("data", "https://example.org/data", mime_type="text/csv")
        if fail:
            raise NotFoundError("no paper")
        return 1

    @app.command()
    def advise(target: str = "rows") -> Next[int]:
        """Suggest the next tool."""
        return Next(1, target, {}, why="It has the rows.").then("number", {"warn": True})

    return app


def service_call(
    service: McpService, name: str, arguments: dict[str, Any], *, stateless: bool, text: bool
) -> dict[str, Any]:
    context = RequestContext(CALLER, None, stateless, not text)
    params = {"name": name, "arguments": arguments}
    return service.tool_call_request(params, context).run()


def call(
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    stateless: bool = False,
    text: bool = False,
) -> dict[str, Any]:
    return service_call(
        McpService(make_app()), name, arguments or {}, stateless=stateless, text=text
    )


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("destructive", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_result_with_and_without_warnings_matches_its_schema(
    name: str, stateless: bool, destructive: bool
) -> None:
    service = McpService(make_app(destructive=destructive))
    listed = service.list_tools(None, stateless=stateless)["tools"]
    schema = next(tool["outputSchema"] for tool in listed if tool["name"] == name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert stateless or schema["type"] == "object"
    confirmed = {"yes": True} if destructive else {}
    results = [
        service_call(service, name, {"warn": warn, **confirmed}, stateless=stateless, text=False)
        for warn in (False, True)
    ]
    for result in results:
        assert not result["isError"], result
        jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert len(result["content"]) == 1
    plain, warned = [json.dumps(result["structuredContent"]) for result in results]
    assert "careful" not in plain
    assert '{"warnings": ["careful"]}' in warned


@pytest.mark.parametrize(
    ("name", "handshake", "stateless"),
    [
        ("number", {"result": 1, "meta": {}}, {"result": 1, "meta": {}}),
        ("numbers", {"result": [1, 2], "meta": {}}, {"result": [1, 2], "meta": {}}),
        ("nothing", {"result": None, "meta": {}}, {"result": None, "meta": {}}),
        ("closed", {"count": 1, "meta": {}}, None),
        ("own", {"meta": "x", "tooli_meta": {}}, None),
        ("extra_own", {"count": 1, "meta": 3, "tooli_meta": {}}, None),
        ("mapping", {"result": {"meta": 1}, "meta": {}}, None),
        ("objects", {"a": 1, "meta": {}}, None),
        ("objects_own", {"meta": 1, "tooli_meta": {}}, None),
    ],
)
def test_meta_is_beside_the_result(name: str, handshake: Any, stateless: Any) -> None:
    for is_stateless, expected in ((False, handshake), (True, stateless or handshake)):
        content = call(name, {"warn": True}, stateless=is_stateless)["structuredContent"]
        key = "tooli_meta" if "tooli_meta" in expected else "meta"
        assert content == {**expected, key: {"warnings": ["careful"]}}


@pytest.mark.parametrize("name", RESULTS)
def test_older_protocol_versions_get_only_text(name: str) -> None:
    result = call(name, {"warn": True}, text=True)
    assert "structuredContent" not in result
    assert "careful" in result["content"][0]["text"]
    service = McpService(make_app())
    listed = service.list_tools(None, stateless=False, has_structured_content=False)["tools"]
    assert not any("outputSchema" in tool for tool in listed)
    listed = service.list_tools(None, stateless=False)["tools"]
    assert any("outputSchema" in tool for tool in listed)


@pytest.mark.parametrize("stateless", [False, True])
def test_page_has_the_cursor_and_says_what_to_do(stateless: bool) -> None:
    first = call("rows", stateless=stateless)["structuredContent"]
    page = first["meta"]["page"]
    assert first["result"] == [1, 2]
    assert (page["limit"], page["total"]) == (2, 3)
    assert first["meta"]["hint"] == (
        "The result is incomplete: call again with the same arguments and cursor set to "
        "next_cursor."
    )
    last = call("rows", {"cursor": page["next_cursor"]}, stateless=stateless)["structuredContent"]
    assert last == ([3] if stateless else {"result": [3]})


def test_result_without_structured_content_has_a_block_with_meta() -> None:
    block = {"type": "text", "text": '{"meta":{"warnings":["careful"]}}'}
    assert call("picture")["content"][1:] == [block]
    assert call("undeclared", {"kind": "text"})["content"] == [{"type": "text", "text": "a"}, block]
    assert call("undeclared", {"kind": "list"})["content"][1:] == [block]
    assert call("undeclared", {"kind": "none"})["content"] == [block]
    content = call("undeclared", {"kind": "dict"})["structuredContent"]
    assert content == {"a": 1, "meta": {"warnings": ["careful"]}}


def test_next_steps_are_tools_with_arguments() -> None:
    result = call("advise")
    assert result["structuredContent"]["meta"]["next"] == [
        {"tool": "rows", "arguments": {}, "why": "It has the rows."},
        {"tool": "number", "arguments": {"warn": True}},
    ]
    assert result["_meta"][META_KEY]["next"][0]["command"] == "rows"


def test_unknown_next_step_is_a_warning() -> None:
    meta = call("advise", {"target": "nowhere"})["structuredContent"]["meta"]
    assert [step["tool"] for step in meta["next"]] == ["number"]
    assert "nowhere" in meta["warnings"][0]


LINKS = [
    {"type": "resource_link", "name": "page", "uri": "https://example.org/page"},
    {
        "type": "resource_link",
        "name": "data",
        "uri": "https://example.org/data",
        "mimeType": "text/csv",
    },
]


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("fail", [False, True])
def test_artifacts_are_links_to_resources(stateless: bool, fail: bool) -> None:
    result = call("make", {"fail": fail}, stateless=stateless)
    assert result["isError"] is fail
    assert result["content"][1:] == LINKS


def test_artifacts_are_text_in_versions_without_links() -> None:
    (block,) = call("make", text=True)["content"]
    assert [artifact["name"] for artifact in json.loads(block["text"])["meta"]["artifacts"]] == [
        "page",
        "data",
    ]
