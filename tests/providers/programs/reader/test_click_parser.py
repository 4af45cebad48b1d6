from __future__ import annotations

import enum
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import click
import typer
import typer.main

from tooli.providers.programs.reader.click_parser import describe_click


def params_of(command: Any) -> dict[str, Any]:
    (level,) = describe_click(command, "p")["levels"]
    return {p["name"]: p for p in level["params"]}


@click.command(context_settings={"allow_extra_args": True})
@click.argument("files", nargs=-1, required=True, type=click.File())
@click.option("--size", type=click.IntRange(1, 5, min_open=True), default=2)
@click.option("--clamped", type=click.IntRange(max=5, clamp=True))
@click.option("--ratio", type=click.FloatRange(max=1, max_open=True))
@click.option("--kind", type=click.Choice(["a", "b"]), multiple=True)
@click.option("--pair", type=(str, int))
@click.option("--when", type=click.DateTime(["%Y"]))
@click.option("--on/--off", default=True)
@click.option("--upper", "case", flag_value="upper")
@click.option("--lower", "case", flag_value="lower")
@click.option("-v", count=True)
@click.option("--name", prompt=True)
@click.option("--user", prompt=True, default="root")
@click.option("--pw", hide_input=True, prompt=True, envvar="PW")
@click.option("--maybe", is_flag=False, flag_value="x")
@click.option("--made", default=lambda: "x", hidden=True)
@click.version_option("1.0")
def everything(**values: Any) -> None:
    """Do everything.\f Not shown."""


def test_parameters_of_click() -> None:
    described = describe_click(everything, "p")
    assert described["commands"][0]["help"] == "Do everything."
    assert described["levels"][0]["takes_extra"]
    found = params_of(everything)
    assert "help" not in found and "version" not in found
    assert (found["files"]["nargs"], found["files"]["schema"]["x-stdin"]) == ("*", True)
    assert found["size"]["schema"] == {"type": "integer", "exclusiveMinimum": 1, "maximum": 5}
    assert found["clamped"]["schema"] == {"type": "integer"}
    assert found["ratio"]["schema"] == {"type": "number", "exclusiveMaximum": 1}
    assert found["kind"]["multiple"] and found["kind"]["schema"]["enum"] == ["a", "b"]
    assert found["pair"]["items"] == [{"type": "string"}, {"type": "integer"}]
    assert found["when"]["schema"]["x-note"] == "Formats: %Y"
    assert (found["on"]["off"], found["on"]["default"]) == (["--off"], True)
    assert found["case"]["is_const"] and found["case"]["action"] == "flag"
    assert found["v"]["action"] == "count"
    assert found["name"]["required"] and not found["name"]["sends_default"]
    assert not found["user"]["required"] and found["user"]["sends_default"]
    assert found["pw"]["secret"] and found["pw"]["envvar"] == "PW"
    assert found["maybe"]["optional_value"]
    assert found["made"]["default"] is None and found["made"]["hidden"]


class Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["good", "broken", "gone"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "broken":
            raise ImportError("no module")
        return click.Command("good", help="Good.") if cmd_name == "good" else None


def test_groups() -> None:
    group = click.Group("p", invoke_without_command=True, params=[click.Option(["--x"])])
    group.add_command(Lazy("lazy"))
    found = describe_click(group, "p")
    assert [(c["words"], c["is_group"]) for c in found["commands"]] == [
        ([], True),
        (["lazy", "good"], False),
    ]
    assert found["skipped"] == ["lazy broken: ImportError: no module"]
    assert found["commands"][1]["levels"] == [0, 1, 2]


class Color(str, enum.Enum):
    RED = "red"


def test_parameters_of_typer() -> None:
    app = typer.Typer()

    @app.command()
    def run(
        path: Path,
        names: list[str],
        pair: tuple[int, str] = (1, "a"),
        color: Color = Color.RED,
        when: datetime | None = None,
        size: Annotated[int, typer.Option(min=1, max=5)] = 2,
        clamped: Annotated[int, typer.Option(min=1, clamp=True)] = 2,
        parsed: Annotated[int, typer.Option(parser=int)] = 2,
        fast: bool = False,
        file: Annotated[typer.FileText | None, typer.Option()] = None,
    ) -> None:
        """Run it."""

    found = params_of(typer.main.get_command(app))
    assert "install_completion" not in found
    assert found["path"]["schema"] == {"type": "string"}
    assert (found["names"]["nargs"], found["names"]["schema"]) == ("*", {"type": "string"})
    assert found["pair"]["items"] == [{"type": "integer"}, {"type": "string"}]
    assert found["color"]["schema"] == {"type": "string", "enum": ["red"]}
    assert found["color"]["default"] == "red"
    assert found["size"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 5}
    assert found["clamped"]["schema"] == {"type": "integer"}
    assert found["parsed"]["schema"] == {"type": "string"}
    assert found["fast"]["off"] == ["--no-fast"]
    assert found["file"]["schema"] == {"type": "string", "x-stdin": True}
