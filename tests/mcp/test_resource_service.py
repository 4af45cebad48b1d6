"""ResourceService: resources, prompts and completions."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.sdk_client import each_mode, make_server

from tooli import Message, Tooli
from tooli.annotations import Destructive
from tooli.stages import rate_limit


@each_mode
async def test_prompt_messages_of_every_form_are_converted(mode: Any) -> None:
    app = Tooli("app")
    block = {"type": "text", "text": "c"}
    messages = ["a", Message("b", "assistant"), {"role": "user", "content": block}]
    app.prompt("all")(lambda: [*messages, {"role": "assistant", "content": "d"}, {"x": 1}])
    async with Client(make_server(app), mode=mode) as client:
        messages = (await client.get_prompt("all")).messages
    found = [(message.role, message.content.text) for message in messages]  # type: ignore[union-attr]
    assert found == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
        ("assistant", "d"),
        ("user", '{"x":1}'),
    ]


async def test_destructive_resources_are_rejected() -> None:
    app = Tooli("app")

    @app.resource("x://wipe")
    @app.command(annotations=Destructive)
    def wipe() -> str:
        raise AssertionError

    async with Client(make_server(app), mode="legacy") as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource("x://wipe")
        assert caught.value.data["error"]["code"] == "E1010"


def make_app_with_completions(*scopes: str) -> tuple[Tooli, list[str]]:
    """Return an app, and a list of the texts that its completers are called with."""
    app, completed = Tooli("app", security_policy="strict"), list[str]()

    def complete_name(text: str) -> list[str]:
        completed.append(text)
        return ["alice\x1b]0;x\x07 AKIAIOSFODNN7EXAMPLE"]

    async def complete_place(text: str) -> list[str]:
        completed.append(text)
        return ["al\x1b[2Jps"]

    complete = {"name": complete_name, "place": complete_place}

    @app.prompt(auth=scopes, complete=complete)
    def letter(name: str, place: str) -> str:
        return name + place

    return app, completed


@each_mode
async def test_completion_needs_the_scopes_of_its_target(mode: Any) -> None:
    app, completed = make_app_with_completions("vault:read")
    async with Client(make_server(app), mode=mode) as client:
        for name in ("name", "place"):
            with pytest.raises(MCPError) as caught:
                await client.complete(
                    types.PromptReference(name="letter"), {"name": name, "value": "al"}
                )
            assert caught.value.data["error"]["code"] == "E2001"
    assert completed == []


@each_mode
async def test_completions_are_redacted(mode: Any) -> None:
    app, completed = make_app_with_completions()
    prompt = types.PromptReference(name="letter")
    async with Client(make_server(app), mode=mode) as client:
        found = await client.complete(prompt, {"name": "name", "value": "al"})
        assert "\x1b" not in found.completion.values[0]
        assert "AKIAIOSFODNN7EXAMPLE" not in found.completion.values[0]
        found = await client.complete(prompt, {"name": "place", "value": "al"})
        assert found.completion.values == ["alps"]
    assert completed == ["al", "al"]


async def test_completions_count_towards_the_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "2/hour")
    app, completed = make_app_with_completions()
    prompt = types.PromptReference(name="letter")
    async with Client(make_server(app), mode="legacy") as client:
        for value in ("a", "al"):
            await client.complete(prompt, {"name": "name", "value": value})
        with pytest.raises(MCPError) as caught:
            await client.complete(prompt, {"name": "name", "value": "ali"})
        assert caught.value.data["error"]["code"] == "E4029"
    assert completed == ["a", "al"]


@each_mode
async def test_long_uri_is_rejected(mode: Any) -> None:
    app = Tooli("app")
    app.resource("x://{a}-{b}")(lambda a, b: f"{a}, {b}")
    longest = "x://" + "a" * 1994 + "-b"
    reference = types.ResourceTemplateReference(uri=longest + "b")
    async with Client(make_server(app), mode=mode) as client:
        assert (await client.read_resource(longest)).contents
        with pytest.raises(MCPError, match="2001 characters; the maximum is 2000"):
            await client.read_resource(longest + "b")
        with pytest.raises(MCPError, match="the maximum is 2000"):
            await client.complete(reference, {"name": "a", "value": ""})


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_long_uri_cannot_be_subscribed() -> None:
    app = Tooli("app")
    app.resource("x://{a}-{b}")(lambda a, b: f"{a}, {b}")
    async with Client(make_server(app), mode="legacy") as client:
        with pytest.raises(MCPError, match="the maximum is 2000"):
            await client.session.subscribe_resource("x://" + "a" * 3000)
