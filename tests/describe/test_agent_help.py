"""`--help-agent`: one line per command, or one command in detail."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import pytest
import typer
from pydantic import BaseModel, Field
from tests.describe.apps import make_callback_app, make_documented_app

from tooli import Option, StdinOr, Tooli
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


class Order(BaseModel):
    sku: str
    count: Annotated[int, Field(ge=1, le=99)]
    gift: bool = False


@dataclass
class Point:
    x: float
    y: float = 0


class Color(enum.Enum):
    NONE = ""
    RED = "red"
    DARK = "dark red"


INPUTS: list[tuple[object, object, str]] = [
    # annotation, default (... if there is none), notation
    (Order, ..., "<v:{sku:str,count:int(1..99),gift?:bool}>"),
    (Order | None, None, "[--v={sku:str,count:int(1..99),gift?:bool}]"),
    (list[Order], ..., "<v:{sku:str,count:int(1..99),gift?:bool}...>"),
    (list[Point], [], "[--v={x:float,y?:float}]..."),
    (File, ..., "<v:{path:str,size:int}>"),
    (dict[str, int], {}, "[--v={str:int}]"),
    (dict, {}, "[--v={…}]"),
    (list[tuple[str, int]], [], "[--v=[str,int]]..."),
    (tuple[str, int], ("a", 1), "[--v <a:str> <1:int>]"),
    (tuple[str, int] | None, None, "[--v <str> <int>]"),
    (int | str, ..., "<v:int|str>"),
    (int | date | None, None, "[--v=<int|date(YYYY-MM-DD)>]"),
    (Order | Point, ..., "<v:{sku:str,count:int(1..99),gift?:bool}|{x:float,y?:float}>"),
    (Color, Color.NONE, '[--v="":""|red|"dark red"]'),
    (Literal["", "a"], "", '[--v="":""|a]'),
    (set[str], set(), "[--v=<str>]..."),
    (frozenset[int], frozenset({2, 1}), "[--v=[1,2]:int]..."),
    (list[str], ["a"], '[--v=["a"]:str]...'),
    (bytes, b"", "[--v=<bytes>]"),
    (bytes, b"xy", "[--v=xy:bytes]"),
    (date, ..., "<v:date(YYYY-MM-DD)>"),
    (list[date], [], "[--v=<date(YYYY-MM-DD)>]..."),
    (datetime | None, None, "[--v=<datetime(YYYY-MM-DDTHH:MM:SS)>]"),
    (timedelta, timedelta(hours=1), "[--v=PT1H:duration(PT1H30M)]"),
    (time, time(12), "[--v=12:00:00:time(HH:MM:SS)]"),
    (Annotated[int, Field(ge=1, le=9)], 3, "[--v=3:int(1..9)]"),
    (Annotated[int, Option(count=True)], 0, "[--v]..."),
    (str, "a b", '[--v="a b":str]'),
    (str, "", "[--v=<str>]"),
]


@pytest.mark.parametrize(("annotation", "default", "text"), INPUTS)
def test_types_of_parameters(annotation: object, default: object, text: str) -> None:
    def go(v: object = default) -> None: ...
    def go_required(v: object) -> None: ...

    function = go_required if default is ... else go
    function.__annotations__["v"] = annotation
    assert line_of(function) == f"go {text}"


def test_the_notation_is_explained_where_it_is_used() -> None:
    app = Tooli("t")

    @app.command()
    def plain(name: str) -> None: ...

    @app.command()
    def other(name: str) -> None: ...

    assert "notation:" not in invoke(app, "--help-agent").stdout

    @app.command()
    def send(order: Order, tag: Annotated[list[str], Option(help="A tag")] = []) -> None: ...  # noqa: B006

    assert (
        "notation: [--x=…]... repeat the flag for each value; {a:int,b?:str} a JSON object, "
        "b is optional\n"
    ) in invoke(app, "--help-agent").stdout
    assert "  --tag: A tag. Repeat the flag for each value.\n" in (
        invoke(app, "send", "--help-agent").stdout
    )


def test_the_content_of_a_file_is_described() -> None:
    app = Tooli("t")

    @app.command()
    def load(orders: StdinOr[list[Order]], text: StdinOr[str]) -> None: ...

    lines = invoke(app, "load", "--help-agent").stdout
    assert "  orders: It contains [{sku:str,count:int(1..99),gift?:bool}].\n" in lines
    assert "  text:" not in lines


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (int, "int"),
        (File, "{path,size}"),
        (list[File], "[{path,size}]"),
        (Iterator[str], "[str]"),
        (int | None, "int|null"),
        (list[tuple[str, int]], "[[str,int]]"),
        (dict[str, File], "{str:{path,size}}"),
        (Literal["a", "b"], "a|b"),
    ],
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
        *("My", "find", "digest", "wipe", "call:", "any", "records:", "streams:")
    ]


def test_a_flag_that_cannot_be_turned_off() -> None:
    app = Tooli("a")

    @app.command()
    def run(show: bool = typer.Option(True, "--show"), color: bool = True) -> int:
        return 1

    tool = app.find("run")
    assert tool is not None
    assert "[--show] [--color/--no-color]" in render_tool_help(tool)


def test_options_of_callbacks() -> None:
    """They are typed before the command, and each command that they apply to names them."""
    app = make_callback_app()
    before = "options before the command: --token=<str> [--verbose]"
    text = invoke(app, "--help-agent").stdout.splitlines()
    assert text[1:3] == [before, "options after box: [--level=3:int]"]
    text = invoke(app, "box", "open", "--help-agent").stdout.splitlines()
    assert text[1:] == [before, "options after box: [--level=3:int]"]
    assert invoke(app, "count", "--help-agent").stdout.splitlines()[1:] == [before]
