"""Exported modules and their generated tests."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.export.test_frameworks import MODES, exported
from tests.integration.frameworks.everything import app

from tooli.describe.sections import collect_app_info
from tooli.export.export_spec import ExportSpec, exported_tools
from tooli.export.module_source import build_runner, fill_template, render_module


def test_rendered_module_has_its_parts_in_order() -> None:
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


def test_template_keeps_unknown_placeholders() -> None:
    assert fill_template("$a $b ${c}\n", {"a": "1"}) == "1 $b ${c}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["openai", "adk", "python"])
def test_generated_tests_depend_on_target_and_mode(target: str, mode: str) -> None:
    files = exported("file-tools", target, mode)
    (source,) = [text for name, text in files.items() if name.startswith("test_")]
    names = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert "test_rejects_unknown_argument" in names
    assert ("test_broken_program_returns_a_failure" in names) == (mode == "subprocess")
    assert ("test_agent_loads" in names) == (target == "adk")
    assert ("test_function_exists" in names) == (target == "python")
    assert ("test_example_reaches_the_app" in names) == (target != "python")


EVERYTHING = Path(__file__).parents[1] / "integration" / "frameworks" / "everything.py"
ROOT = EVERYTHING.parents[3]
Run = Callable[..., dict[str, Any]]


def runner_namespace(mode: str, is_async: bool) -> dict[str, Any]:
    """Return the namespace of a module that contains only a runner."""
    app_info = collect_app_info(app)
    location = "tests.integration.frameworks.everything:app"
    program = shlex.join([sys.executable, str(EVERYTHING)])
    spec = ExportSpec(app_info, "openai", mode, program, location)
    runner = build_runner(spec, exported_tools(spec), "me", is_async=is_async)
    source = "\n".join(
        [
            *[f"import {name}" for name in runner.imports],
            runner.app or "",
            runner.constants,
            *runner.functions,
        ]
    )
    namespace: dict[str, Any] = {"Any": Any}
    exec(compile(f"from __future__ import annotations\n{source}", "runner", "exec"), namespace)
    return namespace


@pytest.fixture(params=[True, False], ids=["async", "sync"])
def subprocess_mode(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """A runner in subprocess mode; `run` calls it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    return add_run(runner_namespace("subprocess", request.param), request.param)


@pytest.fixture(params=[True, False], ids=["async", "sync"])
def import_mode(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A runner in import mode; `run` calls it."""
    return add_run(runner_namespace("import", request.param), request.param)


def add_run(namespace: dict[str, Any], is_async: bool) -> dict[str, Any]:
    def run(*args: Any) -> dict[str, Any]:
        envelope = namespace["call"](*args)
        return asyncio.run(envelope) if is_async else envelope

    return {**namespace, "run": run, "namespace": namespace}


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_program_returns_an_envelope(subprocess_mode: dict[str, Any]) -> None:
    arguments = {"user": {"name": "Ada"}, "notify": True}
    before = json.dumps(arguments)
    envelope = subprocess_mode["run"](["users", "create"], arguments, 60)
    assert envelope["result"] == {"name": "Ada", "age": 0, "home": None}
    assert envelope["meta"]["caller_id"] == "me"
    assert json.dumps(arguments) == before


@pytest.mark.parametrize("value", ["--yes", "-", "--", "@file", "x" * 3_000_000, "half \ud800", ""])
def test_argument_value_is_not_parsed_as_an_option(
    subprocess_mode: dict[str, Any], value: str
) -> None:
    assert subprocess_mode["run"](["grep"], {"pattern": value}, 60)["result"] == value


def test_missing_program_returns_an_error_envelope(subprocess_mode: dict[str, Any]) -> None:
    subprocess_mode["namespace"]["COMMAND"][:] = ["no-such-program"]
    envelope = subprocess_mode["run"]([], {}, 60)
    assert envelope["error"]["code"] == "E4040"
    assert "Cannot start no-such-program: No such file" in envelope["error"]["message"]
    assert envelope["error"]["suggestion"]["action"] == "ask_human"
    assert envelope["meta"] == {"tool": "every-thing"}


@pytest.mark.parametrize("output", ["", "no JSON", "[]", "null", '{"ok": 1}', "{}", '{"ok": tru'])
def test_program_without_envelope_returns_an_error_envelope(
    subprocess_mode: dict[str, Any], output: str
) -> None:
    code = f"import sys; print({output!r}); print('why', file=sys.stderr); sys.exit(3)"
    subprocess_mode["namespace"]["COMMAND"][:] = program(code)
    error = subprocess_mode["run"]([], {}, 60)["error"]
    assert error["code"] == "E4040"
    assert error["message"].endswith("ended with exit code 3: why")


def test_timeout_kills_the_program_and_its_children(
    subprocess_mode: dict[str, Any], tmp_path: Path
) -> None:
    pid_file = tmp_path / "pids"
    code = f"sleep 600 & echo $$ $! > {pid_file}; sleep 600"  # a shell starts quickly
    subprocess_mode["namespace"]["COMMAND"][:] = ["sh", "-c", code]
    envelope = subprocess_mode["run"]([], {}, 2)
    assert envelope["error"]["code"] == "E4050"
    assert envelope["error"]["message"] == "Timed out after 2 seconds."
    for pid in pid_file.read_text().split():
        wait_until(lambda pid=pid: has_ended(int(pid)))


def test_cancelled_call_kills_its_program(tmp_path: Path) -> None:
    namespace = runner_namespace("subprocess", True)
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    namespace["COMMAND"][:] = program(code)

    async def cancel_call() -> None:
        task = asyncio.create_task(namespace["call"]([], {}, 60))
        while not (pid_file.exists() and pid_file.read_text()):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_call())
    wait_until(lambda: has_ended(int(pid_file.read_text())))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """True if the process has ended, even if its parent has not waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# ------------------------------------------------------------------ flags


def check_flags(run: Run, target: Any) -> None:
    def delete(**arguments: Any) -> dict[str, Any]:
        return run(target, {"path": "--x", **arguments}, 60, ("yes", "dry_run"))

    assert delete()["error"]["code"] == "E1010"
    assert delete(yes=False)["error"]["code"] == "E1010"
    assert delete(yes=True)["result"] == "deleted --x"
    assert delete(yes=True, dry_run=True)["meta"]["dry_run"] is True
    assert delete(yes=None)["error"]["code"] == "E1010"  # null means that it is not given
    assert delete(yes="false")["error"]["code"] == "E1010"
    assert delete(yes="True")["result"] == "deleted --x"
    for value in (1, [], "x"):
        assert delete(yes=value)["error"]["code"] == "E1003"
        assert delete(yes=True, dry_run=value)["error"]["code"] == "E1003"


def check_pages(run: Run, target: Any) -> None:
    def pages(**arguments: Any) -> dict[str, Any]:
        return run(target, arguments, 60, ("limit", "cursor"))

    first = pages(limit=None, cursor=None)
    assert first["result"] == [0, 1, 2]
    cursor = first["meta"]["page"]["next_cursor"]
    assert pages(cursor=cursor)["result"] == [3, 4, 5]
    assert pages(limit=2, cursor=cursor)["result"] == [3, 4]
    assert pages(limit=0)["result"] == [*range(7)]
    assert pages(limit="x")["error"]["code"] == "E1007"


def test_pages_are_reachable_in_subprocess_mode(subprocess_mode: dict[str, Any]) -> None:
    check_pages(subprocess_mode["run"], ["pages"])


def test_pages_are_reachable_in_import_mode(import_mode: dict[str, Any]) -> None:
    check_pages(import_mode["run"], "pages")


def test_framework_flags_apply_in_subprocess_mode(subprocess_mode: dict[str, Any]) -> None:
    check_flags(subprocess_mode["run"], ["delete"])
    assert (
        subprocess_mode["run"](["delete"], {"path": "x", "yes": True}, 60)["error"]["code"]
        == "E1007"
    )


def test_framework_flags_apply_in_import_mode(import_mode: dict[str, Any]) -> None:
    check_flags(import_mode["run"], "delete")


# ------------------------------------------------------------------ import mode


def test_import_mode_returns_an_envelope(import_mode: dict[str, Any]) -> None:
    envelope = import_mode["run"]("list", {}, 60)
    assert envelope["result"] == {"surface": "python", "name": "me"}
    assert import_mode["run"]("await-it", {"seconds": 0.01}, 60)["result"] == "done"
    assert import_mode["run"]("nope", {}, 60)["error"]["code"] == "E1001"
    assert "TOOLI_CALLER" not in os.environ


@pytest.mark.parametrize("tool", ["wait", "await-it"])
def test_timeout_in_import_mode_returns_an_error_envelope(
    import_mode: dict[str, Any], tool: str
) -> None:
    envelope = import_mode["run"](tool, {"seconds": 1.0}, 0.1)
    assert envelope["error"]["code"] == "E4050"
