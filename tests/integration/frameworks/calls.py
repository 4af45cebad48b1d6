"""The calls that every export is tested with, and their expected results."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.integration.frameworks.everything import DIFFICULT_TEXT

TEXT = 'naïve שלום 😀 "quoted" \\ line\nnext \u2028 end'
OPTIONS = ("--yes", "-x", "--", "--json", "-")

SCALARS = {
    "text": TEXT,
    "whole": 7,
    "number": 1.5,
    "truth": True,
    "path": "a/b.txt",
    "color": "deep-blue",
    "level": 2,
    "word": "ham",
}
TEXT_VALUES = {
    "moment": "2024-02-29T01:02:03",
    "day": "2024-02-29",
    "clock": "01:02:03",
    "length": "P1DT3S",
    "uid": "00000000-0000-0000-0000-000000000007",
    "money": "1.10",
    "raw": "plain",
}
COLLECTIONS = {
    "words": ["a", *OPTIONS],
    "bag": [3, 1],
    "row": [1, "--two"],
    "rows": [1, 2, 3],
    "days": ["2024-02-29"],
    "table": {"--a": 1},
    "either": 5,
}
USER = {"name": "Ada", "age": 36, "home": {"x": 1, "y": 2}}
TREE = {"label": "root", "below": [{"label": "leaf", "below": []}]}
STRUCTURED = {
    "point": {"x": 1, "y": 2},
    "span": {"start": 1, "stop": 2},
    "user": USER,
    "several": [USER],
    "tree": TREE,
}


CURSOR = "<cursor>"
"""Stands for the cursor of the second page of `pages`."""


class Case(NamedTuple):
    """A call and its expected result or error code."""

    tool: str
    arguments: dict[str, Any]
    result: Any = None
    code: str | None = None
    violates_schema: bool = False  # a framework can refuse it without calling the tool


def received(arguments: dict[str, Any], **types: str) -> dict[str, Any]:
    """Return the expected result of `describe_arguments` in the app: types and values."""
    return {name: [type_name, arguments.get(name)] for name, type_name in types.items()}


RESERVED_NAMES = {"config": "--c", "self": "--s", "json": "--json", "name": "-n", "yes": True}
RESERVED_NAMES_RESULT = {
    "config": "c",
    "callbacks": "c",
    "run_manager": "r",
    "self": "s",
    "tool_context": "t",
    "input": "i",
    "json": "j",
    "yes": False,
    "name": "n",
    "arguments": "a",
    "timeout": 0,
    "words": "w",
    "list": "l",
    **RESERVED_NAMES,
}
DEFAULTS = {
    "whole": 3,
    "color": "deep-blue",
    "words": ["a", "b"],
    "path": ".",
    "day": "2024-02-29",
    "limit": 10,
}

CASES = [
    Case(
        "scalars",
        SCALARS,
        received(
            SCALARS,
            text="str",
            whole="int",
            number="float",
            truth="bool",
            path="PosixPath",
            color="Color",
            level="Level",
            word="str",
        ),
    ),
    *[Case("grep", {"pattern": word}, word) for word in ("--yes", "--", TEXT)],
    Case(
        "text_values",
        TEXT_VALUES,
        received(
            TEXT_VALUES,
            moment="datetime",
            day="date",
            clock="time",
            length="timedelta",
            uid="UUID",
            money="Decimal",
            raw="bytes",
        ),
    ),
    Case(
        "collections",
        COLLECTIONS,
        received(
            {**COLLECTIONS, "bag": [1, 3]},
            words="list",
            bag="list",
            row="tuple",
            rows="tuple",
            days="list",
            table="dict",
            either="int",
        ),
    ),
    Case(
        "structured",
        STRUCTURED,
        received(
            STRUCTURED,
            point="Point",
            span="dict",
            user="User",
            several="list",
            tree="Tree",
        ),
    ),
    Case(
        "optional",
        {},
        received(
            DEFAULTS,
            text="NoneType",
            whole="int",
            color="Color",
            words="list",
            path="PosixPath",
            user="NoneType",
            day="date",
            limit="int",
        ),
    ),
    Case("reserved_names", RESERVED_NAMES, RESERVED_NAMES_RESULT),
    Case(
        "refused",
        {"pet": {"kind": "dog"}, "secret": "hush", "grosse": 3, "arg_4": "x"},
        {"pet": "dog", "length": 4, "größe": 3, "имя": "x"},
    ),
    Case("later", {"n": 1}, 2),
    Case("count", {"n": 2}, [{"i": 0}, {"i": 1}]),
    Case("acount", {"n": 2}, [0, 1]),
    Case("nothing", {}),
    Case("pages", {}, [0, 1, 2]),
    Case("pages", {"limit": 2}, [0, 1]),
    Case("pages", {"limit": 0}, [0, 1, 2, 3, 4, 5, 6]),
    Case("pages", {"limit": None, "cursor": None}, [0, 1, 2], violates_schema=True),
    Case("pages", {"cursor": CURSOR}, [3, 4, 5]),
    Case("pages", {"cursor": "nonsense"}, code="E1042"),
    Case("users_create", {"user": USER}, USER),
    Case("class", {}, DIFFICULT_TEXT),
    # ---------------------------------------------------------------- errors
    Case("fail", {"kind": "missing"}, code="E3010"),
    Case("fail", {"kind": "final"}, code="E3010"),
    Case("fail", {"kind": "crash"}, code="E5000"),
    Case("count", {"n": 3, "fail_after": 1}, code="E3010"),
    Case("scalars", {**SCALARS, "whole": "many"}, code="E1003", violates_schema=True),
    Case("text_values", {**TEXT_VALUES, "day": "someday"}, code="E1003"),
    Case("later", {}, code="E1002", violates_schema=True),
    Case("grep", {"patern": "x"}, code="E1004", violates_schema=True),
    Case("wait", {"seconds": 3}, code="E4050"),
    Case("await_it", {"seconds": 60}, code="E4050"),
    # ---------------------------------------------------------------- policy
    Case("delete", {"path": "--x"}, code="E1010"),
    Case("delete", {"path": "--x", "yes": True}, "deleted --x"),
    Case(
        "delete", {"path": "--x", "yes": None, "dry_run": None}, code="E1010", violates_schema=True
    ),
    Case("delete", {"path": "--x", "yes": "true"}, "deleted --x", violates_schema=True),
    Case("delete", {"path": "--x", "yes": "maybe"}, code="E1003", violates_schema=True),
    Case("delete", {"path": "-", "yes": True, "dry_run": "x"}, code="E1003", violates_schema=True),
    Case("launch", {"target": "moon"}, code="E2101"),
]
