"""The calls that every export is tried with, and what must come of each."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.integration.frameworks.everything import HARD

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
MOMENTS = {
    "moment": "2024-02-29T01:02:03",
    "day": "2024-02-29",
    "clock": "01:02:03",
    "length": "P1DT3S",
    "uid": "00000000-0000-0000-0000-000000000007",
    "money": "1.10",
    "raw": "plain",
}
GATHERED = {
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


class Case(NamedTuple):
    """A call, and the result or the error's code that it must come to."""

    tool: str
    arguments: dict[str, Any]
    result: Any = None
    code: str | None = None
    against_schema: bool = False  # the schema alone shows that it is wrong


def seen(given: dict[str, Any], **kinds: str) -> dict[str, Any]:
    """What the tools of the app say about their arguments: the class of each, and its value."""
    return {name: [kind, given.get(name)] for name, kind in kinds.items()}


COLLIDING = {"config": "--c", "self": "--s", "json": "--json", "name": "-n", "yes": True}
COLLIDED = {
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
    **COLLIDING,
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
        seen(
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
        "moments",
        MOMENTS,
        seen(
            MOMENTS,
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
        "gathered",
        GATHERED,
        seen(
            {**GATHERED, "bag": [1, 3]},
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
        seen(
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
        seen(
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
    Case("collide", COLLIDING, COLLIDED),
    Case("later", {"n": 1}, 2),
    Case("count", {"n": 2}, [{"i": 0}, {"i": 1}]),
    Case("acount", {"n": 2}, [0, 1]),
    Case("nothing", {}),
    Case("users_create", {"user": USER}, USER),
    Case("class", {}, HARD),
    # ---------------------------------------------------------------- errors
    Case("fail", {"kind": "missing"}, code="E3010"),
    Case("fail", {"kind": "final"}, code="E3010"),
    Case("fail", {"kind": "crash"}, code="E5000"),
    Case("count", {"n": 3, "fail_after": 1}, code="E3010"),
    Case("scalars", {**SCALARS, "whole": "many"}, code="E1003", against_schema=True),
    Case("moments", {**MOMENTS, "day": "someday"}, code="E1003"),
    Case("later", {}, code="E1002", against_schema=True),
    Case("grep", {"patern": "x"}, code="E1004", against_schema=True),
    Case("wait", {"seconds": 3}, code="E4050"),
    Case("await_it", {"seconds": 60}, code="E4050"),
    # ---------------------------------------------------------------- policy
    Case("delete", {"path": "--x"}, code="E1010"),
    Case("delete", {"path": "--x", "yes": True}, "deleted --x"),
    Case("delete", {"path": "--x", "yes": "true"}, code="E1003", against_schema=True),
    Case("delete", {"path": "-", "yes": True, "dry_run": "x"}, code="E1003", against_schema=True),
    Case("launch", {"target": "moon"}, code="E2101"),
]
