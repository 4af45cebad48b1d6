"""The seven-parameter app, written with tooli and `import typer`."""

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from tooli import Tooli

app = Tooli(name="demo", version="1.0.0")


class Mode(Enum):
    """How careful to be."""

    FAST = "fast"
    SAFE = "safe"


@app.command()
def convert(
    name: Annotated[str, typer.Argument(help="Whom to convert.")],
    count: Annotated[int, typer.Option(help="How often.")] = 1,
    verbose: Annotated[bool, typer.Option(help="Say more.")] = False,
    path: Annotated[Path, typer.Option(help="Where.")] = Path("."),
    mode: Annotated[Mode, typer.Option(help="How careful to be.")] = Mode.SAFE,
    tag: Annotated[list[str], typer.Option(help="Any number of labels.")] = [],  # noqa: B006
    note: Annotated[Optional[str], typer.Option(help="A remark.")] = None,  # noqa: UP045
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
