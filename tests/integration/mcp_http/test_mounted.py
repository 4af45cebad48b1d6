"""MCP at /mcp of the HTTP server: access control, all protocol versions, shutdown."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.integration.mcp_http.http_process import NOTES_APP, Server, run_server
from tests.mcp.sdk_client import each_mode


@asynccontextmanager
async def connect(server: Server, mode: Any, **headers: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http_client:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http_client)
        async with Client(transport, mode=mode) as client:
            yield client


@each_mode
async def test_mounted_server_checks_token_and_origin(mode: str) -> None:
    with run_server(NOTES_APP, interface=("api",), TOOLI_TOKEN="secret") as server:
        async with connect(server, mode, authorization="Bearer secret") as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert not result.is_error
            assert (await client.read_resource("notes://readme.md")).contents
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert httpx2.post(f"{server.url}/mcp", json={}, headers=headers).status_code == 401
        foreign_origin = {"Authorization": "Bearer secret", "Origin": "http://evil.example.com"}
        assert httpx2.post(f"{server.url}/mcp", json={}, headers=foreign_origin).status_code == 403


@each_mode
async def test_shutdown_lets_calls_finish(mode: str) -> None:
    with run_server(NOTES_APP, interface=("api",)) as server:
        async with connect(server, mode) as client:
            await client.list_tools()
            threads: list[threading.Thread] = []

            async def on_progress(*progress: Any) -> None:
                if not threads:
                    threads.append(threading.Thread(target=server.shut_down))
                    threads[0].start()

            result = await client.call_tool("sleep", {"seconds": 1}, progress_callback=on_progress)
            assert not result.is_error
        threads[0].join()
        assert server.process.wait(30) == 0
