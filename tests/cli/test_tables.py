"""Records as CSV and as Markdown, read back with common parsers."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import NotRequired, TypedDict

from tooli import Detail, NotFoundError, Tooli
from tooli.cli.plain_output import MAX_COLUMNS
from tooli.cli.tables import HEADER_SAMPLE_SIZE, TableWriter, has_fixed_fields
from tooli.core.call import Call, Caller
from tooli.testing import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tooli.testing import CommandResult

TEXTS = st.text(max_size=10) | st.text("ab_*`|\\<>&[]()~!#;/\n ", max_size=12)
ROWS = st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=4)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def call_of(tool: Any) -> Call:
    return Call(tool, {}, Caller("cli"), [])


def write(mode: str, value: Any) -> str:
    tool = Tooli("x")
    tool.command("none")(lambda: None)
    end = "\r\n" if mode == "csv" else "\n"
    table = TableWriter(call_of(tool.find("none")), markdown=mode == "md")
    return "".join([line + end for line in table.lines(value)])


def as_records(rows: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip("abc", row, strict=True)) for row in rows]


# ------------------------------------------------------------------ CSV


@given(ROWS)
def test_csv_round_trip(rows: list[list[str]]) -> None:
    has_nul = any("\0" in text for row in rows for text in row)
    assume(sys.version_info >= (3, 11) or not has_nul)  # csv.reader of Python 3.10 rejects NUL
    read = list(csv.reader(io.StringIO(write("csv", as_records(rows)), newline=""), strict=True))
    assert read == [["a", "b", "c"], *rows]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{"a": 1, "b": "x"}, {"a": None, "b": ""}], 'a,b\r\n1,x\r\n,""\r\n'),
        ([{"a": 1}, {"b": True}], "a,b\r\n1,\r\n,true\r\n"),
        ([{"a": [1, {"b": "x,y"}]}], 'a\r\n"[1,{""b"":""x,y""}]"\r\n'),
        ([{"a": None}, {"a": ""}], 'a\r\n""\r\n""\r\n'),
        (["x", 1.5, None], 'value\r\nx\r\n1.5\r\n""\r\n'),
        ([{"a": 1}, 2, [3]], "a,value\r\n1,\r\n,2\r\n,[3]\r\n"),
        ([[1, 2], [3]], 'value\r\n"[1,2]"\r\n[3]\r\n'),
        ({"a": 1, "b, c": "=1+1"}, 'a,"b, c"\r\n1,=1+1\r\n'),
        ("one\ntwo", 'value\r\n"one\ntwo"\r\n'),
        (0, "value\r\n0\r\n"),
        (None, ""),
        ([], ""),
    ],
)
def test_csv(value: Any, text: str) -> None:
    assert write("csv", value) == text


# ------------------------------------------------------------------ Markdown


def cells(page: str) -> list[list[str]]:
    """Return the cells of a Markdown table as a browser shows them."""
    rows: list[list[str]] = []
    for token in MARKDOWN.parse(page):
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline" and rows:
            shown = {"html_inline": lambda part: "\n" if part.content == "<br>" else "?"}
            rows[-1].append(
                "".join(
                    shown.get(part.type, lambda part: part.content)(part)
                    for part in token.children or ()
                )
            )
    return rows


def as_shown_by_markdown(text: str) -> str:
    """Return a text as Markdown shows it: control characters are escaped, edges are trimmed."""
    escaped = "".join(
        char if char == "\n" or char == "\t" or char.isprintable() or ord(char) > 0xA0 else "?"
        for char in text.replace("\r\n", "\n").replace("\r", "\n")
    )
    return escaped.strip()


@given(ROWS)
def test_markdown_is_escaped(rows: list[list[str]]) -> None:
    plain = [["".join(c for c in text if c == "\n" or c.isprintable()) for text in r] for r in rows]
    shown = cells(write("md", as_records(plain)))
    assert shown[0] == ["a", "b", "c"]
    assert [[as_shown_by_markdown(cell) for cell in row] for row in shown[1:]] == [
        [as_shown_by_markdown(text) for text in row] for row in plain
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{"a": 1, "b": "x|y"}], "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n"),
        ([{"a": "x\r\ny\\"}], "| a |\n| --- |\n| x<br>y\\ |\n"),
        ([{"f": "__init__.py"}], "| f |\n| --- |\n| \\_\\_init\\_\\_.py |\n"),
        ([{"f": "snake_case_x *.py ~/x"}], "| f |\n| --- |\n| snake_case_x *.py ~/x |\n"),
        (["x", None, {"a": 1}], "| value | a |\n| --- | --- |\n| x |  |\n|  |  |\n|  | 1 |\n"),
        ({"a": 1, "b": [2]}, "| field | value |\n| --- | --- |\n| a | 1 |\n| b | [2] |\n"),
        (["[a](b)"], "| value |\n| --- |\n| \\[a](b) |\n"),
        ("# A *page*", "# A *page*\n"),
        (7, "7\n"),
        (None, ""),
        ([], ""),
    ],
)
def test_markdown(value: Any, text: str) -> None:
    assert write("md", value) == text


def test_markdown_escapes_control_characters() -> None:
    assert "\x1b" not in write("md", [{"a": "\x1b[31mred"}])
    assert "\x1b" not in write("md", "\x1b[31mred")


# ------------------------------------------------------------------ types


class FixedFields(TypedDict):
    path: str
    size: int


class OptionalField(TypedDict):
    path: str
    size: NotRequired[int]


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Model(BaseModel):
    path: str
    big: bool = Field(serialization_alias="isBig")


class ExtraFields(BaseModel):
    model_config = ConfigDict(extra="allow")
    path: str


def tool_of(annotation: Any) -> Any:
    def give() -> Any: ...

    give.__annotations__["return"] = annotation
    app = Tooli("x")
    app.command()(give)
    return app.find("give")


@pytest.mark.parametrize(
    ("item", "has_fixed", "header"),
    [
        (FixedFields, True, "path,size"),
        (OptionalField, False, "path,size"),
        (Point, True, "x,y"),
        (Model, True, "path,isBig"),
        (ExtraFields, False, "path"),
        (str, True, ""),
        (dict, False, ""),
    ],
)
def test_fields_of_a_record_type(item: Any, has_fixed: bool, header: str) -> None:
    tool = tool_of(list[item])
    assert has_fixed_fields(tool) is has_fixed
    assert list(TableWriter(call_of(tool), markdown=False).lines([])) == (
        [header] if header else []
    )


def test_header_of_fixed_fields_needs_one_record() -> None:
    taken: list[int] = []

    def items() -> Iterator[Any]:
        for i in range(3):
            taken.append(i)
            yield {"path": "x", "size": i}

    lines = TableWriter(call_of(tool_of(list[FixedFields])), markdown=False).stream(items())
    assert [next(lines), next(lines), taken] == ["path,size", "x,0", [0]]
    assert [next(lines), taken] == ["x,1", [0, 1]]


def test_header_of_other_records_needs_a_sample() -> None:
    items = [{"a": i} for i in range(HEADER_SAMPLE_SIZE - 1)]
    call = call_of(tool_of(list[dict]))
    table = TableWriter(call, markdown=False)
    lines = list(table.stream(iter([*items, {"b": 1}, {"a": 1, "c": 2}])))
    assert (lines[0], lines[-2], lines[-1]) == ("a,b", ",1", "1,")
    assert call.warnings == ["the table has no column for c"]


@pytest.mark.parametrize("is_markdown", [False, True])
def test_number_of_columns_is_limited(is_markdown: bool) -> None:
    """With a column for each key, the table would have 100 million cells."""
    call = call_of(tool_of(list[dict]))
    table = TableWriter(call, markdown=is_markdown)
    lines = list(table.lines([{f"k{i:05}": i} for i in range(10_000)]))
    assert len(lines) == 10_001 + is_markdown
    assert lines[-1].count("|" if is_markdown else ",") == MAX_COLUMNS - 1 + 2 * is_markdown
    assert len(call.warnings) == 21  # one for each key, and one for all others
    assert call.warnings[0] == "the table has no column for k01000"
    assert call.warnings[-1] == "the table has no column for other keys"


def test_warning_names_each_key_once() -> None:
    call = call_of(tool_of(list[FixedFields]))
    records = [{"path": "x", "size": 1}, {"a": 1}, {"a": 1, "b": 1}, {"a": 1}]
    records.append({f"c{i:02}": 1 for i in range(30)})
    list(TableWriter(call, markdown=False).stream(iter(records)))
    names = ", ".join([f"c{i:02}" for i in range(18)])
    assert call.warnings == [
        "the table has no column for a",
        "the table has no column for b",
        f"the table has no column for {names}, other keys",
    ]


# ------------------------------------------------------------------ as an answer


class File(TypedDict):
    path: str
    size: int
    checksum: Annotated[str, Detail]


def make_app() -> Tooli:
    app = Tooli("files")

    @app.command("list")
    def list_files(count: int = 2) -> list[File]:
        print("listing")
        return [{"path": f"{i}.py", "size": i, "checksum": "c"} for i in range(count)]

    @app.command()
    def walk(count: int = 2, then: str = ""):
        yield from ({"path": f"{i}.py"} for i in range(count))
        if then:
            raise NotFoundError(then)

    @app.command()
    def nan() -> list[dict[str, float]]:
        return [{"x": float("nan")}]

    @app.command()
    def say():
        print("one")
        print("two")

    return app


def answer(*argv: str, **more: Any) -> CommandResult:
    return invoke(make_app(), *argv, **more)


def test_csv_of_records_has_no_envelope() -> None:
    done = answer("list", "-o", "csv")
    assert done.stdout == "path,size,checksum\r\n0.py,0,c\r\n1.py,1,c\r\n"
    assert (done.exit_code, done.stderr) == (0, "listing\n")


@pytest.mark.parametrize("mode", ["csv", "md"])
def test_mode_can_be_set_by_option_argument_or_app(mode: str) -> None:
    expected = answer("walk", "--output", mode).stdout
    assert expected.startswith({"csv": "path\r\n0.py\r\n", "md": "| path |\n| --- |\n"}[mode])
    assert answer("walk", f"-o{mode}").stdout == expected
    assert answer("walk", mode=mode).stdout == expected
    app = make_app()
    app._state.default_output = mode
    assert invoke(app, "walk").stdout == expected
    assert answer("walk", f"--{mode}").exit_code == 2  # this mode has no flag


@pytest.mark.parametrize(("count", "rows"), [("0", ""), ("1", "0.py\r\n")])
def test_failed_stream_keeps_its_rows_and_reports_on_stderr(count: str, rows: str) -> None:
    done = answer("walk", "--count", count, "--then", "gone", "-ocsv")
    assert done.stdout == (f"path\r\n{rows}" if rows else "")
    assert done.stderr == "error: gone [E3010]\n"
    assert done.exit_code == 10


@pytest.mark.parametrize(
    ("argv", "code"), [(["lst"], 2), (["list", "--count", "x"], 2), (["list", "--nope"], 2)]
)
def test_usage_errors(argv: list[str], code: int) -> None:
    for mode in ("csv", "md"):
        done = answer(*argv, "-o", mode)
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert done.exit_code == code


def test_header_without_records() -> None:
    assert answer("list", "--count", "0", "-ocsv").stdout == "path,size,checksum\r\n"
    concise = ("--response-format", "concise")
    assert answer("list", "--count", "0", "-ocsv", *concise).stdout == "path,size\r\n"
    assert answer("list", "--count", "1", "-ocsv", *concise).stdout == "path,size\r\n0.py,0\r\n"


def test_warnings_go_to_stderr() -> None:
    done = answer("nan", "-ocsv")
    assert done.stdout == 'x\r\n""\r\n'
    assert done.stderr == "Warning: NaN or infinity was written as null\n"
    assert answer("nan", "-ocsv", "-q").stderr == ""


def test_printed_text_becomes_the_result_of_a_table() -> None:
    assert answer("say", "-ocsv").stdout == 'value\r\n"one\ntwo"\r\n'
    assert answer("say", "-omd").stdout == "one\ntwo\n"


def test_info_options_ignore_the_table_mode() -> None:
    assert json.loads(answer("list", "--schema", "-ocsv").stdout)["name"] == "list"
    assert answer("list", "--help-agent", "-omd").stdout == answer("list", "--help-agent").stdout


def test_table_does_not_count_as_the_first_answer_of_a_session(tmp_path: Path) -> None:
    """A table does not contain the schema, so the next JSON answer of the session has it."""
    session = {"TOOLI_SESSION_ID": "tables", "TOOLI_STATE_DIR": str(tmp_path)}
    answer("walk", "-ocsv", env=session)
    assert "output_schema" in answer("list", "--json", env=session).envelope["meta"]
