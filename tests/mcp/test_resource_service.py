"""ResourceService: resources, prompts and completions."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tooli import Message, Tooli
from tooli.annotations import Destructive
from tooli.mcp.sdk_server import AppServer
from tooli.mcp.service import McpService
from tooli.stages import rate_limit

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def serve(app: Tooli, **options: Any) -> AppServer:
    return AppServer(McpService(app, **options))


@ERAS
async def test_prompt_messages_of_every_form(mode: Any) -> None:
    app = Tooli("app")
    block = {"type": "text", "text": "c"}
    messages = ["a", Message("b", "assistant"), {"role": "user", "content": block}]
    app.prompt("all")(lambda: [*messages, {"role": "assistant", "content": "d"}, {"x": 1}])
    async with Client(serve(app), mode=mode) as client:
        messages = (await client.get_prompt("all")).messages
    shown = [(one.role, one.content.text) for one in messages]  # type: ignore[union-attr]
    assert shown == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
        ("assistant", "d"),
        ("user", '{"x":1}'),
    ]


async def test_destructive_resources_are_refused() -> None:
    app = Tooli("app")

    @app.resource("x://wipe")
    @app.command(annotations=Destructive)
    def wipe() -> str:
        raise AssertionError

    async with Client(serve(app), mode="legacy") as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("x://wipe")
        assert refused.value.data["error"]["code"] == "E1010"


def letters(*scopes: str) -> tuple[Tooli, list[str]]:
    app, asked = Tooli("app", security_policy="strict"), list[str]()

    def names(text: str) -> list[str]:
        asked.append(text)
        return ["alice\x1b]0;x\x07 AKIAIOSFODNN7EXAMPLE"]

    async def places(text: str) -> list[str]:
        asked.append(text)
        return ["al\x1b[2Jps"]

    complete = {"name": names, "place": places}

    @app.prompt(auth=scopes, complete=complete)
    def letter(name: str, place: str) -> str:
        return name + place

    return app, asked


@ERAS
async def test_completion_needs_the_scopes_of_its_target(mode: Any) -> None:
    app, asked = letters("vault:read")
    async with Client(serve(app), mode=mode) as client:
        for name in ("name", "place"):
            with pytest.raises(MCPError) as refused:
                await client.complete(
                    types.PromptReference(name="letter"), {"name": name, "value": "al"}
                )
            assert refused.value.data["error"]["code"] == "E2001"
    assert asked == []


@ERAS
async def test_completions_are_redacted(mode: Any) -> None:
    app, asked = letters()
    prompt = types.PromptReference(name="letter")
    async with Client(serve(app), mode=mode) as client:
        found = await client.complete(prompt, {"name": "name", "value": "al"})
        assert "\x1b" not in found.completion.values[0]
        assert "AKIAIOSFODNN7EXAMPLE" not in found.completion.values[0]
        found = await client.complete(prompt, {"name": "place", "value": "al"})
        assert found.completion.values == ["alps"]
    assert asked == ["al", "al"]


async def test_completions_count_towards_the_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    monkeypatch.setenv("TOOLI_RATE_LIMIT", "2/hour")
    app, asked = letters()
    prompt = types.PromptReference(name="letter")
    async with Client(serve(app), mode="legacy") as client:
        for value in ("a", "al"):
            await client.complete(prompt, {"name": "name", "value": value})
        with pytest.raises(MCPError) as refused:
            await client.complete(prompt, {"name": "name", "value": "ali"})
        assert refused.value.data["error"]["code"] == "E4029"
    assert asked == ["a", "al"]
