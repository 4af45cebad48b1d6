"""Results of every type, in every mode. Serialization never fails after a side effect."""

import collections
import datetime as dt
import decimal
import enum
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tooli import Tooli


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Mixed(enum.Enum):
    PAIR = (1, 2)


@dataclass
class Inner:
    path: Path
    tags: set[str]


@dataclass
class Outer:
    inner: Inner
    more: list[Inner] = field(default_factory=list)


class Nested(BaseModel):
    when: dt.date


class Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    full_name: str = Field(alias="fullName")
    nested: list[Nested] = []


class AnyModel(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    thing: Any


class Box(TypedDict):
    width: int


class Pair(NamedTuple):
    left: int
    right: str


class Unprintable:
    """Raises if it is converted to text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class InvalidMapping:
    """Has the methods of a mapping, but all of them raise."""

    def keys(self) -> list[str]:
        raise KeyError("no keys")

    def __getitem__(self, key: str) -> str:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise ZeroDivisionError("no items")


class RaisesOnAccess:
    """Raises an OSError for every attribute."""

    def __getattr__(self, name: str) -> Any:
        raise OSError(f"no {name}")


class Text(str):
    pass


class Count(int):
    def __repr__(self) -> str:
        return "many"

    __str__ = __repr__


def deep(levels: int) -> Any:
    value: Any = "end"
    for i in range(levels):
        value = [value] if i % 2 else {"in": value}
    return value


def recursive() -> Any:
    value: dict[str, Any] = {"name": "x"}
    value["self"] = value
    value["list"] = [value, [value]]
    return value


RESULTS: dict[str, tuple[Callable[[], Any], Any]] = {
    # name: (function that makes the result, its JSON value, or ... if any JSON is accepted)
    "none": (lambda: None, None),
    "text": (lambda: "naïve \u202eabc\u2028 \x1b[31m \x00", "naïve abc\u2028  "),
    "empty text": (lambda: "", ""),
    "number": (lambda: 1.5, 1.5),
    "false": (lambda: False, False),
    "set": (lambda: {3, 1, 2}, [1, 2, 3]),
    "mixed set": (lambda: {"a", 1}, [1, "a"]),
    "frozenset": (lambda: frozenset({"b", "a"}), ["a", "b"]),
    "bytes": (lambda: "é".encode(), "é"),
    "raw bytes": (lambda: b"\xff\xfe", "//4="),
    "bytearray": (lambda: bytearray(b"x"), "x"),
    "memoryview": (lambda: memoryview(b"x"), "x"),
    "decimal": (lambda: decimal.Decimal("1.10"), "1.10"),
    "nan": (lambda: float("nan"), None),
    "infinities": (lambda: [float("inf"), -float("inf"), 1.0], [None, None, 1.0]),
    "datetime": (
        lambda: dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.timezone.utc),
        "2024-02-29T01:02:03Z",
    ),
    "date": (lambda: dt.date(2024, 2, 29), "2024-02-29"),
    "time": (lambda: dt.time(1, 2, 3), "01:02:03"),
    "timedelta": (lambda: dt.timedelta(days=1, seconds=2), "P1DT2S"),
    "uuid": (lambda: uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "path": (lambda: Path("a/b"), "a/b"),
    "enum": (lambda: Colour.RED, "red"),
    "int enum": (lambda: Level.LOW, 1),
    "tuple enum": (lambda: Mixed.PAIR, [1, 2]),
    "dataclass": (
        lambda: Outer(Inner(Path("p"), {"b", "a"}), [Inner(Path("q"), set())]),
        {"inner": {"path": "p", "tags": ["a", "b"]}, "more": [{"path": "q", "tags": []}]},
    ),
    "model": (
        lambda: Model(full_name="x", nested=[Nested(when=dt.date(2024, 1, 1))]),
        {"fullName": "x", "nested": [{"when": "2024-01-01"}]},
    ),
    "unprintable model": (lambda: AnyModel(thing=Unprintable()), ...),
    "nan model": (lambda: AnyModel(thing=float("nan")), {"thing": None}),
    "typed dict": (lambda: Box(width=1), {"width": 1}),
    "named tuple": (lambda: Pair(1, "x"), [1, "x"]),
    "deep": (lambda: deep(10_000), ...),
    "recursive": (recursive, ...),
    "huge integer": (lambda: 10**5000, hex(10**5000)),
    "big integer": (lambda: 10**30, 10**30),
    "number keys": (lambda: {1: "a", 2.5: "b", None: "c", False: "d"}, ...),
    "tuple keys": (lambda: {(1, 2): "a"}, {"(1, 2)": "a"}),
    "enum keys": (lambda: {Colour.RED: 1}, {"red": 1}),
    "date keys": (lambda: {dt.date(2024, 1, 1): 1}, {"2024-01-01": 1}),
    "bytes keys": (lambda: {b"k": 1}, {"k": 1}),
    "unprintable keys": (lambda: {Unprintable(): 1}, ...),
    "surrogate": (lambda: "a\udcffb", "a\udcffb"),
    "surrogate path": (lambda: [Path("a\udcff")], ["a\udcff"]),
    "surrogate key": (lambda: {"\ud800": 1}, {"\ud800": 1}),
    "unprintable": (lambda: Unprintable(), ...),
    "unprintable items": (lambda: [1, Unprintable(), {"x": Unprintable()}], ...),
    "invalid mapping": (lambda: [InvalidMapping()], ...),
    "raises on access": (lambda: [RaisesOnAccess()], ...),
    "object": (lambda: [object], ...),
    "function": (lambda: {"f": deep}, ...),
    "exception": (lambda: [ValueError("x")], ["x"]),
    "ordered": (lambda: collections.OrderedDict(a=1), {"a": 1}),
    "counter": (lambda: collections.Counter("aab"), {"a": 2, "b": 1}),
    "deque": (lambda: collections.deque([1, 2]), [1, 2]),
    "range": (lambda: range(3), [0, 1, 2]),
    "subclasses": (lambda: {Text("k"): Text("v"), "n": Count(3)}, {"k": "v", "n": 3}),
    "complex": (lambda: [1 + 2j], ["(1+2j)"]),
    "generator inside": (lambda: {"items": (i for i in range(3))}, {"items": [0, 1, 2]}),
    "generator beside": (
        lambda: {"items": (i for i in range(3)), "bad": float("nan"), "text": "\udcff"},
        {"items": [0, 1, 2], "bad": None, "text": "\udcff"},
    ),
}


JSONL_LISTS = (list, tuple, set, frozenset)
"""Types of results that mode `jsonl` writes with one line per item."""
RESULTS_WITH_WARNINGS = ("nan", "infinities", "deep", "recursive", "huge integer", "object", "text")

app = Tooli("results", version="1")
calls: list[str] = []


@app.command()
def give(name: str) -> str | Any:
    """Return one of the results."""
    calls.append(name)
    return RESULTS[name][0]()


@app.command()
def stream(name: str) -> Iterator[Any]:
    """Yield one of the results twice."""
    yield RESULTS[name][0]()
    yield RESULTS[name][0]()


@app.command()
async def astream(name: str) -> AsyncIterator[Any]:
    """Yield one of the results twice, asynchronously."""
    yield RESULTS[name][0]()
    yield RESULTS[name][0]()


@pytest.fixture(autouse=True)
def no_caller_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLI_OUTPUT", "TOOLI_CALLER", "TOOLI_SESSION_ID", "CLAUDECODE", "AGENT"):
        monkeypatch.delenv(name, raising=False)


def run_app(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        app(list(argv))
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return int(end.value.code or 0), printed.out, printed.err


def parse_strict_json(text: str) -> Any:
    def reject_constant(name: str) -> Any:
        raise AssertionError(name)

    return json.loads(text, parse_constant=reject_constant)


@pytest.mark.parametrize("name", list(RESULTS))
def test_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    calls.clear()
    code, out, _ = run_app(capsys, "give", name, "--json")
    assert calls == [name]
    assert out.count("\n") == 1
    found = parse_strict_json(out)
    assert (code, found["ok"]) == (0, True)
    expected = RESULTS[name][1]
    if expected is not ...:
        assert found.get("result") == expected
    if name in RESULTS_WITH_WARNINGS:
        assert found["meta"]["warnings"]


@pytest.mark.parametrize("command", ["give", "stream", "astream"])
@pytest.mark.parametrize("name", list(RESULTS))
def test_jsonl(name: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_app(capsys, command, name, "--jsonl")
    assert code == 0
    found = [parse_strict_json(line) for line in out.split("\n")[:-1]]
    expected = RESULTS[name][1]
    if command != "give":
        assert len(found) == 2
        if expected is not ...:
            assert found == [expected, expected]
    elif expected is not ... and type(RESULTS[name][0]()) in JSONL_LISTS:
        assert found == expected
    elif expected is not ...:
        assert found == ([] if RESULTS[name][0]() is None else [expected])


NOT_UTF8 = ("surrogate", "surrogate path", "generator beside")
"""Results with bytes that are not UTF-8. They are written unchanged, so capsys cannot read them."""


@pytest.mark.parametrize("mode", ["--plain", "--text", "--plain --print0"])
@pytest.mark.parametrize("name", [name for name in RESULTS if name not in NOT_UTF8])
def test_text(name: str, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_app(capsys, "give", name, *mode.split())
    assert code == 0
    assert err == "" or err.startswith("Warning: ")
    if name == "set":
        assert out.split() == ["1", "2", "3"] or "\0" in out


@pytest.mark.parametrize("command", ["stream", "astream"])
@pytest.mark.parametrize("mode", ["--plain", "--text"])
@pytest.mark.parametrize("name", RESULTS)
def test_text_stream_of_any_type_succeeds(
    name: str, mode: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_app(capsys, command, name, mode)
    assert code == 0
    assert err == "" or err.startswith("Warning: ")


def test_plain_output_of_common_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(capsys, "give", "path", "--plain")[1] == "a/b\n"
    assert run_app(capsys, "give", "enum", "--plain")[1] == "red\n"
    assert run_app(capsys, "give", "typed dict", "--plain")[1] == "width\t1\n"
    assert run_app(capsys, "give", "none", "--plain")[1] == ""
    assert run_app(capsys, "stream", "model", "--plain")[1].count("\n") == 2
