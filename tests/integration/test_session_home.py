"""No test uses the home directory of the user, or the approvals, keys and logs in it."""

from __future__ import annotations

import ast
import os
import pwd
import sys
from pathlib import Path

import pytest
from tests.integration.app_process import environment, run

from tooli.storage.state_files import get_state_dir

TESTS = Path(__file__).parents[1]
STARTERS = {"run", "Popen", "call", "check_call", "check_output"}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="HOME is a variable of Unix")


def is_below_session_home(path: str) -> bool:
    user_home = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    real_path = os.path.realpath(path)
    return real_path.startswith(os.environ["HOME"] + "/") and not real_path.startswith(user_home)


def test_state_of_this_process_is_temporary() -> None:
    assert is_below_session_home(get_state_dir())


def test_state_of_other_processes_is_temporary(tmp_path: Path) -> None:
    script = tmp_path / "where.py"
    script.write_text("from tooli.storage.state_files import *\nprint(get_state_dir())\n")
    for env in (environment(), dict(os.environ)):
        assert is_below_session_home(run(script, env=env).out.decode().strip())


def environments_without_home(path: Path) -> list[int]:
    """Return the lines that start a process with listed variables, and HOME is not among them."""
    found: list[int] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        if not (isinstance(owner, ast.Name) and owner.id == "subprocess"):
            continue
        if node.func.attr not in STARTERS:
            continue
        for keyword in node.keywords:
            if keyword.arg == "env" and isinstance(keyword.value, ast.Dict):
                keys = keyword.value.keys
                names = [key.value for key in keys if isinstance(key, ast.Constant)]
                if None not in keys and "HOME" not in names:
                    found.append(node.lineno)
    return found


def test_every_process_gets_a_home() -> None:
    """Without HOME, a program finds the home of the user in the database of users."""
    files = [path for path in TESTS.rglob("*.py") if "typer_suite" not in path.parts]
    missing = {str(path): lines for path in files if (lines := environments_without_home(path))}
    assert missing == {}
    assert sys.platform != "linux" or "HOME" in os.environ
