"""Tools that use stdin and stdout do not disturb the protocol's stream.

There is one exception: a tool that calls `os._exit` ends the server, and the pending calls get no
answer.
"""

from __future__ import annotations

import pytest
from tests.integration.mcp.stdio_client import (
    HANDSHAKE_VERSION,
    STATELESS_VERSION,
    StdioClient,
    connect,
)

OUTPUT_METHODS = ["print", "write", "stdout", "buffer", "child", "shell", "fork", "thread"]
STDOUT_CHANGES = ["replace", "close-stdout", "close"]


@pytest.fixture(
    scope="module", params=[HANDSHAKE_VERSION, STATELESS_VERSION, f"{HANDSHAKE_VERSION} SDK"]
)
def client(request: pytest.FixtureRequest):
    version, _, uses_sdk = request.param.partition(" ")
    with connect(version=version) as client:
        if uses_sdk:
            client.result("resources/list")
        yield client


@pytest.mark.parametrize("how", OUTPUT_METHODS)
def test_output_of_a_tool_does_not_reach_the_client(client: StdioClient, how: str) -> None:
    assert client.value("noisy", {"how": how}) == how  # the client asserts valid messages
    assert client.value("add", {"a": 1}) == 2
    assert client.call("shout", {"word": "x"})["content"][0]["text"] == "X"
    assert client.received == []


@pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
@pytest.mark.parametrize("how", STDOUT_CHANGES)
def test_server_works_after_a_tool_closes_or_replaces_stdout(how: str, version: str) -> None:
    with connect(version=version) as client:
        assert client.value("noisy", {"how": how}) == how
        assert client.call("shout", {"word": "x"})["isError"] is False
        assert client.value("add", {"a": 1}) == 2
        assert client.shut_down() == 0


def test_output_of_a_tool_goes_to_stderr() -> None:
    with connect() as client:
        for how in ("print", "write", "child", "shell", "fork"):
            client.value("noisy", {"how": how})
        client.shut_down()
        assert client.stderr.count(b"noise\n") == 6


def test_stdin_of_a_tool_is_empty(client: StdioClient) -> None:
    assert client.value("noisy", {"how": "stdin"}) == "('', b'')"


def test_tool_can_end_the_process() -> None:
    with connect() as client:
        client.start_call("noisy", {"how": "end"})
        assert client.remaining_messages() == []
        assert client.process.wait(60) == 7


def test_concurrent_calls_capture_their_own_output() -> None:
    with connect() as client:
        expected = {client.start_call("shout", {"word": f"w{i}"}): f"W{i}" for i in range(200)}
        for request_id, text in expected.items():
            assert client.response_to(request_id)["result"]["content"][0]["text"] == text
