"""Calls to the sample apps, for every interface. Arguments are in declaration order.

The dictionaries at the top are values of `Case.skip`: interfaces that a case does not apply to, and
the reason.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.parity.sample_apps import ERRORS, RESULTS, Color, Level, Point, User

from tooli.testing import Case

TEXT_ONLY = {"cli": "every value on a command line is text"}
NO_EMPTY = {"cli": "a command line cannot contain an empty list"}
NO_NULL = {"cli": "a command line cannot contain null"}
PRINTS = {"python": "printed text is the result on a command line, but not in Python"}
ITEMWISE = dict.fromkeys(
    ("stream", "astream", "jsonl"), "each item of a stream is a separate document"
)
NO_PARSER = {"mcp": "JSON parsers of MCP clients fail on the value, so MCP replaces it"}
EMPTY_IS_FALSE = {"cli": "Typer converts empty text to false"}
OTHER_FLAG = {"cli": "the parameter `kinds` has the flag --kind"}
INTERRUPTS = {"python": "Ctrl-C stops the Python program itself"}
NO_COMMAND_NAME = {"cli": "a command line of an app with a single command has no command name"}
JSON_TEXT = dict.fromkeys(
    ("python", "http", "mcp"), "only a command line accepts an object as JSON text"
)
UUID_TEXT = "12345678-1234-5678-1234-567812345678"

VALID: dict[str, list[Any]] = {
    "str": ["plain", "", "-dash", "--json", "--", "a=b", "naïve שלום", "@x", "{", "a b\nc", "%s"],
    "int": [7, -3, 0, "7", "007", "1_0", " 7", "1.0", 10**30],
    "float": [1.5, -0.25, 3, "1e3", "1.5", "inf"],
    "bool": [True, False],
    "path": [Path("a/b"), "a/b", "-x", "~"],
    "enum": [Color.BLUE, "deep-blue", "red"],
    "int-enum": [Level.HIGH, "2", 2],
    "literal": ["ham", "eggs"],
    "datetime": [datetime(2024, 2, 29, 1, 2, 3), "2024-02-29", "2024-02-29T01:02:03Z"],
    "date": [date(2024, 2, 29), "2024-02-29"],
    "time": [time(1, 2, 3), "01:02"],
    "timedelta": [timedelta(hours=1), timedelta(0), -timedelta(seconds=90), "PT1H", "01:00:00"],
    "uuid": [UUID(UUID_TEXT), UUID_TEXT],
    "decimal": [Decimal("1.10"), "1.10", 3, -2.5],
    "bytes": [b"abc", "abc", b""],
    "str-list": [["a", "b"], ["-x"], ["x"], ("a", "b")],
    "int-list": [[1, 2], ["1", "2"], [-1]],
    "enum-list": [[Color.RED, Color.BLUE], ["red"]],
    "int-set": [{1, 2}, [2, 1, 2], ["3"]],
    "str-frozenset": [frozenset({"a"}), ["b", "a"]],
    "int-str-tuple": [(1, "x"), [1, "x"], ("2", "y"), (-1, "-y")],
    "int-tuple": [(1, 2, 3), [1]],
    "date-list": [[date(2024, 1, 1)], ["2024-01-01", "2024-01-02"]],
    "dict": [{"a": 1}, {}, {"a": "2"}, {"a b": 3}],
    "union": ["x", 3, "-"],
    "dataclass": [Point(1, 2), {"x": 1}, {"x": "1", "y": 2}],
    "typed-dict": [{"start": 1, "stop": 2}],
    "model": [User(name="A"), {"name": "A", "age": 3, "tags": ["x"], "address": {"city": "L"}}],
    "model-list": [[User(name="A")], [{"name": "A"}, {"name": "B"}]],
    "dataclass-list": [[Point(1)], [{"x": 1}, {"x": 2}]],
    "any": ["x"],
    "positive-int": [3, "4"],
}
INVALID: dict[str, list[Any]] = {
    "int": ["abc", "", "1.5", "x1"],
    "float": ["abc", "", "1,5"],
    "enum": ["rd", "nothing-like-it", "", "Red", "rde"],
    "int-enum": ["3", "LOW", "x"],
    "literal": ["hm", "spam", "hamm"],
    "datetime": ["soon", ""],
    "date": ["2024-02-30", "x"],
    "time": ["25:00", "x"],
    "timedelta": ["x", "90"],
    "uuid": ["nope"],
    "decimal": ["x"],
    "int-list": [["1", "x"], ["x", "y"]],
    "enum-list": [["rd", "red"]],
    "int-set": [["x"]],
    "int-str-tuple": [("x", "y")],
    "date-list": [["x"]],
    "dict": [{"a": "x"}, "x", "[1]"],
    "dataclass": [{"y": 1}, {"x": "no"}],
    "typed-dict": [{"start": "x"}, {}],
    "model": [{"age": -1}, {"name": "A", "age": "x", "address": {}}, {}],
    "model-list": [[{"name": 1}], [{}]],
    "positive-int": [0, -1, "x"],
}


def _cases_of(values_by_type: dict[str, list[Any]]) -> list[Case]:
    """Return two cases for each value: as an argument and as an option."""
    return [
        Case(f"{prefix}-{name}", {"value": value})
        for name, values in values_by_type.items()
        for value in values
        for prefix in ("argument", "option")
    ]


VALID_VALUES = [
    *_cases_of(VALID),
    Case("argument-bool", {"value": "true"}),
    Case("argument-bool", {"value": "yes"}),
    Case("argument-bool", {"value": "0"}),
    Case("argument-union", {"value": "3"}, skip=TEXT_ONLY),
    Case("argument-any", {"value": {"a": 1}}, skip=TEXT_ONLY),
    Case("argument-timedelta", {"value": 90}, skip=TEXT_ONLY),
    Case("argument-str-list", {"value": []}, skip=NO_EMPTY),
    Case("option-str-list", {"value": []}, skip=NO_EMPTY),
    Case("argument-model-list", {"value": []}, skip=NO_EMPTY),
    Case("option-str", {"value": None}, skip=NO_NULL),
    Case("option-model", {"value": None}, skip=NO_NULL),
    Case("argument-str", {"value": None}, skip=NO_NULL),
    Case("option-str"),
    Case("option-str-list"),
    Case("option-model"),
    Case("option-int-str-tuple"),
    Case("find-files", {"pattern": "x"}),
    Case(
        "find-files",
        {
            "pattern": "x",
            "root": Path("/"),
            "limit": 3,
            "color": "deep-blue",
            "kinds": ["a", "b"],
            "deep": True,
            "follow": False,
        },
    ),
    Case("collide"),
    Case(
        "collide",
        {
            "json": "x",
            "output": "y",
            "help": "z",
            "schema": "sc",
            "name": "q",
            "self": "s",
            "kwargs": "w",
            "tool_name": "tt",
        },
    ),
    Case("collide", {"yes": True, "dry_run": True}),
]
INVALID_VALUES = [
    *_cases_of(INVALID),
    Case("argument-bool", {"value": "maybe"}),
    Case("argument-bool", {"value": ""}, skip=EMPTY_IS_FALSE),
    Case("argument-int", {"value": 1.5}, skip=TEXT_ONLY),
    Case("argument-dict", {"value": '{"a":'}, skip=JSON_TEXT),
    Case("argument-dataclass", {"value": "{bad"}, skip=JSON_TEXT),
    Case("find-files", {"pattern": "x", "limit": 1000}),
    Case("find-files", {"pattern": "x", "limit": 0}),
]
USAGE_ERRORS = [
    Case("argument-str"),
    Case("argument-str-list"),
    Case("argument-model"),
    Case("find-files"),
    Case("find-files", {"limit": "x", "color": "rd"}),
    Case("find-files", {"pattern": "x", "limit": "x", "color": "rd", "kinds": ["k"]}),
    Case("find-files", {"patern": "x"}),
    Case("find-files", {"patern": "x", "limit": "q"}),
    Case("find-files", {"pattern": "x", "rot": "y"}),
    Case("find-files", {"pattern": "x", "depp": True}),
    Case("find-files", {"pattern": "x", "zzzzzz": "x"}),
    Case("find-files", {"zzzzzz": "x"}),
    Case("find-files", {"pattern": "x", "zzzzzz": "x", "limit": "q"}),
    Case("find-files", {"pattern": "x", "kind": "x"}, skip=OTHER_FLAG),
    Case("later", {"n": "x"}),
    Case("later"),
    Case("count", {"n": "x"}),
    Case("old", {"n": "x"}),
    Case("under-typer", {"wrd": "x"}),
    Case("ask", {"ctx": 1}),
    Case("no-such"),
    Case("find-flies"),
    Case("users"),
    Case("users.nope"),
    Case("users.lst"),
    Case("users.admin.promot"),
    Case("users.admin.promote"),
    Case("users.create", {"user": {}}),
    Case("users.list", {"limit": "x"}),
]
COMMAND_LINES = [
    Case("find-files", argv=argv)
    for argv in (
        ["x", "y", "z"],
        ["x", "--limit"],
        ["x", "--deep=yes"],
        ["x", "-z"],
        ["x", "-k"],
        ["x", "-ka", "-k", "b"],
        ["x", "--limit=3", "--no-follow"],
        ["x", "--limit", "1", "--limit", "2"],
        ["--nope"],
        ["x", "y", "--limit", "q", "--colr", "red"],
        ["--limit", "q"],
        ["--", "-x"],
        ["--input", '{"pattern":"x","limit":3}'],
        ["--input", '{"pattern":"x","limit":"q","zz":1}'],
        ["--input", "[1"],
        ["x", "--output", "jsn"],
    )
] + [
    Case("argument-int-str-tuple", argv=["1"]),
    Case("argument-int-str-tuple", argv=["1", "x", "y"]),
    Case("option-int-str-tuple", argv=["--value", "1"]),
    Case("option-model", argv=["--value.name", "A", "--value.age", "4"]),
    Case("option-model", argv=["--value.name", "A", "--value.address.city", "L"]),
    Case("option-model", argv=["--value.name", "A", "--value.tags", "x", "--value.tags", "y"]),
    Case("option-model", argv=["--value.name", "A", "--value.age", "x"]),
    Case("option-model", argv=["--value.nme", "A"]),
    Case("option-model", argv=["--value", "name=A"]),
    Case("argument-model", argv=["name=A"]),
    Case("argument-model", argv=["@/nowhere/at/all"]),
    Case("option-bool", argv=["--no-value"]),
    Case("say", argv=["hi", "there"]),
]
FUNCTIONS = [
    Case("ask"),
    Case("ask", {"question": "how"}),
    Case("ask", {}, {"yes": True}),
    Case("ask", {}, {"verbose": 2, "quiet": True}),
    Case("ask", {}, {"no_input": True}),
    Case("ask", {}, {"dry_run": True}),
    Case("under-typer"),
    Case("under-typer", {"word": "x"}),
    Case("later", {"n": 1}),
    *(
        Case(tool, arguments)
        for tool in ("count", "acount")
        for arguments in (
            {"n": 3},
            {"n": 0},
            {"n": 5, "fail_after": 2},
            {"n": 5, "fail_after": 0},
        )
    ),
    Case("breaking", {"n": 2}),
    Case("breaking", {"n": 0}),
    Case("returning", {"n": 2}),
    Case("returning", {"n": 0}),
    Case("interrupted", skip=INTERRUPTS),
    Case("interrupted", {"after": 2}, skip=INTERRUPTS),
    Case("parsed", {"value": "ff"}),
    Case("parsed", {"value": "zz"}),
    Case("parsed"),
    Case("checked", {"value": 4}),
    Case("checked", {"value": 3}),
    Case("asked", {"value": "x"}),
    Case("asked"),
    Case("chatty", {"text": "hi"}),
    Case("say", {"text": "hi"}, skip=PRINTS),
    Case("say", {"text": "hi", "code": 3}, skip=PRINTS),
    Case("say", {"text": "hi"}, {"dry_run": True}),
    Case("say", {}),
]
POLICY = [
    Case("delete", {"path": "x"}),
    Case("delete", {"path": "-x", "force": True}),
    Case("delete", {"path": "a b"}, {"yes": True}),
    Case("delete", {"path": "x"}, {"dry_run": True}),
    Case("delete"),
    Case("delete", {}, {"dry_run": True}),
    Case("launch", {"target": "x"}),
    Case("launch", {"target": "x"}, {"yes": True}),
    Case("launch", {"target": "x"}, {"dry_run": True}),
    Case("scoped"),
    Case("old"),
    Case("fresh"),
    Case("fresh", {}, {"detailed": True}),
    Case("find-files", {"pattern": "x"}, {"detailed": True}),
    Case("fresh", {}, {"concise": True}),
    Case("find-files", {"pattern": "x"}, {"concise": True}),
    Case("collide", {}, {"dry_run": True}),
    Case("users.create", {"user": {"name": "A"}}),
    Case("users.create", {"user": {"name": "A"}, "notify": True}),
    Case("users.list"),
    Case("users list"),
    Case("users.admin.promote", {"name": "x"}),
    Case("users.admin.promote", {"name": "x", "level": "2"}),
]
RETURN_VALUES = [
    Case(
        "result",
        {"kind": kind},
        skip={
            **(ITEMWISE if kind in ("recursive", "deep", "nan") else {}),
            **(NO_PARSER if kind in ("deep", "surrogate") else {}),
        },
    )
    for kind in RESULTS
]
SINGLE_COMMAND_APP = [
    Case("find-files", {"pattern": "x"}),
    Case("find-files"),
    Case("find-files", {"pattern": "x", "limit": 1000}),
    Case("find-files", {"pattern": "x", "depp": True}),
    Case("find-files", {"pattern": "x"}, {"dry_run": True}),
    Case("nope", skip=NO_COMMAND_NAME),
]
CALLBACK_APP = [
    Case("find-files", {"pattern": "x", "limit": 3}),
    Case("find-files"),
    Case("find-files", {"limit": "q", "color": "rd"}),
    Case("find-files", {"pattern": "x", "limit": 1000}),
    Case("find-files", {"pattern": "x", "depp": True, "limit": "q"}),
    Case("find-files", argv=["x", "y", "--colr", "red"]),
    Case("say", {"text": "hi"}, skip=PRINTS),
    Case("nope"),
    Case("plain"),
    Case("plain.latr"),
    Case("plain.later", {"n": 0}),
    Case("plain.later", {"n": 1}),
    Case("plain.later", {"n": "x"}),
    Case("plain.later"),
    Case("plain.levels", {"name": "x", "level": "2"}),
    Case("plain.say", {"text": "hi"}, skip=PRINTS),
    Case("plain.fail", {"kind": "rich"}),
    Case("plain.fail", {"kind": "typer-exit"}),
    Case("plain.fail", {"kind": "value-error"}),
    Case("plain.levels", {"name": "x"}, {"dry_run": True}),
]
FAILURES = [
    Case(tool, {"kind": kind})
    for tool in ("fail", "afail")
    for kind in ERRORS
    if (tool, kind) != ("fail", "stop-iteration")  # a separate test checks that it does not hang
]
