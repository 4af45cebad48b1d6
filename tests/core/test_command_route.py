from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tooli import Tooli
from tooli.core.command_route import changes_runs


def test_only_classes_that_change_how_a_command_runs_count() -> None:
    class Sorted(TyperGroup):
        """Lists its commands in order."""

        def list_commands(self, ctx: Any) -> list[str]:
            return sorted(super().list_commands(ctx))

    class Timed(TyperCommand):
        def invoke(self, ctx: Any) -> Any:
            return super().invoke(ctx)

    class Inherits(Timed):
        def format_help(self, ctx: Any, formatter: Any) -> None: ...

    assert [changes_runs(cls) for cls in (None, TyperCommand, TyperGroup, Sorted)] == [False] * 4
    assert [changes_runs(cls) for cls in (Timed, Inherits)] == [True, True]


def test_a_route_knows_the_parameters_of_callbacks() -> None:
    app = Tooli("a")

    @app.callback()
    def main(level: int = 0, version: bool = typer.Option(False, callback=lambda v: v)) -> None: ...

    @app.command()
    def run(name: str) -> None: ...

    tool = app.find("run")
    assert tool is not None and tool.route is not None
    assert [tool.route.is_of_callback(name) for name in ("name", "level", "x")] == [
        False,
        True,
        False,
    ]
    assert tool.route.may_end_early
    assert [param.name for param in tool.command_params] == ["name"]
