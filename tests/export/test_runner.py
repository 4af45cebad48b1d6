"""What runs a tool in generated code: it always comes back with an envelope, and leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.frameworks.everything import app

from tooli.describe.app_info import collect_app_info
from tooli.export.export_spec import ExportSpec, exported_tools
from tooli.export.runner_source import build_runner

EVERYTHING = Path(__file__).parents[1] / "integration" / "frameworks" / "everything.py"
ROOT = EVERYTHING.parents[3]
Run = Callable[..., dict[str, Any]]


def module(mode: str, waits: bool) -> dict[str, Any]:
    """The namespace of a module that is nothing but a runner."""
    portrait = collect_app_info(app)
    home = ("tests.integration.frameworks.everything", "app")
    program = (sys.executable, str(EVERYTHING))
    order = ExportSpec(portrait, "openai", mode, program, home, "me", "again")
    made = build_runner(order, exported_tools(order), is_async=waits)
    source = "\n".join(
        [
            *[f"import {name}" for name in made.imports],
            made.app or "",
            made.constants,
            *made.functions,
        ]
    )
    space: dict[str, Any] = {"Any": Any}
    exec(compile(f"from __future__ import annotations\n{source}", "runner", "exec"), space)
    return space


@pytest.fixture(params=[True, False], ids=["async", "sync"])
def apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A runner of programs; `run` calls it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    return runnable(module("subprocess", request.param), request.param)


@pytest.fixture(params=[True, False], ids=["async", "sync"])
def within(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A runner in this process; `run` calls it."""
    return runnable(module("import", request.param), request.param)


def runnable(space: dict[str, Any], waits: bool) -> dict[str, Any]:
    def run(*words: Any) -> dict[str, Any]:
        answer = space["call"](*words)
        return asyncio.run(answer) if waits else answer

    return {**space, "run": run, "space": space}


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_program_answers(apart: dict[str, Any]) -> None:
    arguments = {"user": {"name": "Ada"}, "notify": True}
    before = json.dumps(arguments)
    envelope = apart["run"](["users", "create"], arguments, 60)
    assert envelope["result"] == {"name": "Ada", "age": 0, "home": None}
    assert envelope["meta"]["caller_id"] == "me"
    assert json.dumps(arguments) == before


@pytest.mark.parametrize("word", ["--yes", "-", "--", "@file", "x" * 3_000_000, "half \ud800", ""])
def test_no_value_is_an_option(apart: dict[str, Any], word: str) -> None:
    assert apart["run"](["grep"], {"pattern": word}, 60)["result"] == word


def test_a_program_that_is_not_there(apart: dict[str, Any]) -> None:
    apart["space"]["COMMAND"][:] = ["no-such-program"]
    envelope = apart["run"]([], {}, 60)
    assert envelope["error"]["code"] == "E4040"
    assert "no-such-program cannot be started: No such file" in envelope["error"]["message"]
    assert envelope["error"]["suggestion"]["action"] == "ask_human"
    assert envelope["meta"] == {"tool": "every-thing"}


@pytest.mark.parametrize("said", ["", "no JSON", "[]", "null", '{"ok": 1}', "{}", '{"ok": tru'])
def test_a_program_that_does_not_answer(apart: dict[str, Any], said: str) -> None:
    code = f"import sys; print({said!r}); print('why', file=sys.stderr); sys.exit(3)"
    apart["space"]["COMMAND"][:] = program(code)
    error = apart["run"]([], {}, 60)["error"]
    assert error["code"] == "E4040"
    assert error["message"].endswith("ended with exit code 3: why")


def test_a_program_that_takes_too_long_is_stopped_with_its_children(
    apart: dict[str, Any], tmp_path: Path
) -> None:
    note = tmp_path / "pids"
    code = f"sleep 600 & echo $$ $! > {note}; sleep 600"  # a shell is there at once
    apart["space"]["COMMAND"][:] = ["sh", "-c", code]
    envelope = apart["run"]([], {}, 2)
    assert envelope["error"]["code"] == "E4050"
    assert envelope["error"]["message"] == "No answer within 2 seconds."
    for pid in note.read_text().split():
        wait_until(lambda pid=pid: is_gone(int(pid)))


def test_a_call_that_is_given_up_stops_its_program(tmp_path: Path) -> None:
    space = module("subprocess", True)
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    space["COMMAND"][:] = program(code)

    async def give_up() -> None:
        task = asyncio.create_task(space["call"]([], {}, 60))
        while not (note.exists() and note.read_text()):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    wait_until(lambda: is_gone(int(note.read_text())))


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, be it that nobody has asked after it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# ------------------------------------------------------------------ flags


def check_flags(run: Run, target: Any) -> None:
    def answer(**arguments: Any) -> dict[str, Any]:
        return run(target, {"path": "--x", **arguments}, 60, ("yes", "dry_run"))

    assert answer()["error"]["code"] == "E1010"
    assert answer(yes=False)["error"]["code"] == "E1010"
    assert answer(yes=True)["result"] == "deleted --x"
    assert answer(yes=True, dry_run=True)["meta"]["dry_run"] is True
    for odd in ("false", 1, None, [], "x"):
        assert answer(yes=odd)["error"]["code"] == "E1003"
        assert answer(yes=True, dry_run=odd)["error"]["code"] == "E1003"


def test_flags_of_a_program(apart: dict[str, Any]) -> None:
    check_flags(apart["run"], ["delete"])
    assert apart["run"](["delete"], {"path": "x", "yes": True}, 60)["error"]["code"] == "E1004"


def test_flags_in_this_process(within: dict[str, Any]) -> None:
    check_flags(within["run"], "delete")


# ------------------------------------------------------------------ in this process


def test_a_tool_of_the_app_answers(within: dict[str, Any]) -> None:
    envelope = within["run"]("list", {}, 60)
    assert envelope["result"] == {"surface": "python", "name": "me"}
    assert within["run"]("await-it", {"seconds": 0.01}, 60)["result"] == "done"
    assert within["run"]("nope", {}, 60)["error"]["code"] == "E1001"
    assert "TOOLI_CALLER" not in os.environ


@pytest.mark.parametrize("tool", ["wait", "await-it"])
def test_a_tool_that_takes_too_long(within: dict[str, Any], tool: str) -> None:
    envelope = within["run"](tool, {"seconds": 1.0}, 0.1)
    assert envelope["error"]["code"] == "E4050"
