"""`--help-agent`: one line per command, or one command in detail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import pytest
import typer
from tests.describe.apps import make_documented_app

from tooli import Option, Tooli
from tooli.annotations import ReadOnly
from tooli.describe.agent_help import render_tool_help, render_tool_line
from tooli.testing import invoke


class File(TypedDict):
    path: str
    size: int


def line_of(function: object, **options: object) -> str:
    app = Tooli("t")
    app.command("go", **options)(function)  # type: ignore[arg-type, call-overload]
    app.command("other")(lambda: None)
    tool = app.find("go")
    assert tool is not None
    return render_tool_line(tool)


def test_parameters_have_types_defaults_and_limits() -> None:
    def go(
        path: Path,
        names: list[str],
        level: Literal["low", "high"] = "low",
        count: Annotated[int, Option(min=1, max=9)] = 3,
        deep: bool = False,
        colour: bool = True,
    ) -> None: ...

    assert line_of(go) == (
        "go <path:path> <names:str...> [--level=low:low|high] [--count=3:int(1..9)] [--deep]"
        " [--colour/--no-colour]"
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [(int, "int"), (File, "{path,size}"), (list[File], "[{path,size}]"), (Iterator[str], "[str]")],
)
def test_result_types(result: object, text: str) -> None:
    def go() -> None:
        """Go."""

    go.__annotations__["return"] = result
    assert line_of(go, annotations=ReadOnly) == f"go -> {text} | Go. (read-only)"


def test_text_stays_on_one_line() -> None:
    def go(a: Annotated[str, Option(help="one\ntwo \x1b[31m")] = "x\ny") -> None:
        """Go \x07 now."""

    assert "\n" not in line_of(go)
    app = Tooli("t")
    app.command()(go)
    text = render_tool_help(next(iter(app.catalog)))
    assert "--a: one two" in text
    assert "\x1b" not in text and "\x07" not in text


def test_details_of_a_command() -> None:
    text = invoke(make_documented_app(), "find", "--help-agent").stdout
    for line in (
        "use when: When a file",
        "capabilities: fs:read",
        "next: wipe  # the file is not wanted",
        "next: digest",
        "timeout: 5 s",
        "delegate: An agent with a disk.",
    ):
        assert line in text


def test_one_line_per_command() -> None:
    lines = invoke(make_documented_app(), "--help-agent").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("My", "find", "digest", "wipe", "call:", "any")
    ]


def test_a_flag_that_cannot_be_turned_off() -> None:
    app = Tooli("a")

    @app.command()
    def run(show: bool = typer.Option(True, "--show"), color: bool = True) -> int:
        return 1

    tool = app.find("run")
    assert tool is not None
    assert "[--show] [--color/--no-color]" in render_tool_help(tool)
