"""Scripts are checked before anything runs, and all errors are reported at once."""

from __future__ import annotations

import pytest
from tests.orchestrate.script_app import Shop

from tooli.orchestrate.script_check import MAX_SOURCE_CHARS, script_error
from tooli.orchestrate.script_hints import ScriptProblem


def problems_of(source: str, **options) -> list[dict[str, object]]:
    """Return the problems of a script whose first line would call a tool."""
    shop = Shop()
    error = shop.app.orchestrate(source, **options).error
    assert error is not None
    assert error.code == "E1070"
    assert shop.ran == []
    assert error.details is not None
    return error.details["errors"]


def test_all_problems_at_once_with_their_places() -> None:
    source = (
        "await find(text=3)\n"
        "a = await price(nme='tea')\n"
        "b = await price(name='tea')\n"
        "b['cent']\n"
        "price(name='tea')\n"
        "await pric(name='tea')\n"
        "next(x for x in [1])\n"
    )
    found = problems_of(source)
    assert [(p["line"], p["column"]) for p in found] == [
        *((1, 12), (2, 11), (2, 17), (4, 3), (5, 1), (6, 7), (7, 1)),
    ]
    hints = [str(problem.get("hint")) for problem in found]
    assert "Did you mean 'name'?" in hints
    assert "Did you mean 'price'?" in hints
    assert any("Write `await`" in hint for hint in hints)
    assert any('did you mean "cents"' in str(problem["message"]) for problem in found)


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("def f():\n    yield 1", "Return a list"),
        ("class E(Exception):\n    pass", "class without a base"),
        ("class A:\n    @property\n    def x(self):\n        return 1", "without a decorator"),
        ("d = {'a': 1}\ndel d['a']", "d.pop(key)"),
        ("try:\n    pass\nexcept* ValueError:\n    pass", "without the star"),
        ("type X = int", "annotations are optional"),
        ("import asyncio\nasyncio.create_task(find())", "asyncio.gather"),
        ("import asyncio\nawait asyncio.wait_for(find(), 1)", "option timeout"),
        ("import asyncio\nawait asyncio.gather(find(), return_exceptions=True)", "async function"),
        ("import sys\nsys.exit(1)", "`return`"),
        ("import statistics", "A script can import: asyncio"),
        ("open('x')", "A script has no files"),
        ("input()", "option inputs"),
        ("eval('1')", "in the script itself"),
        ("import json\njson.dumps({}, default=str)", ".isoformat()"),
        ("import re\nre.sub('a', lambda m: 'b', 'a')", "re.finditer"),
        ("x = next((i for i in [1] if i), None)", "next(iter("),
    ],
)
def test_missing_syntax_has_a_hint(source: str, hint: str) -> None:
    found = problems_of(f"await find()\n{source}")
    assert any([hint in str(problem.get("hint")) for problem in found]), found


def test_syntax_that_is_not_supported_is_reported_with_wrong_types() -> None:
    found = problems_of("d = {'a': 1}\ndel d['a']\nawait find(text=3)")
    assert [problem["line"] for problem in found] == [2, 3]


def test_syntax_error() -> None:
    assert problems_of("x = (1,\n")[0]["message"]
    assert problems_of("for x in\n  1")[0]["line"] == 1


@pytest.mark.parametrize(
    "source",
    [
        "return 5",
        "if True:\n    return 5",
        "x = list(map(str, [5]))\ny = list(filter(None, x))\nint(y[0])",
        "try:\n    raise PermissionError('x')\nexcept PermissionError:\n    n = 5\nn",
        "getattr(5, 'real', 5) if hasattr('', 'none') else 5",
        "text = 'next(x for x in y), eval(1)'  # next(x for x in y)\n5",
        "next(iter([x for x in [5]]), None)",
        "max(x for x in [5])",
        "next(iter([5]))",
        "async def main():\n    return 5\nawait main()",
        "import asyncio\nasync def main():\n    return 5\nasyncio.run(main())",
        "def f(item: Item) -> int:\n    return item['cents']\nf({'name': '', 'cents': 5})",
    ],
)
def test_valid_scripts_pass(source: str) -> None:
    assert Shop().app.orchestrate(f"{source}\n").unwrap() == 5


def test_large_script_is_refused() -> None:
    error = Shop().app.orchestrate("1 + " * (MAX_SOURCE_CHARS // 3) + "1").error
    assert error is not None
    assert error.code == "E1034"


def test_equal_problems_are_listed_once_in_order() -> None:
    problems = [ScriptProblem(2, 1, "b"), ScriptProblem(1, 5, "a"), ScriptProblem(2, 1, "b")]
    error = script_error(problems)
    assert error.details == {
        "errors": [
            {"line": 1, "column": 5, "message": "a"},
            {"line": 2, "column": 1, "message": "b"},
        ]
    }
    assert error.message.endswith("Line 1, column 5: a (and 1 more)")
