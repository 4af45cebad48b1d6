"""Pages, cursors and the size limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rs_bpe import openai
from tests.stages.stage_calls import make_call, pass_through

from tooli import Context, DefinitionError, Page, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.core.call import Call, Failed, Ok
from tooli.errors import InternalError
from tooli.records.call_options import read_result_options
from tooli.stages.pages import limit_size, paginate, unwrap_page
from tooli.stages.record_selection import open_record_flow
from tooli.storage import page_window
from tooli.testing import invoke

TOKENIZER = openai.o200k_base()


def make_app(records: list[Any]) -> Tooli:
    """Return an app whose commands return the records as a list, a stream and a text."""
    app = Tooli("app", version="1")

    @app.command()
    def listed(other: str = "") -> list[Any]:
        return list(records)

    @app.command()
    def streamed(other: str = "") -> Iterator[Any]:
        yield from records

    @app.command()
    def text() -> str:
        return "".join(records)

    return app


def page(app: Tooli, tool: str, **options: Any) -> tuple[list[Any], str | None, list[str]]:
    result = app.call(tool, **options)
    assert result.ok, result.error
    meta = result.meta
    return result.result, meta["page"].get("next_cursor"), meta.get("warnings", [])


both = pytest.mark.parametrize("tool", ["listed", "streamed"])


@both
@settings(max_examples=60, deadline=None)
@given(
    before=st.integers(1, 30),
    after=st.integers(0, 10),
    added=st.lists(st.integers(1000, 2000), unique=True, max_size=8),
    gone=st.sets(st.integers(0, 29), max_size=8),
)
def test_page_continues_after_records_were_added_or_removed(
    tool: str, before: int, after: int, added: list[int], gone: set[int]
) -> None:
    """The cursor finds its position if one of the last three records is still there."""
    records: list[Any] = list(range(before + after))
    app = make_app(records)
    first, cursor, _ = page(app, tool, limit=before)
    assert first == list(range(before))
    if cursor is None:
        return
    last = before - 1
    records[:] = [*added, *[n for n in records if n not in gone or n == last or n >= before]]
    rest, _, warnings = page(app, tool, limit=100, cursor=cursor)
    assert rest == list(range(before, before + after))
    assert not warnings


@both
def test_removed_last_record_loses_no_records(tool: str) -> None:
    records = list(range(10))
    app = make_app(records)
    _, cursor, _ = page(app, tool, limit=5)
    records.remove(4)
    rest, _, warnings = page(app, tool, limit=100, cursor=cursor)
    assert rest == [5, 6, 7, 8, 9]
    assert "may be repeated" in warnings[0]


@both
def test_position_is_used_if_no_record_is_found(tool: str) -> None:
    records = list(range(10))
    app = make_app(records)
    _, cursor, _ = page(app, tool, limit=5)
    records[:] = range(100, 110)
    rest, _, warnings = page(app, tool, limit=3, cursor=cursor)
    assert rest == [105, 106, 107]
    assert "by position" in warnings[0]


@both
def test_cursor_beyond_a_shortened_result_gives_an_empty_page(tool: str) -> None:
    records = list(range(10))
    app = make_app(records)
    _, cursor, _ = page(app, tool, limit=5)
    records[:] = [7]
    rest, next_cursor, _ = page(app, tool, limit=3, cursor=cursor)
    assert rest == []
    assert next_cursor is None


def test_stream_is_searched_only_near_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_window, "SEARCH_DISTANCE", 5)
    records: list[Any] = list(range(40))
    app = make_app(records)
    _, cursor, _ = page(app, "streamed", limit=20)
    records[:] = [*range(100, 104), *range(40)]
    assert page(app, "streamed", limit=2, cursor=cursor)[0] == [20, 21]
    records[:] = [*range(100, 110), *range(40)]
    rest, _, warnings = page(app, "streamed", limit=2, cursor=cursor)
    assert rest == [10, 11]
    assert "by position" in warnings[0]
    assert page(app, "listed", limit=2)[0] == [100, 101]


@both
def test_equal_records_are_not_confused(tool: str) -> None:
    app = make_app([0] * 7 + [1] * 3)
    found: list[int] = []
    cursor = None
    for _ in range(4):
        records_of_page, cursor, warnings = page(app, tool, limit=3, cursor=cursor)
        found += records_of_page
        assert not warnings
    assert found == [0] * 7 + [1] * 3
    assert cursor is None


def test_stream_is_not_read_beyond_the_page() -> None:
    """After a full page, the stream is not asked for another record: it might block."""
    app = make_app([1, 2, 3])
    records_of_page, cursor, _ = page(app, "streamed", limit=3)
    assert records_of_page == [1, 2, 3]
    assert page(app, "streamed", limit=3, cursor=cursor)[:2] == ([], None)
    assert page(app, "listed", limit=3)[:2] == ([1, 2, 3], None)


# ------------------------------------------------------------------ validity of cursors


@both
def test_a_cursor_belongs_to_its_call(tool: str) -> None:
    app = make_app(list(range(10)))
    _, cursor, _ = page(app, tool, limit=5)
    other = "streamed" if tool == "listed" else "listed"
    for result in (
        app.call(other, limit=5, cursor=cursor),
        app.call(tool, limit=5, cursor=cursor, other="x"),
        app.call(tool, limit=5, cursor=cursor, filter=". > 2"),
    ):
        assert result.error is not None
        assert result.error.code == "E1042"
        assert result.error.field == "cursor"
    assert app.call(tool, limit=2, cursor=cursor, fields="x").ok, "the selected fields may change"


def test_changed_cursor_is_rejected_before_the_function_runs() -> None:
    ran: list[int] = []
    app = Tooli("app")

    @app.command()
    def numbers() -> list[int]:
        ran.append(1)
        return list(range(10))

    cursor = app.call("numbers", limit=3).meta["page"]["next_cursor"]
    ran.clear()
    for i in range(len(cursor)):
        changed = cursor[:i] + ("B" if cursor[i] != "B" else "C") + cursor[i + 1 :]
        result = app.call("numbers", limit=3, cursor=changed)
        assert result.error is not None
        assert result.error.code == "E1042"
        assert result.to_dict()["error"]["category"] == "input"
    assert not ran


def test_cursor_can_be_used_again() -> None:
    app = make_app(list(range(10)))
    _, cursor, _ = page(app, "listed", limit=4)
    assert page(app, "listed", limit=4, cursor=cursor) == page(
        app, "listed", limit=4, cursor=cursor
    )


# ------------------------------------------------------------------ page sizes and Page


def test_paginated_keyword_sets_the_page_size() -> None:
    app = Tooli("app")

    @app.command(paginated=True)
    def many() -> list[int]:
        return list(range(250))

    @app.command(paginated=7)
    def few() -> Iterator[int]:
        yield from range(250)

    assert len(app.call("many").result) == 100
    assert app.call("few").result == list(range(7))
    assert list(app.stream("few")) == list(range(7))
    assert len(app.call("few", limit=0).result) == 250
    assert "page" not in app.call("few", limit=0).meta


@pytest.mark.parametrize("keywords", [{"paginated": -1}, {"paginated": "x"}, {"max_tokens": 0}])
def test_invalid_limits_are_definition_errors(keywords: Any) -> None:
    with pytest.raises(DefinitionError, match=next(iter(keywords))):
        Tooli("app").command(**keywords)


def test_function_that_returns_a_page_decides_how_long_it_is() -> None:
    app = Tooli("app")

    @app.command()
    def source(ctx: Context) -> Page[int]:
        first = int(ctx.page.cursor or 0)
        return Page(range(first, first + 2), next_cursor=str(first + 2) if first < 4 else None)

    found: list[Any] = []
    cursor: str | None = None
    while not found or cursor is not None:
        result = app.options(cursor=cursor).call("source") if cursor else app.call("source")
        found.append(result.result)
        cursor = result.meta.get("page", {}).get("next_cursor")
    assert found == [[0, 1], [2, 3], [4, 5]]


def test_function_that_returns_a_page_gets_its_own_cursor() -> None:
    requested_pages: list[Any] = []
    app = Tooli("app")

    @app.command()
    def source(ctx: Context) -> Page[int]:
        requested_pages.append((ctx.page.limit, ctx.page.cursor))
        first = int(ctx.page.cursor or 0)
        return Page(range(first, first + 3), next_cursor=str(first + 3), total=99)

    result = app.call("source", limit=2)
    assert result.result == [0, 1]
    assert result.meta["page"]["total"] == 99
    second = app.call("source", limit=2, cursor=result.meta["page"]["next_cursor"])
    assert second.result == [2]
    third = app.call("source", limit=5, cursor=second.meta["page"]["next_cursor"])
    assert third.result == [3, 4, 5]
    assert requested_pages == [(2, None), (2, None), (5, "3")]
    whole = app.call("source")
    assert whole.result == [0, 1, 2]
    assert app.call("source", cursor=whole.meta["page"]["next_cursor"]).result == [3, 4, 5]
    assert app.find("source").limits.paginated  # type: ignore[union-attr]
    schema = app.call("source", detailed=True).meta["output_schema"]
    assert schema == {"type": "array", "items": {"type": "integer"}}


def test_the_cursor_of_a_page_without_a_limit_continues_after_it() -> None:
    app = Tooli("app")

    @app.command()
    def source(ctx: Context) -> Page[int]:
        first = int(ctx.page.cursor or 0)
        return Page(range(first, first + 3), next_cursor=str(first + 3) if first < 6 else None)

    result = app.call("source")
    pages = [result.result]
    while "next_cursor" in result.meta.get("page", {}):
        result = app.call("source", cursor=result.meta["page"]["next_cursor"])
        pages.append(result.result)
    assert pages == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_function_knows_how_its_page_is_used() -> None:
    app = Tooli("app")
    requests: list[tuple[int, bool, bool]] = []

    @app.command()
    def source(ctx: Context) -> Page[int]:
        requests.append((ctx.page.position, ctx.page.is_filtered, ctx.page.is_streamed))
        return Page([1, 2, 3])

    assert app.call("source", filter=". >= 2").result == [2, 3]
    assert list(app.stream("source")) == [1, 2, 3]
    part = app.call("source", limit=1)
    rest = app.call("source", limit=5, cursor=part.meta["page"]["next_cursor"])
    assert rest.result == [2, 3]
    assert requests == [(0, True, False), (0, False, True), (0, False, False), (1, False, False)]


def test_class_of_the_author_named_page_is_an_ordinary_result() -> None:
    """The author's own class is named Page."""
    import dataclasses

    namespace: dict[str, Any] = {}

    @dataclasses.dataclass
    class Other:
        n: int

    namespace["Page"] = Other
    exec("def one() -> Page:\n    return Page(3)", namespace)
    app = Tooli("app")
    app.command()(namespace["one"])
    assert app.call("one").to_dict()["result"] == {"n": 3}
    assert not app.find("one").limits.paginated  # type: ignore[union-attr]


def test_text_continues_where_it_was_cut() -> None:
    records = [f"line {i}\n" for i in range(60)]
    app = make_app(records)
    found, cursor, steps = "", None, 0
    while True:
        result = app.call("text", max_bytes=450, cursor=cursor)
        found += result.unwrap()
        assert found.endswith("\n"), "cut at the end of a line"
        steps += 1
        cursor = result.meta.get("page", {}).get("next_cursor")
        if cursor is None:
            break
    assert found == "".join(records)
    assert steps > 2


# ------------------------------------------------------------------ size limit


SMALLEST = 700
"""Bytes that are enough for an envelope with `meta.truncated` and `meta.next`."""

LEAVES = st.one_of(
    st.integers(-(10**20), 10**20),
    st.booleans(),
    st.none(),
    st.text(max_size=60),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5)
    ),
    max_leaves=25,
)
RESULTS = st.one_of(st.lists(VALUES, max_size=30), VALUES, st.text(max_size=3000))


def make_sized(result: Any) -> Tooli:
    app = Tooli("app", version="1", security_policy="off")  # the result is not redacted

    @app.command()
    def tool(word: str = "w") -> Any:
        return result

    @app.command()
    def stream() -> Any:
        yield from result

    return app


def follow(app: Tooli, *argv: str) -> list[dict[str, Any]]:
    """Return all answers. Each call after the first is the first next step of the answer before."""
    answers: list[dict[str, Any]] = []
    line = ["app", *argv]
    while True:
        done = invoke(app, *line[1:])
        tokens = TOKENIZER.count(done.stdout)
        sizes = {"size": len(done.stdout.encode()), "tokens": tokens}
        answers.append({**sizes, "line": line, **done.envelope})
        steps = done.envelope["meta"].get("next")
        if not steps:
            return answers
        line = steps[0]["argv"]
        assert len(answers) < 500


def limit_of(answer: dict[str, Any], unit: str = "bytes") -> int:
    line = answer["line"]
    return int(line[line.index(f"--max-{unit}") + 1])


def joined(answers: list[dict[str, Any]], result: Any) -> Any:
    """Return the combined result of the answers."""
    parts = [answer["result"] for answer in answers if "result" in answer]
    if isinstance(result, list):
        return [record for part in parts for record in part]
    if isinstance(result, str):
        return "".join(parts)
    return parts[-1] if parts else None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(RESULTS, st.integers(SMALLEST, 3000), st.sampled_from(["bytes", "tokens"]))
def test_pages_within_any_size_limit_give_the_whole_result(
    result: Any, limit: int, unit: str
) -> None:
    app = make_sized(result)
    answers = follow(app, "tool", f"--max-{unit}", str(limit), "--json")
    for answer in answers:
        assert answer["ok"]
        size = answer["size" if unit == "bytes" else "tokens"]
        assert size <= limit_of(answer, unit), answer["line"]
    assert joined(answers, result) == json.loads(json.dumps(result))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(VALUES, max_size=20),
    st.integers(SMALLEST, 2000),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_pages_respect_all_limits_together(result: Any, size: int, limit: int, items: int) -> None:
    app = make_sized(result)
    words = ["--limit", str(limit), "--max-items", str(items), "--max-bytes", str(size)]
    answers = follow(app, "tool", *words, "--json")
    assert all(answer["size"] <= limit_of(answer) for answer in answers)
    assert all(len(answer["result"]) <= min(limit, items) for answer in answers)
    assert joined(answers, result) == json.loads(json.dumps(result))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(VALUES.filter(lambda v: v is not None), max_size=30), st.integers(60, 2000))
def test_lines_within_any_size_limit_give_the_whole_result(result: list[Any], limit: int) -> None:
    """Each line is a record, all lines fit the limit, and stderr has the command for the rest."""
    app = make_sized(result)
    for tool in ("tool", "stream"):
        found: list[Any] = []
        line = ["app", tool, "--max-bytes", str(limit), "--jsonl"]
        for _ in range(200):
            done = invoke(app, *line[1:])
            assert done.ok
            assert len(done.stdout.encode()) <= limit_of({"line": line})
            found += done.lines
            if "For the rest: " not in done.stderr:
                break
            import shlex

            line = shlex.split(done.stderr.partition("For the rest: ")[2])
        assert found == json.loads(json.dumps(result))


# ------------------------------------------------------------------ messages

ROWS = [{"n": i, "text": "x" * 20} for i in range(100)]


def test_meta_describes_a_truncated_list() -> None:
    done = invoke(make_sized(ROWS), "tool", "--max-bytes", "1500", "--json")
    meta = done.envelope["meta"]
    shown = len(done.result)
    assert 10 < shown < 50
    assert done.result == ROWS[:shown]
    truncated = meta["truncated"]
    assert (truncated["shown"], truncated["total"]) == (shown, 100)
    assert truncated["by"] == "max-bytes"
    with open(truncated["full"]) as file:
        text = file.read()
    assert json.loads(text) == ROWS
    assert text.count("\n") == 102, "one record per line"
    assert meta["next"][0]["argv"][:5] == ["app", "tool", "--max-bytes", "1500", "--json"]
    assert list(meta)[-3:] == ["page", "truncated", "next"]


def test_max_tokens_limits_the_output() -> None:
    done = invoke(make_sized(ROWS), "tool", "--max-tokens", "400", "--json")
    assert TOKENIZER.count(done.stdout) <= 400
    assert done.result
    assert done.envelope["meta"]["truncated"]["by"] == "max-tokens"


def test_single_record_that_is_too_large_has_a_preview() -> None:
    rows = [{"n": 1}, {"n": 2, "text": "y" * 5000}, {"n": 3}]
    app = make_sized(rows)
    first = invoke(app, "tool", "--max-bytes", "800", "--json")
    assert first.result == rows[:1]
    second = invoke(app, *first.envelope["meta"]["next"][0]["argv"][1:])
    assert second.result == []
    truncated = second.envelope["meta"]["truncated"]
    assert truncated["shown"] == 0
    assert truncated["preview"]["n"] == 2
    assert truncated["preview"]["text"].endswith("…")
    assert len(second.stdout) <= 800
    steps = second.envelope["meta"]["next"]
    assert steps[0]["why"] == f"The first record needs --max-bytes {truncated['needs']}."
    whole, skipped = [step["argv"] for step in steps]
    assert invoke(app, *whole[1:]).result == rows[1:]
    assert invoke(app, *skipped[1:]).result == rows[2:]


def test_shortened_object_keeps_its_fields() -> None:
    value = {"numbers": list(range(900)), "text": "z" * 900, "deep": [{"a": "b" * 300}], "n": 7}
    done = invoke(make_sized(value), "tool", "--max-bytes", "900", "--json")
    shown = done.result
    assert len(done.stdout) <= 900
    assert shown["numbers"] == list(range(len(shown["numbers"])))
    assert shown["text"].startswith("z")
    assert shown["n"] == 7
    assert done.envelope["meta"]["truncated"]["unit"] == "bytes"
    whole = done.envelope["meta"]["next"][0]["argv"]
    assert invoke(make_sized(value), *whole[1:]).result == value


@pytest.mark.parametrize("result", [ROWS, {"a": "x" * 500}, "x" * 500, []])
@pytest.mark.parametrize("unit", ["bytes", "tokens"])
@pytest.mark.parametrize("limit", [1, 20])
def test_limit_below_an_envelope_without_a_result_is_refused(
    result: Any, unit: str, limit: int
) -> None:
    """The command does not run: its answer could not be sent."""
    app = Tooli("app")
    ran: list[bool] = []

    @app.command(annotations=Destructive)
    def tool() -> Any:
        ran.append(True)
        return result

    done = invoke(app, "tool", "--yes", f"--max-{unit}", str(limit), "--json")
    assert done.error is not None
    assert (done.error["code"], done.error["field"], ran) == ("E1007", f"max_{unit}", [])
    needed = done.error["details"]["needs"]
    assert (
        f"is too small for any answer. One that is cut needs about {needed}."
        in (done.error["message"])
    )
    line = done.error["suggestion"]["argv"]
    assert line[line.index(f"--max-{unit}") + 1] == str(needed)
    assert invoke(app, *line[1:]).ok or isinstance(result, dict)  # an object needs all of its room
    assert ran == [True]


def returning(result: Any, annotation: Any = Any, ran: list[bool] | None = None) -> Any:
    def tool():
        """Return a result."""
        if ran is not None:
            ran.append(True)
        return result

    tool.__annotations__["return"] = annotation
    return tool


@pytest.mark.parametrize(
    ("result", "annotation", "paginated"),
    [
        (ROWS, Any, False),
        (ROWS, Any, 5),
        ({"a": "x" * 500}, Any, False),
        ("x" * 500, str, False),
        (10**18, int, False),
        (None, None, False),
    ],
)
def test_answer_of_a_command_with_effects_is_not_lost(
    result: Any, annotation: Any, paginated: Any
) -> None:
    """A limit that is too small for the answer is refused before the command runs."""
    app, ran = Tooli("app"), list[bool]()
    app.command("tool", paginated=paginated)(returning(result, annotation, ran))
    app.command("other")(returning(None))
    for limit in range(20, 400, 7):
        ran.clear()
        error = invoke(app, "tool", "--max-tokens", str(limit), "--json").error
        assert bool(ran) == (error is None), (limit, error)
    assert ran


@pytest.mark.parametrize("result", [ROWS, {"a": "x" * 500}, "x" * 500])
@pytest.mark.parametrize(("unit", "limit"), [("bytes", 200), ("tokens", 80)])
def test_limit_below_a_cut_answer_is_an_error_that_names_the_limit(
    result: Any, unit: str, limit: int
) -> None:
    app = Tooli("app")
    app.command("tool", annotations=ReadOnly)(returning(result))
    app.command("other")(returning(None))
    error = invoke(app, "tool", f"--max-{unit}", str(limit), "--json").error
    assert error is not None
    assert (error["code"], error["field"]) == ("E1007", f"max_{unit}")
    assert error["message"].endswith("The command has run.")
    assert error["suggestion"]["applicability"] == "machine_applicable"
    again = invoke(app, *error["suggestion"]["argv"][1:])
    assert again.ok and again.result  # it shows a part of the result, not an empty answer
    if not isinstance(result, dict):  # an object is suggested whole
        assert again.envelope["meta"]["truncated"]["by"] == f"max-{unit}"


def test_limit_that_the_caller_did_not_set_is_never_an_error() -> None:
    app = Tooli("app")

    @app.command(max_tokens=1)
    def tool() -> Any:
        return ROWS

    done = invoke(app, "tool", "--json")
    assert done.ok
    assert done.result == []
    assert done.envelope["meta"]["truncated"]["shown"] == 0
    assert invoke(app, "tool", "--json", env={"TOOLI_MAX_BYTES": "5"}).ok


@pytest.mark.parametrize("tool", ["tool", "stream"])
def test_empty_list_within_the_limit_is_not_truncated(tool: str) -> None:
    app = make_sized([])
    app.command("read", annotations=ReadOnly)(returning([]))
    name = "read" if tool == "tool" else tool
    limit = "100" if tool == "tool" else "600"
    done = invoke(app, name, "--max-bytes", limit, "--json")
    assert done.ok
    assert done.result == []
    assert "truncated" not in done.envelope["meta"]
    assert "next" not in done.envelope["meta"]


@pytest.mark.parametrize("tool", ["tool", "stream"])
@pytest.mark.parametrize(("unit", "needed"), [("bytes", 303), ("tokens", 303)])
def test_jsonl_suggests_a_limit_that_fits_the_first_record(
    tool: str, unit: str, needed: int
) -> None:
    app = make_sized(["x" * 300, "y"])
    words = ["--jsonl", f"--max-{unit}"]
    done = invoke(app, tool, *words, "60")
    assert done.lines == []
    assert f"For the rest: app {tool} --jsonl --max-{unit} {needed}\n" in done.stderr
    assert invoke(app, tool, *words, str(needed)).lines == ["x" * 300]
    assert invoke(app, tool, *words, str(needed - 1)).lines == []


def test_text_of_which_no_character_fits_suggests_a_larger_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The length of the path counts, and the temporary folder of pytest can have any length.
    monkeypatch.setattr("tooli.pipeline.truncate.write_overflow", lambda *_: "/state/results/tool")
    done = invoke(make_sized("x" * 500), "tool", "--max-bytes", "400", "--json")
    meta = done.envelope["meta"]
    assert meta["truncated"]["shown"] == 0
    assert meta["next"][0]["why"].startswith("The first character needs --max-bytes ")
    assert invoke(make_sized("x" * 500), *meta["next"][0]["argv"][1:]).result.startswith("x")


@pytest.mark.parametrize("mode", [["--text"], ["--plain"], ["-o", "md"]])
def test_text_is_cut_in_modes_without_an_envelope(mode: list[str]) -> None:
    lines = [f"line {i}\n" for i in range(100)]
    app = make_app(lines)
    argv, found, steps = ["text", "--max-bytes", "300", *mode], "", 0
    while argv:
        done = invoke(app, *argv, mode=None)
        assert len(done.stdout.rstrip("\n")) <= 300
        found += done.stdout.rstrip("\n") + "\n"
        steps += 1
        _, _, rest = done.stderr.partition("For the rest: app ")
        argv = rest.split()
    assert found == "".join(lines)
    assert steps > 2


def test_object_is_cut_in_modes_without_an_envelope() -> None:
    app = make_sized({"text": "x" * 5000, "rest": list(range(500))})
    for mode in ("--text", "--jsonl", "--plain"):
        done = invoke(app, "tool", "--max-bytes", "400", mode, mode=None)
        assert len(done.stdout) <= 500, mode
        assert "Cut by max-bytes" in done.stderr and "For the rest: app tool" in done.stderr


def test_result_that_fits_is_not_changed() -> None:
    plain = invoke(make_sized(ROWS), "tool", "--json").envelope
    fits = invoke(make_sized(ROWS), "tool", "--max-bytes", "90000", "--max-items", "100", "--json")
    assert fits.envelope["meta"].keys() == plain["meta"].keys()
    assert fits.envelope["result"] == plain["result"]


def test_only_the_command_line_saves_the_complete_result() -> None:
    assert "full" not in make_sized(ROWS).call("tool", max_bytes=1500).meta["truncated"]


def test_max_tokens_keyword_of_the_command_limits_the_output() -> None:
    app = Tooli("app")

    @app.command(max_tokens=200)
    def tool() -> list[Any]:
        return ROWS

    assert app.call("tool").meta["truncated"]["by"] == "max-tokens"
    assert TOKENIZER.count(app.call("tool").model_dump_json()) <= 200
    assert len(app.call("tool", max_tokens=0).result) == 100
    assert len(app.call("tool", max_bytes=90000).result) == 100


# ------------------------------------------------------------------ callers


@pytest.mark.parametrize(
    ("env", "max_bytes", "by"),
    [
        ({"CODEX_SANDBOX": "seatbelt"}, 10_000, "caller"),
        ({"CODEX_THREAD_ID": "x"}, 10_000, "caller"),
        ({"TOOLI_CALLER": "codex"}, 10_000, "caller"),
        ({"CLAUDECODE": "1"}, 30_000, "caller"),
        ({"TOOLI_CALLER": "claude-code"}, 30_000, "caller"),
        ({"OPENCODE": "1"}, 51_200, "caller"),
        ({"TOOLI_MAX_BYTES": "5000"}, 5000, "max-bytes"),
        ({"TOOLI_MAX_TOKENS": "1000"}, 3000, "max-tokens"),
        ({"TOOLI_MAX_BYTES": "5000", "CLAUDECODE": "1"}, 5000, "max-bytes"),
        ({"TOOLI_MAX_ITEMS": "9", "CODEX_CI": "1"}, 10_000, "max-items"),
    ],
)
def test_agents_and_settings_have_default_limits(
    env: dict[str, str], max_bytes: int, by: str
) -> None:
    rows = [{"n": i, "text": "x" * 100} for i in range(2000)]
    done = invoke(make_sized(rows), "tool", "--json", env=env)
    assert len(done.stdout) <= max_bytes
    assert done.envelope["meta"]["truncated"]["by"] == by


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        (["--max-bytes", "0"], {"CODEX_CI": "1"}),
        (["--max-bytes", "900000"], {"CODEX_CI": "1"}),
        (["--max-tokens", "900000"], {"CODEX_CI": "1"}),
        ([], {"CODEX_CI": "1", "TOOLI_MAX_BYTES": "0"}),
        ([], {"TOOLI_CALLER": "another-agent"}),
        ([], {"CURSOR_AGENT": "1"}),
    ],
)
def test_explicit_limits_take_precedence(argv: list[str], env: dict[str, str]) -> None:
    rows = [{"n": i, "text": "x" * 100} for i in range(500)]
    done = invoke(make_sized(rows), "tool", "--json", *argv, env=env)
    assert len(done.result) == 500


def test_agent_gets_as_many_lines_as_it_reads() -> None:
    done = invoke(make_sized(list(range(3000))), "tool", "--jsonl", env={"OPENCODE": "1"})
    assert done.lines == list(range(1990))
    assert "Cut by caller: 1990" in done.stderr


def test_file_replaces_a_larger_limit_that_the_agent_would_cut() -> None:
    value = {"text": "z" * 50_000}
    done = invoke(make_sized(value), "tool", "--json", env={"CLAUDECODE": "1"})
    meta = done.envelope["meta"]
    assert "next" not in meta
    with open(meta["truncated"]["full"]) as file:
        assert json.load(file) == value


def test_limit_setting_that_is_not_a_number_is_an_error() -> None:
    done = invoke(make_sized([1]), "tool", "--json", env={"TOOLI_MAX_BYTES": "ten"})
    assert done.exit_code == 2
    assert done.error is not None
    assert done.error["code"] == "E1011"
    assert "TOOLI_MAX_BYTES" in done.error["message"]


def test_iterators_in_a_result_are_read_once() -> None:
    """Measuring an answer does not consume its iterators."""
    app = Tooli("app")

    @app.command()
    def whole() -> Any:
        return {"squares": (n * n for n in range(5)), "not": float("nan")}

    @app.command()
    def stream() -> Any:
        for i in range(3):
            yield {"n": i, "upto": iter(range(i))}

    expected = [{"n": i, "upto": list(range(i))} for i in range(3)]
    for env in ({"CODEX_CI": "1"}, {}):
        done = invoke(app, "whole", "--json", env=env)
        assert done.result == {"squares": [0, 1, 4, 9, 16], "not": None}
        assert len(done.envelope["meta"]["warnings"]) == 1
        assert invoke(app, "stream", "--json", env=env).result == expected
        assert invoke(app, "stream", "--jsonl", env=env).lines == expected


class TestCallsWithoutRecords:
    """The stages of a call whose result options are not read."""

    def test_page_of_the_function_is_unwrapped(self) -> None:
        call = make_call()
        assert pass_through(unwrap_page, call, Ok(Page([1, 2], next_cursor="n"))) == (
            call,
            Ok([1, 2]),
        )

    def test_result_is_not_paginated(self) -> None:
        call = make_call()
        assert pass_through(paginate, call, Ok([1, 2])) == (call, Ok([1, 2]))


class TestLimitSizeStage:
    """`limit_size` without a surface."""

    def limited(self, fn: Any = None, **options: Any) -> Call:
        call = make_call(fn, options={"result_options": read_result_options(options)})
        return pass_through(open_record_flow, call)[0]

    def test_call_without_limits_is_passed_on(self) -> None:
        call = make_call()
        assert pass_through(limit_size, call, Ok([1])) == (call, Ok([1]))

    def test_list_within_max_items_is_unchanged(self) -> None:
        assert pass_through(limit_size, self.limited(max_items=3), Ok([1, 2]))[1] == Ok([1, 2])

    def test_redacted_result_is_measured_with_its_warnings(self) -> None:
        call = self.limited(max_bytes=5000)
        assert pass_through(limit_size, call, Ok("a\x1b[1mb"))[1] == Ok("a\x1b[1mb")

    def test_failure_is_unchanged(self) -> None:
        failed = Failed(InternalError("no"))
        assert pass_through(limit_size, self.limited(max_items=3), failed)[1] is failed

    def test_max_items_limits_a_collected_stream(self) -> None:
        def numbers() -> Iterator[int]:
            yield from range(9)

        app = Tooli("app")
        app.command("numbers")(numbers)
        assert app.options(max_items=2).call("numbers").unwrap() == [0, 1]
