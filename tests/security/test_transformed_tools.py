"""What a transform leaves out or fixes cannot be reached by another way."""

from __future__ import annotations

from typing import Any

import pytest
from tests.http.asgi_client import post, send

from tooli import DefinitionError, Tooli
from tooli.annotations import ReadOnly
from tooli.core.tool import Tool
from tooli.testing import invoke
from tooli.transforms import Arg, Namespace, ToolTransform, VersionFilter, Visibility

REGION_IS_FIXED = ToolTransform("orders", args={"region": Arg(value="EU", hide=True)})


def make_app(*transforms: Any, **options: Any) -> Tooli:
    app = Tooli("shop", **options)

    @app.prompt("ask-orders")
    @app.resource("shop://orders/{region}")
    @app.command(annotations=ReadOnly, tags=["admin"])
    def orders(region: str = "US") -> str:
        return f"orders in {region}"

    @app.command(annotations=ReadOnly, tags=["admin"], resource="shop://totals")
    def totals() -> str:
        return "secret totals"

    @app.command(annotations=ReadOnly, version="1.0", resource="shop://old")
    def old() -> str:
        return "secret of the old version"

    @app.command("old", annotations=ReadOnly, version="2.0")
    def new() -> str:
        return "new"

    app.with_transforms(*transforms)
    return app


def resources_of(app: Tooli) -> list[str]:
    return [str(r.get("uri") or r.get("uriTemplate")) for r in app.list_resources()]


# ------------------------------------------------------------------ changes that are impossible


@pytest.mark.parametrize(
    "transforms",
    [
        (ToolTransform("orders", args={"regoin": Arg(value="EU", hide=True)}),),
        (REGION_IS_FIXED, ToolTransform("orders", args={"region": Arg(help="x")})),
        (ToolTransform("orders", args={"regoin": Arg(value="EU", hide=True)}), Namespace("ns")),
        (
            ToolTransform("orders", args={"regoin": Arg(value="EU", hide=True)}),
            Visibility(exclude_tags={"admin"}),
        ),
    ],
)
@pytest.mark.parametrize("has_callback", [False, True])
def test_command_that_a_transform_cannot_change_does_not_run(
    transforms: tuple[Any, ...], has_callback: bool
) -> None:
    app = make_app(*transforms)
    if has_callback:
        app.callback()(lambda: None)
    for line in (["orders"], ["ns", "orders"]):
        for options in ([], ["--region", "US"]):
            for mode in ("--json", "--text"):
                result = invoke(app, *line, *options, mode)
                assert result.exit_code != 0
                assert "orders in" not in result.stdout + result.stderr
    for name in ("orders", "ns.orders"):
        assert not app.call(name).ok
    assert "shop://orders/{region}" not in resources_of(app)
    assert not app.read_resource("shop://orders/US").ok
    assert not app.get_prompt("ask-orders", region="US").ok


async def test_other_interfaces_do_not_run_it() -> None:
    app = make_app(ToolTransform("orders", args={"regoin": Arg(value="EU", hide=True)}))
    api = app.asgi()
    assert b"orders in" not in (await post(api, "orders", {"region": "US"})).body
    query = b"uri=shop://orders/US"
    assert (await send(api, "GET", "/resources/read", query=query)).status == 404


# ------------------------------------------------------------------ commands that are left out


@pytest.mark.parametrize("place", ["app", "above", "below"])
def test_resource_of_a_hidden_command_does_not_exist(place: str) -> None:
    hide = Visibility(exclude_tags={"admin"})
    app = make_app(*([] if place == "above" else [hide]))
    root = app
    if place != "app":
        root = Tooli("root")
        root.add_typer(app, name="inner")
        if place == "above":
            root.add_transform(hide)
    assert resources_of(root) == ["shop://old"]
    for uri in ("shop://totals", "shop://orders/US"):
        assert root.read_resource(uri).error.code == "E3010"  # type: ignore[union-attr]
    assert root.list_prompts() == []
    assert not root.get_prompt("ask-orders").ok


def test_resource_of_a_version_that_is_left_out_does_not_exist() -> None:
    app = make_app(VersionFilter(version_gte="2.0"))
    assert "shop://old" not in resources_of(app)
    assert not app.read_resource("shop://old").ok


async def test_resource_of_a_command_for_a_role_follows_the_role() -> None:
    app = make_app(Visibility(exclude_tags={"admin"}, roles={"ops"}))
    for token, status in (("guest", 404), ("admin", 200)):
        api = app.asgi(tokens={"guest": [], "admin": ["ops"]})
        header = (b"authorization", f"Bearer {token}".encode())
        listed = (await send(api, "GET", "/resources", None, header)).body
        assert (b"shop://totals" in listed) is (status == 200)
        for query in (b"uri=shop://totals", b"uri=shop://orders/US"):
            read = await send(api, "GET", "/resources/read", None, header, query=query)
            assert read.status == status
        assert (await send(api, "GET", "/prompts/ask-orders", None, header)).status == status


def test_roles_that_exclude_each_other_admit_nobody() -> None:
    app = Tooli("shop")
    registered = [
        app.command(name, annotations=ReadOnly, tags=[name])(_report) for name in ("a", "b")
    ]
    app.resource("shop://report")(registered[0])
    app.with_transforms(
        Visibility(exclude_tags={"a"}, roles={"x"}), Visibility(exclude_tags={"b"}, roles={"y"})
    )
    assert resources_of(app) == []


def _report() -> str:
    return "report"


# ------------------------------------------------------------------ commands that are changed


def test_resource_with_an_argument_that_is_fixed_does_not_exist() -> None:
    app = make_app(REGION_IS_FIXED)
    assert "shop://orders/{region}" not in resources_of(app)
    assert not app.read_resource("shop://orders/US").ok
    result = app.get_prompt("ask-orders").unwrap()
    assert "orders in EU" in str(result)
    assert not app.get_prompt("ask-orders", region="US").ok


def test_rules_that_a_transform_adds_apply_to_the_resource() -> None:
    def need_approval(tool: Tool) -> Tool:
        return tool.replace(guard=tool.guard.replace(approval=True))

    app = make_app(need_approval)
    assert app.read_resource("shop://totals").error.code == "E2101"  # type: ignore[union-attr]


def test_resources_of_other_commands_stay() -> None:
    app = make_app(Namespace("ns"), ToolTransform("ns.totals", name="sum"))
    assert resources_of(app) == ["shop://orders/{region}", "shop://totals", "shop://old"]
    assert app.read_resource("shop://orders/US").result == "orders in US"
    assert app.read_resource("shop://totals").result == "secret totals"


def test_function_of_two_commands_stays_a_resource() -> None:
    app = Tooli("shop")
    for name in ("a", "b"):
        app.command(name, annotations=ReadOnly)(_report)
    app.resource("shop://report")(_report)
    app.add_transform(Namespace("ns"))
    assert app.read_resource("shop://report").result == "report"


def test_two_commands_with_one_name_are_still_an_error() -> None:
    app = make_app(ToolTransform("totals", name="orders"))
    with pytest.raises(DefinitionError):
        app.tree()
