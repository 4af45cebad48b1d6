"""TOON output, according to its specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli import NotFoundError, Tooli
from tooli.cli.toon import encode
from tooli.testing import invoke

DOCUMENTS: list[tuple[Any, str]] = [
    ({}, ""),
    ([], "[]"),
    ("", '""'),
    ("plain text", "plain text"),
    ("\ufeffmarked", '"\ufeffmarked"'),
    ({"a": 1, "b": None, "c": True}, "a: 1\nb: null\nc: true"),
    ({"a": {"b": {}}, "c": []}, "a:\n  b:\nc: []"),
    ([1, "x", False], "[3]: 1,x,false"),
    ([[], [1, 2]], "[2]:\n  - [0]:\n  - [2]: 1,2"),
    ([{}, 1], "[2]:\n  -\n  - 1"),
    ([{"a": 1, "b": "x,y"}, {"b": "z", "a": 2}], '[2]{a,b}:\n  1,"x,y"\n  2,z'),
    ([{"a": 1}, {"a": 2, "b": 3}], "[2]:\n  - a: 1\n  - a: 2\n    b: 3"),
    ([{"a": {"x": 1}, "b": 2}], "[1]{a{x},b}:\n  1,2"),
    ([{"a": {"x": 1}}, {"a": None}], "[2]:\n  - a:\n      x: 1\n  - a: null"),
    ([{"a": []}, {"a": []}], "[2]:\n  - a: []\n  - a: []"),
    ({"k": {"a": {"x": 1}, "b": {"x": 2}}}, "k[2:]{x}:\n  a: 1\n  b: 2"),
    ({"k": {"a": {"x": 1}}}, "k:\n  a:\n    x: 1"),
    ({"a": {"x": 1}, "b c": {"x": "p:q"}}, '[2:]{x}:\n  a: 1\n  "b c": "p:q"'),
    (
        [{"rows": [{"x": 1}, {"x": 2}], "z": 0}, {"z": 1}],
        "[2]:\n  - rows[2]{x}:\n      1\n      2\n    z: 0\n  - z: 1",
    ),
    ([[{"a": 1}]], "[1]:\n  - [1]:\n    - a: 1"),
]


@pytest.mark.parametrize(("value", "text"), DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_documents_are_encoded_as_specified(value: Any, text: str) -> None:
    assert encode(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e16, "10000000000000000"),
        (-1.5e17, "-150000000000000000"),
        (1.2345678901234568e20, "123456789012345680000"),
        (1e21, "1e+21"),
        (1e-5, "0.00001"),
        (-2.5e-6, "-0.0000025"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (2**80, str(2**80)),
    ],
)
def test_numbers(number: float, text: str) -> None:
    assert encode(number) == text
    assert float(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", " x", "x ", "true", "null", "5", "-1", "+3", "05", "1.5", "1e6", "1E-6", "-", "- x"),
        *("#x", "a:b", "a,b", 'a"b', "a\\b", "[x", "x]", "{x", "x}", "a\nb", "\x1b[31m", "a\tb"),
    ],
)
def test_quoted_strings(text: str) -> None:
    written = encode({"t": text})
    assert written.startswith('t: "')
    assert json.loads(written[3:]) == text  # JSON has the same escapes


@pytest.mark.parametrize(
    "text",
    ["1.", ".5", "1e", "1_0", "٣", "0x1F", "2024-01-02", "v1.2", "True", "a-b", "x#", "\x7f"],
)
def test_unquoted_strings(text: str) -> None:
    assert encode({"t": text}) == f"t: {text}"


@pytest.mark.parametrize("key", ["a.b", "_x", "Z9"])
def test_unquoted_keys(key: str) -> None:
    assert encode({key: 1}) == f"{key}: 1"


@pytest.mark.parametrize("key", ["", "9a", ".a", "a b", "a-b", "ä", "a:", "\n"])
def test_quoted_keys(key: str) -> None:
    assert encode({key: 1}) == f"{json.dumps(key, ensure_ascii=False)}: 1"


# ------------------------------------------------------------------ as an answer


def make_app() -> Tooli:
    app = Tooli("desk", version="1.0")

    @app.command()
    def tickets(count: int = 2) -> list[dict[str, Any]]:
        return [{"id": i, "title": f"No. {i}", "open": i % 2 == 0} for i in range(count)]

    @app.command()
    def flow(count: int = 2):
        yield from ({"id": i} for i in range(count))

    @app.command()
    def gone() -> str:
        raise NotFoundError("There is no such ticket.", field="id")

    @app.command()
    def name() -> str:
        return "caf\udce9"

    return app


def test_envelope() -> None:
    done = invoke(make_app(), "tickets", "-o", "toon")
    head, _, meta = done.stdout.partition("meta:\n")
    assert head == "ok: true\nresult[2]{id,title,open}:\n  0,No. 0,true\n  1,No. 1,false\n"
    assert meta.startswith('  tool: desk.tickets\n  version: "1.0"\n  duration_ms: ')
    assert (done.exit_code, done.stderr) == (0, "")


def test_stream_is_collected() -> None:
    assert "result[2]{id}:\n  0\n  1\n" in invoke(make_app(), "flow", mode="toon").stdout


@pytest.mark.parametrize(
    ("argv", "code", "lines"),
    [
        (["gone"], 10, ["ok: false", "  message: There is no such ticket.", "  field: id"]),
        (["tikets"], 2, ["ok: false", "  code: E1001"]),
        (["tickets", "--count", "x"], 2, ["ok: false", "  code: E1003"]),
    ],
)
def test_failures_are_in_the_envelope(argv: list[str], code: int, lines: list[str]) -> None:
    done = invoke(make_app(), *argv, "-o", "toon")
    assert done.exit_code == code
    assert set(lines) <= set(done.stdout.splitlines())
    assert done.stderr == ""


def test_lone_surrogates_are_escaped() -> None:
    assert 'result: "caf\\\\udce9"\n' in invoke(make_app(), "name", mode="toon").stdout
