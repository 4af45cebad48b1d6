"""Tests of Typer's suite that are known to fail with `Tooli`, each with its reason."""

from __future__ import annotations

MAX_KNOWN_DIFFERENCES = 4

ALL_VERSIONS: dict[str, str] = {}
"""Tests that fail with every version of Typer: test id and reason."""

BY_VERSION: dict[str, dict[str, str]] = {}
"""Tests that fail with one version of Typer: version, test id and reason."""


def known_differences(version: str) -> dict[str, str]:
    """Return the known differences with one version of Typer."""
    return {**ALL_VERSIONS, **BY_VERSION.get(version, {})}
