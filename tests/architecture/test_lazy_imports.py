"""An ordinary call imports few modules. The tests read `sys.modules` of real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

APP = '''
import atexit, os, sys

def write_modules():
    with open(os.environ["SEEN"], "w") as file:
        file.write("\\n".join(sys.modules))

atexit.register(write_modules)
from tooli import Tooli

first = sorted(sys.modules)
app = Tooli("demo", version="1.0", description="Two commands.")


@app.command()
def greet(name: str, times: int = 1, loud: bool = False) -> str:
    """Greet a person.

    Args:
        name: The name of the person.
    """
    return name * times


@app.command()
def add(numbers: list[int], scale: float = 1.0) -> float:
    """Add numbers."""
    return sum(numbers) * scale


if __name__ == "__main__":
    app()
'''
HEAVY = frozenset(
    (
        *("typer", "click", "pydantic", "pydantic_core", "rich", "inspect", "dataclasses"),
        *("typing", "typing_extensions", "re", "json", "asyncio", "enum", "argparse"),
        *("pathlib", "importlib.metadata", "logging", "shlex", "subprocess", "datetime"),
    )
)
APP_MODULES = {"tooli", "tooli.app", "tooli.core", "tooli.providers"}
"""The modules of tooli that `from tooli import Tooli` imports."""

MAX_MODULES = 11
"""Modules of tooli that an ordinary call may load; each takes 0.1 to 0.2 ms."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("app") / "demo.py"
    file.write_text(APP)
    return file


def run(file: Path, *argv: str, **environment: str) -> tuple[int, str, set[str]]:
    """Run the app; return exit code, stdout, and the modules that it has imported."""
    seen = file.with_suffix(".seen")
    seen.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-I", str(file), *argv],
        env={"SEEN": str(seen), "PATH": os.environ["PATH"], **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout, set(seen.read_text().split())


def modules_of(code: str) -> set[str]:
    """Return the modules that are imported after the code has run in a new process."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module", autouse=True)
def empty_interpreter() -> None:
    """Skip the tests if the interpreter imports heavy modules at start-up."""
    preloaded = HEAVY & modules_of("pass")
    if preloaded:
        pytest.skip(f"this interpreter starts with {', '.join(sorted(preloaded))}")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["greet", "Ada", "--times", "2", "--json"], 0),
        (["--json", "add", "1", "2", "--scale", "2.5"], 0),
        (["greet", "Ada"], 0),
        (["greet", "Ada", "--jsonl"], 0),
        (["greet", "Ada", "-o", "toon"], 0),
        (["add", "1", "2", "-o", "csv"], 0),
        (["add", "1", "2", "-o", "md"], 0),
        (["greet", "Ada", "--json", "--response-format", "concise"], 0),
        (["greet", "--tims", "2", "--json"], 2),
        (["greet", "--json"], 2),
        (["add", "x", "--json"], 2),
        (["add", "1", "--scale", "wide", "--json"], 2),
        (["grete", "--json"], 2),
        (["--help-agent"], 0),
        (["greet", "--help-agent"], 0),
        (["--schema"], 0),
        (["greet", "--schema", "mcp"], 0),
        (["add", "--schema", "openai"], 0),
        (["--help"], 0),
        (["greet", "--help"], 0),
        (["--version"], 0),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else str(v),
)
def test_no_heavy_import(app: Path, argv: list[str], code: int) -> None:
    exit_code, out, modules = run(app, *argv)
    assert exit_code == code, out
    assert out
    assert not modules & HEAVY


def test_agent_call_imports_nothing_heavy(app: Path) -> None:
    code, out, modules = run(app, "greet", "Ada", TOOLI_CALLER="claude-code")
    assert code == 0
    assert json.loads(out)["meta"]["caller_id"] == "claude-code"
    assert not modules & HEAVY


def test_ordinary_call_loads_few_modules(app: Path) -> None:
    """The modules of `from tooli import Tooli` are not counted."""
    _, out, modules = run(app, "greet", "Ada", "--json")
    assert json.loads(out)["result"] == "Ada"
    ours = {name for name in modules if name.partition(".")[0] == "tooli"} - APP_MODULES
    assert len(ours) <= MAX_MODULES, sorted(ours)


@pytest.mark.parametrize("marker", ["CLAUDECODE", "CODEX_THREAD_ID"])
def test_small_result_loads_no_module_for_agents(app: Path, marker: str) -> None:
    """The limits of the caller are needed for large results only."""
    _, _, ordinary = run(app, "greet", "Ada", "--json")
    _, out, modules = run(app, "greet", "Ada", "--json", **{marker: "1"})
    assert json.loads(out)["result"] == "Ada"
    extra = {name for name in modules - ordinary if name.partition(".")[0] == "tooli"}
    assert not extra


def test_importing_the_package_loads_no_other_module() -> None:
    new = modules_of("import tooli") - modules_of("import __future__")
    assert new == {"tooli"}


def test_importing_the_app_class_loads_only_listed_modules() -> None:
    new = modules_of("from tooli import Tooli") - modules_of("import __future__")
    assert new == APP_MODULES


@pytest.mark.parametrize(
    "name", ["Option", "Argument", "Context", "TooliResult", "ToolError", "Suggestion"]
)
def test_public_name_imports_nothing_heavy(name: str) -> None:
    assert not modules_of(f"from tooli import {name}") & HEAVY


def test_tooli_typer_imports_nothing_heavy() -> None:
    code = "from tooli import typer; typer.Typer; typer.Option; typer.Argument; typer.echo"
    assert not modules_of(code) & HEAVY


def test_importing_typer_sets_the_real_base_class() -> None:
    """The class and its instances stay the same objects, in either order of imports."""
    first = "from tooli import Tooli; app = Tooli('a'); import typer"
    then = "import typer; from tooli import Tooli; app = Tooli('a')"
    for code in (first, then):
        check = "; assert issubclass(Tooli, typer.Typer) and isinstance(app, typer.Typer)"
        assert "typer" in modules_of(code + check)


def test_token_file_is_not_read_without_authentication(app: Path) -> None:
    _, _, ordinary = run(app, "greet", "Ada", "--json")
    _, out, modules = run(app, "greet", "Ada", "--json", TOOLI_TOKEN_FILE="/nowhere")
    assert json.loads(out)["result"] == "Ada"
    assert modules == ordinary


def test_session_without_failures_loads_nothing_heavy(app: Path, tmp_path: Path) -> None:
    env = {"TOOLI_SESSION_ID": "s", "TOOLI_STATE_DIR": str(tmp_path)}
    run(app, "greet", "Ada", "--json", **env)
    _, out, modules = run(app, "greet", "Ada", "--json", **env)
    assert json.loads(out)["result"] == "Ada"
    assert not modules & (HEAVY | {"threading", "hashlib", "tooli.core.call_fingerprint"})
    assert "tooli.storage.state_files" in modules
