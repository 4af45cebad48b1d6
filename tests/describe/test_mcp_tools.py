"""Descriptions of tools for MCP clients."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import jsonschema
import pydantic
import pytest

from tooli import Context, Image, Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly
from tooli.describe.mcp_tools import (
    can_be_confirmed,
    describe_mcp_tool,
    max_result_chars,
    result_form,
    result_schema,
    tools_by_safe_name,
    with_settings,
)
from tooli.providers import described_tool


class Node(pydantic.BaseModel):
    name: str
    below: list[Node] = []


class Size(pydantic.BaseModel):
    width: int


def describe(fn: Any, stateless: bool = False, **settings: Any) -> dict[str, Any]:
    app = Tooli("shop", version="2.0")
    app.command("find-items", **settings)(fn)
    app.command("other")(lambda: None)
    return describe_mcp_tool("find_items", app.find("find-items"), stateless=stateless)


def test_title_description_and_annotations() -> None:
    def fn(text: str) -> dict[str, int]:
        """Find items."""
        return {}

    found = describe(fn, annotations=ReadOnly, capabilities=["net:read"], auth=["items"])
    assert found["title"] == "Find items"
    assert found["description"] == "Find items."
    assert found["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
    assert found["_meta"]["io.tooli/tool"]["capabilities"] == ["net:read"]
    assert found["_meta"]["io.tooli/tool"]["scopes"] == ["items"]


def test_input_schema_without_parameters() -> None:
    def fn(ctx: Context) -> int:
        return 1

    assert describe(fn)["inputSchema"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


RESULTS = [
    # result type, and whether it is wrapped for clients of the handshake version
    (int, True),
    (str, True),
    (list[int], True),
    (Size, False),
    (dict[str, int], False),
    (Optional[Size], True),  # noqa: UP045
    (int | str, True),
    (Any, True),
    (Node, False),
    (list[Node], True),
]


@pytest.mark.parametrize("kind", [["object", "null"], "null", ["string", "null"]], ids=str)
@pytest.mark.parametrize("stateless", [False, True])
def test_a_result_that_may_be_null_is_wrapped(kind: object, stateless: bool) -> None:
    tool = described_tool("get", lambda _: None, output_schema={"type": kind})
    form = result_form(tool, stateless)
    assert form is not None and form.is_wrapped


@pytest.mark.parametrize(("kind", "is_wrapped"), RESULTS, ids=[str(r[0]) for r in RESULTS])
@pytest.mark.parametrize("stateless", [False, True])
def test_result_schema_is_a_valid_object_schema(
    kind: Any, is_wrapped: bool, stateless: bool
) -> None:
    def fn():  # type: ignore[no-untyped-def]
        return None

    fn.__annotations__["return"] = kind
    app = Tooli("shop")
    app.command("make")(fn)
    tool = app.find("make")
    schema = result_schema(tool, stateless)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "$ref" not in schema
    unwrapped = stateless and kind in (int, str, list[int], list[Node])
    form = result_form(tool, stateless)
    assert form.is_wrapped is (is_wrapped and not unwrapped)
    if not unwrapped:
        assert schema["type"] == "object"
    assert ("result" in schema.get("properties", {})) is form.is_wrapped
    references = [part for part in str(schema).split("'") if part.startswith("#/$defs/")]
    assert all(part.rpartition("/")[2] in schema["$defs"] for part in references)


def test_no_output_schema_without_a_declared_result() -> None:
    assert "outputSchema" not in describe(lambda: None)

    def picture() -> Image:
        return Image(b"")

    assert "outputSchema" not in describe(picture)

    def pictures() -> list[Image | str]:
        return []

    assert "outputSchema" not in describe(pictures)


def test_confirmation_options_of_a_destructive_tool() -> None:
    def fn(path: str) -> int:
        return 1

    properties = describe(fn, annotations=Destructive)["inputSchema"]["properties"]
    assert list(properties) == ["path", "yes", "dry_run"]
    guarded = describe(fn, annotations=Destructive, requires_approval=True)
    assert list(guarded["inputSchema"]["properties"]) == ["path", "dry_run"]
    assert "human has agreed" in properties["yes"]["description"]

    def own(yes: Annotated[int, "mine"]) -> int:
        return 1

    assert describe(own, annotations=Destructive)["inputSchema"]["properties"]["yes"] == {
        "type": "integer"
    }


@pytest.mark.parametrize(
    ("options", "is_offered"),
    [
        ({}, True),
        ({"danger_level": "high"}, True),
        ({"danger_level": "critical"}, True),
        ({"danger_level": "forbidden"}, False),
        ({"requires_approval": True}, False),
        ({"human_in_the_loop": True}, False),
    ],
)
def test_yes_is_not_offered_if_only_a_human_can_approve(
    options: dict[str, Any], is_offered: bool
) -> None:
    found = describe(lambda: None, annotations=Destructive, **options)
    assert ("yes" in found["inputSchema"]["properties"]) is is_offered


@pytest.mark.parametrize(
    ("policy", "settings", "is_offered"),
    [
        ("standard", {}, True),
        ("strict", {}, False),
        ("standard", {"human_in_the_loop": True}, False),
    ],
)
def test_settings_decide_whether_yes_is_offered(
    policy: Any, settings: Any, is_offered: bool
) -> None:
    app = Tooli("shop", security_policy=policy)
    app.command("drop", annotations=Destructive, danger_level="critical")(lambda: None)
    app.command("other")(lambda: None)
    app._state.security_settings.update(settings)
    tool = with_settings(app.find("drop"), app._state)
    assert can_be_confirmed(tool) is is_offered


DESTRUCTIVE: dict[str, bool] = {"destructiveHint": True}
HINTS: list[tuple[dict[str, Any], dict[str, bool]]] = [
    ({}, {}),
    ({"capabilities": ["none"]}, {"readOnlyHint": True, "openWorldHint": False}),
    ({"capabilities": ["fs:read:./x", "env:read"]}, {"readOnlyHint": True, "openWorldHint": False}),
    ({"capabilities": ["net:read"]}, {"readOnlyHint": True, "openWorldHint": True}),
    *[
        ({"capabilities": ["fs:read", name]}, {**DESTRUCTIVE, "openWorldHint": False})
        for name in ("fs:write", "fs:write:./x", "fs:delete", "proc:spawn", "env:write")
    ],
    ({"capabilities": ["state:mutate"]}, {**DESTRUCTIVE, "openWorldHint": False}),
    ({"capabilities": ["net:write"]}, {**DESTRUCTIVE, "openWorldHint": True}),
    ({"requires_approval": True}, DESTRUCTIVE),
    ({"human_in_the_loop": True}, DESTRUCTIVE),
    *[({"danger_level": name}, DESTRUCTIVE) for name in ("low", "medium", "high", "critical")],
    ({"danger_level": "none"}, {"destructiveHint": False}),
    ({"annotations": ReadOnly, "danger_level": "low"}, {"readOnlyHint": True}),
    ({"annotations": ReadOnly, "danger_level": "high"}, DESTRUCTIVE),
    ({"annotations": ReadOnly, "requires_approval": True}, DESTRUCTIVE),
    ({"annotations": ReadOnly, "capabilities": ["proc:spawn"]}, DESTRUCTIVE),
    ({"annotations": ReadOnly}, {"readOnlyHint": True}),
    ({"annotations": Idempotent}, {"idempotentHint": True}),
    ({"annotations": OpenWorld}, {"openWorldHint": True}),
    ({"annotations": Idempotent | OpenWorld}, {"idempotentHint": True, "openWorldHint": True}),
    (
        {"annotations": Idempotent, "danger_level": "none"},
        {"destructiveHint": False, "idempotentHint": True},
    ),
    (
        {"annotations": Idempotent, "capabilities": ["fs:write"]},
        {**DESTRUCTIVE, "idempotentHint": True},
    ),
    ({"annotations": ReadOnly | Idempotent}, {"readOnlyHint": True, "idempotentHint": True}),
    ({"annotations": Destructive, "capabilities": ["fs:read"]}, DESTRUCTIVE),
]


@pytest.mark.parametrize(("options", "expected"), HINTS)
def test_hints_follow_from_behavior_capabilities_and_guards(
    options: dict[str, Any], expected: dict[str, bool]
) -> None:
    if "capabilities" in options:
        expected = {"openWorldHint": False, **expected}
    described = describe(lambda: None, **options)
    assert described.get("annotations", {}) == expected
    assert ("annotations" in described) == bool(expected)


def test_custom_input_schema_is_not_changed() -> None:
    raw = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "$defs": {}}
    assert describe(lambda: None, input_schema=raw)["inputSchema"] == raw


def test_safe_names_are_unique() -> None:
    app = Tooli("shop")
    for name in ("a-b", "a_b", "A.B", "ünï", "x" * 90, "x" * 91):
        app.command(name)(lambda: None)
    names = list(tools_by_safe_name(app.catalog))
    assert names[:3] == ["a_b", "a_b_2", "a_b_3"]
    assert len(set(names)) == 6
    assert all(len(n) <= 64 and n.isascii() and n.replace("_", "a").isalnum() for n in names)
    assert all(n == n.lower() for n in names)


def test_paging_options_of_a_paginated_tool() -> None:
    from tooli.describe.mcp_tools import arguments_schema

    app = Tooli("app")

    @app.command(paginated=True)
    def many(limit: str = "") -> list[int]:
        return []

    @app.command(max_tokens=100)
    def bounded() -> list[int]:
        return []

    @app.command()
    def few() -> list[int]:
        return []

    tools = {tool.name: arguments_schema(tool)["properties"] for tool in app.catalog}
    assert list(tools["many"]) == ["limit", "cursor"]
    assert tools["many"]["limit"]["type"] == "string", "the parameter takes precedence"
    assert list(tools["bounded"]) == ["limit", "cursor"]
    assert not tools["few"]


class Token(pydantic.BaseModel):
    """A result with a field that plans also have."""

    token: int


class Closed(pydantic.BaseModel, extra="forbid"):
    """A result that allows no other fields."""

    count: int


KINDS = (str, int, list[int], dict[str, int], Node, list[Node], Token, Closed)


@pytest.mark.parametrize("kind", [*KINDS, None])
@pytest.mark.parametrize("stateless", [False, True])
def test_result_schema_accepts_a_plan(kind: Any, stateless: bool) -> None:
    """Clients validate results, and the result of a dry run is a plan."""
    from tooli.annotations import Destructive

    def fn():  # type: ignore[no-untyped-def]
        return None

    fn.__annotations__["return"] = kind
    app = Tooli("shop")
    app.command("wipe", annotations=Destructive)(fn)
    tool = app.find("wipe")
    schema = result_schema(tool, stateless)
    if schema is None:
        return
    jsonschema.Draft202012Validator.check_schema(schema)
    plan: Any = app.call("wipe", dry_run=True).to_dict()["result"]
    sent = {"result": plan} if result_form(tool, stateless).is_wrapped else plan
    jsonschema.Draft202012Validator(schema).validate(sent)
    assert stateless or schema["type"] == "object"
    if kind is not None:
        field = next(iter(schema.get("properties", {})), "x")
        wrapped = result_form(tool, stateless).is_wrapped
        invalid = {"result": {"x": object}} if wrapped else {field: object}
        assert not jsonschema.Draft202012Validator(schema).is_valid(invalid)


# ------------------------------------------------------------------ what the author adds


def make_described_app() -> Tooli:
    app = Tooli("shop")
    icon = {"src": "data:image/png;base64,AA==", "sizes": ["48x48"]}

    @app.command(
        title="Find it",
        icons=["https://shop.example/icon.png", icon],
        meta={"com.example/team": "search"},
        tags=["price", "cheap"],
        when_to_use="To look for prices.",
        always_visible=True,
        max_tokens=40_000,
        deprecated="use look",
    )
    def find() -> list[str]:
        """Find things."""
        return []

    @app.command(max_tokens=1000)
    def plain() -> list[str]:
        """Show things."""
        return []

    @app.command(max_tokens=10**6, meta={"anthropic/maxResultSizeChars": 60_000})
    def large() -> list[str]:
        """Show many things."""
        return []

    return app


def test_author_adds_title_icons_and_meta() -> None:
    tool = make_described_app().find("find")
    assert tool is not None
    app_meta = {"com.example/team": "shop", "com.example/app": 1, "anthropic/alwaysLoad": False}
    described = describe_mcp_tool("find", tool, app_meta=app_meta)
    assert described["title"] == "Find it"
    assert described["description"] == "Find things.\n\nDeprecated: use look."
    assert described["icons"] == [
        {"src": "https://shop.example/icon.png"},
        {"src": "data:image/png;base64,AA==", "sizes": ["48x48"]},
    ]
    meta = described["_meta"]
    assert meta.pop("io.tooli/tool")["tags"] == ["price", "cheap"]
    assert meta == {
        "com.example/team": "search",
        "com.example/app": 1,
        "anthropic/alwaysLoad": True,
        "anthropic/searchHint": "Find things. To look for prices. price cheap",
        "anthropic/maxResultSizeChars": 120_000,
    }


def test_meta_has_only_what_the_author_declares() -> None:
    app = make_described_app()
    plain, large = app.find("plain"), app.find("large")
    assert plain is not None
    assert large is not None
    described = describe_mcp_tool("plain", plain)
    assert not {"_meta", "icons"} & described.keys()
    meta = describe_mcp_tool("large", large)["_meta"]
    assert meta == {"anthropic/maxResultSizeChars": 60_000}
    assert max_result_chars(large) == 60_000
    assert max_result_chars(plain) is None
    for size, chars in ((70_000, 70_000), (10**7, 500_000), ("large", None), (-1, None)):
        assert max_result_chars(plain, {"anthropic/maxResultSizeChars": size}) == chars
    limited = large.replace(guidance=plain.guidance)
    assert describe_mcp_tool("large", limited)["_meta"] == {"anthropic/maxResultSizeChars": 500_000}


@pytest.mark.parametrize(
    ("annotations", "hints"),
    [
        (Idempotent, {"idempotentHint": True}),
        (
            Destructive | Idempotent,
            {"idempotentHint": True, "destructiveHint": True},
        ),
        (
            ReadOnly | Idempotent,
            {"idempotentHint": True, "readOnlyHint": True},
        ),
        (Destructive, {"destructiveHint": True}),
        (None, {}),
    ],
)
def test_hints_say_whether_a_tool_is_idempotent(annotations: Any, hints: dict[str, bool]) -> None:
    app = Tooli("shop")

    @app.command(annotations=annotations) if annotations else app.command()
    def put() -> str:
        """Put something."""
        return ""

    tool = app.find("put")
    assert tool is not None
    assert describe_mcp_tool("put", tool).get("annotations", {}) == hints
