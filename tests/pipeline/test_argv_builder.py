"""Command lines that are built from the arguments of a call."""

# ruff: noqa: UP045  both spellings of optional types are used in annotations
from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pathlib
from typing import Annotated, Any, Optional

import pydantic
import pytest
from tests.stable_ids import stable_id

from tooli import Argument, Option, Tooli
from tooli.pipeline.argv_builder import (
    Placeholder,
    build_argv,
    build_suggested_argv,
    shorten_argument,
)
from tooli.schema import RawText
from tooli.schema.tool_reader import read_tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Size:
    width: int


class User(pydantic.BaseModel):
    name: str


def everything(
    path: pathlib.Path,
    number: Annotated[int, Argument()] = 1,
    words: Annotated[Optional[list[str]], Argument()] = None,
    flag: bool = False,
    on: Annotated[bool, Option("--on")] = True,
    size: Annotated[int, Option("-s", "--size")] = 1,
    verbose: Annotated[int, Option("-v", count=True)] = 0,
    at: tuple[int, int] = (0, 0),
    tags: Optional[list[str]] = None,
    colour: Colour = Colour.RED,
    level: Optional[Level] = None,
    user: Optional[User] = None,
    box: Optional[Size] = None,
    data: Optional[dict[str, Any]] = None,
    day: Optional[dt.date] = None,
    took: Optional[dt.timedelta] = None,
    raw: Optional[bytes] = None,
    silent: Annotated[bool, Option(" /--loud")] = True,
): ...


TOOL = read_tool(everything, app="app", path=("tool",), kwargs={})


@pytest.mark.parametrize(
    ("arguments", "argv"),
    [
        ({"path": pathlib.Path("a b")}, ["a b"]),
        ({"path": "a", "number": 1}, ["a"]),
        ({"path": "a", "number": 1, "words": ["x"]}, ["a", "1", "x"]),
        ({"path": "a", "words": ["x", "y"]}, ["a", "1", "x", "y"]),
        ({"path": "-a"}, ["--", "-a"]),
        ({"path": "-a", "size": 3}, ["--size", "3", "--", "-a"]),
        ({"path": "-"}, ["-"]),
        ({"flag": True}, ["--flag"]),
        ({"flag": False}, []),
        ({"on": False}, []),
        ({"silent": False}, ["--loud"]),
        ({"silent": "x"}, []),
        ({"size": -3}, ["--size=-3"]),
        ({"verbose": 3}, ["-v", "-v", "-v"]),
        ({"at": (1, 2)}, ["--at", "1", "2"]),
        ({"at": (0, 0)}, []),
        ({"tags": ["a", "b"]}, ["--tags", "a", "--tags", "b"]),
        ({"tags": None}, []),
        ({"colour": Colour.BLUE}, ["--colour", "blue"]),
        ({"colour": "blue"}, ["--colour", "blue"]),
        ({"level": Level.LOW}, ["--level", "1"]),
        ({"user": User(name="Ada")}, ["--user", '{"name":"Ada"}']),
        ({"box": Size(3)}, ["--box", '{"width":3}']),
        ({"data": {"a": [1, True]}}, ["--data", '{"a":[1,true]}']),
        ({"day": dt.date(2024, 1, 2)}, ["--day", "2024-01-02"]),
        ({"took": dt.timedelta(hours=1)}, ["--took", "PT1H"]),
        ({"raw": b"x"}, ["--raw", "x"]),
        (
            {"user": RawText(["{}"], dotted={"name": ["Ada"]})},
            ["--user", "{}", "--user.name", "Ada"],
        ),
        ({"tags": RawText(["a", "b"])}, ["--tags", "a", "--tags", "b"]),
    ],
    ids=stable_id,
)
def test_arguments_become_argv(arguments, argv) -> None:
    assert build_argv(TOOL, arguments) == argv


def test_an_object_argument_of_several_texts_is_given_by_name() -> None:
    def fn(user: User) -> None: ...

    tool = read_tool(fn, app="app", path=("tool",), kwargs={})
    arguments = {"user": RawText(["{}", "name=Ada"], dotted={"name": ["Bob"]})}
    expected = ["--user", "{}", "--user", "name=Ada", "--user.name", "Bob"]
    assert build_argv(tool, arguments) == expected


def test_framework_flags_are_before_the_double_dash() -> None:
    assert build_argv(TOOL, {"path": "-a"}, "--yes") == ["--yes", "--", "-a"]
    assert build_argv(TOOL, {"path": "a"}, "--yes") == ["a", "--yes"]


def test_argv_is_parsed_to_the_same_arguments() -> None:
    """The app parses a built command line to the arguments that it was built from."""
    app = Tooli("app")
    received = {}

    @app.command()
    def tool(
        path: str,
        number: Annotated[int, Argument()] = 1,
        flag: bool = False,
        verbose: Annotated[int, Option("-n", count=True)] = 0,
        at: tuple[int, int] = (0, 0),
        tags: Optional[list[str]] = None,
        user: Optional[User] = None,
    ):
        received.update(locals())

    arguments = {
        "path": "-x y",
        "number": 5,
        "flag": True,
        "verbose": 2,
        "at": (-1, 2),
        "tags": ["a", "-b"],
        "user": User(name="Ada"),
    }
    argv = build_argv(app.find("tool"), arguments)
    app(argv, standalone_mode=False)
    received.pop("received", None)
    assert received == arguments


def test_placeholders_are_in_angle_brackets() -> None:
    arguments = {"path": Placeholder("path"), "size": Placeholder("size")}
    assert build_argv(TOOL, arguments) == ["<path>", "--size", "<size>"]


class TestSuggestedArgv:
    def test_short_values_are_unchanged(self) -> None:
        tool = read_tool(lambda: None, app="app", path=("tool",), kwargs={})
        assert build_suggested_argv(tool, {}, "--yes") == (["--yes"], [])

    def test_longest_values_become_placeholders(self) -> None:
        def fn(first: str, items: list[str], last: str = "") -> None: ...

        tool = read_tool(fn, app="app", path=("tool",), kwargs={})
        arguments = {"first": "f" * 900, "items": ["i"] * 5000, "last": "l" * 900}
        argv, placeholders = build_suggested_argv(tool, arguments)
        assert argv == ["f" * 900, "<items>", "--last", "l" * 900]
        assert placeholders == ["<items>"]

    def test_all_values_may_be_too_long(self) -> None:
        def fn(first: str, last: str = "") -> None: ...

        tool = read_tool(fn, app="app", path=("tool",), kwargs={})
        argv, _ = build_suggested_argv(tool, {"first": "f" * 2100, "last": "l" * 2200})
        assert argv == ["<first>", "--last", "<last>"]


@pytest.mark.parametrize(
    ("value", "is_long"),
    [
        ("x" * 1900, False),
        ("x" * 2001, True),
        (b"x" * 2001, True),
        (12, False),
        ([1] * 400, False),
        ([1] * 2001, True),
        ([["x" * 700] * 2, {"k": "x" * 700}], True),
        ({"k" * 2001: 1}, True),
        ({"k": {"k": {"k": 1}}}, False),
        (("x" * 700, {"x" * 700}, frozenset(["x" * 700])), True),
        (RawText(["x" * 1500]), False),
        (RawText(["x" * 1500, "x" * 600]), True),
    ],
)
def test_shorten_argument(value: object, is_long: bool) -> None:
    found = shorten_argument("items", value)
    assert found.text == "<items>" if is_long else found is value
