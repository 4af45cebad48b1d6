"""Fixtures of the tests of policies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.policy.fake_issuer import FakeIssuer


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    """Run an authorization server."""
    running = FakeIssuer()
    yield running
    running.close()
