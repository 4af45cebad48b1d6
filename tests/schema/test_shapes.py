"""The shape of every kind of annotation."""
# ruff: noqa: UP007, UP045  both ways to spell an optional are read

import collections.abc as cabc
import datetime as dt
import decimal
import enum
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Union

import pytest
import typer
import typing_extensions
from tests.schema.reading import Colour, Point, User
from tests.stable_ids import stable_id

from tooli import AgentContext, Context
from tooli.core.tool import (
    Choice,
    Injected,
    ListOf,
    Maybe,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    TyperOnly,
)
from tooli.schema.tool_reader import infer_shape


class Level(enum.IntEnum):
    LOW = 1


class Home(pathlib.PosixPath):
    pass


class Keys(typing.TypedDict):
    a: int


class NewKeys(typing_extensions.TypedDict):
    a: int


class Row(NamedTuple):
    a: int


class Plain:
    pass


UserId = NewType("UserId", int)
STR, INT = Scalar(str), Scalar(int)


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        *[(t, Scalar(t)) for t in (str, int, float, bool)],
        (pathlib.Path, PathShape(pathlib.Path)),
        (Home, PathShape(Home)),
        (Colour, Choice((Colour.RED, Colour.BLUE), Colour)),
        (Level, Choice((Level.LOW,), Level)),
        (Literal["a", "b"], Choice(("a", "b"))),
        (Literal[1, "b"], Choice((1, "b"))),
        (Literal[True], ParsedText(Literal[True])),
        *[(t, ParsedText(t)) for t in (dt.datetime, dt.date, dt.time, dt.timedelta)],
        *[(t, ParsedText(t)) for t in (uuid.UUID, decimal.Decimal, bytes, Plain, object)],
        (Any, ParsedText(Any)),
        (list[int], ListOf(INT)),
        (typing.List[int], ListOf(INT)),  # noqa: UP006
        (set[str], ListOf(STR, set)),
        (frozenset[str], ListOf(STR, frozenset)),
        (tuple[int, ...], ListOf(INT, tuple)),
        (cabc.Sequence[int], ListOf(INT)),
        (cabc.Iterable[int], ListOf(INT)),
        (cabc.Set[int], ListOf(INT, set)),
        (list, ListOf(STR)),
        (tuple, ListOf(STR, tuple)),
        (list[dt.date], ListOf(ParsedText(dt.date))),
        (list[User], ListOf(Structured(User))),
        (list[list[int]], ListOf(Structured(list[int]))),
        (list[Optional[int]], ListOf(Structured(Optional[int]))),
        (tuple[int, str], TupleOf((INT, STR))),
        (tuple[int, dt.date], TupleOf((INT, ParsedText(dt.date)))),
        (tuple[int, User], Structured(tuple[int, User])),
        (tuple[()], Structured(tuple[()])),
        (Optional[int], Maybe(INT)),
        (int | None, Maybe(INT)),
        (None | int, Maybe(INT)),
        (Optional[list[int]], Maybe(ListOf(INT))),
        (int | str, ParsedText(int | str)),
        (Union[int, str, None], ParsedText(Union[int, str, None])),
        (int | User, Structured(int | User)),
        (int | list[int], Structured(int | list[int])),
        (UserId, INT),
        (dict, Structured(dict)),
        (dict[str, int], Structured(dict[str, int])),
        (cabc.Mapping[str, int], Structured(cabc.Mapping[str, int])),
        *[(t, Structured(t)) for t in (Point, User, Keys, NewKeys, Row)],
        (Context, Injected("context")),
        (AgentContext, Injected("context")),
        (typer.Context, Injected("typer")),
        (Optional[Context], Injected("context")),
        (typer.FileText, TyperOnly(typer.FileText)),
        (list[typer.FileText], TyperOnly(typer.FileText)),
        (tuple[typer.FileText, int], TyperOnly(tuple[typer.FileText, int])),
        (Annotated[int, "x"], ParsedText(Annotated[int, "x"])),
        (Annotated[User, "x"], Structured(Annotated[User, "x"])),
    ],
    ids=stable_id,
)
def test_shape_is_inferred_from_the_annotation(annotation: Any, shape: Any) -> None:
    assert infer_shape(annotation) == shape


@pytest.mark.parametrize("bare", [typing.List, typing.Sequence])  # noqa: UP006
def test_list_without_an_item_type_has_text_items(bare: Any) -> None:
    assert infer_shape(bare) == ListOf(STR)
