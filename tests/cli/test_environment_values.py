"""Values of parameters from environment variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import pytest

from tooli import Option, Tooli
from tooli.testing import invoke


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def show(
        name: Annotated[str, Option(envvar=["SHOP_NAME", "SHOP_TITLE"])] = "none",
        tags: Annotated[list[str] | None, Option(envvar="SHOP_TAGS")] = None,
        roots: Annotated[list[Path] | None, Option(envvar="SHOP_ROOTS")] = None,
        pair: Annotated[tuple[int, int], Option(envvar="SHOP_PAIR")] = (0, 0),
    ) -> list[object]:
        return [name, tags, roots, pair]

    return app


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["none", None, None, [0, 0]]),
        ({"SHOP_TITLE": "x"}, ["x", None, None, [0, 0]]),
        ({"SHOP_NAME": "", "SHOP_TITLE": "x"}, ["x", None, None, [0, 0]]),
        ({"SHOP_NAME": "y z", "SHOP_TITLE": "x"}, ["y z", None, None, [0, 0]]),
        ({"SHOP_TAGS": "a b"}, ["none", ["a", "b"], None, [0, 0]]),
        ({"SHOP_ROOTS": f"a b{os.pathsep}c"}, ["none", None, ["a b", "c"], [0, 0]]),
        ({"SHOP_PAIR": "1 2"}, ["none", None, None, [1, 2]]),
        ({"SHOP_TAGS": "  "}, ["none", None, None, [0, 0]]),
    ],
)
def test_values_of_variables(
    variables: dict[str, str], expected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert invoke(make_app(), "show", mode="json").result == expected


def test_value_on_the_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_NAME", "y")
    assert invoke(make_app(), "show", "--name", "x", mode="json").result[0] == "x"
