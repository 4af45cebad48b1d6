"""Install and run the official MCP conformance suite, with the Node of a PyPI package.

python -m tests.integration.conformance.suite     installs both versions
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

from tests.integration import node as npm

PACKAGE = "@modelcontextprotocol/conformance"
STABLE, PRERELEASE = "0.1.16", "0.2.0-alpha.12"


def install(version: str) -> pathlib.Path:
    """Install a version of the suite if it is missing; return its program."""
    folder = npm.install(f"{PACKAGE}@{version}")
    return folder / "node_modules" / PACKAGE / "dist" / "index.js"


class Report:
    """The result of a run of the suite. `problems` are checks that failed or warned."""

    def __init__(self, output: str, checks: list[dict[str, Any]]) -> None:
        total = re.search(r"Total: (\d+) passed, (\d+) failed", output)
        assert total is not None, output
        self.passed, self.failed = int(total[1]), int(total[2])
        self.problems = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]

    def __str__(self) -> str:
        lines = [
            f"{check['status']} {check['id']}: {check.get('errorMessage')}"
            for check in self.problems
        ]
        return "\n".join([f"{self.passed} passed, {self.failed} failed", *lines])


def run(version: str, url: str, results: pathlib.Path, *flags: str) -> Report:
    """Run all scenarios of the suite against a server. It writes its results to a folder."""
    program = [npm.node(), install(version), "server", "--url", url, "--suite", "all", *flags]
    done = subprocess.run(
        [*program, "-o", results], capture_output=True, text=True, timeout=300, check=False
    )
    found = [json.loads(file.read_text()) for file in sorted(results.rglob("checks.json"))]
    return Report(done.stdout + done.stderr, [check for checks in found for check in checks])


if __name__ == "__main__":
    for version in (STABLE, PRERELEASE):
        print(install(version))
