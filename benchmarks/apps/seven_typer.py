"""The seven-parameter app, written with Typer."""

import json
import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

app = typer.Typer()


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
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Show what arrived."""
    start = time.perf_counter()
    result = {
        "name": name,
        "count": count,
        "verbose": verbose,
        "path": str(path),
        "mode": mode.value,
        "tag": tag,
        "note": note,
    }
    if not as_json:
        typer.echo(result)
        return
    took = int((time.perf_counter() - start) * 1000)
    meta = {"tool": "demo.convert", "version": "1.0.0", "duration_ms": took}
    typer.echo(json.dumps({"ok": True, "result": result, "meta": meta}, separators=(",", ":")))


@app.command()
def ping() -> None:
    """Answer."""
    typer.echo("pong")


def main() -> None:
    """Run the command line."""
    app()
