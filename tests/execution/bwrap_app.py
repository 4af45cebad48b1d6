"""Try evasions in a bubble: `python bwrap_app.py GROUND NAME… --jsonl`, one answer for each.

The bubble loads this file again; the ground is laid out beside its folder before.
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
import sandboxes

from tooli import Tooli
from tooli.execution.sandbox import bwrap

if "BUBBLEWRAP" in os.environ:
    bwrap.BWRAP_DIRS = (os.environ["BUBBLEWRAP"],)
INSIDE = Path(__file__).resolve().parent.parent / "ground" / "inside"
WORDS = [f"fs:{act}:{INSIDE}" for act in ("read", "write", "delete")]
TABLES = {"evasions": evasions, "sandboxes": sandboxes}

app = Tooli("bubbled")


@app.command(isolation="required", capabilities=WORDS, timeout=60)
def attempts(ground: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """Try what is named, as table:attempt, one after the other."""
    place = evasions.Ground(*json.loads(ground))
    for name in names:
        table, _, wanted = name.partition(":")
        attempt = next(one for one in TABLES[table].ATTEMPTS if one.name == wanted)
        try:
            evidence = attempt.run(place)
            found = {"evidence": str(evidence)[:2000] if evidence else None}
        except BaseException as failure:
            found = {"failure": f"{type(failure).__name__}: {failure}"[:200]}
        yield {"name": name, **found}


if __name__ == "__main__":
    app()
