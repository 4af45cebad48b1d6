"""Result options: parsing, effects, and the command for the next page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tooli import Next, Page, Tooli
from tooli.annotations import Destructive
from tooli.records.result_options import MAX_NUMBER, ResultOptions, read_result_options
from tooli.testing import invoke


def make_app() -> Tooli:
    app = Tooli("app", version="1")

    @app.command()
    def loose(kind: str = "list") -> Any:
        found: dict[str, Any] = {
            "list": [{"n": i} for i in range(5)],
            "set": {3, 1, 2},
            "tuple": (1, 2, 3),
            "object": {"n": 1, "m": 2},
            "text": "text",
            "none": None,
        }
        return found[kind]

    @app.command(annotations=Destructive)
    def drop() -> list[int]:
        return [1, 2, 3]

    @app.command()
    def onward() -> Next[list[int]]:
        return Next([1, 2, 3], "loose", why="Look.")

    @app.command()
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    return app


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"limit": "10"}, {"limit": 10}),
        ({"limit": 10, "max_bytes": 0}, {"limit": 10, "max_bytes": 0}),
        ({"fields": ["a", "b"]}, {"fields": "a,b"}),
        ({"select": "a"}, {"fields": "a"}),
        ({"limit": None, "cursor": None}, {}),
        ({"cursor": ""}, {"cursor": ""}),
    ],
)
def test_valid_options(values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read_result_options(values) == ResultOptions(**expected)


@pytest.mark.parametrize(
    "values",
    [
        *({"limit": value} for value in (-1, 1.5, True, "x", "", "-3", "1e3", "٣", MAX_NUMBER + 1)),
        *({"filter": value} for value in ("", " ", 3, ["a"])),
        *({"fields": value} for value in ("", [], {}, 3)),
        {"cursor": 3},
    ],
)
def test_invalid_options(values: dict[str, Any]) -> None:
    (problem,) = read_result_options(values).problems
    assert problem.code == "E1007"
    assert problem.field in values


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("list", {"fields": ["n"]}, [{"n": i} for i in range(5)]),
        ("set", {"limit": 2}, [1, 2]),
        ("tuple", {"filter": ". >= 2"}, [2, 3]),
        ("tuple", {"max_items": 1}, [1]),
        ("object", {"select": "m as other"}, {"other": 2}),
        ("none", {"filter": "n > 1", "fields": "n", "limit": 2, "max_bytes": 900}, None),
        ("text", {"limit": 2}, "text"),
    ],
)
def test_options_apply_to_any_result(kind: str, options: dict[str, Any], expected: Any) -> None:
    assert make_app().call("loose", kind=kind, **options).result == expected


def test_warning_for_non_list_result() -> None:
    result = make_app().call("loose", kind="object", filter="n > 1", limit=3)
    assert result.result == {"n": 1, "m": 2}
    assert result.meta["warnings"] == [
        "The result is not a list, so it was not filtered.",
        "The result is not a list, so it has no pages.",
    ]


def test_options_do_not_change_failures() -> None:
    result = make_app().call("failing", filter=". > 0", limit=3, max_bytes=900)
    assert result.to_dict()["error"]["details"] == {"items_before_failure": 1}


def test_next_page_is_the_first_next_step() -> None:
    steps = make_app().call("onward", limit=1).meta["next"]
    assert [step["why"] for step in steps] == ["The rest of the result.", "Look."]
    assert make_app().call("onward", limit=9).meta["next"] == [
        {"argv": ["app", "loose"], "why": "Look."}
    ]


# ------------------------------------------------------------------ the next page


def test_next_page_command_repeats_options() -> None:
    app = make_app()
    options: dict[str, Any] = {"yes": True, "limit": 1, "filter": ". > 0", "detailed": True}
    argv = app.call("drop", **options).meta["next"][0]["argv"]
    assert argv[:5] == ["app", "drop", "--limit", "1", "--filter"]
    assert "--yes" in argv
    assert argv[-2:] == ["--response-format", "detailed"]
    done = invoke(app, *argv[1:], mode="json")
    assert done.result == [2]


@pytest.mark.parametrize(
    "argv",
    [
        ["loose", "--limit", "2"],
        ["--limit=2", "loose"],
        ["loose", "--limit", "2", "--"],
        ["--limit", "2", "loose", "--kind=list"],
        ["loose", "--limit", "2", "--cursor="],
    ],
)
def test_next_steps_reach_the_last_page(argv: list[str]) -> None:
    app = make_app()
    if "--cursor=" in argv:
        argv = [*argv[:-1], f"--cursor={app.call('loose', limit=2).meta['page']['next_cursor']}"]
    found: list[Any] = []
    while True:
        done = invoke(app, *argv, mode="json")
        found += done.result
        steps = done.envelope["meta"].get("next")
        if not steps:
            break
        assert sum(text.startswith("--cursor") for text in steps[0]["argv"]) == 1
        argv = steps[0]["argv"][1:]
    assert [row["n"] for row in found] in ([0, 1, 2, 3, 4], [2, 3, 4])


def test_repr_of_a_page() -> None:
    assert repr(Page([1], next_cursor="x", total=3)) == "Page([1], next_cursor='x', total=3)"
    assert Page(iter([1, 2]), next_cursor=7).next_cursor == "7"  # type: ignore[arg-type]
