"""SdkBridge: a stdio connection that the SDK takes over."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("mcp")

from tooli import Tooli
from tooli.mcp.sdk_bridge import SdkBridge
from tooli.mcp.sdk_server import AppServer
from tooli.mcp.service import McpService
from tooli.testing.app_interfaces import MemoryTransport

HANDSHAKE: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": "first",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


@pytest.fixture
def transport() -> MemoryTransport:
    return MemoryTransport()


@pytest.fixture
def bridge(transport: MemoryTransport) -> SdkBridge:
    app = Tooli("bridged")
    app.prompt("hi")(lambda: "Hello")
    return SdkBridge(McpService(app), transport, HANDSHAKE)


def test_handshake_is_replayed_and_its_answer_dropped(
    bridge: SdkBridge, transport: MemoryTransport
) -> None:
    bridge.send({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})
    bridge.wait(120)
    assert [message["id"] for message in transport.sent] == [1]
    assert transport.sent[0]["result"]["prompts"][0]["name"] == "hi"
    assert not bridge.is_busy


def test_cancelled_request_is_not_awaited(bridge: SdkBridge) -> None:
    bridge.wait(120)
    bridge.requests[7] = None
    assert 7 in bridge
    bridge.discard_request("7")  # some clients send the id as another type
    assert not bridge.is_busy


def test_wait_ends_when_the_client_disconnects(
    bridge: SdkBridge, transport: MemoryTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge.wait(120)
    bridge.requests[7] = None
    monkeypatch.setattr(transport, "is_disconnected", lambda: True)
    started = time.monotonic()
    bridge.wait(600)
    assert time.monotonic() - started < 300


def test_server_that_has_ended_accepts_no_message(bridge: SdkBridge) -> None:
    bridge._has_ended = True
    with pytest.raises(RuntimeError, match="has ended"):
        bridge.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def test_server_that_fails_is_reported(
    transport: MemoryTransport,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(AppServer, "run", fail)
    bridge = SdkBridge(McpService(Tooli("bridged")), transport, [])
    with bridge.condition:
        assert bridge.condition.wait_for(lambda: bridge._has_ended, 120)
    assert "ValueError: broken" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="has ended"):
        bridge.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert not bridge.is_busy
