"""Hints for Python that the sandbox does not have."""

from __future__ import annotations

import pytest

from tooli.orchestrate.script_hints import find_unsupported, hint_for


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("x = next(i for i in y)", [(1, 5)]),
        ("\nx = next((i for i in y if i), None)", [(2, 5)]),
        ("next(((i for i in y)))", [(1, 1)]),
        ("next(iter([i for i in y]))", []),
        ("next([i for i in y])", []),
        ("next(sorted(i for i in y))", []),
        ("rows.next(i for i in y)", []),
        ("next(rows)", []),
        ("next(", []),
        ("'next(i for i in y)'", []),
        ('"""\nnext(i for i in y)\n"""', []),
        ("# next(i for i in y)", []),
        ("'a\\'' + next(i for i in y)", [(1, 9)]),
        ("eval('1')\nexec('2')", [(1, 1), (2, 1)]),
        ("row.eval('1')", []),
        ("await gather(a(), return_exceptions = True)", [(1, 19)]),
    ],
)
def test_unsupported_source(source: str, places: list[tuple[int, int]]) -> None:
    assert [(found.line, found.column) for found in find_unsupported(source)] == places


def test_time_grows_linearly() -> None:
    """A quadratic search would not end."""
    find_unsupported("'''" * 30_000)
    find_unsupported("next(" * 200)
    find_unsupported('"' + "\\" * 100_000)


def test_hints() -> None:
    assert hint_for("something else") is None
    assert hint_for("Name `pric` used when not defined", ["price"]) == "Did you mean 'price'?"
    assert hint_for("Name `zzzzz` used when not defined", ["price"]) is None
    unknown = "Argument `nme` does not match any known parameter of function `price`"
    assert hint_for(unknown, ["name"]) == "Did you mean 'name'?"
