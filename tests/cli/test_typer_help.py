"""What tooli adds to Typer's help and completions."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from tooli import Tooli
from tooli.testing import invoke


def command_of(app: Tooli) -> typer.core.TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    return command


def test_help_ends_with_the_framework_options(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Framework options" in CliRunner().invoke(shop, ["--help", "--text"]).output
    monkeypatch.setenv("TOOLI_FRAMEWORK_HELP", "0")
    assert "Framework options" not in CliRunner().invoke(shop, ["--help", "--text"]).output


@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [("--js", ["--json", "--jsonl"]), ("--output=y", ["--output=yaml"]), ("--count", ["--count"])],
)
def test_completion_includes_framework_options(
    shop: Tooli, incomplete: str, expected: list[str]
) -> None:
    command = command_of(shop).commands["price"]
    with command.make_context("price", ["x"], resilient_parsing=True) as context:
        items = command.shell_complete(context, incomplete)
    assert sorted(item.value for item in items) == expected


def test_completion_without_framework_options(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_FRAMEWORK_HELP", "0")
    command = command_of(shop).commands["price"]
    with command.make_context("price", ["x"], resilient_parsing=True) as context:
        assert command.shell_complete(context, "--js") == []


class Filter(BaseModel):
    pattern: str = Field(description="A glob.")
    depth: int = Field(3, description="How deep.")


@pytest.mark.parametrize("markup", [None, "rich"])
def test_help_at_a_terminal_has_the_fields_of_models(markup: Any) -> None:
    app = Tooli("a", rich_markup_mode=markup)

    @app.command()
    def find(where: Filter) -> None:
        """Find."""

    shown = " ".join(invoke(app, "--help", "--text").stdout.split())
    assert "--where.pattern str A glob. [required]" in shown
    assert "--where.depth int How deep. [default: 3]" in shown
