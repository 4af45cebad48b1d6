"""Hints after a failed call."""

from __future__ import annotations

import pytest

from tooli import NotFoundError, Tooli
from tooli.testing import invoke


@pytest.mark.parametrize(
    ("argv", "warnings"),
    [
        (["generate-skills"], ["'generate-skills' was taken as an argument: did you mean "]),
        (["--", "dcos"], ["'dcos' was taken as an argument: did you mean 'docs'?"]),
        (["--", "docs"], []),
        (["other"], []),
        ([], []),
    ],
)
def test_hint_of_a_failed_call_of_an_app_with_one_command(
    argv: list[str], warnings: list[str]
) -> None:
    app = Tooli("finder")

    @app.command()
    def find(pattern: str) -> list[str]:
        raise NotFoundError(pattern)

    shown = invoke(app, *argv, mode="json").envelope["meta"].get("warnings", [])
    assert [line[: len(wanted)] for line, wanted in zip(shown, warnings, strict=True)] == warnings
