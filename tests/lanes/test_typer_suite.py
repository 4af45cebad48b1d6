"""Typer's own suite passes with ``Tooli`` in ``Typer``'s place, but for what is named."""

from __future__ import annotations

import pytest

from tests.lanes.typer_suite import VERSIONS, compare

pytestmark = [pytest.mark.slow, pytest.mark.typer_suite]


@pytest.mark.parametrize("version", VERSIONS)
def test_typers_suite_passes_with_tooli_in_its_place(version: str) -> None:
    """At most the known tests are lost, and all of those still are."""
    comparison = compare(version)
    if comparison.problems():
        pytest.fail(comparison.report(), pytrace=False)
