"""The tests of Typer's suite that do not pass with ``Tooli``, each with its reason."""

from __future__ import annotations

LIMIT = 4

# Test id: reason. An entry here is expected to fail on every Typer version.
EVERY_VERSION: dict[str, str] = {}

# Typer version: {test id: reason}, for what fails on that version alone.
ONE_VERSION: dict[str, dict[str, str]] = {}


def known(version: str) -> dict[str, str]:
    """The known differences on one Typer version."""
    return {**EVERY_VERSION, **ONE_VERSION.get(version, {})}
