"""The program `tooli`, in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli.launcher import load_app


def run(*argv: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from tooli.launcher import main; main()"]
    return subprocess.run(
        [*program, *argv],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=60,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text(
        "import typer\n"
        "cli = typer.Typer()\n"
        "@cli.command()\n"
        "def greet(name: str, loud: bool = False):\n"
        "    print(name.upper() if loud else name)\n"
        "@cli.command()\n"
        "def leave(): ...\n"
        "if __name__ == '__main__': cli()\n"
    )
    (tmp_path / "two.py").write_text(
        "from tooli import Tooli\none, other = Tooli('one'), Tooli('other')\n"
        "other.command('run')(lambda: 'ran')\n"
    )
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    return tmp_path


def test_serve_runs_a_typer_app_over_mcp(folder: Path) -> None:
    call = {"name": "greet", "arguments": {"name": "ann", "loud": True}}
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    done = run("serve", "plain.py", folder=folder, stdin="\n".join(map(json.dumps, lines)))
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["result"]["serverInfo"]["name"] == "plain"
    assert second["result"]["content"] == [{"type": "text", "text": "ANN"}]


@pytest.mark.parametrize("which", ["plain.py", "plain.py:cli", "plain:cli", "plain"])
def test_app_is_found_by_file_or_module_reference(folder: Path, which: str) -> None:
    done = run("tools", which, "--json", folder=folder)
    found = json.loads(done.stdout)["result"]
    assert [tool["name"] for tool in found] == ["greet", "leave"]


@pytest.mark.parametrize(
    ("which", "code", "message"),
    [
        ("missing.py", 10, "no file"),
        ("missing.mod:app", 10, "no module"),
        ("two.py", 2, "one, other"),
        ("two.py:third", 2, "one, other"),
        ("none.py", 2, "no app"),
    ],
)
def test_missing_or_ambiguous_app_is_an_error(
    folder: Path, which: str, code: int, message: str
) -> None:
    done = run("tools", which, "--json", folder=folder)
    assert (done.returncode, message in json.loads(done.stdout)["error"]["message"]) == (
        code,
        True,
    )


def test_import_error_of_an_app_is_reported(folder: Path) -> None:
    done = run("tools", "broken.py", "--json", folder=folder)
    assert "nothing_of_this_name" in json.loads(done.stdout)["error"]["message"]


def test_help_lists_the_serve_command(folder: Path) -> None:
    assert "serve" in run("--help", "--text", folder=folder).stdout


@pytest.mark.parametrize(
    "argv",
    [
        ["mcp", "export", "plain.py"],
        ["plain.py", "mcp", "export"],
        ["mcp", "export", "plain:cli"],
    ],
)
def test_builtin_command_of_an_app(folder: Path, argv: list[str]) -> None:
    done = run(*argv, folder=folder)
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == ["greet", "leave"]


def test_builtin_command_runs_whatever_the_app_does_with_its_words(folder: Path) -> None:
    (folder / "words.py").write_text(
        "from tooli import Tooli\napp = Tooli('words')\n"
        "@app.command()\ndef show(words: list[str]): print(words)\n"
    )
    done = run("docs", "llms", "words.py", folder=folder)
    assert done.stdout.startswith("# file: llms.txt\n# words\n")


def test_suggestion_for_a_builtin_command_of_an_app_works(folder: Path) -> None:
    done = run("export", "plain.py", "--target", "opnai", "--json", folder=folder)
    argv = json.loads(done.stdout)["error"]["suggestion"]["argv"]
    assert argv == ["tooli", "plain.py", "export", "--target", "openai", "--json"]
    assert run(*argv[1:], folder=folder).returncode == 0


def test_builtin_command_of_a_missing_app(folder: Path) -> None:
    done = run("docs", "llms", "missing.py", "--json", folder=folder)
    assert done.returncode == 10
    assert json.loads(done.stdout)["error"]["message"] == "There is no file 'missing.py'."


def test_builtin_commands_of_the_launcher_itself(folder: Path) -> None:
    assert run("docs", "llms", folder=folder).stdout.startswith("# file: llms.txt\n# tooli\n")
    assert run("approvals", "list", "plain.py", folder=folder).returncode == 2


def test_version(folder: Path) -> None:
    done = run("--version", folder=folder)
    assert done.stdout.split()[0] == "tooli" and done.stdout.split()[1][0].isdigit()


def test_names_stay_the_same_when_a_typer_app_becomes_a_tooli_app(folder: Path) -> None:
    source = (
        "import typer\nfrom {module} import {cls} as App\napp = App()\nsub = App()\n"
        "app.add_typer(sub, name='sub')\n"
        "@app.callback()\ndef main(level: int = 0): ...\n"
        "@app.command()\ndef say_hi(name: str): print(name)\n"
        "@sub.command('x')\ndef other(level: int = 1): print(level)\n"
    )
    found: list[list[str]] = []
    for module, cls in (("typer", "Typer"), ("tooli", "Tooli")):
        path = folder / "same_names.py"
        path.write_text(source.replace("{module}", module).replace("{cls}", cls))
        app = load_app(str(path))
        found.append([f"{tool.id} {sorted(tool.param_names)}" for tool in app.catalog])
    assert found[0] == found[1]
    assert found[0] == [
        "same-names.say-hi ['level', 'name']",
        "same-names.sub.x ['app_level', 'level']",
    ]
