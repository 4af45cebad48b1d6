"""Every export, in both modes, run by its real framework with a scripted model."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.file_tools.app import app as file_tools
from tests.integration.frameworks import environment
from tests.integration.frameworks.calls import CASES, CURSOR, DEFAULTS, Case
from tests.integration.frameworks.everything import app

from tooli.describe.mcp_tools import arguments_schema, tools_by_safe_name
from tooli.describe.sections import AppInfo, collect_app_info
from tooli.export import CALLERS, export
from tooli.export.export_spec import ExportSpec, tool_description
from tooli.export.frameworks import FRAMEWORKS

PYTHON_310_TARGETS = ("openai", "langchain", "claude", "crewai", "llamaindex", "agent-framework")
TARGETS = [target for target in CALLERS if target != "python"]
MODES = ("subprocess", "import")
TIMEOUT = 240
NULLS = dict.fromkeys(("text", *DEFAULTS, "user"))
EXTRA_CASES = [Case("optional", NULLS), Case("say", {"text": "--help"}), Case("list", {})]
TOOLS = tools_by_safe_name(collect_app_info(app).tools)

FAILURE_OUTCOMES = {
    "langchain": "error",
    "claude": True,
    "copilot": "failure",
    "llamaindex": True,
}
"""The outcome of a failure, for the frameworks that report one."""


def rename_arguments(target: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the names that the export uses for a target."""
    reserved = FRAMEWORKS[target].reserved_parameters
    return {f"{name}_" if name in reserved else name: arguments[name] for name in arguments}


def write_export(app_info: AppInfo, program: Path, target: str, mode: str, folder: Path) -> None:
    """Write an export and its tests into a folder."""
    python = environment.python(environment.environment_of(target))
    options = {"command": f"{python} {program}"} if mode == "subprocess" else {}
    spec = ExportSpec(app_info, target, mode, with_tests=True, **options)
    for name, text in export(spec).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(target: str, *argv: str | Path, cwd: Path) -> None:
    """Run Python in the environment of the framework of a target."""
    done = subprocess.run(
        [environment.python(environment.environment_of(target)), *argv],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=cwd,
        env=environment.variables(),
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def run_exports(target: str, folder: Path) -> None:
    """Make all calls in the framework of a target, in both modes, in one process."""
    calls = [
        (case.tool, rename_arguments(target, case.arguments)) for case in (*CASES, *EXTRA_CASES)
    ]
    cursor = app.call("pages").meta["page"]["next_cursor"]
    folders = [folder / mode for mode in MODES]
    for mode, mode_folder in zip(MODES, folders, strict=True):
        program = environment.HERE / "everything.py"
        write_export(collect_app_info(app), program, target, mode, mode_folder)
        text = json.dumps(calls).replace(json.dumps(CURSOR), json.dumps(cursor))
        (mode_folder / "calls.json").write_text(text, encoding="utf-8")
    run(target, environment.HERE / "run_exports.py", target, *folders, cwd=folders[0])


def run_exports_once(target: str, base: Path, *, wait: bool) -> None:
    """Run the exports of a target unless another process has done so.

    If another process is running them, wait for it, or return if `wait` is False.
    """
    with (base / f"{target}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not (base / target / "import" / "received.json").exists():
            run_exports(target, base / target)


@pytest.fixture(scope="module", params=TARGETS)
def received(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a target, and what its model received by mode."""
    target = request.param
    if not environment.SUPPORTS_ALL and target not in PYTHON_310_TARGETS:
        pytest.skip(f"{target} needs Python 3.11")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # all test processes share the results
        base = base.parent
        for other in TARGETS if environment.SUPPORTS_ALL else PYTHON_310_TARGETS:
            run_exports_once(other, base, wait=False)
    run_exports_once(target, base, wait=True)
    return target, {
        mode: json.loads((base / target / mode / "received.json").read_text()) for mode in MODES
    }


@pytest.mark.parametrize("mode", MODES)
def test_model_receives_the_schema_of_every_tool(received: Any, mode: str) -> None:
    target, found = received
    schemas = found[mode]["schemas"]
    assert list(schemas) == list(TOOLS)
    for name, tool in TOOLS.items():
        expected = arguments_schema(tool)
        expected = {**expected, "properties": rename_arguments(target, expected["properties"])}
        if target == "llamaindex":  # it sends a few keywords only
            del expected["additionalProperties"]
        if target == "crewai":  # it makes the schema strict
            check_strict_schema(schemas[name], expected)
        elif target == "langchain" and "$defs" in expected:  # it inlines references
            assert schemas[name]["properties"].keys() == expected["properties"].keys()
        else:
            assert schemas[name] == expected, name
        assert found[mode]["descriptions"][name] == tool_description(tool), name


def check_strict_schema(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check a schema in which all parameters are required and optional ones can be null."""
    assert schema["required"] == list(schema["properties"]) == list(expected["properties"])
    for name, part in schema["properties"].items():
        given = expected["properties"][name]
        can_be_null = {"type": "null"} in part.get("anyOf", ())
        assert can_be_null or name in expected.get("required", ()), name
        for keyword in ("description", "default"):
            assert part.get(keyword) == given.get(keyword)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{i}-{case.tool}" for i, case in enumerate(CASES)]
)
def test_model_receives_the_result_of_a_call(received: Any, mode: str, number: int) -> None:
    target, found = received
    case = CASES[number]
    text, outcome = found[mode]["answers"][number]
    is_refused = target == "claude" and case.violates_schema
    if target in FAILURE_OUTCOMES:
        is_failure = case.code is not None or is_refused
        assert (outcome == FAILURE_OUTCOMES[target]) is is_failure, text
    if is_refused:  # the message of the SDK
        assert text.startswith("Input validation error")
        return
    envelope = json.loads(text)
    assert envelope["ok"] is (case.code is None), envelope
    if case.code is None:
        assert envelope.get("result") == case.result
        if case.tool == "pages" and case.arguments.get("limit") != 0:
            assert envelope["meta"]["page"]["next_cursor"]
    else:
        assert envelope["error"]["code"] == case.code
        assert envelope["error"]["message"]
        assert type(envelope["error"]["is_retryable"]) is bool
    if target == "pydantic-ai":
        assert outcome == expected_outcome(envelope)


def expected_outcome(envelope: dict[str, Any]) -> str:
    """Return the outcome that Pydantic AI must report."""
    if envelope["ok"]:
        return "success"
    error = envelope["error"]
    needs_human = error.get("suggestion", {}).get("action") == "ask_human"
    return "retried" if error["is_retryable"] and not needs_human else "failed"


def test_null_is_a_parameter_that_is_not_given(received: Any) -> None:
    target, found = received
    if target == "claude":
        pytest.skip("the SDK refuses null, because the schema does not allow it")
    for mode in MODES:
        given, absent = (
            json.loads(found[mode]["answers"][number][0])["result"]
            for number in (len(CASES), [case.tool for case in CASES].index("optional"))
        )
        if target != "crewai":  # its schema makes a model send null for all optional parameters
            absent["limit"] = ["NoneType", None]  # null is a value of `int | None`
        assert given == absent


def test_tool_receives_the_caller(received: Any) -> None:
    target, found = received
    for mode, surface in zip(MODES, ("cli", "python"), strict=True):
        text, _ = found[mode]["answers"][-1]
        envelope = json.loads(text)
        assert envelope["result"] == {"surface": surface, "name": CALLERS[target]}
        assert envelope["meta"]["warnings"] == ["a warning"]


def test_model_receives_printed_text(received: Any) -> None:
    _, found = received
    text, _ = found["subprocess"]["answers"][-2]
    assert json.loads(text)["result"] == "--help"


# ------------------------------------------------------------------ exported tests


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", CALLERS)
def test_exported_tests_pass(target: str, mode: str, tmp_path: Path) -> None:
    if not environment.SUPPORTS_ALL and target not in (*PYTHON_310_TARGETS, "python"):
        pytest.skip(f"{target} needs Python 3.11")
    program = environment.ROOT / "examples" / "file_tools" / "app.py"
    write_export(collect_app_info(file_tools), program, target, mode, tmp_path)
    run(target, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path, cwd=tmp_path)


LANGCHAIN_EXAMPLE = """
import json
import os
import runpy
import sys

os.environ["FILE_TOOLS"] = sys.argv[2]
find_files = runpy.run_path(sys.argv[1])["find_files"]
assert find_files.invoke({"pattern": "*.txt"}) == [{"path": "a.txt", "size": 3}]
call = {"type": "tool_call", "id": "1", "name": "find_files", "args": {"pattern": "--nope"}}
message = find_files.invoke(call)
assert message.status == "error", message
assert json.loads(message.content)["code"] == "E1004", message
"""


def test_langchain_example(tmp_path: Path) -> None:
    """The example of a caller works with the real package, and the model gets the error."""
    (tmp_path / "a.txt").write_text("abc")
    examples = environment.ROOT / "examples"
    program = shlex.join([sys.executable, str(examples / "file_tools" / "app.py")])
    example = examples / "callers" / "langchain_agent.py"
    run("langchain", "-c", LANGCHAIN_EXAMPLE, example, program, cwd=tmp_path)
