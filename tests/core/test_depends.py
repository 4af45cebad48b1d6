"""Depends and how it is found in a parameter."""

from __future__ import annotations

from typing import Annotated

import pytest

from tooli.core.depends import Depends, find_depends

FIRST, SECOND = Depends(lambda: 1), Depends(use_cache=False)


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (int, FIRST, FIRST),
        (Annotated[int, FIRST], 3, FIRST),
        (Annotated[int, FIRST, "x", SECOND], 3, SECOND),
        (Annotated[int, "x"], 3, None),
        (int, 3, None),
    ],
)
def test_depends_is_found(annotation: object, default: object, expected: object) -> None:
    assert find_depends(annotation, default) is expected


def test_repr_names_the_function() -> None:
    assert repr(Depends(find_depends)) == "Depends(find_depends)"
    assert repr(SECOND) == "Depends(None)"
