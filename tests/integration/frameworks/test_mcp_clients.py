"""The programs of docs/mcp-clients.md, run exactly as documented with the real frameworks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration import node
from tests.integration.frameworks import environment

PAGE = (environment.ROOT / "docs" / "mcp-clients.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"```(?:js|python)\n(?://|#) ([a-z_.]+)\n(.*?)```", PAGE, re.DOTALL))
"""The programs on the page, by file name."""

NPM_PACKAGES = {"vercel.mjs": node.VERCEL_AI_SDK, "mastra.mjs": node.MASTRA}
APP = environment.ROOT / "examples" / "file_tools" / "app.py"


def test_page_has_a_program_for_each_framework() -> None:
    assert list(PROGRAMS) == [
        "vercel.mjs",
        "mastra.mjs",
        "agno_client.py",
        "smolagents_client.py",
        "dspy_client.py",
        "strands_client.py",
    ]
    assert PAGE.count("\n## ") == len(PROGRAMS)


def test_page_states_the_tested_versions() -> None:
    table = PAGE.partition("| --- |")[2].partition("\n\n")[0]
    stated = re.findall(r"`?([@/a-z-]+)`? (\d+\.[\d.]+\d)", table)
    pinned = {package.rpartition("@")[::2] for names in NPM_PACKAGES.values() for package in names}
    for name in ("mcp", "smolagents"):
        text = environment.REQUIREMENTS[name].read_text(encoding="utf-8")
        pinned.update(re.findall(r"^([a-z-]+)==([\d.]+)", text, re.MULTILINE))
    assert len(stated) == 12
    assert set(stated) <= pinned


def start_command(name: str, folder: Path) -> list[str | Path]:
    """Write a program to a folder where it finds its framework, and return its command."""
    if name in NPM_PACKAGES:
        modules = node.install(*NPM_PACKAGES[name]) / "node_modules"
        (folder / "node_modules").symlink_to(modules, target_is_directory=True)
        command: list[str | Path] = [node.node(), folder / name]
    else:
        kind = "smolagents" if name == "smolagents_client.py" else "mcp"
        command = [environment.python(kind), folder / name]
    (folder / name).write_text(PROGRAMS[name], encoding="utf-8")
    return command


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_lists_and_calls_a_tool(name: str, tmp_path: Path) -> None:
    programs, work = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    (work / "unlikely-name.md").touch()
    file_tools = programs / "file-tools"
    file_tools.write_text(
        f"#!{sys.executable}\nimport runpy\nrunpy.run_path({str(APP)!r}, run_name='__main__')\n"
    )
    file_tools.chmod(0o755)
    variables = environment.variables()
    done = subprocess.run(
        start_command(name, tmp_path),
        cwd=work,
        env={**variables, "PATH": f"{programs}:{variables['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    names, _, answer = done.stdout.partition("]")
    assert "find_files" in names
    assert "unlikely-name.md" in answer
