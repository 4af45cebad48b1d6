"""The official conformance suite: its two versions, installed once, with a Node from PyPI.

python -m tests.integration.conformance.suite     installs what is missing
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

from tests.integration import node as npm

PACKAGE = "@modelcontextprotocol/conformance"
OLD, NEW = "0.1.16", "0.2.0-alpha.12"


def install(version: str) -> pathlib.Path:
    """The suite's program in a version, installed if it is not there yet."""
    room = npm.install(f"{PACKAGE}@{version}")
    return room / "node_modules" / PACKAGE / "dist" / "index.js"


class Report:
    """What a run of the suite found."""

    def __init__(self, output: str, checks: list[dict[str, Any]]) -> None:
        total = re.search(r"Total: (\d+) passed, (\d+) failed", output)
        assert total is not None, output
        self.passed, self.failed = int(total[1]), int(total[2])
        self.wrong = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]

    def __str__(self) -> str:
        lines = [
            f"{check['status']} {check['id']}: {check.get('errorMessage')}" for check in self.wrong
        ]
        return "\n".join([f"{self.passed} passed, {self.failed} failed", *lines])


def run(version: str, url: str, results: pathlib.Path, *flags: str) -> Report:
    """Run all of the suite against a server."""
    program = [npm.node(), install(version), "server", "--url", url, "--suite", "all", *flags]
    done = subprocess.run(
        [*program, "-o", results], capture_output=True, text=True, timeout=300, check=False
    )
    found = [json.loads(file.read_text()) for file in sorted(results.rglob("checks.json"))]
    return Report(done.stdout + done.stderr, [check for checks in found for check in checks])


if __name__ == "__main__":
    for each in (OLD, NEW):
        print(install(each))
