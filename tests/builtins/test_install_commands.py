"""`skills add` and `mcp add`: their options; tests/install/test_agent_install.py runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from tooli import Tooli
from tooli.builtins.install_commands import ServerAgents, SkillAgents
from tooli.install.agent_install import SKILL_PATHS
from tooli.install.server_registration import SERVER_CONFIGS
from tooli.testing import invoke

APP = Path(__file__).parents[2] / "examples" / "file_tools" / "app.py"


def test_agent_names_match_the_tables() -> None:
    def names(annotated: Any) -> list[str]:
        return list(get_args(get_args(get_args(annotated)[0])[0]))

    assert names(SkillAgents) == list(SKILL_PATHS)
    assert names(ServerAgents) == list(SERVER_CONFIGS)


def test_mcp_export_does_not_load_install() -> None:
    code = (
        "import sys, runpy; sys.argv = ['app.py', 'mcp', 'export']\n"
        f"try: runpy.run_path({str(APP)!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "assert not [name for name in sys.modules if name.startswith('tooli.install')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["skills", "add", "--agent", "codex", "--agents-md"],
        ["mcp", "add", "--agent", "codex", "--command", "shop"],
    ],
    ids=lambda args: args[0],
)
def test_dry_run_shows_the_diff_and_writes_nothing(
    app: Tooli, args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = invoke(app, *args, "--dry-run", "--json").result
    assert {row["action"] for row in rows} == {"created"}
    assert all(row["diff"].startswith("--- /dev/null") for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_unknown_agent(app: Tooli) -> None:
    assert invoke(app, "mcp", "add", "--agent", "nobody", "--json").error["code"] == "E1003"
