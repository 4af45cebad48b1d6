"""The SDK's client, in both kinds of protocol versions, in this process and over HTTP."""

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
from tests.integration.mcp_http.http_process import Server, run_server

Connect = Callable[..., AbstractAsyncContextManager[Client]]
ENVELOPE, META = "io.tooli/envelope", "io.tooli/meta"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as running:
        yield running


HANDSHAKE_CLIENTS, STATELESS_CLIENTS = (
    ("memory-legacy", "http-legacy"),
    ("memory-auto", "http-auto"),
)
handshake_versions = pytest.mark.parametrize("connect", HANDSHAKE_CLIENTS, indirect=True)
stateless_versions = pytest.mark.parametrize("connect", STATELESS_CLIENTS, indirect=True)


@pytest.fixture(params=[*HANDSHAKE_CLIENTS, *STATELESS_CLIENTS])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Return a function that connects a client, with one transport and one kind of version."""
    transport, _, mode = request.param.partition("-")
    url = request.getfixturevalue("server").url if transport == "http" else None

    @asynccontextmanager
    async def open_client(**settings: Any) -> AsyncIterator[Client]:
        settings.setdefault("client_info", types.Implementation(name="tester", version="3"))
        async with Client(url or make_in_process_server(), mode=mode, **settings) as client:
            yield client

    return open_client


def make_in_process_server() -> Any:
    from tests.integration.mcp_http import notes_app

    from tooli.mcp.sdk_server import AppServer
    from tooli.mcp.service import McpService

    return AppServer(McpService(notes_app.app))


def is_stateless(client: Client) -> bool:
    return client.protocol_version == "2026-07-28"


def text_of(result: types.CallToolResult) -> str:
    """Return the text of the first content block."""
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


def failure_of(result: types.CallToolResult) -> dict[str, Any]:
    """Return the error of a failed call."""
    assert result.is_error
    envelope = (result.meta or {})[ENVELOPE]
    assert json.loads(text_of(result)) == envelope
    return envelope["error"]


# ------------------------------------------------------------------ tools


async def test_client_receives_server_information(connect: Connect) -> None:
    async with connect() as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("notes", "2.1")
        assert client.instructions == "Notes for tests."
        capabilities = client.server_capabilities
        assert capabilities.tools is not None and capabilities.tools.list_changed
        assert capabilities.resources is not None and capabilities.resources.subscribe
        assert capabilities.prompts is not None and capabilities.completions is not None
        assert (capabilities.logging is None) == is_stateless(client)


async def test_tools_are_listed_and_called(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        add = tools["add"]
        assert add.title == "Add"
        assert add.annotations is not None and add.annotations.read_only_hint
        assert add.input_schema["required"] == ["a"]
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert result.structured_content == (5 if is_stateless(client) else {"result": 5})
        assert (result.meta or {})[META]["tool"] == "notes.add"
        meta = (result.meta or {})[META]
        assert (meta["caller_id"], meta["caller_version"]) == ("tester", "3")
        has_session = isinstance(client.server, str) and not is_stateless(client)
        assert ("session_id" in meta) == has_session


async def test_content_blocks_of_every_type_are_returned(connect: Connect) -> None:
    async with connect() as client:
        content = (await client.call_tool("show", {})).content
    kinds = [block.type for block in content]
    assert kinds == ["text", "image", "audio", "resource", "resource_link"]


@pytest.mark.parametrize("connect", ["http-legacy", "http-auto"], indirect=True)
async def test_printed_text_is_the_result(connect: Connect) -> None:
    async with connect() as client:
        assert text_of(await client.call_tool("echo", {"text": "hello"})) == "hello"


async def test_errors_have_their_code(connect: Connect) -> None:
    async with connect() as client:
        error = failure_of(await client.call_tool("add", {"a": "x", "c": 1}))
        assert error["code"] == "E1004"
        assert {problem["field"] for problem in error["details"]["errors"]} == {"a", "c"}
        assert failure_of(await client.call_tool("note", {"id": 99}))["code"] == "E3010"
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("adds", {})
        assert unknown.value.code == -32602
        assert "did you mean add?" in unknown.value.message


async def test_unknown_cursor_is_rejected(connect: Connect) -> None:
    async with connect() as client:
        for list_method in (
            client.list_tools,
            client.list_resources,
            client.list_resource_templates,
            client.list_prompts,
        ):
            with pytest.raises(MCPError) as raised:
                await list_method(cursor="nonsense")
            assert raised.value.code == -32602


# ------------------------------------------------------------------ resources


async def test_resources_and_templates_are_listed(connect: Connect) -> None:
    async with connect() as client:
        listed = {resource.uri: resource for resource in (await client.list_resources()).resources}
        assert listed["notes://all"].title == "All notes"
        assert listed["notes://all"].size == 12
        assert listed["notes://all"].mime_type == "application/json"
        assert listed["notes://logo.png"].mime_type == "image/png"
        assert listed["notes://readme.md"].description == "How to use the app."
        assert "skill://notes/SKILL.md" in listed
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            "notes://{id}",
            "files://{path*}",
        ]


async def test_resources_are_read(connect: Connect) -> None:
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
        assert json.loads(note.text)["text"] == "new"  # the old text is not cached
        (readme,) = await read("notes://readme.md")
        assert (readme.text, readme.mime_type) == ("# Notes", "text/markdown")
        (file,) = await read("files://a/b%20c.txt")
        assert file.text == "content of a/b c.txt"
        first, second = await read("notes://pair")
        assert (first.uri, first.text) == ("notes://1", "milk")
        assert (second.uri, second.mime_type) == ("notes://2", "text/x-bread")
        (skill,) = await read("skill://notes/SKILL.md")
        assert skill.text.startswith("---\nname: notes\n")
        assert "notes deploy WHERE" in skill.text


async def test_reading_unknown_resources_is_an_error(connect: Connect) -> None:
    async with connect() as client:
        missing = -32602 if is_stateless(client) else -32002
        for uri, code in [
            ("notes://nowhere/at/all", missing),
            ("files://../secret", missing),
            ("notes://99", missing),
            ("notes://x", -32602),
            ("notes://broken", -32603),
        ]:
            with pytest.raises(MCPError) as raised:
                await client.read_resource(uri)
            assert raised.value.code == code, uri
            if code == missing and uri != "notes://x":
                assert raised.value.data["uri"] == uri
        with pytest.raises(MCPError, match="There is no note 99"):
            await client.read_resource("notes://99")


# ------------------------------------------------------------------ prompts and completion


async def test_prompts_are_listed_and_rendered(connect: Connect) -> None:
    async with connect() as client:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        essay = listed["essay"]
        assert essay.description == "Write an essay."
        arguments = [(arg.name, arg.required, arg.description) for arg in essay.arguments or ()]
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
        assert [(message.role, message.content.type) for message in talk.messages] == [
            ("user", "text"),
            ("assistant", "text"),
            ("user", "image"),
        ]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("essays", {}, "did you mean essay?"),
        ("essay", {}, "topic"),
        ("essay", {"topic": "x", "tone": "wet"}, "not one of 'dry', 'warm'"),
        ("essay", {"topic": "x", "words": "many"}, "not a valid integer"),
        ("essay", {"topic": "x", "size": "1"}, "no parameter 'size'"),
    ],
)
async def test_invalid_prompt_requests_are_rejected(
    connect: Connect, name: str, arguments: dict[str, str], message: str
) -> None:
    async with connect() as client:
        with pytest.raises(MCPError, match=message) as raised:
            await client.get_prompt(name, arguments)
        assert raised.value.code == -32602


async def test_completion_returns_matching_values(connect: Connect) -> None:
    async with connect() as client:
        prompt = types.PromptReference(name="essay")
        tones = await client.complete(prompt, {"name": "tone", "value": "w"})
        assert tones.completion.values == ["warm"]
        arguments = {"tone": "dry"}
        topics = await client.complete(prompt, {"name": "topic", "value": "tea"}, arguments)
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
            with pytest.raises(MCPError) as raised:
                await client.complete(ref, {"name": "x", "value": ""})
            assert raised.value.code == -32602


# ------------------------------------------------------------------ progress, logs, cancellation


@pytest.mark.parametrize("tool", ["count", "acount"])
async def test_progress_is_sent_to_the_client(connect: Connect, tool: str) -> None:
    received: list[tuple[float, float | None]] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        received.append((done, total))

    async with connect() as client:
        await client.call_tool(tool, {"to": 3}, progress_callback=on_progress)
    assert received == [(1, 3), (2, 3), (3, 3)]


async def test_no_progress_without_a_progress_token(connect: Connect) -> None:
    received: list[Any] = []

    async def on_message(message: Any) -> None:
        received.append(message)

    async with connect(message_handler=on_message) as client:
        await client.call_tool("count", {"to": 3})
    assert received == []


async def test_log_level_selects_the_messages(connect: Connect) -> None:
    received: list[str] = []

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        received.append(params.level)

    async with connect(logging_callback=on_log) as client:
        for level in ("debug", "info", "error"):
            await client.call_tool("log", {"level": level})
        if is_stateless(client):
            assert received == []
            key = "io.modelcontextprotocol/logLevel"
            for level in ("info", "error"):
                await client.call_tool("log", {"level": level}, meta={key: "warning"})
            await wait_until(lambda: received == ["error"])
            return
        await wait_until(lambda: received == ["info", "error"])
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="error"))
        await client.session.send_request(request, types.EmptyResult)
        for level in ("info", "critical"):
            await client.call_tool("log", {"level": level})
        await wait_until(lambda: received == ["info", "error", "critical"])


async def wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("tool", ["wait_for_cancel", "wait_for_cancel_async"])
async def test_cancellation_reaches_the_tool(
    connect: Connect, tool: str, tmp_path: pathlib.Path
) -> None:
    marker = tmp_path / "marker"
    async with connect() as client:
        with anyio.CancelScope() as scope:

            async def on_progress(done: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            with anyio.fail_after(10):
                await client.call_tool(tool, {"marker": str(marker)}, progress_callback=on_progress)
        assert scope.cancelled_caught
        await wait_until(lambda: marker.exists() and marker.read_text() == "cancelled")
        assert text_of(await client.call_tool("show", {})) == "some text"


# ------------------------------------------------------------------ questions


def reply_with(
    *replies: types.ElicitResult, questions: list[str] | None = None
) -> Callable[..., Awaitable[types.ElicitResult]]:
    """Return an elicitation callback that sends one reply per question."""
    remaining = list(replies)

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        if questions is not None:
            questions.append(params.message)
        return remaining.pop(0)

    return answer


YES = types.ElicitResult(action="accept", content={"yes": True})
NO = types.ElicitResult(action="accept", content={"yes": False})


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [("deploy", {"where": "moon"}, "deployed to moon"), ("wipe", {"what": "disk"}, "wiped disk")],
)
async def test_approved_call_runs(
    connect: Connect, tool: str, arguments: Any, expected: str
) -> None:
    questions: list[str] = []
    async with connect(elicitation_callback=reply_with(YES, questions=questions)) as client:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error
        assert expected in text_of(result)
    (question,) = questions
    assert next(iter(arguments.values())) in question


@pytest.mark.parametrize(
    "reply", [NO, types.ElicitResult(action="decline"), types.ElicitResult(action="cancel")]
)
async def test_denied_call_fails(connect: Connect, reply: types.ElicitResult) -> None:
    async with connect(elicitation_callback=reply_with(reply)) as client:
        error = failure_of(await client.call_tool("deploy", {"where": "moon"}))
        assert (error["code"], error["is_retryable"]) == ("E2103", False)


async def test_call_fails_if_the_client_cannot_approve(connect: Connect) -> None:
    async with connect() as client:
        error = failure_of(await client.call_tool("deploy", {"where": "moon"}))
        assert (error["code"], error["category"]) == ("E2101", "human")
        error = failure_of(await client.call_tool("deploy", {"where": "moon"}))
        assert error["code"] == "E2101"


async def test_approved_call_can_ask_another_question(connect: Connect) -> None:
    replies = reply_with(YES, types.ElicitResult(action="accept", content={}))
    async with connect(elicitation_callback=replies) as client:
        result = await client.call_tool("adeploy", {"where": "moon"})
        assert "deployed to moon, accept" in text_of(result)


async def test_tool_asks_several_questions(connect: Connect) -> None:
    replies = reply_with(
        types.ElicitResult(action="accept", content={"name": "Ann"}),
        types.ElicitResult(action="accept", content={"age": 7}),
    )
    async with connect(elicitation_callback=replies) as client:
        assert "Ann, 7" in text_of(await client.call_tool("interview", {}))


async def test_tool_receives_the_declined_question(connect: Connect) -> None:
    replies = reply_with(types.ElicitResult(action="decline"))
    async with connect(elicitation_callback=replies) as client:
        assert "no name (decline)" in text_of(await client.call_tool("interview", {}))


async def test_prompt_can_ask_a_question(connect: Connect) -> None:
    replies = reply_with(types.ElicitResult(action="accept", content={"x": "tea"}))
    async with connect(elicitation_callback=replies) as client:
        got = await client.get_prompt("ask_first", {})
        assert got.messages[0].content.text == "about tea"  # type: ignore[union-attr]


async def test_sampling_returns_the_text_of_the_client(connect: Connect) -> None:
    async def model(context: Any, params: Any) -> types.CreateMessageResult:
        output = types.TextContent(text="42")
        return types.CreateMessageResult(role="assistant", content=output, model="m")

    async with connect(sampling_callback=model) as client:
        assert "42" in text_of(await client.call_tool("consult", {"question": "?"}))


async def test_question_without_the_client_capability_is_an_error(connect: Connect) -> None:
    async with connect() as client:
        if is_stateless(client):
            with pytest.raises(MCPError) as raised:
                await client.call_tool("consult", {"question": "?"})
            assert raised.value.code == -32021
            assert raised.value.data["requiredCapabilities"] == {"sampling": {}}
        else:
            error = failure_of(await client.call_tool("consult", {"question": "?"}))
            assert error["code"] == "E2102"


# ------------------------------------------------------------------ request state


async def start_approval(client: Client, where: str = "moon") -> types.InputRequiredResult:
    """Call a tool that needs approval; return the result that asks for it."""
    result = await client.session.call_tool("deploy", {"where": where}, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def resume(
    client: Client,
    state: str | None,
    where: str = "moon",
    tool: str = "deploy",
    key: str = "approval",
) -> Any:
    """Send the call again, with the answer to an approval question and a request state."""
    return await client.session.call_tool(
        tool,
        {"where": where},
        input_responses={key: YES},
        request_state=state,
        allow_input_required=True,
    )


@stateless_versions
async def test_request_state_is_valid_once(connect: Connect) -> None:
    async with connect(elicitation_callback=reply_with()) as client:
        asked = await start_approval(client)
        state, (key,) = asked.request_state, list(asked.input_requests or ())
        assert state is not None
        assert "deployed to moon" in text_of(await resume(client, state, key=key))
        with pytest.raises(MCPError, match="already used") as raised:
            await resume(client, state)
        assert raised.value.code == -32602


@stateless_versions
@pytest.mark.parametrize("attack", ["changed", "other arguments", "other tool", "none", "garbage"])
async def test_invalid_request_state_is_rejected(connect: Connect, attack: str) -> None:
    async with connect(elicitation_callback=reply_with()) as client:
        asked = await start_approval(client)
        state, (key,) = asked.request_state, list(asked.input_requests or ())
        assert state is not None
        if attack == "none":  # without a signed state, an approval is ignored
            assert isinstance(await resume(client, None, key=key), types.InputRequiredResult)
            return
        with pytest.raises(MCPError) as raised:
            if attack == "changed":
                body, _, signature = state.partition(".")
                await resume(client, f"{body[:-2]}AA.{signature}")
            elif attack == "garbage":
                await resume(client, "é.x")
            elif attack == "other arguments":
                await resume(client, state, "mars")
            else:
                await resume(client, state, tool="adeploy")
        assert raised.value.code == -32602


@stateless_versions
async def test_request_state_of_another_client_is_rejected(connect: Connect) -> None:
    async with connect(elicitation_callback=reply_with()) as client:
        state = (await start_approval(client)).request_state
    other_client = types.Implementation(name="other", version="1")
    async with connect(elicitation_callback=reply_with(), client_info=other_client) as client:
        with pytest.raises(MCPError, match="another call"):
            await resume(client, state)


@stateless_versions
async def test_answer_to_another_question_is_not_an_approval(connect: Connect) -> None:
    async with connect(elicitation_callback=reply_with()) as client:
        first = await client.session.call_tool("interview", {}, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)
        with pytest.raises(MCPError):
            await resume(client, first.request_state)


# ------------------------------------------------------------------ changes


async def test_subscriber_receives_change_notifications(connect: Connect) -> None:
    received: list[str] = []

    async def on_message(message: Any) -> None:
        received.append(getattr(message, "method", ""))

    async with connect(message_handler=on_message) as client:
        if is_stateless(client):
            await check_subscription_events(client)
            return
        if isinstance(client.server, str):
            await wait_for_notification_stream(client, received)
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="notes://1"))
        await client.session.send_request(request, types.EmptyResult)
        await client.call_tool("write_note", {"id": 2, "text": "rye"})
        await client.call_tool("write_note", {"id": 1, "text": "oat milk"})
        await wait_until(lambda: received.count("notifications/resources/updated") == 1)
        for kind in ("tool", "prompt", "resource"):
            await client.call_tool("register", {"kind": kind})
            await wait_until(lambda kind=kind: f"notifications/{kind}s/list_changed" in received)


async def wait_for_notification_stream(client: Client, received: list[str]) -> None:
    """Wait until the client receives notifications: it opens their stream after the handshake."""
    with anyio.fail_after(10):
        while "notifications/prompts/list_changed" not in received:
            await client.call_tool("register", {"kind": "prompt"})
            await asyncio.sleep(0.02)
    received.clear()


async def check_subscription_events(client: Client) -> None:
    async with client.listen(
        tools_list_changed=True,
        prompts_list_changed=True,
        resources_list_changed=True,
        resource_subscriptions=["notes://1"],
    ) as events:
        with anyio.fail_after(10):
            await client.call_tool("write_note", {"id": 2, "text": "rye"})
            await client.call_tool("write_note", {"id": 1, "text": "oat milk"})
            assert await events.__anext__() == ResourceUpdated("notes://1")
            for kind, event in (
                ("tool", ToolsListChanged()),
                ("prompt", PromptsListChanged()),
                ("resource", ResourcesListChanged()),
            ):
                await client.call_tool("register", {"kind": kind})
                assert await events.__anext__() == event


@handshake_versions
async def test_subscribing_to_an_unknown_resource_is_an_error(connect: Connect) -> None:
    async with connect() as client:
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="nope://1"))
        with pytest.raises(MCPError) as raised:
            await client.session.send_request(request, types.EmptyResult)
        assert raised.value.code == -32002
