"""StdinOr: the same content from a path, a URL and stdin, as what the type says."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from tests.inputs.served import Site, site

from tooli import DefinitionError, Input, InputLimits, Option, StdinOr, Tooli
from tooli.testing import invoke


class Row(pydantic.BaseModel):
    name: str
    age: int
    note: str | None = None


@dataclasses.dataclass
class Pair:
    a: int
    b: int


KINDS: dict[str, Any] = {
    "text": str,
    "bytes": bytes,
    "object": dict,
    "anything": Any,
    "row": Row,
    "rows": list[Row],
    "objects": list[dict],
    "table": list[list[str]],
    "pairs": tuple[Pair, ...],
    "lines": Iterator[str],
    "chunks": Iterator[bytes],
    "each-object": Iterator[dict],
    "each-row": Iterator[Row],
    "each-table": Iterator[list[str]],
    "short": Annotated[str, pydantic.StringConstraints(max_length=3)],
}


def make() -> Tooli:
    app = Tooli("reads", version="1.0")
    for name, kind in KINDS.items():

        def read(data) -> Any:
            if hasattr(data, "__next__"):
                data = list(data)
            return data

        read.__annotations__ = {"data": StdinOr[kind], "return": Any}
        app.command(name)(read)

    @app.command()
    def file(data: StdinOr[Path]) -> dict:
        """Read it like a file."""
        assert isinstance(data, Input)
        with data.open() as opened:
            first = opened.read(1)
        return {
            "source": data.source,
            "stdin": data.is_stdin,
            "first": first,
        }

    @app.command()
    def twice(data: StdinOr[Path]) -> list[int]:
        """Read it twice."""
        return [len(data.read_bytes()), len(data.read_text()), len(list(data))]

    @app.command()
    def maybe(data: StdinOr[str] | None = None, other: StdinOr[str] = "-") -> list[Any]:
        """Both may be left out."""
        return [data, other]

    @app.command()
    def several(data: list[StdinOr[str]]) -> list[str]:
        """Any number of them."""
        return data

    @app.command()
    def both(one: StdinOr[str], two: StdinOr[str]) -> str:
        """Two of them."""
        return one + two

    return app


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make()


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    with site() as made:
        yield made


@pytest.fixture(autouse=True)
def _private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_ALLOW_PRIVATE_URLS", "1")


CSV = "name,age,note\nada,36,\nbob,5,x\n"
PEOPLE = [{"name": "ada", "age": 36, "note": None}, {"name": "bob", "age": 5, "note": "x"}]
LOOSE = [{"name": "ada", "age": "36", "note": ""}, {"name": "bob", "age": "5", "note": "x"}]
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
    ("objects", "a.csv", CSV, LOOSE),
    ("objects", "a.json", "[]", []),
    ("table", "a.csv", "a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
    ("pairs", "a.csv", "a,b\n1,2\n", [{"a": 1, "b": 2}]),
    ("lines", "a.txt", "a\nb\n\nc", ["a", "b", "", "c"]),
    ("lines", "a.txt", "", []),
    ("chunks", "a.txt", "abc", ["abc"]),
    ("each-object", "a.csv", CSV, LOOSE),
    ("each-object", "a.jsonl", JSONL, [{"name": "ada", "age": 36}, PEOPLE[1]]),
    ("each-object", "a.json", ARRAY, PEOPLE),
    ("each-object", "a.json", " [ ] ", []),
    ("each-row", "a.csv", CSV, PEOPLE),
    ("each-row", "a.jsonl", JSONL, PEOPLE),
    ("each-row", "a.json", ARRAY, PEOPLE),
    ("each-table", "a.csv", "a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
]


@pytest.mark.parametrize(("tool", "name", "text", "result"), CASES)
def test_the_same_from_everywhere(
    app: Tooli, web: Site, tmp_path: Path, tool: str, name: str, text: str, result: Any
) -> None:
    """A path, a path with another name, `-`, a pipe, a URL: one result."""
    data = text.encode()
    named, nameless = tmp_path / name, tmp_path / "data"
    named.write_bytes(data)
    nameless.write_bytes(data)
    web.pages["/data"] = ("application/octet-stream", data)
    web.pages[f"/{name}?x"] = ("application/octet-stream", data)
    answers = [
        invoke(app, tool, str(named), mode="json"),
        invoke(app, tool, str(nameless), mode="json"),
        invoke(app, tool, "-", input=data, mode="json"),
        *([invoke(app, tool, input=data, mode="json")] if data else []),
        invoke(app, tool, web("/data"), env={"TOOLI_ALLOW_PRIVATE_URLS": "1"}, mode="json"),
        invoke(app, tool, web(f"/{name}?x"), env={"TOOLI_ALLOW_PRIVATE_URLS": "1"}, mode="json"),
    ]
    for answer in answers:
        assert answer.ok, answer.stdout
        assert answer.envelope.get("result", None) == result


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
def test_a_server_says_what_it_is(app, web, kind, tool, text, result) -> None:
    web.pages["/x"] = (kind, text.encode())
    assert app.call(tool, data=web("/x")).unwrap() is not None
    done = invoke(app, tool, web("/x"), env={"TOOLI_ALLOW_PRIVATE_URLS": "1"}, mode="json")
    if tool == "each-row":
        result = [{"name": "[x]", "age": 1, "note": None}]
    assert done.result == result


def test_yaml_by_name(app: Tooli, tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_text("a: 1\nb: [x]\n")
    assert app.call("object", data=file).unwrap() == {"a": 1, "b": ["x"]}
    file.write_text("a: [1\n")
    error = app.call("object", data=file).error
    assert error is not None
    assert (error.code, error.details["line"]) == ("E1065", 2)


def test_yaml_without_pyyaml(app: Tooli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = tmp_path / "a.yaml"
    file.write_text("a: 1")
    error = app.call("object", data=file).error
    assert error is not None
    assert error.code == "E4040"
    assert "PyYAML" in error.message


@pytest.mark.parametrize(
    ("tool", "name", "text", "line", "said"),
    [
        ("object", "a.json", '{"a":\n1,}', 2, "not valid JSON"),
        ("object", "a.json", "[]", None, "dictionary"),
        ("object", "a.json", "", 1, "not valid JSON"),
        ("object", "a.json", "[" * 100_000, None, "nested too deeply"),
        ("rows", "a.csv", "name,age\nada,1\nbob\n", 3, "1 cells, but the first row has 2"),
        ("rows", "a.csv", "name,age\nada,1\nbob,x\n", 3, "'age': 'x' is not a valid integer"),
        ("each-row", "a.csv", "name,age\nada,1\nbob,x\n", 3, "'age': 'x' is not a valid integer"),
        ("each-row", "a.csv", 'name,age\nada,"1\n', 2, "not valid CSV"),
        ("each-row", "a.csv", "name,name\na,b\n", 1, "'name' is in the first row twice"),
        ("each-row", "a.jsonl", '{"name":"a","age":1}\n{"name":"a"}\n', 2, "'age': field required"),
        ("each-object", "a.jsonl", "{}\n{\n", 2, "not valid JSON"),
        ("each-object", "a.jsonl", "{}\n3\n", 2, "dictionary"),
        ("each-object", "a.json", "[{},\n{}\n{}]", 3, "is missing"),
        ("each-object", "a.json", "[{},\n{", 2, "not valid JSON"),
        ("each-object", "a.json", "[{},\n3]", 2, "dictionary"),
        ("each-object", "a.json", "[{}] x", 1, "something follows"),
        ("each-object", "a.json", "[{},", 1, "not valid JSON"),
        ("each-object", "a.yaml", "- a: 1", None, "YAML has no rows"),
        ("text", "a.txt", b"\xff", None, "not valid utf-8 text"),
        ("lines", "a.txt", b"a\n\xff\n", None, "not valid utf-8 text"),
        ("each-row", "a.csv", b"name,age\n\xff,1\n", None, "not valid utf-8 text"),
        ("short", "a.txt", "abcd", None, "at most 3"),
    ],
)
def test_data_that_is_not_right(app, tmp_path, tool, name, text, line, said) -> None:
    """Exit code 65, the parameter, the source, and the line where it is wrong."""
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = invoke(app, tool, str(file), mode="json")
    assert done.exit_code == 65
    error = done.error
    assert error is not None
    assert (error["code"], error["field"]) == ("E1065", "data")
    assert said in error["message"]
    assert error["details"]["source"] == str(file)
    assert error["details"].get("line") == line
    piped = invoke(app, tool, "-", input=file.read_bytes(), mode="json") if line else None
    if piped is not None and not name.endswith("yaml"):
        assert piped.exit_code == 65
        assert piped.error is not None
        assert piped.error["details"]["line"] == line


def test_a_mistake_ends_the_reading_of_an_array(app: Tooli, tmp_path: Path) -> None:
    """What is wrong early in a long array is found there, and not after all of it was read."""
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

        def _open_stream(self) -> Any:
            return io.BufferedReader(CountingFile(str(file)))

    source = Source(str(file))
    from tooli.inputs.formats import _iter_rows

    with pytest.raises(Exception, match="not valid JSON"):
        list(_iter_rows(source, dict))
    assert 0 < read < 300_000


def test_like_a_file(app: Tooli, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("abc\nd")
    assert app.call("file", data=file).unwrap() == {
        "source": str(file),
        "stdin": False,
        "first": "a",
    }
    done = invoke(app, "file", "-", input="xyz", mode="json")
    assert done.result == {"source": "-", "stdin": True, "first": "x"}
    for words, data in ((("twice", str(file)), None), (("twice",), b"abc\nd")):
        assert invoke(app, *words, input=data, mode="json").result == [5, 5, 2]


def test_left_out(app: Tooli) -> None:
    done = invoke(app, "maybe", input="piped", mode="json")
    assert done.result == [None, "piped"]


def test_several(app: Tooli, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A")
    (tmp_path / "b").write_text("B")
    words = (str(tmp_path / "a"), "-", str(tmp_path / "b"))
    assert invoke(app, "several", *words, input="I", mode="json").result == ["A", "I", "B"]
    error = invoke(app, "several", words[0], "nope", mode="json").error
    assert error is not None
    assert error["field"] == "data.1"


def test_stdin_is_read_once(app: Tooli) -> None:
    error = invoke(app, "both", "-", "-", input="x", mode="json").error
    assert error is not None
    assert (error["code"], error["field"]) == ("E1035", "two")
    assert "'one' reads it already" in error["message"]


def test_input_and_an_input_do_not_share_stdin(app: Tooli) -> None:
    done = invoke(app, "text", "-", "--input", "-", input="{}", mode="json")
    assert done.exit_code == 2
    assert done.error is not None
    assert done.error["code"] == "E1035"


def test_nothing_to_read(app: Tooli, monkeypatch) -> None:
    """Neither a word nor a pipe: what is missing is said, and nobody waits."""
    with open("/dev/null") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        result = app.call("text")
    assert result.error is not None
    assert result.error.code == "E1002"
    assert "a path, a URL, - for stdin, or data through a pipe" in result.error.message


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("nope.csv", "E1003", "does not exist"),
        ("", "E1003", "does not exist"),
        ("a\0b", "E1003", "cannot be read"),
        (".", "E1003", "is a directory"),
        ("ftp://example.com/x", "E1033", "must be http or https"),
        ("file:///etc/passwd", "E1033", "must be http or https"),
        ("http://", "E1033", "has no host"),
        ("http://u:canary@example.com/", "E1033", "name or password"),
        ("http://example.com:99999/", "E1033", "URL is not valid"),
        ("http://[::1/", "E1033", "URL is not valid"),
        ("http://example.com/a b", "E1033", "a space"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_runs(app, word, code, said) -> None:
    error = app.call("text", data=word).error
    assert error is not None
    assert (error.code, error.field) == (code, "data")
    assert said in error.message
    assert "canary" not in json.dumps(app.call("text", data=word).to_dict())


@pytest.mark.parametrize(
    ("tool", "value", "result"),
    [
        ("text", {"text": "abc"}, "abc"),
        ("text", b"abc", "abc"),
        ("text", io.StringIO("abc"), "abc"),
        ("lines", {"text": "a\nb"}, ["a", "b"]),
        ("object", {"a": 1}, {"a": 1}),
        ("object", {"text": "x"}, {"text": "x"}),
        ("objects", [{"a": 1}], [{"a": 1}]),
        ("each-object", [{"a": 1}], [{"a": 1}]),
        ("each-object", iter([{"a": 1}]), [{"a": 1}]),
        ("rows", [{"name": "a", "age": "1"}], [Row(name="a", age=1)]),
        ("each-row", [{"name": "a", "age": "1"}], [Row(name="a", age=1)]),
    ],
)
def test_the_content_itself(app: Tooli, tool: str, value: Any, result: Any) -> None:
    assert app.call(tool, data=value).unwrap() == result


@pytest.mark.parametrize(
    ("tool", "value", "field"),
    [
        ("text", 3, "data"),
        ("text", {"txt": "a"}, "data"),
        ("object", [1], "data"),
        ("each-row", [{"name": "a", "age": "x"}], "data.0.age"),
    ],
)
def test_content_that_does_not_fit_is_input_that_does_not(app, tool, value, field) -> None:
    error = app.call(tool, data=value).error
    assert error is not None
    assert (error.code, error.field) == ("E1003", field)


def test_the_limit_holds_for_every_source(tmp_path: Path, web: Site) -> None:
    app = Tooli("small")

    @app.command()
    def size(data: Annotated[StdinOr[bytes], InputLimits(max_bytes=10, private=True)]) -> int:
        return len(data)

    file = tmp_path / "a"
    for data, code in ((b"x" * 10, 0), (b"x" * 11, 65)):
        file.write_bytes(data)
        web.pages["/a"] = ("text/plain", data)
        for words, given in (((str(file),), None), (("-",), data), ((web("/a"),), None)):
            done = invoke(app, *words, input=given, mode="json")
            assert done.exit_code == code, done.stdout
            assert code == 0 or done.error["code"] == "E1034"


@pytest.mark.parametrize(
    ("said", "code"), [("10", 0), ("9", 65), ("1kB", 0), ("1KiB", 0), ("x", 2)]
)
def test_the_environment_sets_a_limit(app: Tooli, said: str, code: int) -> None:
    done = invoke(app, "text", "-", input="0123456789", env={"TOOLI_MAX_INPUT": said}, mode="json")
    assert done.exit_code == code


def test_the_environment_only_tightens(tmp_path: Path) -> None:
    app = Tooli("small")

    @app.command()
    def size(data: Annotated[StdinOr[bytes], InputLimits(max_bytes=3)]) -> int:
        return len(data)

    done = invoke(app, "-", input="12345", env={"TOOLI_MAX_INPUT": "1MB"}, mode="json")
    assert done.exit_code == 65


def test_schema(app: Tooli) -> None:
    from tooli.schema.json_schema import input_schema

    named = {"type": "string", "description": "A path, or an http(s) URL."}

    def inside(tool: str) -> Any:
        found = app.find(tool)
        assert found is not None
        schema = input_schema(found)["properties"]["data"]["anyOf"]
        assert schema[0] == named
        return schema[1]

    assert inside("text")["required"] == ["text"]
    assert inside("object") == {"type": "object", "additionalProperties": True}
    assert inside("each-object")["items"] == {"type": "object", "additionalProperties": True}
    assert set(inside("rows")["items"]["properties"]) == {"name", "age", "note"}


def test_what_is_refined_is_what_is_inside() -> None:
    app = Tooli("wrong")

    @app.command()
    def read(data: Annotated[StdinOr[str], pydantic.StringConstraints(max_length=3)]) -> str:
        return data

    with pytest.raises(DefinitionError, match="annotate the inner type"):
        app.find("read")


def test_an_option_is_not_read_from_a_pipe_that_nobody_named() -> None:
    app = Tooli("opts")

    @app.command()
    def read(data: Annotated[StdinOr[str], Option("--data")]) -> str:
        return data

    error = invoke(app, input="x", mode="json").error
    assert error is not None
    assert error["code"] == "E1002"
    assert invoke(app, "--data", "-", input="x", mode="json").result == "x"


def test_files_are_closed(tmp_path: Path) -> None:
    kept: list[Any] = []
    app = Tooli("keeps")

    @app.command()
    def read(data: StdinOr[Path]) -> None:
        kept.append(data.open())

    file = tmp_path / "a"
    file.write_text("x")
    assert app.call("read", data=file).ok
    with pytest.raises(ValueError, match="closed"):
        kept[0].read()


async def test_async_functions_do_not_wait_on_the_loop(tmp_path: Path) -> None:
    """The content is read in a thread, whatever the function is."""
    import threading

    app = Tooli("later")
    seen: list[Any] = []

    class CountingFile(Input):
        __slots__ = ()

        def read_text(self, *a: Any, **k: Any) -> str:
            seen.append(threading.current_thread())
            return super().read_text(*a, **k)

    @app.command()
    async def one(data: StdinOr[str]) -> str:
        return data

    @app.command()
    async def many(data: StdinOr[str]):
        yield data

    file = tmp_path / "a"
    file.write_text("x")
    assert (await app.acall("one", data=CountingFile(str(file)))).result == "x"
    assert [item async for item in app.astream("many", data=CountingFile(str(file)))] == ["x"]
    assert app.call("many", data=CountingFile(str(file))).result == ["x"]
    assert len(seen) == 3
    assert threading.main_thread() not in seen


def test_nul_ends_lines(app: Tooli) -> None:
    done = invoke(app, "lines", "-", "--null", input=b"a\nb\0c\0", mode="json")
    assert done.result == ["a\nb", "c"]


def test_a_dry_run_reads_nothing(app: Tooli, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text("{")
    done = invoke(app, "object", str(file), "--dry-run", mode="json")
    assert done.result["arguments"] == {"data": str(file)}
