"""Values that leave the sandbox."""

from __future__ import annotations

from decimal import Decimal
from pathlib import PurePosixPath

import pytest

from tooli.orchestrate.script_values import MAX_DEPTH, UnreadableValueError, read_value


class MontyClassProxy:
    name = "Point"


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        ("<x>", "<x>"),
        ({"a": (1, {2})}, {"a": [1, [2]]}),
        ({1: 2, None: 3, 1.5: 4}, {"1": 2, "null": 3, "1.5": 4}),
        (Decimal("1.50"), "1.50"),
        (b"x", "x"),
        (PurePosixPath("/a"), "/a"),
        (nested(MAX_DEPTH), nested(MAX_DEPTH)),
    ],
)
def test_json_values(value: object, expected: object) -> None:
    assert read_value(value, "the result") == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (MontyClassProxy(), "x is an object of the class 'Point', not a JSON value"),
        ({"a": [1, len]}, "x['a'][1] is a value of the type 'builtin_function_or_method'"),
        (int, "x is the class 'int'"),
        (ValueError(), "x is an exception, ValueError"),
        ("<function 'f' at 0xc>", "x is a function"),
        ("<function '<lambda>' at 0xc>", "x is a function"),
        ("<coroutine external_future(0)>", "x is a call that is not awaited"),
        (nested(MAX_DEPTH + 1), "x has more than 100 levels"),
        ({(1, 2): 3}, "x has the key a list with 2 items, which is not a text"),
        pytest.param(10**5000, "x is a number with too many digits", id="many digits"),
    ],
)
def test_other_values_are_named(value: object, message: str) -> None:
    with pytest.raises(UnreadableValueError) as error:
        read_value(value, "x")
    assert str(error.value).startswith(message)
