"""The styles of parameters, as the tables of OpenAPI and Swagger show them."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.errors import InputError
from tooli.providers.openapi.parameter_styles import (
    check_header,
    cookie_parts,
    header_text,
    path_text,
    query_parts,
    to_text,
)

LIST = ["blue", "black"]
MAP = {"R": 100, "G": 200}


@pytest.mark.parametrize(
    ("style", "explode", "single", "items", "pairs"),
    [
        ("simple", False, "blue", "blue,black", "R,100,G,200"),
        ("simple", True, "blue", "blue,black", "R=100,G=200"),
        ("label", False, ".blue", ".blue,black", ".R,100,G,200"),
        ("label", True, ".blue", ".blue.black", ".R=100.G=200"),
        ("matrix", False, ";color=blue", ";color=blue,black", ";color=R,100,G,200"),
        ("matrix", True, ";color=blue", ";color=blue;color=black", ";R=100;G=200"),
    ],
)
def test_path_styles(style: str, explode: bool, single: str, items: str, pairs: str) -> None:
    found = [path_text("color", value, style, explode) for value in ("blue", LIST, MAP)]
    assert found == [single, items, pairs]


@pytest.mark.parametrize(
    ("style", "explode", "items", "pairs"),
    [
        ("form", True, ["color=blue", "color=black"], ["R=100", "G=200"]),
        ("form", False, ["color=blue,black"], ["color=R,100,G,200"]),
        ("spaceDelimited", False, ["color=blue%20black"], ["color=R%20100%20G%20200"]),
        ("pipeDelimited", False, ["color=blue%7Cblack"], ["color=R%7C100%7CG%7C200"]),
        ("tabDelimited", False, ["color=blue%09black"], ["color=R%09100%09G%09200"]),
        (
            "deepObject",
            True,
            ["color%5B%5D=blue", "color%5B%5D=black"],
            ["color%5BR%5D=100", "color%5BG%5D=200"],
        ),
    ],
)
def test_query_styles(style: str, explode: bool, items: list[str], pairs: list[str]) -> None:
    assert query_parts("color", "blue", style, explode) == ["color=blue"]
    assert query_parts("color", LIST, style, explode) == items
    assert query_parts("color", MAP, style, explode) == pairs


def test_nested_values() -> None:
    assert query_parts("f", {"a": {"b": [1, {"c": True}]}}, "deepObject") == [
        "f%5Ba%5D%5Bb%5D%5B%5D=1",
        "f%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=true",
    ]
    assert query_parts("f", {"a": [1, 2], "b": {"c": 1}}) == ["a=1", "a=2", "b=%7B%22c%22%3A1%7D"]
    assert query_parts("f", [{"a": 1}]) == ["f=%7B%22a%22%3A1%7D"]
    assert query_parts("f", []) == []
    assert query_parts("f", {}, explode=False) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, ""),
        (3, "3"),
        (3.0, "3"),
        (1.5, "1.5"),
        ("a", "a"),
        ([1, "é"], '[1,"é"]'),
    ],
)
def test_values_as_text(value: Any, text: str) -> None:
    assert to_text(value) == text


def test_values_are_encoded() -> None:
    assert path_text("p", "../a?b#c/ü") == "..%2Fa%3Fb%23c%2F%C3%BC"
    assert query_parts("n&m", "a&b=c#d e+f") == ["n%26m=a%26b%3Dc%23d%20e%2Bf"]
    assert query_parts("n", "a/b?c:d,e&f=g#h", allow_reserved=True) == ["n=a/b?c:d,e%26f%3Dg%23h"]
    assert query_parts("n", "\ud800") == ["n=%3F"]


def test_headers_and_cookies() -> None:
    assert header_text(LIST) == "blue,black"
    assert header_text(MAP) == "R,100,G,200"
    assert header_text(MAP, explode=True) == "R=100,G=200"
    assert header_text(7) == "7"
    assert cookie_parts("c", "a; b=c") == ["c=a%3B%20b%3Dc"]
    assert check_header("X", " a ", "x") == "a"
    with pytest.raises(InputError) as caught:
        check_header("X-Name", "a\r\nHost: b", "name")
    assert (caught.value.code, caught.value.field) == ("E1030", "name")
