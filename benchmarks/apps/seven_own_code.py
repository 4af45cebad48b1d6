"""The function of the seven-parameter app without a command line: the lower bound."""

import sys
from enum import Enum
from pathlib import Path
from typing import Optional


class Mode(Enum):
    """How careful to be."""

    FAST = "fast"
    SAFE = "safe"


def convert(
    name: str,
    count: int = 1,
    verbose: bool = False,
    path: Path = Path("."),
    mode: Mode = Mode.SAFE,
    tag: list[str] = [],  # noqa: B006
    note: Optional[str] = None,  # noqa: UP045
) -> dict[str, object]:
    """Show what arrived."""
    return {
        "name": name,
        "count": count,
        "verbose": verbose,
        "path": str(path),
        "mode": mode.value,
        "tag": tag,
        "note": note,
    }


def main() -> None:
    """Call the function with fixed values."""
    result = convert("bob", 3, True, Path("src"), Mode.FAST, ["a", "b"], "hi")
    sys.stdout.write(f"{result}\n")
