"""The evasions of the tables, in a bubble: on a kernel without Landlock nothing gets out of it."""

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
from tests.execution.test_bwrap import HERE, LANDLOCK, MEANS, working_bubblewrap
from tests.execution.test_isolation_evasions import BOTH
from tests.integration.outside import environment

evasions = importlib.import_module("evasions")
pytestmark = [
    pytest.mark.skipif(bool(MEANS.missing), reason="; ".join(MEANS.missing)),
    pytest.mark.xdist_group("bubblewrap"),
]

TRIED = [(module, one) for module, one in BOTH if one.name != "other_interpreter"]
"""Without the one that is behind the same walls, and leaves there what a spawned one would."""

OWN = ("set_variable", "put_variable", "drop_variable", "read_link", "real_path")
"""What succeeds: its own variables, and where links in its own folder say that they point to."""


class Bubbled:
    """A ground, an app beside it, and what became of the attempts."""

    def __init__(self, root: Path) -> None:
        (root / "code").mkdir()
        (root / "ground" / "outside").mkdir(parents=True)
        for name in ("bwrap_app.py", "evasions.py", "sandboxes.py"):
            shutil.copy(HERE / name, root / "code")
        self.root = root
        self.bwrap = working_bubblewrap()
        self.listener = evasions.Listener(str(root / "ground"))
        self.ground = evasions.lay_out(str(root / "ground"), self.listener)
        self.before = evasions.survey(self.ground)
        self.found: dict[str, dict[str, Any]] = {}
        names = [f"{module}:{one.name}" for module, one in TRIED]
        while names:
            names = self.after(names)
        self.heard = self.listener.heard()

    def after(self, names: list[str]) -> list[str]:
        """Try them; what is left when the bubble has ended, and who ended it is known."""
        ground = self.ground
        program = [sys.executable, str(HERE / "hiding.py"), LANDLOCK]
        program += [str(self.root / "code/bwrap_app.py"), json.dumps(list(ground)), *names]
        env = environment(BUBBLEWRAP=self.bwrap, TOOLI_STATE_DIR=str(self.root / "state"))
        done = subprocess.run(
            [*program, "--jsonl"],
            capture_output=True,
            timeout=120,
            env={**env, evasions.VARIABLE: evasions.TOKEN},
            pass_fds=[ground.secret_fd, ground.victim_fd, ground.folder_fd, ground.socket_fd],
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        told = [line for line in lines if "name" in line]
        self.found |= {line["name"]: line for line in told}
        if len(told) == len(names):
            return []
        last = lines[-1].get("error", {}) if lines else {}
        assert last.get("code") in ("E4051", "E4052"), (names[len(told)], last, done.stderr)
        self.found[names[len(told)]] = {"failure": last["message"]}
        return names[len(told) + 1 :]

    def close(self) -> None:
        self.listener.close()


@pytest.fixture(scope="module")
def bubbled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bubbled]:
    made = Bubbled(tmp_path_factory.mktemp("bubbled").resolve())
    yield made
    made.close()


def test_nothing_outside_has_changed_and_nobody_was_reached(bubbled: Bubbled) -> None:
    assert evasions.survey(bubbled.ground) == bubbled.before
    assert bubbled.heard == ""


@pytest.mark.parametrize(
    ("module", "attempt"), TRIED, ids=[f"{module}-{one.name}" for module, one in TRIED]
)
def test_nothing_gets_out(bubbled: Bubbled, module: str, attempt: Any) -> None:
    found = bubbled.found[f"{module}:{attempt.name}"]
    what = (bubbled.ground, bubbled.before, found.get("evidence"), bubbled.heard)
    assert evasions.succeeded(attempt, *what) is (attempt.name in OWN), found
