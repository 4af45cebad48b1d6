"""StdinOr: input from a path, a URL or stdin; limits, errors and the file interface."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from tests.inputs.reading_app import Row, make_reading_app
from tests.inputs.web_server import Site, site

from tooli import DefinitionError, Input, InputLimits, Option, StdinOr, Tooli
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


def test_input_can_be_read_like_a_file(app: Tooli, tmp_path: Path) -> None:
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


def test_stdin_goes_to_the_optional_input(app: Tooli) -> None:
    done = invoke(app, "maybe", input="piped", mode="json")
    assert done.result == [None, "piped"]


def test_every_input_of_a_list_is_read(app: Tooli, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A")
    (tmp_path / "b").write_text("B")
    words = (str(tmp_path / "a"), "-", str(tmp_path / "b"))
    assert invoke(app, "several", *words, input="I", mode="json").result == ["A", "I", "B"]
    error = invoke(app, "several", words[0], "nope", mode="json").error
    assert error is not None
    assert error["field"] == "data.1"


def test_two_inputs_cannot_share_stdin(app: Tooli) -> None:
    error = invoke(app, "both", "-", "-", input="x", mode="json").error
    assert error is not None
    assert (error["code"], error["field"]) == ("E1035", "two")
    assert "'one' reads it" in error["message"]


def test_input_flag_cannot_share_stdin(app: Tooli) -> None:
    done = invoke(app, "text", "-", "--input", "-", input="{}", mode="json")
    assert done.exit_code == 2
    assert done.error is not None
    assert done.error["code"] == "E1035"


def test_missing_input_is_an_error(app: Tooli, monkeypatch) -> None:
    """Without an argument and a pipe, the call fails at once and names the parameter."""
    with open("/dev/null") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        result = app.call("text")
    assert result.error is not None
    assert result.error.code == "E1002"
    assert "a path, a URL, or data" in result.error.message


@pytest.mark.parametrize(
    ("location", "code", "message"),
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
def test_invalid_locations_are_rejected(app, location, code, message) -> None:
    error = app.call("text", data=location).error
    assert error is not None
    assert (error.code, error.field) == (code, "data")
    assert message in error.message
    assert "canary" not in json.dumps(app.call("text", data=location).to_dict())


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
def test_direct_content_is_accepted(app: Tooli, tool: str, value: Any, result: Any) -> None:
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
def test_invalid_direct_content_is_rejected(app, tool, value, field) -> None:
    error = app.call(tool, data=value).error
    assert error is not None
    assert (error.code, error.field) == ("E1003", field)


def test_input_above_size_limit_is_rejected(tmp_path: Path, web: Site) -> None:
    app = Tooli("small")

    @app.command()
    def size(data: Annotated[StdinOr[bytes], InputLimits(max_bytes=10, private=True)]) -> int:
        return len(data)

    file = tmp_path / "a"
    for data, code in ((b"x" * 10, 0), (b"x" * 11, 65)):
        file.write_bytes(data)
        web.pages["/a"] = ("text/plain", data)
        for words, piped in (((str(file),), None), (("-",), data), ((web("/a"),), None)):
            done = invoke(app, *words, input=piped, mode="json")
            assert done.exit_code == code, done.stdout
            assert code == 0 or done.error["code"] == "E1034"


@pytest.mark.parametrize(
    ("limit", "code"), [("10", 0), ("9", 65), ("1kB", 0), ("1KiB", 0), ("x", 2), ("-1", 2)]
)
def test_environment_sets_size_limit(app: Tooli, limit: str, code: int) -> None:
    done = invoke(app, "text", "-", input="0123456789", env={"TOOLI_MAX_INPUT": limit}, mode="json")
    assert done.exit_code == code


def test_environment_cannot_raise_size_limit(tmp_path: Path) -> None:
    app = Tooli("small")

    @app.command()
    def size(data: Annotated[StdinOr[bytes], InputLimits(max_bytes=3)]) -> int:
        return len(data)

    done = invoke(app, "-", input="12345", env={"TOOLI_MAX_INPUT": "1MB"}, mode="json")
    assert done.exit_code == 65


def test_schema_allows_location_or_direct_content(app: Tooli) -> None:
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


def test_constraint_on_stdin_or_is_an_error() -> None:
    app = Tooli("wrong")

    @app.command()
    def read(data: Annotated[StdinOr[str], pydantic.StringConstraints(max_length=3)]) -> str:
        return data

    with pytest.raises(DefinitionError, match="annotate the inner type"):
        app.find("read")


def test_option_does_not_read_pipe_by_default() -> None:
    app = Tooli("opts")

    @app.command()
    def read(data: Annotated[StdinOr[str], Option("--data")]) -> str:
        return data

    error = invoke(app, input="x", mode="json").error
    assert error is not None
    assert error["code"] == "E1002"
    assert invoke(app, "--data", "-", input="x", mode="json").result == "x"


def test_open_files_are_closed(tmp_path: Path) -> None:
    opened: list[Any] = []
    app = Tooli("reads")

    @app.command()
    def read(data: StdinOr[Path]) -> None:
        opened.append(data.open())

    file = tmp_path / "a"
    file.write_text("x")
    assert app.call("read", data=file).ok
    with pytest.raises(ValueError, match="closed"):
        opened[0].read()


async def test_async_function_reads_in_thread(tmp_path: Path) -> None:
    """Reading does not block the event loop."""
    import threading

    app = Tooli("later")
    threads: list[Any] = []

    class RecordingInput(Input):
        __slots__ = ()

        def read_text(self, *a: Any, **k: Any) -> str:
            threads.append(threading.current_thread())
            return super().read_text(*a, **k)

    @app.command()
    async def one(data: StdinOr[str]) -> str:
        return data

    @app.command()
    async def many(data: StdinOr[str]):
        yield data

    file = tmp_path / "a"
    file.write_text("x")
    assert (await app.acall("one", data=RecordingInput(str(file)))).result == "x"
    assert [item async for item in app.astream("many", data=RecordingInput(str(file)))] == ["x"]
    assert app.call("many", data=RecordingInput(str(file))).result == ["x"]
    assert len(threads) == 3
    assert threading.main_thread() not in threads


def test_null_flag_separates_records_at_nul(app: Tooli) -> None:
    done = invoke(app, "lines", "-", "--null", input=b"a\nb\0c\0", mode="json")
    assert done.result == ["a\nb", "c"]


def test_dry_run_reads_nothing(app: Tooli, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text("{")
    done = invoke(app, "object", str(file), "--dry-run", mode="json")
    assert done.result["arguments"] == {"data": str(file)}
