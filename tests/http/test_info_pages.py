"""Pages: the HTML page, health, the commands, the OpenAPI document, and their links."""

from __future__ import annotations

import pytest
from tests.http.asgi_client import HOST, AsgiClient, send
from tests.parity.sample_apps import make_app

from tooli import Context, DefinitionError, Tooli
from tooli.describe.schema_formats import describe_tool


async def test_health_page_needs_no_token_and_shows_the_version() -> None:
    client = await send(Tooli("small", version="3").asgi(mcp=False, token="t"), "GET", "/health")
    assert client.json() == {"ok": True, "app": "small", "version": "3"}


async def test_tools_page_describes_all_versions() -> None:
    app = Tooli("versions")
    app.command("add", version="1.0")(lambda a: a)
    app.command("add", version="2.0")(lambda a, b: a)
    (command,) = (await send(app.asgi(mcp=False), "GET", "/tools")).json()["commands"]
    assert command["version"] == "2.0"
    (other,) = command["other_versions"]
    assert other["version"] == "1.0" and list(other["input_schema"]["properties"]) == ["a"]


async def test_tools_page_describes_commands() -> None:
    app = make_app()
    document = (await send(app.asgi(mcp=False), "GET", "/tools")).json()
    assert {key: document[key] for key in ("app", "version", "description", "prog")} == {
        "app": "sample",
        "version": "1.2.0",
        "description": "A sample app.",
        "prog": "sample",
    }
    commands = {command["name"]: command for command in document["commands"]}
    find = commands["find-files"]
    tool = app.find("find-files")
    assert tool is not None
    assert find.items() >= describe_tool(tool, "json").items()
    assert find["positional"] == ["pattern"]
    assert find["flags"]["kinds"] == "--kind"
    assert find["negations"]["follow"] == "--no-follow"
    assert "streams" not in find
    assert commands["count"]["streams"] is True
    assert commands["users.create"]["path"] == ["users", "create"]
    assert commands["users.create"]["mcp_name"] == "users_create"


async def test_tools_page_describes_framework_options() -> None:
    document = (await send(make_app().asgi(mcp=False), "GET", "/tools")).json()
    options = {option["name"]: option for option in document["options"]}
    assert options["dry_run"]["flags"] == ["--dry-run"]
    assert options["dry_run"]["takes_value"] is False
    assert set(options["dry_run"]["interfaces"]) == {"cli", "http", "mcp", "python"}
    assert "detailed" in options["response_format"]["choices"]
    assert "--json" in options["output"]["shortcuts"]
    display = {name for name, option in options.items() if option["is_display"]}
    assert display >= {"output", "no_input", "no_color", "quiet", "verbose"}
    assert display.isdisjoint({"limit", "timeout", "input", "null", "schema", "help", "yes"})


async def test_tools_page_describes_groups_in_their_order() -> None:
    app, shop, items = Tooli("a"), Tooli(help="Sell things.\n\nMore."), Tooli()
    hidden = Tooli()
    for group in (shop, items, hidden):
        group.command("show")(lambda: 1)
    app.add_typer(shop, name="shop")
    shop.add_typer(items, name="items", help="What is sold.")
    app.add_typer(hidden, name="secret", hidden=True)
    document = (await send(app.asgi(mcp=False), "GET", "/tools")).json()
    assert document["groups"] == [
        {"path": ["shop"], "description": "Sell things.\n\nMore."},
        {"path": ["shop", "items"], "description": "What is sold."},
    ]


async def test_tools_page_lists_resources_and_prompts_if_mcp_serves_them() -> None:
    app = Tooli("a")
    app.resource("a://x/{name}", mime_type="text/plain")(lambda name: name)

    @app.prompt()
    def ask(topic: str) -> str:
        """Ask about a topic."""
        return topic

    @app.command()
    def work(ctx: Context) -> int:
        return 1

    @app.command()
    def store(picture: bytes, name: str = "") -> int:
        return 1

    document = (await send(app.asgi(), "GET", "/tools")).json()
    assert document["commands"][1]["uploads"] == ["picture"]
    assert "uploads" not in document["commands"][0]
    assert [resource["uriTemplate"] for resource in document["resources"]] == ["a://x/{name}"]
    (prompt,) = document["prompts"]
    assert prompt["arguments"] == [{"name": "topic", "required": True}]
    assert document["commands"][0]["reports"] is True
    document = (await send(app.asgi(mcp=False), "GET", "/tools")).json()
    assert "resources" not in document
    assert "prompts" not in document


async def test_documents_contain_commands_registered_later() -> None:
    app = Tooli("growing")
    app.command("one")(lambda: 1)
    api = app.asgi(mcp=False)
    assert len((await send(api, "GET", "/tools")).json()["commands"]) == 1
    app.command("two")(lambda: 2)
    assert len((await send(api, "GET", "/tools")).json()["commands"]) == 2
    paths = (await send(api, "GET", "/openapi.json")).json()["paths"]
    commands = [path for path in paths if path != "/orchestrate"]
    assert commands == ["/tools/one", "/tools/two", "/plans/one", "/plans/two"]


# ------------------------------------------------------------------ prefixes


async def get(api, path: str, root: str = "") -> AsgiClient:
    client = AsgiClient(api)
    client.send_body()
    await client.start("GET", path, [HOST], root=root)
    return client


@pytest.mark.parametrize(
    ("setting", "path", "root", "servers"),
    [
        ("", "/openapi.json", "", None),
        ("", "/shop/openapi.json", "/shop", [{"url": "/shop"}]),  # mounted, as Starlette does it
        ("", "/openapi.json", "/shop/", [{"url": "/shop"}]),  # the prefix is removed from the path
        ("/shop", "/openapi.json", "", [{"url": "/shop"}]),  # a proxy removes the prefix
        ("/shop/", "/shop/openapi.json", "", [{"url": "/shop"}]),  # a proxy keeps it
        ("/a/shop", "/shop/openapi.json", "/shop", [{"url": "/a/shop"}]),  # a proxy and a mount
    ],
)
async def test_openapi_names_the_prefix(setting, path, root, servers) -> None:
    client = await get(Tooli("shop").asgi(mcp=False, root_path=setting), path, root)
    assert client.status == 200
    assert client.json().get("servers") == servers


async def test_openapi_of_one_prefix_is_not_sent_under_another() -> None:
    api = Tooli("shop").asgi(mcp=False)
    roots = ["/a", "/b", "/a", "/" + "x" * 5000]
    answers = [(await get(api, "/openapi.json", root)).json() for root in roots]
    assert [answer.get("servers", [{}])[0].get("url") for answer in answers] == [
        *("/a", "/b", "/a"),
        None,
    ]


@pytest.mark.parametrize(
    ("path", "root", "location"),
    [("/shop", "/shop", "/shop/"), ("/shop/", "/shop", None), ("/", "", None)],
)
async def test_page_has_a_slash_at_the_end_of_its_path(path, root, location) -> None:
    client = await get(Tooli("shop").asgi(mcp=False), path, root)
    assert client.headers.get("location") == location
    assert client.status == (200 if location is None else 307)


@pytest.mark.parametrize("path", ["/health/", "/tools/", "/openapi.json/"])
async def test_slash_at_the_end_of_a_path_is_ignored(path: str) -> None:
    assert (await get(Tooli("shop").asgi(mcp=False), path)).status == 200


@pytest.mark.parametrize(
    "root", ["shop", "https://shop.example/", "/a//b", "/a b", "/tools", "/mcp/x", "/a?b", "//evil"]
)
def test_invalid_prefix_is_a_definition_error(root: str) -> None:
    with pytest.raises(DefinitionError, match="root_path"):
        Tooli("shop").asgi(mcp=False, root_path=root)
