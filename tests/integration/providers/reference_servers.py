"""The reference servers of MCP, installed once: npm packages and virtual environments."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.integration import node

if TYPE_CHECKING:
    from pathlib import Path

NPM_VERSION = "2026.8.31"
PYTHON_PACKAGES = {
    "git": ("mcp-server-git==2026.10.19",),
    "time": ("mcp-server-time==2026.10.19",),
    "fetch": ("mcp-server-fetch==2026.10.24",),
    "sqlite": ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0"),  # an SDK of the handshake era
}


def npm_command(name: str, *arguments: str) -> list[str]:
    """Return the command of a server that is an npm package."""
    folder = node.install(f"@modelcontextprotocol/server-{name}@{NPM_VERSION}")
    program = folder / "node_modules" / ".bin" / f"mcp-server-{name}"
    return [str(node.node()), str(program), *arguments]


def python_command(name: str, *arguments: str) -> list[str]:
    """Return the command of a server that is a Python package."""
    return [str(_environment(name) / "bin" / f"mcp-server-{name}"), *arguments]


def _environment(name: str) -> Path:
    """Return the virtual environment of a server. Those with the same SDK share one."""
    packages = PYTHON_PACKAGES[name]
    is_alone = len(packages) > 1
    folder = node.CACHE.parent / "mcp-servers" / (name if is_alone else "python")
    wanted = packages if is_alone else [p for (p, *more) in PYTHON_PACKAGES.values() if not more]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            subprocess.run(
                [*pip, "--disable-pip-version-check", *wanted], check=True, capture_output=True
            )
            (folder / ".ready").touch()
    return folder
