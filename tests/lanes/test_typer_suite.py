"""Typer's own suite passes with ``Tooli`` in ``Typer``'s place, but for what is named."""

from __future__ import annotations

import pytest
from tests.lanes.typer_suite.compare import compare
from tests.lanes.typer_suite.place import VERSIONS

# One group: the versions run one after the other, as each run has two workers of its own.
pytestmark = [pytest.mark.typer_suite, pytest.mark.xdist_group("typer_suite")]


@pytest.mark.parametrize("version", VERSIONS)
def test_typer_suite(version: str) -> None:
    """At most the known tests are lost, and all of those still are."""
    comparison = compare(version)
    if comparison.problems():
        pytest.fail(comparison.report(), pytrace=False)
