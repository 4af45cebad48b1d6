"""Bytecode that Python writes needs no capability; bytecode that a command writes does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.outside import environment

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

APP = '''
import sys
from pathlib import Path
from tooli import Tooli

app = Tooli("held", security_policy="{policy}")


@app.command(capabilities=["none"], auth=[], **{options})
def load() -> str:
    """Import a module that has no bytecode yet."""
    import neighbour

    return neighbour.WORD


@app.command(capabilities=["none"], auth=[])
def plant(path: str) -> str:
    """Write a file whose name looks like bytecode."""
    with open(path, "wb") as file:
        file.write(b"x")
    return "written"


@app.command(capabilities=["none"], auth=[])
def compiled(source: str, target: str) -> str:
    """Have the standard library write bytecode."""
    import py_compile

    return str(py_compile.compile(source, target, doraise=True))


@app.command(capabilities=["none"], auth=[])
def stored(path: str) -> str:
    """Use the function that importing uses."""
    from importlib.machinery import SourceFileLoader

    SourceFileLoader("x", path).set_data(path, b"x")
    return "written"


@app.command(capabilities=["none"], auth=[])
def redirected(prefix: str) -> str:
    """Import with another place for bytecode."""
    sys.pycache_prefix = prefix
    import neighbour

    return neighbour.WORD


if __name__ == "__main__":
    app()
'''


def write_app(folder: Path, policy: str = "strict", options: str = "{}") -> None:
    (folder / "held.py").write_text(
        APP.replace("{policy}", policy).replace("{options}", options), encoding="utf-8"
    )
    (folder / "neighbour.py").write_text("WORD = 'found'")


def run(folder: Path, *argv: str, prefix: Path | None = None) -> dict[str, Any]:
    variables = {"TOOLI_STATE_DIR": str(folder / "state")}
    if prefix is not None:
        variables["PYTHONPYCACHEPREFIX"] = str(prefix)
    env = {
        name: value
        for name, value in environment(**variables).items()
        if name != "PYTHONDONTWRITEBYTECODE"
        and (prefix is not None or name != "PYTHONPYCACHEPREFIX")
    }
    done = subprocess.run(
        [sys.executable, str(folder / "held.py"), *argv, "--json"],
        env=env,
        cwd=folder,
        capture_output=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def bytecode(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("neighbour.*.pyc")]


@pytest.mark.parametrize("policy", ["standard", "strict"])
@pytest.mark.parametrize("place", ["pycache", "prefix", "missing/parents/of/prefix"])
def test_importing_writes_and_reads_bytecode(tmp_path: Path, policy: str, place: str) -> None:
    write_app(tmp_path, policy)
    prefix = None if place == "pycache" else tmp_path / "elsewhere" / place
    for _ in range(2):  # the second time it is read
        answer = run(tmp_path, "load", prefix=prefix)
        assert answer.get("result") == "found", answer
        assert "warnings" not in answer["meta"]
        assert len(bytecode(prefix or tmp_path)) == 1


@pytest.mark.parametrize("policy", ["standard", "strict"])
@pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="; ".join(detect_sandbox_support().missing)
)
def test_isolated_command_imports_without_a_warning(tmp_path: Path, policy: str) -> None:
    write_app(tmp_path, policy, '{"isolation": "required"}')
    answer = run(tmp_path, "load", prefix=tmp_path / "elsewhere")
    assert answer.get("result") == "found", answer
    assert "warnings" not in answer["meta"]


@pytest.mark.parametrize("prefix", [None, "elsewhere"])
@pytest.mark.parametrize("command", ["plant", "stored", "compiled"])
def test_command_that_writes_bytecode(tmp_path: Path, command: str, prefix: str | None) -> None:
    write_app(tmp_path)
    cache = tmp_path / (prefix or "__pycache__")
    cache.mkdir()
    target = cache / "neighbour.cpython-312.pyc"
    sources = [str(tmp_path / "neighbour.py")] if command == "compiled" else []
    place = None if prefix is None else cache
    answer = run(tmp_path, command, *sources, str(target), prefix=place)
    assert answer["error"]["code"] == "E2003", answer
    assert answer["error"]["details"]["capability"] == "fs:write"
    assert not target.exists()


def test_command_cannot_choose_the_bytecode_folder(tmp_path: Path) -> None:
    write_app(tmp_path)
    chosen = tmp_path / "chosen"
    answer = run(tmp_path, "redirected", str(chosen))
    assert answer["error"]["code"] == "E2003", answer
    assert bytecode(chosen) == []
