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
from tests.integration.outside import environment

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

evasions = importlib.import_module("evasions")
sandbox_evasions = importlib.import_module("sandbox_evasions")
sandbox_environment = importlib.import_module("sandbox_environment")

SUPPORT = detect_sandbox_support()
pytestmark = [
    pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing)),
    pytest.mark.xdist_group("evasions"),  # the results of the attempts are cached
]

METADATA = "names, sizes and owners of files are seen anywhere: Landlock guards contents"
SAME = "another interpreter of the same process is in the same sandbox"
OWN = "its own variables are a process's own: nobody else sees the change"
GAPS = {
    **dict.fromkeys(
        (
            *("stat_file", "file_exists", "access_file", "read_link", "real_path"),
            *("list_attributes", "stat_volume", "error_message"),
        ),
        METADATA,
    ),
    **dict.fromkeys(("set_variable", "put_variable", "drop_variable"), OWN),
    "other_interpreter": SAME,
}
"""Attempts that succeed at this level, and why that breaks no promise."""

ALL_ATTEMPTS = [("evasions", one) for one in evasions.ATTEMPTS]
ALL_ATTEMPTS += [("sandbox_evasions", one) for one in sandbox_evasions.ATTEMPTS]


@cache
def run_attempts(module: str, *words: str) -> dict[str, dict[str, Any]]:
    """Run every attempt of a table and return the results; the process has no other threads."""
    program = [sys.executable, str(HERE / "sandbox_attempts.py"), *words, module]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("module", "attempt"),
    ALL_ATTEMPTS,
    ids=[f"{table}-{one.name}" for table, one in ALL_ATTEMPTS],
)
def test_nothing_gets_through(module: str, attempt: Any) -> None:
    found = run_attempts(module)[attempt.name]
    if "level" in found:  # or the process was killed by the filter
        assert found["level"] == SUPPORT.level, found
    assert found["succeeded"] is (attempt.name in GAPS), found


def test_no_gap_is_about_contents() -> None:
    kinds = {one.kind for _, one in ALL_ATTEMPTS if GAPS.get(one.name, SAME) != SAME}
    assert kinds <= {"metadata", "env"}
    assert all(one in {a.name for _, a in ALL_ATTEMPTS} for one in GAPS)


def test_there_are_enough_attempts_and_they_work_where_nobody_is_held() -> None:
    free = {
        "evasions": measure("free"),
        "sandbox_evasions": run_attempts("sandbox_evasions", "--free"),
    }
    working = [one for module, one in ALL_ATTEMPTS if free[module][one.name]["succeeded"]]
    assert len(working) >= 200, len(working)
    assert {one.kind for one in working} == set(evasions.KINDS)


# ------------------------------------------------------------------ variables and layouts

AROUND = [(one, command) for one in sandbox_environment.ATTEMPTS for command in one.commands]


def shown(folder: Path, around: Any, command: str) -> str:
    """Return the answer of a command in this environment."""
    words = [around.program, "held.py", command, around.path, "--json"]
    env = environment(**{"TOOLI_STATE_DIR": str(folder / "state"), **around.variables})
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=env, timeout=60)
    answer = json.loads(done.stdout)
    if command != "free":
        assert answer["meta"]["enforcement"] == SUPPORT.level
    if "error" in answer:
        assert answer["error"]["code"] == "E2005", answer  # the monitor applies deny_paths as well
        return done.stdout
    return answer["result"]


@pytest.mark.parametrize(
    ("attempt", "command"), AROUND, ids=[f"{one.name}-{command}" for one, command in AROUND]
)
def test_no_variable_and_no_layout_opens_more(tmp_path: Path, attempt: Any, command: str) -> None:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (folder / "secret.txt").write_text(evasions.TOKEN)
    (folder / "held.py").write_text(sandbox_environment.APP)
    around = attempt.create_workspace(folder)
    assert evasions.TOKEN not in shown(folder, around, command)


@pytest.mark.parametrize("attempt", sandbox_environment.ATTEMPTS, ids=lambda one: one.name)
def test_the_same_is_seen_where_nobody_is_held(tmp_path: Path, attempt: Any) -> None:
    (tmp_path / "secret.txt").write_text(evasions.TOKEN)
    (tmp_path / "held.py").write_text(sandbox_environment.APP)
    around = attempt.create_workspace(tmp_path.resolve())
    around.variables.pop("TOOLI_DENY_PATHS", None)  # it applies to every command
    assert evasions.TOKEN in shown(tmp_path, around, "free")
