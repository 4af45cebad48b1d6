"""Which constructs of JSON Schema each framework and each agent program refuses or changes.

The results are in constructs.json, and docs/exports.md has them as a table. Set
`TOOLI_UPDATE_SNAPSHOTS=1` to write the file, then run `make docs`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration import node
from tests.integration.agents.programs import APP, PROGRAMS, Program, Workplace
from tests.integration.frameworks import environment
from tests.integration.frameworks.constructs import (
    CONSTRUCTS,
    MEASURED_CONSTRUCTS,
    arguments_of,
    contains,
    echo_of,
    rating,
    schema_of,
)
from tests.integration.frameworks.constructs_app import app

from tooli.describe.portable_schemas import portable_schema
from tooli.describe.sections import collect_app_info
from tooli.export import CALLERS, export
from tooli.export.export_spec import ExportSpec

HERE = Path(__file__).parent
TARGETS = [target for target in CALLERS if target != "python"]
CLIENTS = {"agno": "mcp", "dspy": "mcp", "strands": "mcp", "smolagents": "smolagents"}
PACKAGES = {"vercel": node.VERCEL_AI_SDK, "mastra": node.MASTRA}
TIMEOUT = 300


def run(command: list[str | Path], cwd: Path) -> dict[str, Any]:
    """Run a program that tries the constructs, and return its results."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment.variables(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def ratings(found: dict[str, Any]) -> dict[str, str]:
    """Return the rating of each construct: kept, changed or refused."""
    result: dict[str, str] = {}
    for name in CONSTRUCTS:
        one = found.get(name, {"error": "not listed"})
        answered = "error" not in one and json.loads(one["answer"]) == arguments_of(name)
        result[name] = rating(name, one["schema"]) if answered else "refused"
    return result


def check(framework: str, found: dict[str, Any]) -> None:
    """Compare the ratings with the stored ones, or store them."""
    stored = (
        json.loads(MEASURED_CONSTRUCTS.read_text(encoding="utf-8"))
        if MEASURED_CONSTRUCTS.exists()
        else {}
    )
    measured = ratings(found)
    assert set(measured.values()) != {"refused"}, found  # otherwise the server did not start
    if os.environ.get("TOOLI_UPDATE_SNAPSHOTS"):
        others = {name: value for name, value in measured.items() if value != "kept"}
        stored = dict(sorted({**stored, framework: others}.items()))
        MEASURED_CONSTRUCTS.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    assert {name: stored[framework].get(name, "kept") for name in CONSTRUCTS} == measured, found


@pytest.mark.skipif(not environment.SUPPORTS_ALL, reason="some frameworks need Python 3.11")
@pytest.mark.parametrize("target", TARGETS)
def test_framework_of_an_export(target: str, tmp_path: Path) -> None:
    info = collect_app_info(app)
    for name in CONSTRUCTS:
        tools = [tool for tool in info.tools if tool.key in (name, "later", "grep")]
        for path, text in export(ExportSpec(info.replace(tools=tools), target, "import")).items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text, encoding="utf-8")
    python = environment.python(environment.environment_of(target))
    check(target, run([python, HERE / "try_constructs.py", target, tmp_path], tmp_path))


@pytest.mark.parametrize("framework", CLIENTS)
def test_client_of_a_framework(framework: str, tmp_path: Path) -> None:
    python = environment.python(CLIENTS[framework])
    check(framework, run([python, HERE / "try_constructs.py", framework], tmp_path))


@pytest.mark.parametrize("framework", PACKAGES)
def test_client_of_an_npm_package(framework: str, tmp_path: Path) -> None:
    modules = node.install(*PACKAGES[framework]) / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules, target_is_directory=True)
    program = tmp_path / "try_constructs.mjs"
    program.write_text((HERE / program.name).read_text(encoding="utf-8"), encoding="utf-8")
    cases = json.dumps({name: arguments_of(name) for name in CONSTRUCTS})
    server = HERE / "constructs.py"
    check(
        framework, run([node.node(), program, framework, sys.executable, server, cases], tmp_path)
    )


# ------------------------------------------------------------------ agent programs


@pytest.mark.parametrize(
    "program",
    [program for program in PROGRAMS if program.has_project_servers],
    ids=lambda program: program.agent,
)
def test_agent_program(program: Program, tmp_path: Path) -> None:
    place = Workplace(program, tmp_path)
    place.shop("mcp", "add", "--agent", program.agent)
    settings = place.project / program.project_settings[0]
    server = str(HERE / "constructs.py")
    settings.write_text(settings.read_text().replace(str(APP), server))
    script = [program.call(name, **arguments_of(name)) for name in CONSTRUCTS]
    model = place.run(script, *program.allow_all)
    found: dict[str, Any] = {}
    for name, text in zip(CONSTRUCTS, model.results, strict=True):
        described = model.tools.get(program.tool.format(name))
        echo = echo_of(arguments_of(name))
        escaped = json.dumps(echo, ensure_ascii=False)[1:-1]
        if described is None or text is None or not (echo in text or escaped in text):
            found[name] = {"error": text or "not listed"}
        else:
            found[name] = {"schema": schema_in(described), "answer": echo}
    check(program.caller, found)


def schema_in(described: object) -> dict[str, Any] | None:
    """Return the schema of the arguments in the description of a tool, in any protocol."""
    if not isinstance(described, dict):
        return None
    if "properties" in described:
        return described
    return next(filter(None, map(schema_in, described.values())), None)


# ------------------------------------------------------------------ our own schemas


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_portable_schema_has_no_refused_construct(name: str) -> None:
    """A construct that any framework refuses is not in the schemas that models get."""
    stored = json.loads(MEASURED_CONSTRUCTS.read_text(encoding="utf-8"))
    refused_by = [framework for framework, found in stored.items() if found.get(name) == "refused"]
    if refused_by and name != "name":  # names are changed by `portable_arguments`
        assert not contains(portable_schema(schema_of(name)), schema_of(name)), refused_by
