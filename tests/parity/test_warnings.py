"""The number of warnings is limited in the same way on every interface."""

from __future__ import annotations

import pytest

from tooli import Context, Tooli
from tooli.testing import Case, assert_parity

app = Tooli("noisy", version="1.0")


@app.command(auth=[])
def warn(ctx: Context) -> str:
    """Add fifty warnings."""
    for i in range(50):
        ctx.warn(f"skipped file {i}")
    return "done"


def test_number_of_warnings_is_limited() -> None:
    found = assert_parity(app, Case("warn", {}))
    assert found["meta"]["warnings"] == [
        *[f"skipped file {i}" for i in range(3)],
        "47 more warnings that begin with 'skipped file'",
    ]


def test_plain_output_shows_the_same_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["-o", "plain"], standalone_mode=False) == "done"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[-1] == "Warning: 47 more warnings that begin with 'skipped file'"
