"""Which parameters a query can contain, and the values that its texts are."""

from __future__ import annotations

import enum
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
import typer

from tooli import Output, SecretInput, StdinOr, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.inputs.query import allows_get, can_be_in_query, parse_query_values


class Level(enum.Enum):
    LOW = 1
    OFF = False
    HIGH = "high"


def make_tool(annotation: Any, **options: Any) -> Any:
    app = Tooli("app")

    def fn(value: Any) -> int:
        return 1

    fn.__annotations__ = {"value": annotation, "return": int}
    app.command("fn", **{"annotations": ReadOnly, **options})(fn)
    return app.find("fn")


@pytest.mark.parametrize(
    ("annotation", "is_allowed"),
    [
        *[(kind, True) for kind in (str, int, float, bool, Path, UUID, Decimal, Level)],
        *[
            (kind, True)
            for kind in (list[int], set[Level], tuple[int, str], list[Path], int | None)
        ],
        (Literal["a", None], True),
        *[(kind, False) for kind in (bytes, dict[str, int], list[dict[str, int]], list[bytes])],
        *[(kind, False) for kind in (StdinOr[str], SecretInput[str], Output, tuple[int, bytes])],
        (Annotated[int, typer.Option(parser=int)], False),
    ],
)
def test_text_can_be_in_a_query(annotation: Any, is_allowed: bool) -> None:
    tool = make_tool(annotation)
    assert can_be_in_query(tool.params[0]) == is_allowed
    assert allows_get(tool) == is_allowed


def test_commands_that_may_change_something_have_no_get() -> None:
    assert not allows_get(make_tool(int, annotations=Destructive))
    assert not allows_get(make_tool(int, annotations=None))
    assert not allows_get(make_tool(int, requires_approval=True))
    assert not allows_get(make_tool(int, capabilities=["fs:write"], annotations=None))
    assert allows_get(make_tool(int, capabilities=["fs:read"], annotations=None))


@pytest.mark.parametrize(
    ("annotation", "texts", "expected"),
    [
        (int, ["7"], 7),
        (int, ["-7"], -7),
        (int, ["7.0"], "7.0"),
        (int, ["٧"], "٧"),
        (int, ["9" * 5000], "9" * 5000),
        (int, [""], ""),
        (float, ["1.50"], 1.5),
        (float, ["-2"], -2),
        (float, ["1.2.3"], "1.2.3"),
        (float, [".5"], ".5"),
        (float, ["nan"], "nan"),
        (bool, ["true"], True),
        (bool, ["FALSE"], False),
        (bool, ["yes"], "yes"),
        (str, ["7"], "7"),
        (Level, ["1"], 1),
        (Level, ["false"], False),
        (Level, ["high"], "high"),
        (Level, ["other"], "other"),
        (list[int], ["1", "x"], [1, "x"]),
        (tuple[int, str], ["1", "2"], [1, "2"]),
        (tuple[int, str], ["1"], ["1"]),
        (int | None, ["1"], 1),
        (Decimal, ["1.10"], "1.10"),
    ],
)
def test_values_of_a_query(annotation: Any, texts: list[str], expected: object) -> None:
    value = parse_query_values(make_tool(annotation).params[0], texts)
    assert value == expected
    assert type(value) is type(expected)
