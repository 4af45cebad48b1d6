"""Installed programs, found by the name of their console script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.app_process import environment, parse_json
from tests.integration.mcp.stdio_client import LAUNCHER_CODE, connect, launcher_command

PROGRAM = """
import typer
from pathlib import Path

cli = typer.Typer()


@cli.callback()
def main(token: str = ""):
    if token != "good":
        raise typer.Exit(7)


@cli.command()
def greet(name: str):
    print("hi", name)


def entry():
    cli()


def run_entry():
    typer.run(single)


def single(name: str, shout: bool = False):
    print(name.upper() if shout else name)


def fails():
    print("no settings found")
    raise SystemExit(3)


def starts_nothing():
    Path("ran").touch()
"""
OTHER = """
from pathlib import Path

def main():
    Path("ran").touch()
"""
SCRIPTS = """[console_scripts]
prog-app = prog_typer:cli
prog-entry = prog_typer:entry
prog-run = prog_typer:run_entry
prog-fails = prog_typer:fails
prog-nothing = prog_typer:starts_nothing
prog-other = prog_other:main
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed distribution."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "prog_typer.py").write_text(PROGRAM)
    (folder / "prog_other.py").write_text(OTHER)
    info = folder / "prog-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: prog\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(SCRIPTS)
    return folder


def launch(site: Path, *argv: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHER_CODE, *argv],
        capture_output=True,
        env=environment(PYTHONPATH=str(site)),
        cwd=site,
        timeout=300,
    )
    return parse_json(done.stdout)


@pytest.mark.parametrize(
    ("program", "signature"),
    [
        ("prog-app", 'greet(name: str, token: str = "")'),
        ("prog-entry", 'greet(name: str, token: str = "")'),
        ("prog-run", "single(name: str, shout: bool = false)"),
    ],
)
def test_tools_of_a_program(site: Path, program: str, signature: str) -> None:
    rows = launch(site, "tools", program)["result"]
    assert [row["signature"] for row in rows] == [signature]


def test_programs_without_an_app_are_refused(site: Path) -> None:
    for program, text in (
        ("prog-other", "is not made with Typer"),
        ("prog-nothing", "is not made with Typer"),
        ("prog-fails", "ended before it started an app"),
        ("prog-missing", "There is no module"),
    ):
        assert text in launch(site, "tools", program)["error"]["message"]


def test_a_program_that_does_not_use_typer_is_not_started(site: Path) -> None:
    (site / "ran").unlink(missing_ok=True)
    launch(site, "tools", "prog-other")
    assert not (site / "ran").exists()


def test_serve_a_program(site: Path) -> None:
    env = environment(PYTHONPATH=str(site))
    command = launcher_command("prog-entry")
    with connect("prog-entry", command=command, env=env, cwd=site) as client:
        assert client.failure("greet", {"name": "ada"})["code"] == "E4001"
        done = client.call("greet", {"name": "ada", "token": "good"})
        assert done["content"][0]["text"] == "hi ada"
    command = launcher_command("prog-run")
    with connect("prog-run", command=command, env=env, cwd=site) as client:
        done = client.call("single", {"name": "ada", "shout": True})
        assert done["content"][0]["text"] == "ADA"


def test_a_served_typer_app_has_an_http_api(site: Path) -> None:
    command = [sys.executable, "-c", LAUNCHER_CODE, "serve", "prog-app"]
    with subprocess.Popen(
        [*command, "--transport", "http", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PYTHONPATH=str(site)),
        cwd=site,
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            base = "http://" + line.partition("http://")[2].split()[0].split("/")[0]
            denied = httpx2.post(f"{base}/tools/greet", json={"name": "x"}).json()
            assert denied["error"]["code"] == "E4001"
            body = {"name": "x", "token": "good"}
            done = httpx2.post(f"{base}/tools/greet", json=body).json()
            assert (done["result"], done["meta"]["tool"]) == ("hi x", "prog-app.greet")
            assert "/tools/greet" in httpx2.get(f"{base}/openapi.json").json()["paths"]
        finally:
            process.terminate()
            process.wait(30)


def start(site: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LAUNCHER_CODE, "run", *argv],
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=str(site)),
        cwd=site,
        timeout=300,
    )


@pytest.mark.parametrize("program", ["prog-app", "prog-entry"])
def test_run_a_program(site: Path, program: str) -> None:
    """The program prints as before, and has the options of tooli."""
    done = start(site, program, "--token", "good", "greet", "ada")
    assert (done.stdout, done.returncode) == ("hi ada\n", 0)
    done = start(site, program, "--token", "good", "greet", "ada", "--json")
    answer = parse_json(done.stdout.encode())
    assert (answer["result"], answer["meta"]["tool"]) == ("hi ada", f"{program}.greet")
    assert start(site, program, "greet", "ada").returncode == 7
    done = start(site, program, "--token", "good", "greet", "--json")
    suggestion = parse_json(done.stdout.encode())["error"]["suggestion"]
    assert suggestion["argv"][:3] == ["tooli", "run", program]


def test_run_a_program_that_calls_typer_run(site: Path) -> None:
    done = start(site, "prog-run", "ada", "--shout", "--json")
    answer = parse_json(done.stdout.encode())
    assert (answer["result"], answer["meta"]["tool"]) == ("ADA", "prog-run.single")
    assert start(site, "prog-run", "--help").stdout.split()[:4] == [
        "Usage:",
        *"tooli run prog-run".split(),
    ]


def test_run_a_file_of_plain_typer(site: Path) -> None:
    done = start(site, "prog_typer.py", "--token", "good", "greet", "ada", "--json")
    assert parse_json(done.stdout.encode())["result"] == "hi ada"


def test_programs_that_cannot_be_run(site: Path) -> None:
    (site / "ran").unlink(missing_ok=True)
    for program, text in (
        ("prog-other", "is not made with Typer"),
        ("prog-missing", "There is no module"),
    ):
        done = start(site, program, "--json")
        assert text in parse_json(done.stdout.encode())["error"]["message"]
    assert not (site / "ran").exists()
    misplaced = launch(site, "--json", "run", "prog-app")["error"]["message"]
    assert "after the source" in misplaced


def test_documents_of_a_plain_typer_program_have_lines_that_work(site: Path) -> None:
    """The program itself has no `--json`; `tooli run` starts it with it."""
    launch(site, "skills", "add", "prog-app", "--json")
    skill = (site / ".agents" / "skills" / "prog-app" / "SKILL.md").read_text()
    assert "tooli run prog-app greet NAME --json" in skill
    assert "tooli run prog-app detect-context --json" in skill
    assert "\nprog-app " not in skill


def test_built_in_commands_of_a_program(site: Path) -> None:
    tools = launch(site, "mcp", "export", "prog-app", "--json")
    found = tools.get("result", tools)
    assert [tool["name"] for tool in found["tools"]] == ["greet"]
