"""StdioServer: too many calls are rejected, as through the SDK; idle threads end."""

from __future__ import annotations

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
