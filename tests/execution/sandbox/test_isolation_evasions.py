"""Evasion attempts in the sandbox: nothing outside is read, written or reached.

Attempts that succeed are in a table here, with the reason; docs/isolation.md lists them as well.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.execution.test_evasions import measure
from tests.integration.app_process import environment

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

evasions = importlib.import_module("evasions")
sandbox_evasions = importlib.import_module("sandbox_evasions")
sandbox_environment = importlib.import_module("sandbox_environment")

SUPPORT = detect_sandbox_support()
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

METADATA = "Landlock protects contents, but not names, sizes and owners of files"
SAME_SANDBOX = "another interpreter of the same process is in the same sandbox"
OWN_VARIABLES = "a process may change its own variables, which no other process sees"
GAPS = {
    **dict.fromkeys(
        (
            *("stat_file", "file_exists", "access_file", "read_link", "real_path"),
            *("stat_volume", "error_message"),
        ),
        METADATA,
    ),
    **dict.fromkeys(("set_variable", "put_variable", "drop_variable"), OWN_VARIABLES),
    "other_interpreter": SAME_SANDBOX,
}
"""Attempts that succeed at this level, and why that is acceptable."""

ALL_ATTEMPTS = [("evasions", one) for one in evasions.ATTEMPTS]
ALL_ATTEMPTS += [("sandbox_evasions", one) for one in sandbox_evasions.ATTEMPTS]


@cache
def run_attempts(module: str, *argv: str) -> dict[str, dict[str, Any]]:
    """Run every attempt of a table and return the results; the process has no other threads."""
    program = [sys.executable, str(HERE / "sandbox_attempts.py"), *argv, module]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("module", "attempt"),
    ALL_ATTEMPTS,
    ids=[f"{table}-{one.name}" for table, one in ALL_ATTEMPTS],
)
def test_only_known_gaps_succeed(module: str, attempt: Any) -> None:
    found = run_attempts(module)[attempt.name]
    if "level" in found:  # or the process was killed by the filter
        assert found["level"] == SUPPORT.level, found
    assert found["succeeded"] is (attempt.name in GAPS), found


def test_known_gaps_affect_only_metadata_and_environment() -> None:
    kinds = {
        one.kind for _, one in ALL_ATTEMPTS if GAPS.get(one.name, SAME_SANDBOX) != SAME_SANDBOX
    }
    assert kinds <= {"metadata", "env"}
    assert all(one in {a.name for _, a in ALL_ATTEMPTS} for one in GAPS)


def test_attempts_succeed_without_a_sandbox() -> None:
    free = {
        "evasions": measure("free"),
        "sandbox_evasions": run_attempts("sandbox_evasions", "--free"),
    }
    working = [one for module, one in ALL_ATTEMPTS if free[module][one.name]["succeeded"]]
    assert len(working) >= 200, len(working)
    assert {one.kind for one in working} == set(evasions.KINDS)


# ------------------------------------------------------------------ variables and layouts

ENVIRONMENT_CASES = [
    (one, command) for one in sandbox_environment.ATTEMPTS for command in one.commands
]


def run_command(folder: Path, setup: Any, command: str) -> str:
    """Run a command in this environment; return its result or its output."""
    argv = [setup.program, "app.py", command, setup.path, "--json"]
    env = environment(**{"TOOLI_STATE_DIR": str(folder / "state"), **setup.variables})
    done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, env=env, timeout=60)
    answer = json.loads(done.stdout)
    if command != "free":
        assert answer["meta"]["enforcement"] == SUPPORT.level
    if "error" in answer:
        assert answer["error"]["code"] == "E2005", answer  # the monitor applies deny_paths as well
        return done.stdout
    return answer["result"]


@pytest.mark.parametrize(
    ("attempt", "command"),
    ENVIRONMENT_CASES,
    ids=[f"{one.name}-{command}" for one, command in ENVIRONMENT_CASES],
)
def test_variables_and_project_layouts_do_not_reveal_the_secret(
    tmp_path: Path, attempt: Any, command: str
) -> None:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (folder / "secret.txt").write_text(evasions.TOKEN)
    (folder / "app.py").write_text(sandbox_environment.APP)
    setup = attempt.create_workspace(folder)
    assert evasions.TOKEN not in run_command(folder, setup, command)


@pytest.mark.parametrize("attempt", sandbox_environment.ATTEMPTS, ids=lambda one: one.name)
def test_variables_and_project_layouts_reveal_the_secret_without_a_sandbox(
    tmp_path: Path, attempt: Any
) -> None:
    (tmp_path / "secret.txt").write_text(evasions.TOKEN)
    (tmp_path / "app.py").write_text(sandbox_environment.APP)
    setup = attempt.create_workspace(tmp_path.resolve())
    setup.variables.pop("TOOLI_DENY_PATHS", None)  # it applies to every command
    assert evasions.TOKEN in run_command(tmp_path, setup, "free")
