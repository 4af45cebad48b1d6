"""Helpers for tests that connect the client of the SDK to an app in this process."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Tooli
from tooli.mcp.sdk_server import AppServer
from tooli.mcp.service import McpService

each_mode = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""Runs a test with a client of a handshake version, and with one of a stateless version."""


def make_server(app: Tooli, **options: Any) -> AppServer:
    """Return the server of an app; `options` are keywords of McpService."""
    return AppServer(McpService(app, **options))
