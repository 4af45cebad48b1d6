"""The message about an invalid text is the same on every interface, and says what is right."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import Field

from tooli import Tooli
from tooli.testing import Case, assert_parity, invoke


class Color(Enum):
    RED = "red"
    BLUE = "blue"


UUID_TEXT = "a UUID (123e4567-e89b-12d3-a456-426614174000)"
DATETIME_TEXT = "a date and time (YYYY-MM-DDTHH:MM:SS)"
CASES: list[tuple[Any, Any, str]] = [
    (int, "x", "'v': 'x' is not a valid integer"),
    (float, "x", "'v': 'x' is not a valid number"),
    (bool, "maybe", "'v': 'maybe' is not true or false"),
    (Color, "ree", "'v': 'ree' is not one of 'red', 'blue'; did you mean 'red'?"),
    (Literal["a", "b"], "c", "'v': 'c' is not one of 'a', 'b'"),
    (datetime, "soon", f"'v': 'soon' is not {DATETIME_TEXT}"),
    (datetime, "2026-13-01", f"'v': '2026-13-01' is not {DATETIME_TEXT}"),
    (date, "2026-02-30", "'v': '2026-02-30' is not a date (YYYY-MM-DD)"),
    (time, "noon", "'v': 'noon' is not a time (HH:MM:SS)"),
    (timedelta, "soon", "'v': 'soon' is not a duration (PT1H30M)"),
    (UUID, "abc", f"'v': 'abc' is not {UUID_TEXT}"),
    (Decimal, "1,5", "'v': '1,5' is not a valid number"),
    (list[int], ["1", "x"], "'v.1': 'x' is not a valid integer"),
    (set[int], ["x"], "'v.0': 'x' is not a valid integer"),
    (list[UUID], ["abc"], f"'v.0': 'abc' is not {UUID_TEXT}"),
    (tuple[int, str], ["x", "y"], "'v.0': 'x' is not a valid integer"),
    (dict[str, int], {"a": "x"}, "'v.a': 'x' is not a valid integer"),
    (int | None, "x", "'v': 'x' is not a valid integer"),
    (int | date, "x", "'v': 'x' is not a valid integer or a date (YYYY-MM-DD)"),
    (Annotated[int, Field(gt=3)], 3, "'v': 3 is not more than 3"),
    (Annotated[str, Field(pattern="^a+$")], "b", "'v': the text does not match ^a+$"),
]


def make_app(annotation: Any) -> Tooli:
    app = Tooli("typed")

    def show(v: Any) -> str:
        """Show."""
        return str(v)

    show.__annotations__ = {"v": annotation, "return": str}
    app.command(auth=[])(show)
    return app


@pytest.mark.parametrize(("annotation", "value", "message"), CASES)
def test_message(annotation: Any, value: Any, message: str) -> None:
    found = assert_parity(make_app(annotation), Case("show", {"v": value}))
    assert found["error"]["message"] == message


def test_missing_values_of_a_tuple_are_one_problem() -> None:
    found = json.loads(invoke(make_app(tuple[int, str]), "1", "--json").stdout)
    assert found["error"]["message"] == "'v' takes 2 values"
    assert len(found["error"]["details"]["errors"]) == 1
