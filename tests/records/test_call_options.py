"""Values of framework options on every interface, and result options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tooli import Next, Page, Tooli
from tooli.annotations import Destructive
from tooli.core.call import Options
from tooli.core.timeout_values import MAX_TIMEOUT_SECONDS
from tooli.records.call_options import (
    MAX_NUMBER,
    ResultOptions,
    build_options,
    read_result_options,
    read_run_option,
    read_run_options,
)
from tooli.testing import invoke


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("0.25", 0.25),
        (3, 3.0),
        (1.5, 1.5),
        (".5", 0.5),
        (MAX_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
    ],
)
def test_valid_timeouts_are_read_as_seconds(value, seconds) -> None:
    assert read_run_option("timeout", value) == (seconds, None)


@pytest.mark.parametrize(
    "value",
    ["", "0", 0, -1, "-1", "1s", "1e3", "1.2.3", "٣", "nan", float("inf"), True, None, [], "9" * 16]
    + [MAX_TIMEOUT_SECONDS + 1, 10**400],
)
def test_invalid_timeouts_are_rejected(value) -> None:
    found, expected = read_run_option("timeout", value)
    assert (found, expected) == (None, "a number of seconds above 0")


@pytest.mark.parametrize("name", ["idempotency_key", "apply"])
def test_tokens_must_be_printable_ascii_without_spaces(name: str) -> None:
    assert read_run_option(name, "a-b_c.1:2") == ("a-b_c.1:2", None)
    for value in ("", "two words", "käse", "a\tb", 7, None):
        assert read_run_option(name, value)[0] is None


def test_length_of_an_idempotency_key_is_limited() -> None:
    assert read_run_option("idempotency_key", "k" * 255)[1] is None
    assert (
        read_run_option("idempotency_key", "k" * 256)[1]
        == "at most 255 printable ASCII characters without spaces"
    )
    assert read_run_option("apply", "k" * 256)[1] is None


def test_invalid_run_options_are_reported_as_problems() -> None:
    found, problems = read_run_options({"timeout": "2", "apply": None, "other": 1})
    assert (found, problems) == ({"timeout": 2.0}, ())
    found, problems = read_run_options({"timeout": "soon", "idempotency_key": "a b"})
    assert [problem.field for problem in problems] == ["timeout", "idempotency_key"]
    assert {problem.code for problem in problems} == {"E1007"}


def test_options_are_built_from_values_of_all_kinds() -> None:
    given = {"yes": True, "verbose": 2, "timeout": "5", "apply": None, "limit": "3"}
    options, problems = build_options({**given, "select": ["a"]})
    assert problems == ()
    assert options.given == {**given, "select": ["a"]}
    assert options.replace(given=None) == Options(
        yes=True, verbose=2, timeout=5.0, result_options=ResultOptions(limit=3, fields="a")
    )


@pytest.mark.parametrize(
    ("value", "detailed", "concise"), [("detailed", True, False), ("concise", False, True)]
)
def test_response_format_sets_two_options(value: str, detailed: bool, concise: bool) -> None:
    options, _ = build_options({"response_format": value})
    assert (options.detailed, options.concise) == (detailed, concise)


def test_invalid_value_is_a_problem_and_is_ignored() -> None:
    options, (problem,) = build_options({"timeout": "soon", "dry_run": True})
    assert options.replace(given=None) == Options(dry_run=True)
    assert (problem.code, problem.field) == ("E1007", "timeout")
    options, problems = build_options({"limit": "many"})
    assert problems == ()
    assert options.result_options is not None
    assert [problem.field for problem in options.result_options.problems] == ["limit"]


def test_no_values_give_the_default_options() -> None:
    assert build_options({}) == (Options(), ())


# ------------------------------------------------------------------ result options


def make_app() -> Tooli:
    app = Tooli("app", version="1")

    @app.command()
    def get(kind: str = "list") -> Any:
        results: dict[str, Any] = {
            "list": [{"n": i} for i in range(5)],
            "set": {3, 1, 2},
            "tuple": (1, 2, 3),
            "object": {"n": 1, "m": 2},
            "text": "text",
            "none": None,
        }
        return results[kind]

    @app.command(annotations=Destructive)
    def drop() -> list[int]:
        return [1, 2, 3]

    @app.command()
    def next_steps() -> Next[list[int]]:
        return Next([1, 2, 3], "get", why="Look.")

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
def test_valid_result_options_are_read(values: dict[str, Any], expected: dict[str, Any]) -> None:
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
def test_invalid_result_options_are_reported_as_problems(values: dict[str, Any]) -> None:
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
    assert make_app().call("get", kind=kind, **options).result == expected


def test_filter_and_limit_of_a_non_list_result_warn() -> None:
    result = make_app().call("get", kind="object", filter="n > 1", limit=3)
    assert result.result == {"n": 1, "m": 2}
    assert result.meta["warnings"] == [
        "The result is not a list, so it was not filtered.",
        "The result is not a list, so it has no pages.",
    ]


def test_options_do_not_change_failures() -> None:
    result = make_app().call("failing", filter=". > 0", limit=3, max_bytes=900)
    assert result.to_dict()["error"]["details"] == {"items_before_failure": 1}


def test_next_page_is_the_first_next_step() -> None:
    steps = make_app().call("next-steps", limit=1).meta["next"]
    assert [step["why"] for step in steps] == ["The rest of the result.", "Look."]
    assert make_app().call("next-steps", limit=9).meta["next"] == [
        {"command": "get", "arguments": {}, "why": "Look."}
    ]


# ------------------------------------------------------------------ the next page


def test_next_page_command_repeats_options() -> None:
    app = make_app()
    options: dict[str, Any] = {"yes": True, "limit": 1, "filter": ". > 0", "detailed": True}
    arguments = app.call("drop", **options).meta["next"][0]["arguments"]
    assert arguments == {**options, "cursor": arguments["cursor"]}
    assert app.call("drop", **arguments).result == [2]
    words = ["drop", "--yes", "--limit", "1", "--filter", ". > 0", "--response-format", "detailed"]
    argv = invoke(app, *words, mode="json").envelope["meta"]["next"][0]["argv"]
    assert argv[1:-1] == [*words, "--cursor"]
    assert invoke(app, *argv[1:], mode="json").result == [2]


@pytest.mark.parametrize(
    "argv",
    [
        ["get", "--limit", "2"],
        ["--limit=2", "get"],
        ["get", "--limit", "2", "--"],
        ["--limit", "2", "get", "--kind=list"],
        ["get", "--limit", "2", "--cursor="],
    ],
)
def test_next_steps_reach_the_last_page(argv: list[str]) -> None:
    app = make_app()
    if "--cursor=" in argv:
        argv = [*argv[:-1], f"--cursor={app.call('get', limit=2).meta['page']['next_cursor']}"]
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
