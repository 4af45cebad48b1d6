"""Every export, in both modes, run by its real framework with a scripted model."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from examples.file_tools.app import app as file_tools
from tests.integration.frameworks import environment
from tests.integration.frameworks.calls import CASES, Case
from tests.integration.frameworks.everything import app

from tooli.describe.mcp_tools import arguments_schema, tools_by_safe_name
from tooli.describe.sections import AppInfo, collect_app_info
from tooli.export import CALLERS, export
from tooli.export.export_spec import ExportSpec, tool_description
from tooli.export.frameworks import RESERVED_PARAMETERS

ALWAYS = ("openai", "langchain", "claude")
TARGETS = [target for target in CALLERS if target != "python"]
MODES = ("subprocess", "import")
PATIENCE = 240
EXTRA = [Case("say", {"text": "--help"}), Case("list", {})]
TOOLS = tools_by_safe_name(collect_app_info(app).tools)

FAILED = {"langchain": "error", "claude": True, "copilot": "failure"}
"""How a framework names a failure, where it names one."""


def renamed(target: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the model of a target must name them."""
    if target != "langchain":
        return arguments
    return {
        f"{name}_" if name in RESERVED_PARAMETERS else name: arguments[name] for name in arguments
    }


def write_export(app_info: AppInfo, program: Path, target: str, mode: str, folder: Path) -> None:
    """Put an export into a folder, with the tests that come with it."""
    output = {"command": f"{environment.python()} {program}"} if mode == "subprocess" else {}
    spec = ExportSpec(app_info, target, mode, with_tests=True, **output)
    for name, text in export(spec).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(*words: str | Path, cwd: Path) -> None:
    """Run something with the frameworks' interpreter."""
    done = subprocess.run(
        [environment.python(), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=cwd,
        env=environment.variables(),
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def drive(target: str, room: Path) -> None:
    """Let a target's framework make all calls, in both modes: one process for each target."""
    calls = [(case.tool, renamed(target, case.arguments)) for case in (*CASES, *EXTRA)]
    folders = [room / mode for mode in MODES]
    for mode, folder in zip(MODES, folders, strict=True):
        program = environment.HERE / "everything.py"
        write_export(collect_app_info(app), program, target, mode, folder)
        (folder / "calls.json").write_text(json.dumps(calls), encoding="utf-8")
    run(environment.HERE / "drive.py", target, *folders, cwd=folders[0])


def drive_once(target: str, base: Path, *, wait: bool) -> None:
    """The same, unless it has been done; where another process does it just now, wait or go on."""
    with (base / f"{target}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not (base / target / "import" / "seen.json").exists():
            drive(target, base / target)


@pytest.fixture(scope="module", params=TARGETS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a target's model has seen, by mode."""
    target = request.param
    if not environment.NEW and target not in ALWAYS:
        pytest.skip(f"{target} wants Python 3.11")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # all processes of the tests share what is seen
        base = base.parent
        for other in TARGETS if environment.NEW else ALWAYS:
            drive_once(other, base, wait=False)
    drive_once(target, base, wait=True)
    return target, {
        mode: json.loads((base / target / mode / "seen.json").read_text()) for mode in MODES
    }


@pytest.mark.parametrize("mode", MODES)
def test_the_model_is_shown_the_schema_of_every_tool(seen: Any, mode: str) -> None:
    target, found = seen
    shown = found[mode]["shown"]
    assert list(shown) == list(TOOLS)
    for name, tool in TOOLS.items():
        expected = arguments_schema(tool)
        if target == "langchain":
            expected = {**expected, "properties": renamed(target, expected["properties"])}
        if target == "langchain" and "$defs" in expected:  # it puts references in place itself
            assert shown[name]["properties"].keys() == expected["properties"].keys()
        else:
            assert shown[name] == expected, name
        assert found[mode]["told"][name] == tool_description(tool), name


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{i}-{case.tool}" for i, case in enumerate(CASES)]
)
def test_a_call_reaches_the_tool_and_its_answer_the_model(
    seen: Any, mode: str, number: int
) -> None:
    target, found = seen
    case = CASES[number]
    text, outcome = found[mode]["answers"][number]
    if target in FAILED:
        assert (outcome == FAILED[target]) is (case.code is not None)
    if target == "claude" and case.against_schema:  # the SDK's own words
        assert text.startswith("Input validation error")
        return
    envelope = json.loads(text)
    assert envelope["ok"] is (case.code is None), envelope
    if case.code is None:
        assert envelope.get("result") == case.result
    else:
        assert envelope["error"]["code"] == case.code
        assert envelope["error"]["message"]
        assert type(envelope["error"]["is_retryable"]) is bool
    if target == "pydantic-ai":
        assert outcome == expected_outcome(envelope)


def expected_outcome(envelope: dict[str, Any]) -> str:
    """What Pydantic AI must have been told."""
    if envelope["ok"]:
        return "success"
    error = envelope["error"]
    for_humans = error.get("suggestion", {}).get("action") == "ask_human"
    return "retried" if error["is_retryable"] and not for_humans else "failed"


def test_who_calls_is_known(seen: Any) -> None:
    target, found = seen
    for mode, surface in zip(MODES, ("cli", "python"), strict=True):
        text, _ = found[mode]["answers"][len(CASES) + 1]
        envelope = json.loads(text)
        assert envelope["result"] == {"surface": surface, "name": CALLERS[target]}
        assert envelope["meta"]["warnings"] == ["somebody asks"]


def test_what_a_program_prints_reaches_the_model(seen: Any) -> None:
    _, found = seen
    text, _ = found["subprocess"]["answers"][len(CASES)]
    assert json.loads(text)["result"] == "--help"


# ------------------------------------------------------------------ the tests that come with it


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", CALLERS)
def test_the_exported_tests_pass(target: str, mode: str, tmp_path: Path) -> None:
    if not environment.NEW and target not in (*ALWAYS, "python"):
        pytest.skip(f"{target} wants Python 3.11")
    program = environment.ROOT / "examples" / "file_tools" / "app.py"
    write_export(collect_app_info(file_tools), program, target, mode, tmp_path)
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path, cwd=tmp_path)
