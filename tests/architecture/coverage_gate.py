"""The coverage gate of `make test`: tests execute at least 95 % of the branches of these packages.

Reads coverage's JSON report, prints a table, and exits with 1 if a package is below the limit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LIMIT = 95.0
MAX_LISTED = 12
PARTS = (
    *("tooli/core/", "tooli/schema/", "tooli/text/", "tooli/records/", "tooli/pipeline/"),
    *("tooli/policy/", "tooli/stages/", "tooli/storage/", "tooli/execution/"),
    "tooli/errors.py",
)


def measure(report: dict[str, Any], part: str) -> tuple[int, int, dict[str, list[list[int]]]]:
    """Return how many branches were executed, how many exist, and the missing ones by file."""
    executed = total = 0
    missing: dict[str, list[list[int]]] = {}
    for path, found in report["files"].items():
        name = Path(path).as_posix()
        if f"/{part}" not in f"/{name}":
            continue
        executed += found["summary"]["covered_branches"]
        total += found["summary"]["num_branches"]
        if found["missing_branches"]:
            missing[name] = found["missing_branches"]
    return executed, total, missing


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if a package is below the limit."""
    report = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    failed = False
    for part in PARTS:
        executed, total, missing = measure(report, part)
        percent = 100.0 * executed / total if total else 0.0
        passed = percent >= LIMIT
        failed |= not passed
        figures = f"{executed:>5} of {total:>5} branches  {percent:6.2f} %"
        print(f"{part:<18} {figures}  (≥ {LIMIT:.0f} %)")
        for name, branches in missing.items() if not passed else ():
            listed = ", ".join(f"{start}→{end}" for start, end in branches[:MAX_LISTED])
            print(f"    {name}: {listed}{', …' if len(branches) > MAX_LISTED else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
