"""AppServer: pages, concurrent calls, shutdown, internal errors, messages to the client."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.sdk_client import each_mode, make_server

from tooli import Context, Tooli
from tooli.core.call import Caller
from tooli.mcp import change_notifier, sdk_peer, sdk_server, service

# ------------------------------------------------------------------ pages


@each_mode
async def test_lists_are_split_into_pages(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PAGE_SIZE", 2)
    app = Tooli("app")
    for i in range(5):
        app.command(f"tool-{i}")(lambda: "")
        app.prompt(f"prompt-{i}")(lambda: "")
        app.resource(f"x://{i}")(lambda: "")
        app.resource(f"x{i}://{{a}}")(lambda a: "")
    async with Client(make_server(app), mode=mode) as client:
        for list_page, key, count in (
            (client.list_tools, "tools", 5),
            (client.list_prompts, "prompts", 5),
            (client.list_resources, "resources", 6),
            (client.list_resource_templates, "resource_templates", 5),
        ):
            found: list[str] = []
            cursor: str | None = None
            while True:
                page = await list_page(cursor=cursor)
                found += [item.name for item in getattr(page, key)]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(found) == count, key
            with pytest.raises(MCPError) as caught:
                await list_page(cursor="p1000")
            assert caught.value.code == -32602


@each_mode
async def test_empty_app_lists_only_its_skill(mode: Any) -> None:
    async with Client(make_server(Tooli("app")), mode=mode) as client:
        assert (await client.list_tools()).tools == []
        assert (await client.list_prompts()).prompts == []
        assert [r.uri for r in (await client.list_resources()).resources] == [
            "skill://app/SKILL.md"
        ]


@each_mode
async def test_strict_policy_restricts_resources_and_prompts(mode: Any) -> None:
    app = Tooli("app", security_policy="strict")
    app.resource("x://open", auth=[])(lambda: "open")
    app.resource("x://shut")(lambda: "shut")
    app.prompt("open", auth=[])(lambda: "open")
    app.prompt("shut", auth=["admin"])(lambda: "shut")
    async with Client(make_server(app), mode=mode) as client:
        await client.read_resource("x://open")
        await client.read_resource("skill://app/SKILL.md")
        await client.get_prompt("open")
        with pytest.raises(MCPError) as caught:
            await client.read_resource("x://shut")
        assert caught.value.data["error"]["code"] == "E2002"
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("shut")
        assert caught.value.data["error"]["code"] == "E2001"


# ------------------------------------------------------------------ running calls


@each_mode
async def test_calls_that_wait_for_each_other_run_concurrently(mode: Any) -> None:
    """Calls that wait for each other do not keep each other from running."""
    app = Tooli("app")
    count = 40
    barrier = threading.Barrier(count)

    @app.command()
    def meet() -> int:
        return barrier.wait(120)

    async with Client(make_server(app), mode=mode) as client:
        results = await asyncio.gather(*[client.call_tool("meet", {}) for _ in range(count)])
    assert not any([result.is_error for result in results])


# ------------------------------------------------------------------ shutdown and errors


@each_mode
async def test_close_waits_for_running_calls(mode: Any) -> None:
    app = Tooli("app")
    started, release = threading.Event(), threading.Event()

    @app.command()
    def wait(ctx: Context) -> str:
        started.set()
        release.wait(120)
        return "done"

    server = make_server(app)
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        running = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.to_thread(started.wait, 120)
        closing = asyncio.create_task(server.close(20))
        await asyncio.sleep(0)
        with pytest.raises(MCPError, match="accepts no more calls"):
            await client.call_tool("wait", {})
        release.set()
        await closing
        assert "done" in (await running).content[0].text  # type: ignore[union-attr]


@each_mode
async def test_close_without_a_grace_period_cancels_calls(mode: Any) -> None:
    app = Tooli("app")
    started, ended = threading.Event(), threading.Event()

    @app.command()
    def wait(ctx: Context) -> str:
        started.set()
        while not ctx.cancelled:
            ended.wait(0.01)
        ended.set()
        return "late"

    server = make_server(app)
    async with Client(server, mode=mode) as client:
        running = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.to_thread(started.wait, 120)
        await server.close(0)
        with pytest.raises(MCPError, match="the call was cancelled"):
            await running
        assert await asyncio.to_thread(ended.wait, 120)


@each_mode
async def test_internal_error_hides_its_details(
    mode: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server(Tooli("app"))
    monkeypatch.setattr(server.resource_service, "list_prompts", None)
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError, match=r"^Internal server error$") as failed:
            await client.list_prompts()
        assert failed.value.code == -32603
    (record,) = [record for record in caplog.records if record.name == "tooli.error"]
    assert "TypeError" in str(record.exc_text)
    assert failed.value.error.data["request_id"] in record.getMessage()


async def test_change_listener_is_removed_when_the_client_disconnects() -> None:
    app = Tooli("app")
    async with Client(make_server(app), mode="legacy") as client:
        await client.list_tools()
        assert len(app._state.change_listeners) == 1
    assert app._state.change_listeners == []


# ------------------------------------------------------------------ limits of callers


async def test_one_caller_has_a_share_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_server, "MAX_CALLS_PER_CALLER", 2)
    app = Tooli("app")
    release, waiting = threading.Event(), list[str]()

    @app.command()
    def wait() -> str:
        waiting.append("")
        assert release.wait(120)
        return "done"

    server = make_server(app)
    async with Client(server) as client, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(client.call_tool, "wait", {})
        while len(waiting) < 2:
            await asyncio.sleep(0.01)
        refused = await client.call_tool("wait", {})
        assert "2 open requests" in refused.content[0].text  # type: ignore[union-attr]
        other = Caller("mcp", address="192.0.2.1")
        monkeypatch.setattr(sdk_server, "caller_from_context", lambda ctx: other)
        tasks.start_soon(client.call_tool, "wait", {})
        while len(waiting) < 3:
            await asyncio.sleep(0.01)
        release.set()
    async with Client(server) as client:
        assert not (await client.call_tool("wait", {})).is_error


async def test_cancelled_calls_count_for_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_server, "MAX_CONCURRENT_CALLS", 4)
    monkeypatch.setattr(sdk_server, "MAX_CALLS_PER_CALLER", 3)
    app = Tooli("app")
    release, started = threading.Event(), threading.Semaphore(0)

    @app.command()
    def wait() -> bool:
        started.release()
        return release.wait(120)

    server = make_server(app)
    app.command("ping")(lambda: "pong")
    async with Client(server, mode="legacy") as client:
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait", {})
                await asyncio.to_thread(started.acquire)
                tasks.cancel_scope.cancel()
        while server.thread_pool.abandoned < 3:
            await asyncio.sleep(0.01)
        refused = await client.call_tool("ping", {})
        assert "3 open requests" in refused.content[0].text  # type: ignore[union-attr]
        other = Caller("mcp", address="192.0.2.1")
        with monkeypatch.context() as patch:
            patch.setattr(sdk_server, "caller_from_context", lambda ctx: other)
            assert not (await client.call_tool("ping", {})).is_error
        release.set()
        while server.thread_pool.abandoned:
            await asyncio.sleep(0.01)
        assert not (await client.call_tool("ping", {})).is_error


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_subscriptions_are_limited_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_notifier, "MAX_SUBSCRIBED_CHARS", 20)
    app = Tooli("app")
    app.resource("x://{name}")(lambda name: name)
    async with Client(make_server(app), mode="legacy") as client:
        await client.session.subscribe_resource("x://123456")
        await client.session.subscribe_resource("x://123456")
        await client.session.subscribe_resource("x://abcdef")
        with pytest.raises(MCPError, match="characters at most"):
            await client.session.subscribe_resource("x://a")
        await client.session.unsubscribe_resource("x://abcdef")
        await client.session.subscribe_resource("x://a")


async def test_call_that_cannot_start_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server(Tooli("app"))

    class Request:
        is_async = False

        def run(self) -> dict[str, Any]:
            return {"ok": True}

    def start(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    request: Any = Request()
    with monkeypatch.context() as patch:
        patch.setattr(server.thread_pool, "start", start)
        for _ in range(300):  # more than the limit of a caller
            with pytest.raises(RuntimeError):
                server.start_job(request, Caller("mcp"), sdk_peer.RequestPeer())
    job: Any = server.start_job(request, Caller("mcp"), sdk_peer.RequestPeer())
    assert await job == {"ok": True}
