"""The seven-parameter app, written with tooli."""

from enum import Enum
from pathlib import Path
from typing import Optional

from tooli import Tooli

app = Tooli(name="demo", version="1.0.0")


class Mode(Enum):
    """How careful to be."""

    FAST = "fast"
    SAFE = "safe"


@app.command()
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


@app.command()
def ping() -> str:
    """Answer."""
    return "pong"


def main() -> None:
    """Run the command line."""
    app()
