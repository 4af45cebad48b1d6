"""Run the examples of a Markdown page: write its files, run its commands, replace their output.

    ```python        a block whose first line is `# name.py` is written to that file
    ```sql           the same, if its first line is `-- name.sql`
    ```console       the commands after `$ ` are run at a terminal; the other lines are their output

All blocks of a page share one folder and run in order.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from examples.terminal import run_at_terminal, strip_escapes

_BLOCK = re.compile(r"^```(python|sql|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DURATION = re.compile(r'(\b(?:duration_)?ms(?:\\?")?: ?)\d+')
_FIRST_RUN = re.compile(r'("first_run": ?")[^"]+')
_PLAN_TOKEN = re.compile(r'((?:"token": ?"|--apply )p)[\w-]{50,}')


def run_examples(page: str, folder: Path) -> str:
    """Return the page with the real output of its commands."""
    env = _environment(folder)

    def run_block(block: re.Match[str]) -> str:
        language, body = block.groups()
        if language != "console":
            _write_file(body, folder)
            return block.group()
        return f"```console\n{_run_commands(body, folder, env)}```"

    return _BLOCK.sub(run_block, page)


def normalize(page: str) -> str:
    """Return the page with placeholders for values that change with every run."""
    page = _FIRST_RUN.sub(r"\g<1>2026-11-15T18:03:37Z", _DURATION.sub(r"\g<1>0", page))
    return _PLAN_TOKEN.sub(r"\g<1>AGr6C…", page)


def _write_file(body: str, folder: Path) -> None:
    mark, _, name = body.partition("\n")[0].partition(" ")
    if (mark, Path(name).suffix) in (("#", ".py"), ("--", ".sql")):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body, encoding="utf-8")


def _run_commands(body: str, folder: Path, env: dict[str, str]) -> str:
    output = ""
    for line in body.splitlines():
        if line.startswith("$ "):
            text, _ = run_at_terminal(["sh", "-c", line[2:]], folder, env)
            output += f"{line}\n{normalize(strip_escapes(text))}"
    return output


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a new user: no settings, no agent, the current Python first."""
    programs = Path(sys.executable).parent
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERM": "xterm-256color",
    }
