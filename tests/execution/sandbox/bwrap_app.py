"""Run evasion attempts in bubblewrap: `python bwrap_app.py FOLDER NAME… --jsonl`, one line for
each.

Bubblewrap imports this file again. The files of the attempts are beside its folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import evasions
import sandbox_evasions

from tooli import Tooli
from tooli.execution.sandbox import bwrap

if "BUBBLEWRAP" in os.environ:
    bwrap.BWRAP_DIRS = (os.environ["BUBBLEWRAP"],)
INSIDE = Path(__file__).resolve().parent.parent / "workspace" / "inside"
CAPABILITIES = [f"fs:{act}:{INSIDE}" for act in ("read", "write", "delete")]
TABLES = {"evasions": evasions, "sandbox_evasions": sandbox_evasions}

app = Tooli("attempts-in-bwrap")


@app.command(isolation="required", capabilities=CAPABILITIES, timeout=60)
def attempts(workspace: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """Run the named attempts (table:attempt), one after the other."""
    files = evasions.Workspace(*json.loads(workspace))
    for name in names:
        table, _, wanted = name.partition(":")
        attempt = next(one for one in TABLES[table].ATTEMPTS if one.name == wanted)
        try:
            evidence = attempt.run(files)
            found = {"evidence": str(evidence)[:2000] if evidence else None}
        except BaseException as failure:
            found = {"failure": f"{type(failure).__name__}: {failure}"[:200]}
        yield {"name": name, **found}


if __name__ == "__main__":
    app()
