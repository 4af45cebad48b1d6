"""The seven-parameter app, written with click."""

import json
import time
from enum import Enum
from pathlib import Path
from typing import Optional

import click


class Mode(Enum):
    """How careful to be."""

    FAST = "fast"
    SAFE = "safe"


@click.group()
@click.version_option("1.0.0")
def app() -> None:
    """Two commands."""


@app.command()
@click.argument("name")
@click.option("--count", type=int, default=1)
@click.option("--verbose/--no-verbose", default=False)
@click.option("--path", type=click.Path(path_type=Path), default=Path("."))
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), default="safe")
@click.option("--tag", multiple=True)
@click.option("--note")
@click.option("--json", "as_json", is_flag=True)
def convert(
    name: str,
    count: int,
    verbose: bool,
    path: Path,
    mode: str,
    tag: tuple[str, ...],
    note: Optional[str],  # noqa: UP045
    as_json: bool,
) -> None:
    """Show what arrived."""
    start = time.perf_counter()
    result = {
        "name": name,
        "count": count,
        "verbose": verbose,
        "path": str(path),
        "mode": Mode(mode).value,
        "tag": list(tag),
        "note": note,
    }
    if not as_json:
        click.echo(result)
        return
    took = int((time.perf_counter() - start) * 1000)
    meta = {"tool": "demo.convert", "version": "1.0.0", "duration_ms": took}
    click.echo(json.dumps({"ok": True, "result": result, "meta": meta}, separators=(",", ":")))


@app.command()
def ping() -> None:
    """Answer."""
    click.echo("pong")


def main() -> None:
    """Run the command line."""
    app()
