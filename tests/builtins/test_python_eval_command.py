"""python-eval: an expression about data from a file or a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment
from tests.orchestrate.script_app import Shop

from tooli.testing import CommandResult, invoke

ENVELOPE = {"ok": True, "result": [{"size": 3}, {"size": 4}], "meta": {"tool": "shop.find"}}


def evaluate(expression: str, data: Any, **settings: Any) -> CommandResult:
    """Evaluate an expression about data on stdin."""
    app = Shop("eval-shop", allow_python_eval=True, **settings).app
    text = data if isinstance(data, str) else json.dumps(data)
    return invoke(app, "python-eval", expression, "--json", input=text)


def test_result_of_a_command_is_unwrapped() -> None:
    assert evaluate("sum(r['size'] for r in data)", ENVELOPE).result == 7


@pytest.mark.parametrize(
    ("data", "expression", "result"),
    [
        ("[1, 2]", "data", [1, 2]),
        ('{"a": 1}\n{"a": 2}\n', "[row['a'] for row in data]", [1, 2]),
        ("5", "data + 1", 6),
        ("null", "data is None", True),
        ('"é\\ud83d\\ude00"', "len(data)", 2),
        ('{"ok": true}', "data['ok']", True),
    ],
)
def test_data(data: str, expression: str, result: object) -> None:
    assert evaluate(expression, data).result == result


def test_incomplete_result_is_a_warning() -> None:
    meta = {**ENVELOPE["meta"], "page": {"limit": 2, "next_cursor": "x"}}  # type: ignore[dict-item]
    done = evaluate("len(data)", {**ENVELOPE, "meta": meta})
    assert "only 2 records" in done.envelope["meta"]["warnings"][0]


@pytest.mark.parametrize("data", ["", "  \n", "{", '[1]\n{"a"', "a: 1", "[" * 100_000])
def test_data_that_is_not_json(data: str) -> None:
    error = evaluate("data", data).envelope["error"]
    assert error["code"] in ("E1065", "E1002")


def test_answer_of_a_failed_command() -> None:
    failed = {"ok": False, "error": {"code": "E3010"}, "meta": {"tool": "shop.price"}}
    error = evaluate("data", failed).envelope["error"]
    assert (error["code"], error["details"]["error"]["code"]) == ("E1065", "E3010")
    assert evaluate("data", f"[1]\n{json.dumps(failed)}").envelope["error"]["code"] == "E1065"


def test_it_is_off_by_default() -> None:
    done = invoke(Shop("eval-shop").app, "python-eval", "1", "--json", input="1")
    assert (done.exit_code, done.envelope["error"]["code"]) == (30, "E2008")


PROGRAM = """
from tooli import Tooli
from tooli.annotations import ReadOnly

app = Tooli("files", allow_python_eval=True)

@app.command("list", annotations=ReadOnly)
def files() -> list[dict[str, int]]:
    return [{"size": 3}, {"size": 4}]

@app.command(annotations=ReadOnly)
def nothing() -> None:
    pass

app()
"""


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("$APP list --json | $APP python-eval 'sum(r[\"size\"] for r in data)' -o plain", "7\n"),
        ("$APP list --jsonl | $APP python-eval 'len(data)' -o plain", "2\n"),
        ("$APP list --python-eval 'len(data)' -o plain", "2\n"),
        ("$APP list | $APP python-eval 'data' -o text | head -1", "size\n"),
    ],
)
def test_pipe_of_processes(tmp_path: Path, line: str, output: str) -> None:
    program = tmp_path / "files.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        ["sh", "-c", line.replace("$APP", f"'{sys.executable}' '{program}'")],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert (done.stdout, done.stderr) == (output, "")


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text("[1, 2, 3]")
    app = Shop("eval-shop", allow_python_eval=True).app
    assert invoke(app, "python-eval", "sum(data)", str(path), "--json").result == 6
