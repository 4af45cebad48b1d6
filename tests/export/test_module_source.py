"""Exported modules and their generated tests."""

from __future__ import annotations

import ast

import pytest
from tests.export.test_frameworks import MODES, exported

from tooli.export.module_source import fill_template, render_module


def test_order_of_a_module() -> None:
    source = render_module(
        "Doc.",
        ["json", "from typing import Any", "asyncio"],
        ["import b", "import a"],
        "from x import app",
        "TIMEOUT = 1.0",
        ["def f() -> None: ..."],
        ["one = f()", "two = f()"],
    )
    assert source == (
        '"""Doc."""\n\nfrom __future__ import annotations\n\n'
        "import asyncio\nimport json\nfrom typing import Any\n\nimport a\nimport b\n\n"
        "from x import app\n\nTIMEOUT = 1.0\n\n\ndef f() -> None: ...\n\n\none = f()\n\ntwo = f()\n"
    )


def test_unknown_placeholders_stay() -> None:
    assert fill_template("$a $b ${c}\n", {"a": "1"}) == "1 $b ${c}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["openai", "adk", "python"])
def test_generated_tests(target: str, mode: str) -> None:
    files = exported("file-tools", target, mode)
    (source,) = [text for name, text in files.items() if name.startswith("test_")]
    names = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert "test_rejects_unknown_argument" in names
    assert ("test_broken_program_returns_a_failure" in names) == (mode == "subprocess")
    assert ("test_agent_loads" in names) == (target == "adk")
    assert ("test_function_exists" in names) == (target == "python")
    assert ("test_example_reaches_the_app" in names) == (target != "python")
