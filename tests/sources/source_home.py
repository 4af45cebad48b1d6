"""A home folder for tests of sources, and the program `tooli` in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.app_process import PROCESS_TIMEOUT, environment
from tests.integration.mcp.stdio_client import LAUNCHER_CODE

TOOLS = """
from tooli.annotations import ReadOnly
from tooli.providers import tool


@tool(annotations=ReadOnly)
def list_orders(limit: int = 2) -> list[int]:
    \"\"\"List the numbers of the orders.\"\"\"
    return list(range(1, limit + 1))


@tool("cancel")
def cancel_order(number: int) -> str:
    \"\"\"Cancel an order.\"\"\"
    return f"order {number} is cancelled"
"""
APP = """
from tooli import Tooli
from tooli.annotations import ReadOnly

app = Tooli("shop", version="1.0", description="A shop.")


@app.command(annotations=ReadOnly)
def find(text: str) -> list[str]:
    \"\"\"Find items.\"\"\"
    return [text]


if __name__ == "__main__":
    app()
"""


class SourceHome:
    """A home folder with a folder of tools and an app, and the program `tooli`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o700)
        (folder / "desk").mkdir()
        (folder / "desk" / "orders.py").write_text(TOOLS)
        (folder / "shop.py").write_text(APP)
        self.env = environment(HOME=str(folder), APPDATA=str(folder))

    def start(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the program `tooli`."""
        return subprocess.run(
            [sys.executable, "-c", LAUNCHER_CODE, *argv],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.env, **env},
            timeout=PROCESS_TIMEOUT,
        )

    def __call__(self, *argv: str, **env: str) -> dict[str, Any]:
        """Run the program `tooli` and return its envelope."""
        done = self.start(*argv, "--json", **env)
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["ok"] == (done.returncode == 0)
        return found
