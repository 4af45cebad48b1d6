"""Fixtures for the tests of the MCP client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.mcp_client.fakes import Servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Providers of fake servers, which are closed at the end of the test."""
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    made = Servers(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["handshake", "stateless"])
def era(request: pytest.FixtureRequest) -> Any:
    """Both eras of the protocol."""
    return request.param
