"""All evasion attempts in bubblewrap, on a kernel without Landlock: none succeeds."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.execution.sandbox.test_bwrap import HERE, LANDLOCK, SUPPORT, working_bubblewrap
from tests.execution.sandbox.test_isolation_evasions import ALL_ATTEMPTS
from tests.integration.app_process import environment

evasions = importlib.import_module("evasions")
pytestmark = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))

ATTEMPTS_IN_BWRAP = [
    (module, one) for module, one in ALL_ATTEMPTS if one.name != "other_interpreter"
]
"""Without the attempt that runs in the same sandbox and leaves files there."""

SUCCEEDING = ("set_variable", "put_variable", "drop_variable", "read_link", "real_path")
"""Attempts that succeed: the command's own variables, and the targets of its own links."""


class AttemptRun:
    """Files, an app beside them, and the results of the attempts."""

    def __init__(self, root: Path) -> None:
        (root / "code").mkdir()
        (root / "workspace" / "outside").mkdir(parents=True)
        for name in ("bwrap_app.py", "../evasions.py", "sandbox_evasions.py"):
            shutil.copy(HERE / name, root / "code")
        self.root = root
        self.bwrap = working_bubblewrap()
        self.listener = evasions.Listener(str(root / "workspace"))
        self.workspace = evasions.create_workspace(str(root / "workspace"), self.listener)
        self.before = evasions.read_state(self.workspace)
        self.found: dict[str, dict[str, Any]] = {}
        names = [f"{module}:{one.name}" for module, one in ATTEMPTS_IN_BWRAP]
        while names:
            names = self.run_attempts(names)
        self.received = self.listener.received()

    def run_attempts(self, names: list[str]) -> list[str]:
        """Run the attempts; return what is left after the process has ended."""
        workspace = self.workspace
        program = [sys.executable, str(HERE / "hide_syscalls.py"), LANDLOCK]
        program += [str(self.root / "code/bwrap_app.py"), json.dumps(list(workspace)), *names]
        env = environment(BUBBLEWRAP=self.bwrap, TOOLI_STATE_DIR=str(self.root / "state"))
        done = subprocess.run(
            [*program, "--jsonl"],
            capture_output=True,
            timeout=120,
            env={**env, evasions.VARIABLE: evasions.TOKEN},
            pass_fds=[
                workspace.secret_fd,
                workspace.victim_fd,
                workspace.folder_fd,
                workspace.socket_fd,
            ],
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        finished = [line for line in lines if "name" in line]
        self.found |= {line["name"]: line for line in finished}
        if len(finished) == len(names):
            return []
        last = lines[-1].get("error", {}) if lines else {}
        assert last.get("code") in ("E4051", "E4052"), (names[len(finished)], last, done.stderr)
        self.found[names[len(finished)]] = {"failure": last["message"]}
        return names[len(finished) + 1 :]

    def close(self) -> None:
        self.listener.close()


@pytest.fixture(scope="module")
def attempt_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttemptRun]:
    made = AttemptRun(tmp_path_factory.mktemp("attempt_run").resolve())
    yield made
    made.close()


def test_nothing_outside_is_changed_or_reached(attempt_run: AttemptRun) -> None:
    assert evasions.read_state(attempt_run.workspace) == attempt_run.before
    assert attempt_run.received == ""


@pytest.mark.parametrize(
    ("module", "attempt"),
    ATTEMPTS_IN_BWRAP,
    ids=[f"{module}-{one.name}" for module, one in ATTEMPTS_IN_BWRAP],
)
def test_no_attempt_succeeds(attempt_run: AttemptRun, module: str, attempt: Any) -> None:
    found = attempt_run.found[f"{module}:{attempt.name}"]
    what = (attempt_run.workspace, attempt_run.before, found.get("evidence"), attempt_run.received)
    assert evasions.succeeded(attempt, *what) is (attempt.name in SUCCEEDING), found
