"""Command lines for documents."""

from __future__ import annotations

import pytest

from tooli import Tooli
from tooli.describe.calls import format_command_line, sample_arguments


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["a b"], "t find 'a b' --json"),
        (["x", "--json"], "t find x --json"),
        (["--", "-x"], "t find --json -- -x"),
    ],
)
def test_flags_are_inserted_before_the_separator(argv: list[str], line: str) -> None:
    app = Tooli("t")
    app.command("find")(lambda: None)
    app.command("other")(lambda: None)
    tool = app.find("find")
    assert tool is not None
    assert format_command_line("t", tool, argv, "--json") == line


def test_sample_arguments_contain_chosen_values() -> None:
    app = Tooli("t")

    @app.command()
    def copy(source: str, target: str, mode: str = "fast", other: int = 3) -> None: ...

    tool = app.find("copy")
    assert tool is not None
    assert sample_arguments(tool, {"source": "-", "mode": "slow"}) == [
        *("-", sample_arguments(tool)[1], "--mode", "slow"),
    ]
