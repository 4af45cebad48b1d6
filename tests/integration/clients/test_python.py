"""The Python SDK as a client, over stdio, in handshake and stateless versions."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from tests.integration.app_process import environment
from tests.integration.mcp.stdio_client import (
    HANDSHAKE_VERSION,
    SERVED,
    STATELESS_VERSION,
    failure_of,
)
from tests.integration.mcp_http.http_process import run_server


class Callbacks:
    """Answers the questions of the server as a user and a model would."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    async def elicit(self, ctx: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params.message)
        return types.ElicitResult(action="accept", content={"yes": True, "name": "Ada"})

    async def sample(self, ctx: Any, params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="42")
        return types.CreateMessageResult(role="assistant", content=text, model="m")


def client_for(version: str, **callbacks: Any) -> Client:
    """Return a client that starts the server itself."""
    args = [str(SERVED), "mcp", "serve"]
    server = StdioServerParameters(command=sys.executable, args=args, env=environment())
    mode: Any = "legacy" if version == HANDSHAKE_VERSION else "auto"  # "auto" sends server/discover
    client_info = types.Implementation(name="python", version="2")
    return Client(stdio_client(server), mode=mode, client_info=client_info, **callbacks)


def as_json(result: Any) -> dict[str, Any]:
    """Return a result in the format of the protocol."""
    return result.model_dump(by_alias=True, exclude_none=True, mode="json")


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
async def test_client_receives_results_questions_and_progress(version: str) -> None:
    stateless = version == STATELESS_VERSION

    def structured(value: Any) -> Any:
        return value if stateless else {"result": value}

    callbacks = Callbacks()
    async with client_for(
        version, elicitation_callback=callbacks.elicit, sampling_callback=callbacks.sample
    ) as client:
        assert client.server_info.name == "served"
        assert client.protocol_version == version
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["add"].title == "Add"
        assert tools["add"].annotations is not None
        assert tools["add"].annotations.read_only_hint is True

        added = await client.call_tool("add", {"a": 1, "b": 2})
        assert added.structured_content == structured(3)
        assert (await client.call_tool("items", {})).structured_content == structured([0, 1, 2])
        pet = await client.call_tool("pet", {"name": "Rex"})
        assert pet.structured_content == {"name": "Rex", "age": 1}
        whoami = await client.call_tool("whoami", {})
        assert whoami.structured_content == {"surface": "mcp", "name": "python", "version": "2"}
        assert failure_of(as_json(await client.call_tool("add", {"a": "x"})))["code"] == "E1003"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nope", {})

        wiped = await client.call_tool("wipe", {"path": "/x"})
        assert wiped.structured_content == structured("wiped /x")
        launched = await client.call_tool("launch", {"target": "/x"})
        assert launched.structured_content == structured("launched /x")
        named = await client.call_tool("ask_name", {})
        assert named.structured_content == structured("accept: Ada")
        assert len(callbacks.questions) == 3
        thought = await client.call_tool("think", {"prompt": "6 x 7"})
        assert thought.structured_content == structured("42")

        progress: list[float] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)
            if len(progress) == 3:
                await client.call_tool("release", {"key": "gate"})

        stepped = await client.call_tool("steps_to", {"key": "gate"}, progress_callback=on_progress)
        assert stepped.structured_content == structured("gate")
        assert progress == [1, 2, 3]


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
async def test_cancellation_reaches_the_tool(version: str) -> None:
    async with client_for(version) as client, anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def wait() -> None:
            with scope:
                await client.call_tool("wait_async", {"key": "k"})

        tasks.start_soon(wait)
        started = await client.call_tool("happened", {"event": "wait k"})
        assert not started.is_error
        scope.cancel()
        cancelled = await client.call_tool("happened", {"event": "cancelled k"})
        assert cancelled.content[0].text == (
            "1" if version == STATELESS_VERSION else '{"result":1}'
        )


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
async def test_client_reads_resources_and_prompts(version: str) -> None:
    async with client_for(version) as client:
        assert not (await client.call_tool("add", {"a": 1})).is_error  # answered by StdioServer
        resources = (await client.list_resources()).resources
        assert "fact://one" in [str(resource.uri) for resource in resources]
        (read,) = (await client.read_resource("note://hello")).contents
        assert isinstance(read, types.TextResourceContents)
        assert read.text == "note hello"
        (prompt,) = (await client.list_prompts()).prompts
        assert prompt.name == "review"
        got = await client.get_prompt("review", {"code": "x"})
        assert as_json(got.messages[0])["content"]["text"] == "Review x"
        added = await client.call_tool("add", {"a": 1})  # answered by the SDK
        assert added.structured_content == (2 if version == STATELESS_VERSION else {"result": 2})


async def check_results_with_meta(client: Client, row_count: int) -> None:
    """Check what a model sees of warnings, pages and large results. The client validates them."""
    await client.list_tools()
    first = (await client.call_tool("rows", {})).structured_content
    assert len(first["result"]) == 100
    assert first["meta"]["page"]["total"] == 250
    cursor = first["meta"]["page"]["next_cursor"]
    second = (await client.call_tool("rows", {"cursor": cursor})).structured_content
    assert [row["n"] for row in second["result"]] == list(range(100, 200))

    pet = await client.call_tool("careful", {})
    warned = {"warnings": ["Be careful."]}
    assert pet.structured_content == {"name": "pet", "age": 1, "meta": warned}
    count = await client.call_tool("careful_count", {})
    assert count.structured_content == {"result": 1, "meta": warned}

    numbers: list[int] = []
    arguments: dict[str, Any] = {"count": row_count}
    while True:
        content = (await client.call_tool("all_rows", arguments)).structured_content
        numbers += [row["n"] for row in (content if type(content) is list else content["result"])]
        meta = {} if type(content) is list else content.get("meta", {})
        if "page" not in meta:
            break
        arguments["cursor"] = meta["page"]["next_cursor"]
    assert "cursor" in arguments
    assert numbers == list(range(row_count))


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
async def test_client_sees_pages_and_warnings_over_stdio(version: str) -> None:
    async with client_for(version) as client:
        await check_results_with_meta(client, 25_000)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_client_sees_pages_and_warnings_over_http(mode: Any) -> None:
    """The client reads at most 1 MiB in one event."""
    with run_server(SERVED) as server:
        async with Client(server.url, mode=mode) as client:
            await check_results_with_meta(client, 3000)
