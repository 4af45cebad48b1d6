"""Formats of inputs: text, JSON, JSONL, CSV and YAML, whole and row by row."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.inputs.reading_app import make_reading_app
from tests.inputs.web_server import Site, site

from tooli import Input, StdinOr, Tooli
from tooli.inputs.formats import _iter_rows
from tooli.testing import invoke


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make_reading_app()


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    with site() as running:
        yield running


@pytest.fixture(autouse=True)
def _allow_private_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_ALLOW_PRIVATE_URLS", "1")


CSV = "name,age,note\nada,36,\nbob,5,x\n"
PEOPLE = [{"name": "ada", "age": 36, "note": None}, {"name": "bob", "age": 5, "note": "x"}]
PEOPLE_AS_TEXT = [
    {"name": "ada", "age": "36", "note": ""},
    {"name": "bob", "age": "5", "note": "x"},
]
JSONL = '{"name":"ada","age":36}\n\n{"name":"bob","age":5,"note":"x"}\n'
ARRAY = json.dumps(PEOPLE, indent=1)
CASES = [
    ("text", "a.txt", "häl\r\nlo\n", "häl\nlo\n"),
    ("text", "a.txt", "\ufeffx", "x"),
    ("text", "a.txt", "", ""),
    ("bytes", "a.bin", "a\r\n", "a\r\n"),
    ("object", "a.json", '{"a": 1}', {"a": 1}),
    ("anything", "a.json", "3", 3),
    ("row", "a.json", '{"name": "ada", "age": "36"}', PEOPLE[0]),
    ("rows", "a.json", ARRAY, PEOPLE),
    ("rows", "a.jsonl", JSONL, PEOPLE),
    ("rows", "a.csv", CSV, PEOPLE),
    ("rows", "a.csv", "\ufeff" + CSV, PEOPLE),
    ("rows", "a.csv", CSV.replace("\n", "\r\n"), PEOPLE),
    (
        "rows",
        "a.csv",
        'name,age\n"a ""b"",\nc",1\n',
        [{"name": 'a "b",\nc', "age": 1, "note": None}],
    ),
    ("rows", "a.csv", "", []),
    ("objects", "a.csv", CSV, PEOPLE_AS_TEXT),
    ("objects", "a.json", "[]", []),
    ("objects", "a.jsonl", '{"a": 1}\n', [{"a": 1}]),
    ("table", "a.csv", "a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
    ("pairs", "a.csv", "a,b\n1,2\n", [{"a": 1, "b": 2}]),
    ("lines", "a.txt", "a\nb\n\nc", ["a", "b", "", "c"]),
    ("lines", "a.txt", "", []),
    ("chunks", "a.txt", "abc", ["abc"]),
    ("each-object", "a.csv", CSV, PEOPLE_AS_TEXT),
    ("each-object", "a.jsonl", JSONL, [{"name": "ada", "age": 36}, PEOPLE[1]]),
    ("each-object", "a.jsonl", '\ufeff{"a": 1}\n', [{"a": 1}]),
    ("each-object", "a.jsonl", "\ufeff", []),
    ("each-object", "a.json", ARRAY, PEOPLE),
    ("each-object", "a.json", " [ ] ", []),
    ("each-row", "a.csv", CSV, PEOPLE),
    ("each-row", "a.jsonl", JSONL, PEOPLE),
    ("each-row", "a.json", ARRAY, PEOPLE),
    ("each-table", "a.csv", "a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
]


@pytest.mark.parametrize(("tool", "name", "text", "result"), CASES)
def test_same_result_from_every_location(
    app: Tooli, web: Site, tmp_path: Path, tool: str, name: str, text: str, result: Any
) -> None:
    """A path, a path without an extension, `-`, a pipe and a URL give the same result."""
    data = text.encode()
    named, unnamed = tmp_path / name, tmp_path / "data"
    named.write_bytes(data)
    unnamed.write_bytes(data)
    web.pages["/data"] = ("application/octet-stream", data)
    web.pages[f"/{name}?x"] = ("application/octet-stream", data)
    results = [
        invoke(app, tool, str(named), mode="json"),
        invoke(app, tool, str(unnamed), mode="json"),
        invoke(app, tool, "-", input=data, mode="json"),
        *([invoke(app, tool, input=data, mode="json")] if data else []),
        invoke(app, tool, web("/data"), env={"TOOLI_ALLOW_PRIVATE_URLS": "1"}, mode="json"),
        invoke(app, tool, web(f"/{name}?x"), env={"TOOLI_ALLOW_PRIVATE_URLS": "1"}, mode="json"),
    ]
    for done in results:
        assert done.ok, done.stdout
        assert done.envelope.get("result", None) == result


@pytest.mark.parametrize(
    ("kind", "tool", "text", "result"),
    [
        (
            "text/csv; charset=utf-8",
            "each-row",
            "name,age\n[x],1\n",
            [{**PEOPLE[0], "name": "[x]", "age": 1}],
        ),
        ("text/tab-separated-values", "objects", "a\tb\n1,2\t3\n", [{"a": "1,2", "b": "3"}]),
        ("application/x-ndjson", "objects", "{}\n{}\n", [{}, {}]),
        ("application/yaml", "object", "a: [1, 2]\n", {"a": [1, 2]}),
    ],
)
def test_content_type_determines_format(app, web, kind, tool, text, result) -> None:
    web.pages["/x"] = (kind, text.encode())
    assert app.call(tool, data=web("/x")).unwrap() is not None
    done = invoke(app, tool, web("/x"), env={"TOOLI_ALLOW_PRIVATE_URLS": "1"}, mode="json")
    assert done.result == result


def test_yaml_file_is_parsed(app: Tooli, tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_text("a: 1\nb: [x]\n")
    assert app.call("object", data=file).unwrap() == {"a": 1, "b": ["x"]}
    file.write_text("a: [1\n")
    error = app.call("object", data=file).error
    assert error is not None
    assert (error.code, error.details["line"]) == ("E1065", 2)


@pytest.mark.parametrize(
    ("tool", "name", "text", "line", "message"),
    [
        ("object", "a.json", '{"a":\n1,}', 2, "not valid JSON"),
        ("object", "a.json", "[]", None, "an object is required"),
        ("object", "a.json", "", 1, "not valid JSON"),
        ("object", "a.json", "[" * 100_000, None, "nested too deeply"),
        ("rows", "a.csv", "name,age\nada,1\nbob\n", 3, "1 cells, but the first row has 2"),
        ("rows", "a.csv", "name,age\nada,1\nbob,x\n", 3, "'age': 'x' is not a valid integer"),
        ("each-row", "a.csv", "name,age\nada,1\nbob,x\n", 3, "'age': 'x' is not a valid integer"),
        ("each-row", "a.csv", 'name,age\nada,"1\n', 2, "not valid CSV"),
        ("each-row", "a.csv", "name,name\na,b\n", 1, "'name' occurs twice in the first row"),
        (
            "each-row",
            "a.jsonl",
            '{"name":"a","age":1}\n{"name":"a"}\n',
            2,
            "'age': a value is required",
        ),
        ("each-object", "a.jsonl", "{}\n{\n", 2, "not valid JSON"),
        ("each-object", "a.jsonl", "{}\n3\n", 2, "an object is required"),
        ("each-object", "a.json", "[{},\n{}\n{}]", 3, "is missing"),
        ("each-object", "a.json", "[{},\n{", 2, "not valid JSON"),
        ("each-object", "a.json", "[{},\n3]", 2, "an object is required"),
        ("each-object", "a.json", "[{}] x", 1, "text after the array"),
        ("each-object", "a.json", "[{},", 1, "not valid JSON"),
        ("each-object", "a.yaml", "- a: 1", None, "YAML has no rows"),
        ("object", "a.yaml", "a: 2001-99-99", None, "not valid YAML: month must be in 1..12"),
        ("object", "a.yaml", "a: !!bool x", None, "not valid YAML"),
        ("object", "a.yaml", "[" * 5000, 1, "nested too deeply"),
        ("object", "a.json", "1" * 5000, None, "an integer has too many digits"),
        ("each-object", "a.jsonl", "{}\n" + "1" * 5000, 2, "an integer has too many digits"),
        ("each-object", "a.json", "[{},\n" + "1" * 5000 + "]", 2, "an integer has too many digits"),
        ("text", "a.txt", b"\xff", None, "not valid utf-8 text"),
        ("lines", "a.txt", b"a\n\xff\n", None, "not valid utf-8 text"),
        ("each-row", "a.csv", b"name,age\n\xff,1\n", None, "not valid utf-8 text"),
        ("short", "a.txt", "abcd", None, "more than 3"),
    ],
)
def test_invalid_data_error_has_the_source_and_line(
    app, tmp_path, tool, name, text, line, message
) -> None:
    """The exit code is 65. The error contains the parameter, the source and the line."""
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = invoke(app, tool, str(file), mode="json")
    assert done.exit_code == 65
    error = done.error
    assert error is not None
    assert (error["code"], error["field"]) == ("E1065", "data")
    assert message in error["message"]
    assert error["details"]["source"] == str(file)
    assert error["details"].get("line") == line
    piped = invoke(app, tool, "-", input=file.read_bytes(), mode="json") if line else None
    if piped is not None and not name.endswith("yaml"):
        assert piped.exit_code == 65
        assert piped.error is not None
        assert piped.error["details"]["line"] == line


def test_json_array_error_stops_reading(app: Tooli, tmp_path: Path) -> None:
    """An error at the start of a long array is found before the rest is read."""
    file = tmp_path / "a.json"
    file.write_text('[{"a": nope}' + ", {}" * 500_000 + "]")
    read = 0

    class CountingFile(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            nonlocal read
            count = super().readinto(buffer) or 0
            read += count
            return count

    class Source(Input):
        __slots__ = ()

        def _open_stream(self, is_whole: bool) -> Any:
            return io.BufferedReader(CountingFile(str(file)))

    source = Source(str(file))
    with pytest.raises(Exception, match="not valid JSON"):
        list(_iter_rows(source, dict))
    assert 0 < read < 300_000


@pytest.mark.parametrize(
    ("data", "shown", "count"),
    [(["x"] * 20_000, 50, 51), (["x" * 5000] * 60, 50, 60), (["x"] * 2, 2, None)],
)
def test_error_about_many_items_is_short(
    data: list[str], shown: int, count: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "numbers.json"
    path.write_text(json.dumps(data))
    app = Tooli("counting")

    @app.command("count")
    def count_items(data: StdinOr[list[int]]) -> int:
        return len(data)

    result = app.call("count", data=str(path))
    assert result.error is not None and result.error.details is not None
    assert len(result.error.details["errors"]) == shown
    assert result.error.details.get("error_count") == count
    assert ("at least" in result.error.message) is (count == 51)
    assert len(result.model_dump_json()) < 25_000


@pytest.mark.parametrize("text", ["a: 1", "hello world", "<html>", "5"])
def test_one_line_that_is_no_header_is_not_csv(text: str) -> None:
    found = run_rows(text)
    assert found["error"]["code"] == "E1065"
    assert "--jsonl" in found["error"]["suggestion"]["fix"]


@pytest.mark.parametrize("mode", ["--text", "-o md"])
@pytest.mark.parametrize("fields", ["--fields name", ""])
def test_the_table_of_a_command_is_not_csv(mode: str, fields: str) -> None:
    app = Tooli("rows")

    @app.command("list")
    def list_names() -> list[dict[str, str]]:
        return [{"name": "a;b", "text": "x, y"}, {"name": "c", "text": "z"}]

    @app.command("other")
    def other() -> None: ...

    found = run_rows(invoke(app, "list", *mode.split(), *fields.split()).stdout)
    assert found["error"]["code"] == "E1065"
    assert "--jsonl" in found["error"]["suggestion"]["fix"]


@pytest.mark.parametrize("text", ["name\n---", "|name\nx", "a\n|"])
def test_unusual_rows_are_csv(text: str) -> None:
    assert run_rows(text)["result"] == 1


@pytest.mark.parametrize("text", ["", "name", "first-name", '"name"', "a,b", "a b,c", "a\tb"])
def test_header_without_rows_is_an_empty_csv_file(text: str) -> None:
    assert run_rows(text)["result"] == 0


def run_rows(text: str) -> dict[str, Any]:
    app = Tooli("rows")

    @app.command()
    def count(data: StdinOr[list[dict]]) -> int:
        return len(data)

    return json.loads(invoke(app, "-", "--json", input=text).stdout)
