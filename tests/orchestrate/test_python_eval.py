"""The option `--python-eval`: an expression about the result of a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.orchestrate.script_app import Shop

from tooli import SecretInput, Tooli
from tooli.annotations import ReadOnly
from tooli.orchestrate import python_eval
from tooli.orchestrate.sandbox import SandboxLimits
from tooli.testing import invoke


def error_of(app: Tooli, *argv: str, **options: Any) -> dict[str, Any]:
    done = invoke(app, *argv, "--json", **options)
    assert not done.ok
    return done.envelope["error"]


def make_shop(**settings: Any) -> Shop:
    return Shop("eval-shop", allow_python_eval=True, **settings)


def test_value_replaces_the_result() -> None:
    shop = make_shop()
    done = invoke(shop.app, "find", "--json", "--python-eval", "sum(i['cents'] for i in data)")
    assert done.result == 540
    assert done.envelope["meta"]["tool"] == "eval-shop.find"
    assert "calls" not in done.envelope["meta"]
    assert shop.ran == ["find"]


def test_statements_and_prints() -> None:
    source = "total = len(data)\nprint('n', total)\ntotal * 2"
    done = invoke(make_shop().app, "find", "--json", "--python-eval", source)
    assert done.result == 6
    assert done.envelope["meta"]["printed"] == "n 3"


def test_app_that_does_not_allow_it(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    shop = Shop("eval-shop")
    argv = ("find", "--json", "--python-eval", "len(data)")
    done = invoke(shop.app, *argv, env={"TOOLI_AUDIT_LOG": str(log)})
    assert (done.exit_code, done.envelope["error"]["code"]) == (30, "E2008")
    assert "allow_python_eval" in done.envelope["error"]["suggestion"]["fix"]
    assert shop.ran == []
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == ["denial"]


@pytest.mark.parametrize("source", ["len(", "x = \n", "\0", "(" * 5000])
def test_syntax_is_checked_before_the_command_runs(source: str) -> None:
    shop = make_shop()
    error = error_of(shop.app, "find", "--python-eval", source)
    assert error["code"] == "E1070"
    assert shop.ran == []


@pytest.mark.parametrize("mode", ["json", "jsonl", "plain", "text"])
def test_stream_is_collected_first(mode: str) -> None:
    app = Tooli("eval-app", allow_python_eval=True)

    @app.command(annotations=ReadOnly)
    def numbers() -> Iterator[int]:
        yield from range(4)

    done = invoke(app, "numbers", "-o", mode, "--python-eval", "[n * 10 for n in data if n > 1]")
    assert done.exit_code == 0
    values = done.stdout.split() if mode != "json" else [str(n) for n in done.result]
    assert values == ["20", "30"]


def test_failure_after_a_command_that_only_reads() -> None:
    error = error_of(make_shop().app, "find", "--python-eval", "data[9]")
    assert error["code"] == "E4080"
    assert "IndexError" in error["message"]
    wrong = error_of(make_shop().app, "find", "--python-eval", "data.x")
    assert wrong["message"].startswith("The expression has errors. Line 1")
    assert "Its only variable is `data`." in wrong["suggestion"]["fix"]


def test_failure_after_a_command_that_changes_something() -> None:
    shop = make_shop()
    error = error_of(shop.app, "drop", "tea", "--yes", "--python-eval", "data['x']")
    assert shop.ran == ["drop tea"]
    assert error["details"]["result"] == "tea"
    assert "do not repeat it" in error["suggestion"]["fix"]
    assert not error["is_retryable"]


def test_failure_of_the_command_stays() -> None:
    assert error_of(make_shop().app, "price", "gold", "--python-eval", "data")["code"] == "E3010"


def test_dry_run_is_not_evaluated() -> None:
    shop = make_shop()
    done = invoke(shop.app, "drop", "tea", "--dry-run", "--json", "--python-eval", "1/0")
    assert done.result["basis"] == "declared"
    assert shop.ran == []


def test_all_pages_are_evaluated() -> None:
    app = Tooli("eval-app", allow_python_eval=True)

    @app.command(annotations=ReadOnly, paginated=10)
    def numbers() -> list[int]:
        return list(range(250))

    assert invoke(app, "numbers", "--json", "--python-eval", "sum(data)").result == 31125
    agent = {"TOOLI_CALLER": "claude-code", "TOOLI_MAX_ITEMS": "5"}
    assert invoke(app, "numbers", "--json", "--python-eval", "len(data)", env=agent).result == 250
    limited = invoke(app, "numbers", "--json", "--limit", "5", "--python-eval", "sum(data)")
    assert limited.result == 10


def test_expression_gets_no_secret() -> None:
    app = Tooli("eval-app", allow_python_eval=True)

    @app.command(annotations=ReadOnly)
    def show(token: SecretInput[str]) -> dict[str, str]:
        return {"token": token.reveal()}

    source = "''.join(reversed(data['token']))"
    argv = ("show", "--token", "env:TOKEN", "--json", "--python-eval", source)
    done = invoke(app, *argv, env={"TOKEN": "swordfish"})
    assert done.ok
    assert "hsifdrows" not in done.stdout
    assert "swordfish" not in done.stdout


@pytest.mark.parametrize(
    "source",
    [
        "open('/etc/passwd').read()",
        "__import__('os').system('true')",
        "import subprocess",
        "import socket",
        "import os\nos.environ['HOME']",
        "import os\nos.getenv('HOME') + ''",
        "import os\nos.listdir('/')",
        "import pathlib\npathlib.Path('/etc/passwd').read_text()",
        "import time\ntime.sleep(1)",
        "import asyncio\nawait asyncio.sleep(1)",
        "eval('1')",
        "exec('1')",
        "await find()",
        "().__class__.__base__.__subclasses__()",
    ],
)
def test_nothing_else_can_be_reached(source: str) -> None:
    shop = make_shop()
    done = invoke(shop.app, "find", "--json", "--python-eval", source)
    assert not done.ok
    assert done.envelope["error"]["code"] in ("E1070", "E4080")
    assert shop.ran == ["find"]


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = SandboxLimits(seconds=0.3, turn_seconds=0.3, memory=32 << 20, depth=50)
    monkeypatch.setattr(python_eval, "LIMITS", limits)
    monkeypatch.setattr(python_eval, "MAX_RESULT_CHARS", 1000)
    app = make_shop().app
    sources = ["while True:\n    pass", "'a' * 10**9", "'a' * 2000"]
    sources += ["def f():\n    return f()\nf()"]
    for source in sources:
        assert error_of(app, "find", "--python-eval", source)["code"] == "E4081", source


def test_values_that_are_not_json() -> None:
    error = error_of(make_shop().app, "find", "--python-eval", "lambda: 1")
    assert error["code"] == "E4080"
    assert "not a JSON value" in error["message"]


def test_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    app = make_shop().app
    for source in ("len(data)", "1/0"):
        argv = ("find", "--json", "--python-eval", source)
        invoke(app, *argv, env={"TOOLI_AUDIT_LOG": str(log)})
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["phase"] for row in rows] == ["begins", "ends", "begins", "ends"]
    assert rows[0]["expression"] == "len(data)"
    assert [row.get("ok") for row in rows[1::2]] == [True, False]


def test_setting_applies_to_built_in_commands() -> None:
    done = invoke(
        make_shop().app, "orchestrate", "stubs", "--json", "--python-eval", "'find' in data"
    )
    assert done.result is True
    assert error_of(Shop().app, "orchestrate", "stubs", "--python-eval", "1")["code"] == "E2008"
