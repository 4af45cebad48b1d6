"""StdioServer: too many calls are rejected, as through the SDK; idle threads end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import anyio
import pytest
from mcp import Client

from tooli import Tooli
from tooli.execution import processes
from tooli.mcp import sdk_server, stdio_server, stdio_transport
from tooli.mcp.protocol import CAPABILITIES_KEY, STATELESS_VERSIONS, VERSION_KEY
from tooli.mcp.sdk_server import AppServer
from tooli.mcp.service import McpService
from tooli.mcp.stdio_server import StdioServer
from tooli.testing.app_interfaces import MemoryTransport

ENVELOPE = "io.tooli/envelope"
STATELESS = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: {}}


def make_app() -> tuple[Tooli, threading.Semaphore, threading.Event]:
    """Return an app whose tools wait, a count of started calls, and the event that ends them."""
    started, release = threading.Semaphore(0), threading.Event()
    app = Tooli("busy")

    @app.command()
    def wait() -> str:
        started.release()
        release.wait(60)
        return "done"

    @app.command()
    async def wait_async() -> str:
        started.release()
        await anyio.to_thread.run_sync(release.wait, 60)
        return "done"

    return app, started, release


@pytest.mark.parametrize("tool", ["wait", "wait_async"])
def test_calls_above_the_limit_are_rejected_over_stdio(
    monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_CONCURRENT_CALLS", 2)
    app, started, release = make_app()
    transport = MemoryTransport()
    server = StdioServer(app, transport)
    client = {"name": "t", "version": "1"}
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    server.handle_message({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize})
    for i in range(1, 4):
        params = {"name": tool, "arguments": {}}
        server.handle_message({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params})
        if i < 3:
            assert started.acquire(timeout=60)
    response = transport.sent[-1]
    error = response["result"]["_meta"][ENVELOPE]["error"]
    assert (response["id"], error["code"], error["is_retryable"]) == (3, "E4075", True)
    assert error["details"] == {"retry_after": 1}
    release.set()
    server.pending.wait(60)
    assert {message["id"] for message in transport.sent} == {0, 1, 2, 3}
    params = {"name": tool, "arguments": {}}
    server.handle_message({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
    server.pending.wait(60)
    assert transport.sent[-1]["result"]["isError"] is False


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_calls_above_the_limit_are_rejected_through_the_sdk(
    monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    monkeypatch.setattr(sdk_server, "MAX_CONCURRENT_CALLS", 1)
    app, started, release = make_app()
    async with Client(AppServer(McpService(app)), mode=mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait", {})
            assert await anyio.to_thread.run_sync(started.acquire, True, 60)
            result = await client.call_tool("wait", {})
            assert result.is_error
            assert (result.meta or {})[ENVELOPE]["error"]["code"] == "E4075"
            release.set()
        assert not (await client.call_tool("wait", {})).is_error


async def test_cancelled_call_counts_until_its_function_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sdk_server, "MAX_CONCURRENT_CALLS", 2)
    app, started, release = make_app()
    async with Client(AppServer(McpService(app)), mode="legacy") as client:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "wait", {})
                assert await anyio.to_thread.run_sync(started.acquire, True, 60)
                tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            result = await client.call_tool("wait", {})
        assert (result.meta or {})[ENVELOPE]["error"]["code"] == "E4075"
        release.set()
        with anyio.fail_after(60):
            while (await client.call_tool("wait", {})).is_error:
                await anyio.sleep(0.01)


def count_threads() -> int:
    """Return the number of threads that run calls."""
    return sum(thread.name in ("tooli-call", "tooli-loop") for thread in threading.enumerate())


def test_shut_down_ends_idle_threads_and_loses_no_call() -> None:
    app, started, release = make_app()
    transport = MemoryTransport()
    server = StdioServer(app, transport)
    before = count_threads()

    def start_call(number: int, tool: str) -> None:
        params = {"name": tool, "arguments": {}, "_meta": STATELESS}
        server.handle_message(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        )

    for number, tool in enumerate(("wait", "wait_async")):
        start_call(number, tool)
        assert started.acquire(timeout=60)
    assert count_threads() == before + 2
    release.set()
    server.pending.wait(60)
    for number in range(2, 12):
        start_call(number, "wait_async" if number % 3 else "wait")
        server.shut_down()  # while the call runs
    server.pending.wait(60)
    server.shut_down()
    assert {message["id"] for message in transport.sent if "result" in message} == set(range(12))
    deadline = time.monotonic() + 60
    while count_threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert count_threads() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="only Linux lists children")
def test_terminate_children_skips_ended_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    listed = {pid: processes.Process(os.getpid(), 0, "python") for pid in (ended.pid, child.pid)}
    monkeypatch.setattr(processes, "list_processes", lambda: listed)
    stdio_server.terminate_children()
    assert child.wait(timeout=300) == -signal.SIGTERM


SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class TestListen:
    """`subscriptions/listen` is served without the SDK."""

    def connect(self, app: Tooli) -> tuple[StdioServer, MemoryTransport]:
        transport = MemoryTransport()
        server = StdioServer(app, transport)
        app._state.change_listeners.append(server._on_app_change)
        return server, transport

    def listen(self, server: StdioServer, request_id: object, **requested: bool) -> None:
        params = {"_meta": STATELESS, "notifications": requested}
        request = {"id": request_id, "method": "subscriptions/listen", "params": params}
        server.handle_message({"jsonrpc": "2.0", **request})

    def test_stream_has_the_requested_changes(self) -> None:
        app = Tooli("listen")
        server, transport = self.connect(app)
        self.listen(server, "a", toolsListChanged=True, promptsListChanged=False)
        self.listen(server, 2, promptsListChanged=True)
        acknowledged = "notifications/subscriptions/acknowledged"
        assert [message["params"] for message in transport.sent] == [
            {"_meta": {SUBSCRIPTION: "a"}, "notifications": {"toolsListChanged": True}},
            {"_meta": {SUBSCRIPTION: 2}, "notifications": {"promptsListChanged": True}},
        ]
        assert {message["method"] for message in transport.sent} == {acknowledged}
        transport.sent.clear()
        app.command("added")(lambda: None)
        assert {(m["method"], m["params"]["_meta"][SUBSCRIPTION]) for m in transport.sent} == {
            ("notifications/tools/list_changed", "a")
        }
        assert server.sdk is None

    def test_cancelled_stream_ends(self) -> None:
        app = Tooli("listen")
        server, transport = self.connect(app)
        self.listen(server, 1, toolsListChanged=True)
        cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        server.handle_message({"jsonrpc": "2.0", **cancel})
        transport.sent.clear()
        app.command("added")(lambda: None)
        assert transport.sent == []
        self.listen(server, 1, toolsListChanged=True)
        assert len(transport.sent) == 1

    def test_id_of_an_open_stream_cannot_be_used_again(self) -> None:
        server, transport = self.connect(Tooli("listen"))
        self.listen(server, 1, toolsListChanged=True)
        self.listen(server, 1, promptsListChanged=True)
        assert len(transport.sent) == 1

    def test_number_of_streams_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stdio_server, "MAX_STREAMS", 1)
        server, transport = self.connect(Tooli("listen"))
        self.listen(server, 1, toolsListChanged=True)
        self.listen(server, 2, toolsListChanged=True)
        assert transport.sent[-1]["error"]["message"] == "Subscription limit reached"


def test_lists_of_a_session_do_not_load_the_sdk() -> None:
    """A process answers the requests that Claude Code sends at its start, then a call."""
    code = (
        "from tooli import Tooli\n"
        "app = Tooli('small', version='1')\n"
        "@app.command()\n"
        "def add(a: int, b: int) -> int:\n"
        "    import sys\n"
        "    return a + b + 1000 * ('mcp' in sys.modules)\n"
        "@app.prompt()\n"
        "def hi(name: str) -> str:\n"
        "    return name\n"
        "from tooli.mcp.stdio_server import serve_stdio\n"
        "serve_stdio(app)\n"
    )
    requests: list[tuple[str, dict[str, Any]]] = [
        ("server/discover", {}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("tools/list", {}),
        ("prompts/get", {"name": "hi", "arguments": {"name": "Ada"}}),
        ("resources/read", {"uri": "skill://small/SKILL.md"}),
        ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
    ]
    lines = [
        json.dumps(
            {"jsonrpc": "2.0", "id": i, "method": name, "params": {**params, "_meta": STATELESS}}
        )
        for i, (name, params) in enumerate(requests)
    ]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    answers = {m["id"]: m for m in map(json.loads, done.stdout.splitlines()) if "id" in m}
    assert set(answers) == {0, 2, 3, 4, 5, 6, 7, 8}
    assert answers[8]["result"]["structuredContent"] == 3
    assert answers[6]["result"]["messages"][0]["content"]["text"] == "Ada"
