"""Many simultaneous requests to a real server: all are served, and none is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.mcp_http.http_process import NOTES_APP, Server, run_server

REQUESTS = 600
CLIENT = Path(__file__).with_name("burst_client.py")


@pytest.mark.parametrize("flags", [(), ("--limit", "20"), ("--workers", "2")])
def test_simultaneous_requests_are_served(flags: tuple[str, ...]) -> None:
    """Each request has its own connection. All are open before the first request is sent."""
    with run_server(NOTES_APP, *flags, interface=("api",), open_files=1024) as server:
        done = subprocess.run(
            [sys.executable, CLIENT, server.url, str(REQUESTS)], capture_output=True, timeout=300
        )
        assert done.stdout.decode() == f"200: {REQUESTS}\n", done.stderr.decode()


async def test_simultaneous_mcp_calls_are_served() -> None:
    with run_server(NOTES_APP, "--stateless", interface=("api",), open_files=1024) as server:
        answers = await call_at_once(server, 300)
        assert {answer["result"]["isError"] for answer in answers} == {False}


async def call_at_once(server: Server, count: int) -> list[Any]:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
    }
    headers = {"accept": "application/json, text/event-stream"}
    limits = httpx2.Limits(max_connections=count)
    async with httpx2.AsyncClient(headers=headers, timeout=120, limits=limits) as client:
        calls = [client.post(f"{server.url}/mcp", json=message) for _ in range(count)]
        responses = await asyncio.gather(*calls)
    return [_read_event(response) for response in responses]


def _read_event(response: Any) -> Any:
    assert response.status_code == 200, response.text
    import json

    lines = [line for line in response.text.splitlines() if line.startswith("data: {")]
    return json.loads(lines[-1][len("data: ") :])
