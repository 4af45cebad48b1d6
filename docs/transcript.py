"""Play a Markdown page: write the files that it shows, run the commands, compare what comes.

    ```python        a block whose first line is `# name.py` is that file
    ```console       `$ …` is run at a terminal; what follows is what it shows

All blocks of a page share one folder, in order.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from examples.terminal import run_at_terminal, strip_escapes

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DURATION = re.compile(r'(duration_ms(?:\\?")?: ?)\d+')
_TOKEN = re.compile(r'((?:"token": ?"|--apply )p)[\w-]{50,}')  # of a plan


def play(page: str, folder: Path) -> str:
    """The page with what its commands really show."""
    env = _environment(folder)

    def perform(block: re.Match[str]) -> str:
        language, body = block.groups()
        if language == "python":
            _write_file(body, folder)
            return block.group()
        return f"```console\n{_run(body, folder, env)}```"

    return _BLOCK.sub(perform, page)


def settled(page: str) -> str:
    """The page without what differs from run to run."""
    return _TOKEN.sub(r"\g<1>AGr6C…", _DURATION.sub(r"\g<1>0", page))


def _write_file(body: str, folder: Path) -> None:
    first = body.partition("\n")[0]
    if first.startswith("# ") and first.endswith(".py"):
        (folder / first[2:]).write_text(body, encoding="utf-8")


def _run(body: str, folder: Path, env: dict[str, str]) -> str:
    shown = ""
    for line in body.splitlines():
        if line.startswith("$ "):
            text, _ = run_at_terminal(["sh", "-c", line[2:]], folder, env)
            shown += f"{line}\n{settled(strip_escapes(text))}"
    return shown


def _environment(folder: Path) -> dict[str, str]:
    """A new user's: the project's Python in front, nothing that speaks of an agent."""
    programs = Path(sys.executable).parent
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TERM": "xterm-256color",
    }
