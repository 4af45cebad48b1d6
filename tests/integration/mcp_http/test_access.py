"""MCP over HTTP: access control, limits and shutdown."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.shared.exceptions import MCPError
from tests.integration.mcp_http.http_process import NOTES_APP, Server, run_server

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
DEFAULT_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as running:
        yield running


@pytest.fixture(scope="module")
def token_server() -> Iterator[Server]:
    flags = ("--host", "0.0.0.0", "--allow-host", "named.example.com")
    with run_server(NOTES_APP, *flags, TOOLI_TOKEN="secret") as running:
        yield running


def post(server: Server, headers: dict[str, str], body: bytes | None = None) -> int:
    """Send a POST to /mcp, by default `initialize`; return the status."""
    host, port = server.address
    connection = http.client.HTTPConnection(
        "127.0.0.1" if host == "0.0.0.0" else host, port, timeout=120
    )
    try:
        data = json.dumps(INITIALIZE).encode() if body is None else body
        connection.request("POST", "/mcp", data, {**DEFAULT_HEADERS, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


# ------------------------------------------------------------------ access control


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example.com"}, 421),
        ({"Host": "evil.example.com:8000"}, 421),
        ({"Host": "127.0.0.1.evil.example.com"}, 421),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "[::1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example.com"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://127.0.0.1"}, 200),
        ({"Origin": "file://localhost"}, 403),
        ({"Host": "evil.example.com", "Origin": "http://evil.example.com"}, 421),
    ],
)
def test_only_loopback_hosts_and_origins_are_accepted(
    server: Server, headers: dict[str, str], status: int
) -> None:
    assert post(server, headers) == status


def send_raw(server: Server, *lines: bytes) -> bytes:
    with socket.create_connection(server.address, timeout=120) as connection:
        connection.sendall(b"\r\n".join(lines))
        return connection.recv(1 << 16)


def test_repeated_host_header_is_rejected(server: Server) -> None:
    response = send_raw(
        server,
        b"POST /mcp HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Host: evil.example.com",
        b"Content-Length: 0",
        b"",
        b"",
    )
    assert response.split()[1] == b"400"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic secret"}, 401),
        ({"Authorization": "secret"}, 401),
        ({"Authorization": "Bearer secret"}, 200),
        ({"Authorization": "bearer  secret"}, 200),
        ({"Authorization": "Bearer secret", "Origin": "http://evil.example.com"}, 403),
        ({"Authorization": "Bearer secret", "Host": "named.example.com"}, 200),
        ({"Authorization": "Bearer secret", "Host": "10.1.2.3"}, 200),
        ({"Authorization": "Bearer secret", "Host": "evil.example.com"}, 421),
    ],
)
def test_request_needs_the_token(
    token_server: Server, headers: dict[str, str], status: int
) -> None:
    assert post(token_server, headers) == status


def test_other_paths_are_not_found(server: Server) -> None:
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    connection.request("GET", "/")
    assert connection.getresponse().status == 404
    connection.close()


# ------------------------------------------------------------------ limits


def test_body_above_the_limit_is_rejected(server: Server) -> None:
    size = (4 << 20) + 1
    with socket.create_connection(server.address, timeout=120) as connection:
        head = (b"POST /mcp HTTP/1.1", b"Host: 127.0.0.1", b"Transfer-Encoding: chunked", b"", b"")
        connection.sendall(b"\r\n".join(head) + f"{size:x}\r\n".encode() + b" " * size)
        assert connection.recv(1 << 16).split()[1] == b"413"


def test_content_length_above_the_limit_is_rejected(server: Server) -> None:
    with socket.create_connection(server.address, timeout=120) as connection:
        head = (b"POST /mcp HTTP/1.1", b"Host: 127.0.0.1", b"Content-Length: 99999999", b"", b"")
        connection.sendall(b"\r\n".join(head))
        assert connection.recv(1 << 16).split()[1] == b"413"


def test_invalid_json_or_content_type_is_rejected(server: Server) -> None:
    assert post(server, {}, b"{") == 400
    assert post(server, {"Content-Type": "text/plain"}) == 400


# ------------------------------------------------------------------ start and shutdown


def run_serve_command(*flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, NOTES_APP, "mcp", "serve", "--transport", "http", *flags]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, **env}, check=False
    )


def test_port_in_use(server: Server) -> None:
    done = run_serve_command("--port", str(server.address[1]))
    assert done.returncode != 0
    assert f"Port {server.address[1]}" in done.stdout + done.stderr


def test_public_address_needs_a_token() -> None:
    done = run_serve_command("--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "token" in done.stdout + done.stderr


def test_missing_sdk_is_reported() -> None:
    program = (
        "import runpy, sys; sys.modules['mcp'] = None; "
        "sys.argv[1:] = ['mcp', 'serve', '--transport', 'http']; "
        f"runpy.run_path({str(NOTES_APP)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 40
    assert "pip install 'tooli[mcp]>=7.0a1'" in done.stdout + done.stderr


async def test_shutdown_lets_calls_finish() -> None:
    with run_server() as server:
        async with Client(server.url, mode="legacy") as client:
            await client.list_tools()  # the client validates results against the schemas
            threads: list[threading.Thread] = []

            async def on_progress(*progress: Any) -> None:
                if not threads:
                    threads.append(threading.Thread(target=server.shut_down))
                    threads[0].start()

            result = await client.call_tool("sleep", {"seconds": 1}, progress_callback=on_progress)
            assert not result.is_error
        threads[0].join()
        assert server.process.wait(30) == 0


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_shutdown_reports_unfinished_calls(mode: str, tmp_path: pathlib.Path) -> None:
    marker = tmp_path / "marker"
    with run_server(NOTES_APP, "--grace", "1") as server:
        async with Client(server.url, mode=mode) as client:

            async def on_progress(*progress: Any) -> None:
                threading.Thread(target=server.shut_down).start()

            with pytest.raises(MCPError, match="The server is shutting down"), anyio.fail_after(30):
                await client.call_tool(
                    "wait_for_cancel", {"marker": str(marker)}, progress_callback=on_progress
                )
        assert server.process.wait(30) == 0


async def test_sse_transport_serves_tools_and_resources() -> None:
    with run_server(NOTES_APP, "--transport", "sse") as server:
        assert server.url.endswith("/sse")
        async with Client(sse_client(server.url), mode="legacy") as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert result.structured_content == {"result": 3}
            read = await client.read_resource("notes://1")
            assert isinstance(read.contents[0], types.TextResourceContents)
