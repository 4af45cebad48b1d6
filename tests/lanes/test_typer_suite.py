"""Typer's own test suite passes with `Tooli` instead of `Typer`, except for known tests."""

from __future__ import annotations

import pytest
from tests.lanes.typer_suite.compare import compare
from tests.lanes.typer_suite.suite_paths import VERSIONS

# One group: the versions run one after the other, because each run has two workers.
pytestmark = pytest.mark.typer_suite


@pytest.mark.parametrize("version", VERSIONS)
def test_only_known_tests_of_typer_fail(version: str) -> None:
    """Only the known tests fail."""
    comparison = compare(version)
    if comparison.problems():
        pytest.fail(comparison.report(), pytrace=False)
