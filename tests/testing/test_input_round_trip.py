"""assert_same_input: a command reads files and stdin alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

import pytest

from tooli import Input, Option, StdinOr, Tooli
from tooli.testing import assert_same_input


class Row(TypedDict):
    name: str
    size: int


@pytest.fixture
def app() -> Tooli:
    app = Tooli("t")

    @app.command()
    def total(rows: StdinOr[list[Row]], least: int = 0) -> int:
        return sum(row["size"] for row in rows if row["size"] >= least)

    @app.command()
    def lines(text: Annotated[StdinOr[str], Option()]) -> int:
        return len(text.splitlines())

    @app.command()
    def origin(source: StdinOr[Input]) -> bool:
        return source.source == "-"

    @app.command()
    def merge(left: StdinOr[str], right: StdinOr[str]) -> str:
        return left + right

    @app.command()
    def plain(name: str) -> str:
        return name

    return app


def test_csv_jsonl_and_json_are_read_from_everywhere(app: Tooli) -> None:
    csv = assert_same_input(app, "total", "name,size\na,6\nb,12\n", suffix=".csv")
    assert csv["result"] == 18
    rows = '{"name":"a","size":6}\n{"name":"b","size":12}\n'
    assert assert_same_input(app, "total", rows, "--least", "10")["result"] == 12
    assert assert_same_input(app, "lines", b"a\nb\n")["result"] == 2


def test_errors_are_compared_too(app: Tooli) -> None:
    answer = assert_same_input(app, "total", "not json", suffix=".json")
    assert answer["ok"] is False


def test_a_difference_is_reported(app: Tooli) -> None:
    with pytest.raises(AssertionError, match="origin reads stdin differently than a file"):
        assert_same_input(app, "origin", "x")


@pytest.mark.parametrize(
    ("command", "param", "message"),
    [
        ("nothing", None, "there is no command 'nothing'"),
        ("plain", None, "with the type StdinOr: none"),
        ("merge", None, "with the type StdinOr: left, right"),
        ("merge", "lft", "did you mean"),
    ],
)
def test_the_parameter_must_be_known(
    app: Tooli, command: str, param: str | None, message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_same_input(app, command, "x", param=param)


def test_one_of_several_parameters(app: Tooli, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("y")
    answer = assert_same_input(app, "merge", "x", str(tmp_path / "other"), param="left")
    assert answer["result"] == "xy"
