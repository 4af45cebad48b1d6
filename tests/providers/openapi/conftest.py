"""Fixtures for the tests of OpenAPIProvider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.providers.openapi.api_server import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.openapi.api_server import ApiServer


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """Return a server on this machine."""
    with serve() as server:
        yield server
