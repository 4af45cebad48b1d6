"""Apps that are registered with `mcp add`: hostile modules in folders, hostile commands."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

from tooli import Tooli
from tooli.core.agent_hosts import SERVER_HOSTS
from tooli.execution.interpreter import module_argv
from tooli.testing import invoke

APP = """
import sys
from tooli import Tooli
from {package}helper import GREETING

app = Tooli("shop")


@app.command()
def greet() -> str:
    "Greet."
    return GREETING


@app.command()
def arguments(values: list[str]) -> list[str]:
    "Return the arguments."
    return values


if __name__ == "__main__":
    app()
"""
SHADOWED = ("shop", "tooli", "helper", "json", "runpy", "site", "mcp", "typing", "re", "os")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with modules that have the names of others and leave a file when imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in SHADOWED:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').close()")
    return folder


class Registration:
    def __init__(self, tmp_path: Path, hostile: Path) -> None:
        self.source, self.project = tmp_path / "source", tmp_path / "project"
        self.hostile, self.trace = hostile, tmp_path / "imported"
        self.env = environment(TOOLI_STATE_DIR=str(tmp_path / "state"))
        self.source.mkdir()
        self.project.mkdir()

    def write_package(self) -> None:
        package = self.source / "shop"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(APP.format(package="shop."))
        (package / "helper.py").write_text("GREETING = 'hello'")

    def write_module(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "shop.py").write_text(APP.format(package=""))
        (folder / "helper.py").write_text("GREETING = 'hello'")

    def add(self, *argv: str, cwd: Path) -> list[str]:
        """Register the app and return the command that an agent starts."""
        line = [*argv, "mcp", "add", "--agent", "claude-code"]
        subprocess.run(line, cwd=cwd, env=self.env, check=True, capture_output=True, timeout=60)
        entry = json.loads((cwd / ".mcp.json").read_text())["mcpServers"]["shop"]
        return [entry["command"], *entry["args"]]

    def assert_starts(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.hostile,
            env=self.env,
            input=json.dumps(INITIALIZE) + "\n",
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
        assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "shop", done.stderr
        assert not self.trace.exists()


@pytest.fixture
def registration(tmp_path: Path, hostile: Path) -> Registration:
    return Registration(tmp_path, hostile)


def test_package_in_the_current_folder(registration: Registration) -> None:
    registration.write_package()
    command = registration.add(sys.executable, "-m", "shop", cwd=registration.source)
    registration.assert_starts(command)


def test_module_in_the_current_folder(registration: Registration) -> None:
    registration.write_module(registration.source)
    command = registration.add(sys.executable, "-m", "shop", cwd=registration.source)
    registration.assert_starts(command)


def test_installed_package(registration: Registration) -> None:
    registration.write_package()
    registration.env["PYTHONPATH"] = str(registration.source)
    command = registration.add(sys.executable, "-m", "shop", cwd=registration.project)
    if sys.version_info >= (3, 11):
        assert command[1:4] == ["-P", "-m", "shop"]
    registration.assert_starts(command)


def test_script_and_archive(registration: Registration, tmp_path: Path) -> None:
    registration.write_module(registration.source)
    command = registration.add(sys.executable, "../source/shop.py", cwd=registration.project)
    registration.assert_starts(command)
    (registration.source / "shop.py").rename(registration.source / "__main__.py")
    zipapp.create_archive(registration.source, tmp_path / "shop.pyz")
    for program in ("../shop.pyz", "../source"):
        (registration.project / ".mcp.json").unlink()
        command = registration.add(sys.executable, program, cwd=registration.project)
        registration.assert_starts(command)


def test_module_argv_without_the_option_of_python_3_11(
    registration: Registration, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration.write_package()
    registration.env["PYTHONPATH"] = str(registration.source)
    monkeypatch.setattr(sys, "version_info", (3, 10))
    argv = module_argv("shop")
    monkeypatch.undo()
    registration.assert_starts([*argv, "mcp", "serve", "--transport", "stdio"])


def test_arguments_reach_the_module(registration: Registration) -> None:
    registration.write_package()
    done = subprocess.run(
        [*module_argv("shop", str(registration.source)), "arguments", "--", "-c"],
        cwd=registration.hostile,
        env={**registration.env, "TOOLI_OUTPUT": "json"},
        capture_output=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["result"] == ["-c"]
    assert not registration.trace.exists()


HOSTILE_COMMANDS = [
    "evil; touch {trace}",
    "$(touch {trace}) `touch {trace}` ${{HOME}} %PATH%",
    'shop \'" , "env": {{"A": "b"}}, "x": "\'',
    "shop '\n[mcp_servers.other]\ncommand = \"x\"'",
    "shop '\n  other:\n    cmd: x'",
    "shop '#' ': - &a *a !!python/object' \"'''\" '\"\"\"'",
    "shop '\\' '\\u0022' '\x1b[31m' 'é\u202e\u2028'",
    f"shop {'x' * 5000}",
]


def read_entries(file: Path) -> list[list[str]]:
    """Return the command lines in a settings file of an agent."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        tomllib = pytest.importorskip("tomllib")
        content = tomllib.loads(text)
    elif file.suffix in (".yaml", ".yml"):
        content = pytest.importorskip("yaml").safe_load(text)
    else:
        content = json.loads(text)
    found: list[list[str]] = []
    pending: list[Any] = [content]
    for value in pending:
        if isinstance(value, dict):
            program = value.get("command") or value.get("cmd")
            if program is not None:
                start = program if isinstance(program, list) else [program]
                found.append([*start, *value.get("args", [])])
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found


@pytest.mark.parametrize("template", HOSTILE_COMMANDS)
@pytest.mark.parametrize("agent", SERVER_HOSTS)
def test_command_is_written_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, template: str
) -> None:
    """No part of `--command` becomes another setting, and nothing runs it."""
    home, trace = tmp_path / "home", tmp_path / "trace"
    home.mkdir()
    monkeypatch.chdir(home)
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(home))
    app = Tooli("shop")
    app.command("greet")(lambda: "hello")
    command = template.format(trace=trace)
    line = ("mcp", "add", "--agent", agent, "--user", "--command", command)
    assert invoke(app, *line, "--json").envelope["error"]["code"] == "E1010"
    assert [file for file in home.rglob("*") if file.is_file()] == []
    assert invoke(app, *line, "--yes", "--json").exit_code == 0
    (written,) = [file for file in home.rglob("*") if file.is_file()]
    (entry,) = read_entries(written)
    expected = shlex.split(command)
    assert entry[: len(expected)] == expected
    assert entry[len(expected) :] == ["mcp", "serve", "--transport", "stdio"]
    assert not trace.exists()
