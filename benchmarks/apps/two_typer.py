"""The two-command app, written with Typer."""

import json
import time
from typing import Annotated

import typer

app = typer.Typer()
AsJson = Annotated[bool, typer.Option("--json")]


def show(tool: str, result: object, start: float, as_json: bool) -> None:
    """Print a result as the others do."""
    if not as_json:
        typer.echo(result)
        return
    took = int((time.perf_counter() - start) * 1000)
    meta = {"tool": f"demo.{tool}", "version": "1.0.0", "duration_ms": took}
    typer.echo(json.dumps({"ok": True, "result": result, "meta": meta}, separators=(",", ":")))


@app.command()
def hello(name: str, count: int = 1, as_json: AsJson = False) -> None:
    """Greet somebody."""
    start = time.perf_counter()
    show("hello", " ".join(["hello", name] * count), start, as_json)


@app.command()
def add(a: int, b: int, as_json: AsJson = False) -> None:
    """Add two numbers."""
    start = time.perf_counter()
    show("add", a + b, start, as_json)


def main() -> None:
    """Run the command line."""
    app()
