"""Pages about the app: /, /health, /tools, /openapi.json."""

from __future__ import annotations

import re
from pathlib import Path

from tests.http.asgi_client import send
from tests.parity.zoo import make_app

from tooli import Tooli
from tooli.describe.schema_formats import describe_tool
from tooli.http import info_pages


async def test_health_is_short() -> None:
    client = await send(Tooli("small", version="3").asgi(mcp=False, token="t"), "GET", "/health")
    assert client.json() == {"ok": True, "app": "small", "version": "3"}


async def test_tools_have_all_that_a_form_needs() -> None:
    app = make_app()
    told = (await send(app.asgi(mcp=False), "GET", "/tools")).json()
    assert {key: told[key] for key in ("app", "version", "description", "prog")} == {
        "app": "zoo",
        "version": "1.2.0",
        "description": "Everything once.",
        "prog": "zoo",
    }
    commands = {command["name"]: command for command in told["commands"]}
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


async def test_tools_describe_the_framework_options() -> None:
    told = (await send(make_app().asgi(mcp=False), "GET", "/tools")).json()
    options = {option["name"]: option for option in told["options"]}
    assert options["dry_run"]["flags"] == ["--dry-run"]
    assert options["dry_run"]["takes_value"] is False
    assert set(options["dry_run"]["interfaces"]) == {"cli", "http", "mcp", "python"}
    assert "detailed" in options["response_format"]["choices"]
    assert "--json" in options["output"]["shortcuts"]
    display = {name for name, option in options.items() if option["is_display"]}
    assert display >= {"output", "no_input", "no_color", "quiet", "verbose"}
    assert display.isdisjoint({"limit", "timeout", "input", "null", "schema", "help", "yes"})


async def test_the_documents_follow_the_app() -> None:
    app = Tooli("growing")
    app.command("one")(lambda: 1)
    api = app.asgi(mcp=False)
    assert len((await send(api, "GET", "/tools")).json()["commands"]) == 1
    app.command("two")(lambda: 2)
    assert len((await send(api, "GET", "/tools")).json()["commands"]) == 2
    assert len((await send(api, "GET", "/openapi.json")).json()["paths"]) == 2


# ------------------------------------------------------------------ the page


async def test_the_page_runs_only_its_own_scripts(monkeypatch) -> None:
    monkeypatch.setattr(info_pages, "_read_page", lambda: b'<script nonce="__NONCE__"></script>')
    api = Tooli("paged").asgi(mcp=False, token="t")
    first, second = await send(api, "GET", "/"), await send(api, "GET", "/")
    (nonce,) = re.findall(r'nonce="([\w-]{20,})"', first.body.decode())
    policy = first.headers["content-security-policy"]
    assert f"script-src 'nonce-{nonce}'" in policy
    assert f"style-src 'nonce-{nonce}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert nonce not in second.body.decode()
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert first.headers["cache-control"] == "no-store"


async def test_without_a_page_there_is_none(monkeypatch) -> None:
    assert (await send(Tooli("paged").asgi(mcp=False, page=False), "GET", "/")).status == 404
    monkeypatch.setattr(info_pages, "files", lambda _: Path("/nowhere"))
    client = await send(Tooli("paged").asgi(mcp=False), "GET", "/")
    assert (client.status, client.code) == (404, "E1404")
