"""The coverage gate of `make test`: at least 95 % of the branches of these packages run.

Reads coverage's JSON report, prints a table, and exits with 1 if a package
stays below the limit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LIMIT = 95.0
SHOWN = 12
PARTS = (
    *("tooli/core/", "tooli/schema/", "tooli/text/", "tooli/records/", "tooli/pipeline/"),
    "tooli/policy/",
    "tooli/errors.py",
)


def measure(report: dict[str, Any], part: str) -> tuple[int, int, dict[str, list[list[int]]]]:
    """Branches that were taken, branches that there are, and by file those that never were."""
    taken = there = 0
    missing: dict[str, list[list[int]]] = {}
    for path, found in report["files"].items():
        name = Path(path).as_posix()
        if f"/{part}" not in f"/{name}":
            continue
        taken += found["summary"]["covered_branches"]
        there += found["summary"]["num_branches"]
        if found["missing_branches"]:
            missing[name] = found["missing_branches"]
    return taken, there, missing


def main(arguments: list[str]) -> int:
    """Judge the report."""
    report = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    failed = False
    for part in PARTS:
        taken, there, missing = measure(report, part)
        percent = 100.0 * taken / there if there else 0.0
        enough = percent >= LIMIT
        failed |= not enough
        print(f"{part:<18} {taken:>5} of {there:>5} branches  {percent:6.2f} %  (≥ {LIMIT:.0f} %)")
        for name, branches in missing.items() if not enough else ():
            listed = ", ".join(f"{start}→{end}" for start, end in branches[:SHOWN])
            print(f"    {name}: {listed}{', …' if len(branches) > SHOWN else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
