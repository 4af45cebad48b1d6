"""The SDK's own client talks to an app: in both eras, within the process and over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged
from tests.integration.mcp_http.serving import Server, served

pytestmark = pytest.mark.xdist_group("mcp_http")

Open = Callable[..., AbstractAsyncContextManager[Client]]
ENVELOPE, META = "io.tooli/envelope", "io.tooli/meta"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as running:
        yield running


HANDSHAKE_CLIENTS, STATELESS_CLIENTS = (
    ("inside-legacy", "http-legacy"),
    ("inside-auto", "http-auto"),
)
in_the_handshake_era = pytest.mark.parametrize("connect", HANDSHAKE_CLIENTS, indirect=True)
in_the_stateless_era = pytest.mark.parametrize("connect", STATELESS_CLIENTS, indirect=True)


@pytest.fixture(params=[*HANDSHAKE_CLIENTS, *STATELESS_CLIENTS])
def connect(request: pytest.FixtureRequest) -> Open:
    """A way to open clients of one era, one way or the other."""
    where, _, mode = request.param.partition("-")
    url = request.getfixturevalue("server").url if where == "http" else None

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[Client]:
        settings.setdefault("client_info", types.Implementation(name="tester", version="3"))
        async with Client(url or made_inside(), mode=mode, **settings) as client:
            yield client

    return opened


def made_inside() -> Any:
    from tests.integration.mcp_http import notes

    from tooli.mcp.sdk_server import make_server
    from tooli.mcp.service import McpService

    return make_server(McpService(notes.app))


def is_modern(client: Client) -> bool:
    return client.protocol_version == "2026-07-28"


def text(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


def failure(result: types.CallToolResult) -> dict[str, Any]:
    assert result.is_error
    envelope = (result.meta or {})[ENVELOPE]
    assert json.loads(text(result)) == envelope
    return envelope["error"]


# ------------------------------------------------------------------ tools


async def test_the_server(connect: Open) -> None:
    async with connect() as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("notes", "2.1")
        assert client.instructions == "Notes for tests."
        can = client.server_capabilities
        assert can.tools is not None and can.tools.list_changed
        assert can.resources is not None and can.resources.subscribe
        assert can.prompts is not None and can.completions is not None
        assert (can.logging is None) == is_modern(client)


async def test_tools(connect: Open) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        add = tools["add"]
        assert add.title == "Add"
        assert add.annotations is not None and add.annotations.read_only_hint
        assert add.input_schema["required"] == ["a"]
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert result.structured_content == (5 if is_modern(client) else {"result": 5})
        assert (result.meta or {})[META]["tool"] == "notes.add"
        meta = (result.meta or {})[META]
        assert (meta["caller_id"], meta["caller_version"]) == ("tester", "3")
        has_session = isinstance(client.server, str) and not is_modern(client)
        assert ("session_id" in meta) == has_session


async def test_content(connect: Open) -> None:
    async with connect() as client:
        shown = (await client.call_tool("show", {})).content
    kinds = [block.type for block in shown]
    assert kinds == ["text", "image", "audio", "resource", "resource_link"]


@pytest.mark.parametrize("connect", ["http-legacy", "http-auto"], indirect=True)
async def test_printed_text_is_the_result(connect: Open) -> None:
    async with connect() as client:
        assert text(await client.call_tool("talk", {"text": "hello"})) == "hello"


async def test_errors(connect: Open) -> None:
    async with connect() as client:
        wrong = failure(await client.call_tool("add", {"a": "x", "c": 1}))
        assert wrong["code"] == "E1004"
        assert {one["field"] for one in wrong["details"]["errors"]} == {"a", "c"}
        assert failure(await client.call_tool("note", {"id": 99}))["code"] == "E3010"
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("adds", {})
        assert unknown.value.code == -32602
        assert "did you mean add?" in unknown.value.message


async def test_cursor_of_somebody_else(connect: Open) -> None:
    async with connect() as client:
        for listing in (
            client.list_tools,
            client.list_resources,
            client.list_resource_templates,
            client.list_prompts,
        ):
            with pytest.raises(MCPError) as refused:
                await listing(cursor="nonsense")
            assert refused.value.code == -32602


# ------------------------------------------------------------------ resources


async def test_resources(connect: Open) -> None:
    async with connect() as client:
        listed = {one.uri: one for one in (await client.list_resources()).resources}
        assert listed["notes://all"].title == "All notes"
        assert listed["notes://all"].size == 12
        assert listed["notes://all"].mime_type == "application/json"
        assert listed["notes://logo.png"].mime_type == "image/png"
        assert listed["notes://readme.md"].description == "How to use it."
        assert "skill://notes/SKILL.md" in listed
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["notes://{id}", "files://{path*}"]


async def test_reading(connect: Open) -> None:
    async with connect() as client:

        async def read(uri: str) -> list[Any]:
            return (await client.read_resource(uri)).contents

        (note,) = await read("notes://1")
        assert json.loads(note.text)["id"] == 1
        assert note.mime_type == "application/json"
        (logo,) = await read("notes://logo.png")
        assert base64.b64decode(logo.blob) == b"\x89PNG"
        await client.call_tool("write_note", {"id": 1, "text": "new"})
        (note,) = await read("notes://1")
        assert json.loads(note.text)["text"] == "new"  # nobody keeps the old one
        (readme,) = await read("notes://readme.md")
        assert (readme.text, readme.mime_type) == ("# Notes", "text/markdown")
        (file,) = await read("files://a/b%20c.txt")
        assert file.text == "content of a/b c.txt"
        one, two = await read("notes://pair")
        assert (one.uri, one.text) == ("notes://1", "milk")
        assert (two.uri, two.mime_type) == ("notes://2", "text/x-bread")
        (skill,) = await read("skill://notes/SKILL.md")
        assert skill.text.startswith("---\nname: notes\n")
        assert "notes deploy WHERE" in skill.text


async def test_reading_what_is_not_there(connect: Open) -> None:
    async with connect() as client:
        missing = -32602 if is_modern(client) else -32002
        for uri, code in [
            ("notes://nowhere/at/all", missing),
            ("files://../secret", missing),
            ("notes://99", missing),
            ("notes://x", -32602),
            ("notes://broken", -32603),
        ]:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == code, uri
            if code == missing and uri != "notes://x":
                assert refused.value.data["uri"] == uri
        with pytest.raises(MCPError, match="There is no note 99"):
            await client.read_resource("notes://99")


# ------------------------------------------------------------------ prompts and completion


async def test_prompts(connect: Open) -> None:
    async with connect() as client:
        listed = {one.name: one for one in (await client.list_prompts()).prompts}
        essay = listed["essay"]
        assert essay.description == "Write an essay."
        arguments = [(one.name, one.required, one.description) for one in essay.arguments or ()]
        assert arguments == [
            ("topic", True, "What it is about."),
            ("tone", False, None),
            ("words", False, None),
        ]
        assert (listed["talk"].title, listed["talk"].description) == ("A talk", "Two people.")
        got = await client.get_prompt("essay", {"topic": "tea", "words": "50"})
        (message,) = got.messages
        assert message.role == "user"
        assert message.content.text == "Write 50 dry words about tea."  # type: ignore[union-attr]
        talk = await client.get_prompt("talk", {"who": "Ann"})
        assert [(one.role, one.content.type) for one in talk.messages] == [
            ("user", "text"),
            ("assistant", "text"),
            ("user", "image"),
        ]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("essays", {}, "did you mean essay?"),
        ("essay", {}, "topic"),
        ("essay", {"topic": "x", "tone": "wet"}, "not one of 'dry', 'warm'"),
        ("essay", {"topic": "x", "words": "many"}, "not a valid integer"),
        ("essay", {"topic": "x", "size": "1"}, "no parameter 'size'"),
    ],
)
async def test_wrong_prompts(
    connect: Open, name: str, arguments: dict[str, str], says: str
) -> None:
    async with connect() as client:
        with pytest.raises(MCPError, match=says) as refused:
            await client.get_prompt(name, arguments)
        assert refused.value.code == -32602


async def test_completion(connect: Open) -> None:
    async with connect() as client:
        prompt = types.PromptReference(name="essay")
        tones = await client.complete(prompt, {"name": "tone", "value": "w"})
        assert tones.completion.values == ["warm"]
        given = {"tone": "dry"}
        topics = await client.complete(prompt, {"name": "topic", "value": "tea"}, given)
        assert topics.completion.values == ["dry tea"]
        template = types.ResourceTemplateReference(uri="files://{path*}")
        paths = await client.complete(template, {"name": "path", "value": "a"})
        assert paths.completion.values == ["a.txt", "a.md"]
        assert paths.completion.total == 2
        nothing = await client.complete(prompt, {"name": "none", "value": ""})
        assert nothing.completion.values == []
        for ref in (
            types.PromptReference(name="nope"),
            types.ResourceTemplateReference(uri="nope://{x}"),
        ):
            with pytest.raises(MCPError) as refused:
                await client.complete(ref, {"name": "x", "value": ""})
            assert refused.value.code == -32602


# ------------------------------------------------------------------ progress, logs, cancelling


@pytest.mark.parametrize("tool", ["count", "acount"])
async def test_progress(connect: Open, tool: str) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total))

    async with connect() as client:
        await client.call_tool(tool, {"to": 3}, progress_callback=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_no_progress_without_a_token(connect: Open) -> None:
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async with connect(message_handler=hear) as client:
        await client.call_tool("count", {"to": 3})
    assert heard == []


async def test_logs_are_as_loud_as_wanted(connect: Open) -> None:
    heard: list[str] = []

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.level)

    async with connect(logging_callback=hear) as client:
        for level in ("debug", "info", "error"):
            await client.call_tool("say", {"level": level})
        if is_modern(client):
            assert heard == []
            key = "io.modelcontextprotocol/logLevel"
            for level in ("info", "error"):
                await client.call_tool("say", {"level": level}, meta={key: "warning"})
            await until(lambda: heard == ["error"])
            return
        await until(lambda: heard == ["info", "error"])
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="error"))
        await client.session.send_request(request, types.EmptyResult)
        for level in ("info", "critical"):
            await client.call_tool("say", {"level": level})
        await until(lambda: heard == ["info", "error", "critical"])


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("tool", ["linger", "alinger"])
async def test_cancelling(connect: Open, tool: str, tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    async with connect() as client:
        with anyio.CancelScope() as scope:

            async def begun(done: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            with anyio.fail_after(10):
                await client.call_tool(tool, {"mark": str(mark)}, progress_callback=begun)
        assert scope.cancelled_caught
        await until(lambda: mark.exists() and mark.read_text() == "cancelled")
        assert text(await client.call_tool("show", {})) == "words"


# ------------------------------------------------------------------ asking


def answering(
    *replies: types.ElicitResult, asked: list[str] | None = None
) -> Callable[..., Awaitable[types.ElicitResult]]:
    waiting = list(replies)

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        if asked is not None:
            asked.append(params.message)
        return waiting.pop(0)

    return answer


YES = types.ElicitResult(action="accept", content={"yes": True})
NO = types.ElicitResult(action="accept", content={"yes": False})


@pytest.mark.parametrize(
    ("tool", "arguments", "done"),
    [("deploy", {"where": "moon"}, "deployed to moon"), ("wipe", {"what": "disk"}, "wiped disk")],
)
async def test_approval(connect: Open, tool: str, arguments: Any, done: str) -> None:
    asked: list[str] = []
    async with connect(elicitation_callback=answering(YES, asked=asked)) as client:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error
        assert done in text(result)
    (question,) = asked
    assert next(iter(arguments.values())) in question


@pytest.mark.parametrize(
    "reply", [NO, types.ElicitResult(action="decline"), types.ElicitResult(action="cancel")]
)
async def test_approval_denied(connect: Open, reply: types.ElicitResult) -> None:
    async with connect(elicitation_callback=answering(reply)) as client:
        error = failure(await client.call_tool("deploy", {"where": "moon"}))
        assert (error["code"], error["is_retryable"]) == ("E2103", False)


async def test_approval_by_nobody(connect: Open) -> None:
    async with connect() as client:
        error = failure(await client.call_tool("deploy", {"where": "moon"}))
        assert (error["code"], error["category"]) == ("E2101", "human")
        error = failure(await client.call_tool("deploy", {"where": "moon"}))
        assert error["code"] == "E2101"


async def test_approval_then_another_question(connect: Open) -> None:
    replies = answering(YES, types.ElicitResult(action="accept", content={}))
    async with connect(elicitation_callback=replies) as client:
        result = await client.call_tool("adeploy", {"where": "moon"})
        assert "deployed to moon, accept" in text(result)


async def test_questions_in_turn(connect: Open) -> None:
    replies = answering(
        types.ElicitResult(action="accept", content={"name": "Ann"}),
        types.ElicitResult(action="accept", content={"age": 7}),
    )
    async with connect(elicitation_callback=replies) as client:
        assert "Ann, 7" in text(await client.call_tool("interview", {}))


async def test_a_question_is_declined(connect: Open) -> None:
    replies = answering(types.ElicitResult(action="decline"))
    async with connect(elicitation_callback=replies) as client:
        assert "no name (decline)" in text(await client.call_tool("interview", {}))


async def test_a_prompt_asks(connect: Open) -> None:
    replies = answering(types.ElicitResult(action="accept", content={"x": "tea"}))
    async with connect(elicitation_callback=replies) as client:
        got = await client.get_prompt("ask_first", {})
        assert got.messages[0].content.text == "about tea"  # type: ignore[union-attr]


async def test_sampling(connect: Open) -> None:
    async def model(context: Any, params: Any) -> types.CreateMessageResult:
        output = types.TextContent(text="42")
        return types.CreateMessageResult(role="assistant", content=output, model="m")

    async with connect(sampling_callback=model) as client:
        assert "42" in text(await client.call_tool("consult", {"question": "?"}))


async def test_a_question_that_cannot_be_asked(connect: Open) -> None:
    async with connect() as client:
        if is_modern(client):
            with pytest.raises(MCPError) as refused:
                await client.call_tool("consult", {"question": "?"})
            assert refused.value.code == -32021
            assert refused.value.data["requiredCapabilities"] == {"sampling": {}}
        else:
            error = failure(await client.call_tool("consult", {"question": "?"}))
            assert error["code"] == "E2102"


# ------------------------------------------------------------------ sealed state


async def paused(client: Client, where: str = "moon") -> types.InputRequiredResult:
    got = await client.session.call_tool("deploy", {"where": where}, allow_input_required=True)
    assert isinstance(got, types.InputRequiredResult)
    return got


async def resume(client: Client, state: str | None, where: str = "moon", **more: Any) -> Any:
    return await client.session.call_tool(
        more.pop("tool", "deploy"),
        {"where": where},
        input_responses={"approval": YES},
        request_state=state,
        allow_input_required=True,
        **more,
    )


@in_the_stateless_era
async def test_a_state_is_good_once(connect: Open) -> None:
    async with connect(elicitation_callback=answering()) as client:
        state = (await paused(client)).request_state
        assert state is not None
        assert "deployed to moon" in text(await resume(client, state))
        with pytest.raises(MCPError, match="already used") as refused:
            await resume(client, state)
        assert refused.value.code == -32602


@in_the_stateless_era
@pytest.mark.parametrize("attack", ["changed", "other arguments", "other tool", "none", "garbage"])
async def test_a_state_of_another_call(connect: Open, attack: str) -> None:
    async with connect(elicitation_callback=answering()) as client:
        state = (await paused(client)).request_state
        assert state is not None
        if attack == "none":  # a yes that nobody was asked for is no yes
            assert isinstance(await resume(client, None), types.InputRequiredResult)
            return
        with pytest.raises(MCPError) as refused:
            if attack == "changed":
                body, _, seal = state.partition(".")
                await resume(client, f"{body[:-2]}AA.{seal}")
            elif attack == "garbage":
                await resume(client, "é.x")
            elif attack == "other arguments":
                await resume(client, state, "mars")
            else:
                await resume(client, state, tool="adeploy")
        assert refused.value.code == -32602


@in_the_stateless_era
async def test_a_state_of_another_client(connect: Open) -> None:
    async with connect(elicitation_callback=answering()) as client:
        state = (await paused(client)).request_state
    stranger = types.Implementation(name="stranger", version="1")
    async with connect(elicitation_callback=answering(), client_info=stranger) as client:
        with pytest.raises(MCPError, match="another call"):
            await resume(client, state)


@in_the_stateless_era
async def test_an_answer_to_another_question_is_no_approval(connect: Open) -> None:
    async with connect(elicitation_callback=answering()) as client:
        first = await client.session.call_tool("interview", {}, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)
        with pytest.raises(MCPError):
            await resume(client, first.request_state)


# ------------------------------------------------------------------ changes


async def test_changes_are_heard(connect: Open) -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async with connect(message_handler=hear) as client:
        if is_modern(client):
            await listen_to_changes(client)
            return
        if isinstance(client.server, str):
            await until_streaming(client, heard)
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="notes://1"))
        await client.session.send_request(request, types.EmptyResult)
        await client.call_tool("write_note", {"id": 2, "text": "rye"})
        await client.call_tool("write_note", {"id": 1, "text": "oat milk"})
        await until(lambda: heard.count("notifications/resources/updated") == 1)
        for kind in ("tool", "prompt", "resource"):
            await client.call_tool("grow", {"kind": kind})
            await until(lambda kind=kind: f"notifications/{kind}s/list_changed" in heard)


async def until_streaming(client: Client, heard: list[str]) -> None:
    """The client opens the stream for news after its handshake; it is there once news come."""
    with anyio.fail_after(10):
        while "notifications/prompts/list_changed" not in heard:
            await client.call_tool("grow", {"kind": "prompt"})
            await asyncio.sleep(0.02)
    heard.clear()


async def listen_to_changes(client: Client) -> None:
    async with client.listen(
        tools_list_changed=True,
        prompts_list_changed=True,
        resources_list_changed=True,
        resource_subscriptions=["notes://1"],
    ) as news:
        with anyio.fail_after(10):
            await client.call_tool("write_note", {"id": 2, "text": "rye"})
            await client.call_tool("write_note", {"id": 1, "text": "oat milk"})
            assert await news.__anext__() == ResourceUpdated("notes://1")
            for kind, event in (
                ("tool", ToolsListChanged()),
                ("prompt", PromptsListChanged()),
                ("resource", ResourcesListChanged()),
            ):
                await client.call_tool("grow", {"kind": kind})
                assert await news.__anext__() == event


@in_the_handshake_era
async def test_subscribing_to_nothing(connect: Open) -> None:
    async with connect() as client:
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="nope://1"))
        with pytest.raises(MCPError) as refused:
            await client.session.send_request(request, types.EmptyResult)
        assert refused.value.code == -32002
