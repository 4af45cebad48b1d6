"""The two-command app, written with click."""

import json
import time

import click


def show(tool: str, result: object, start: float, as_json: bool) -> None:
    """Print a result as the others do."""
    if not as_json:
        click.echo(result)
        return
    took = int((time.perf_counter() - start) * 1000)
    meta = {"tool": f"demo.{tool}", "version": "1.0.0", "duration_ms": took}
    click.echo(json.dumps({"ok": True, "result": result, "meta": meta}, separators=(",", ":")))


@click.group()
@click.version_option("1.0.0")
def app() -> None:
    """Two commands."""


@app.command()
@click.argument("name")
@click.option("--count", type=int, default=1)
@click.option("--json", "as_json", is_flag=True)
def hello(name: str, count: int, as_json: bool) -> None:
    """Greet somebody."""
    start = time.perf_counter()
    show("hello", " ".join(["hello", name] * count), start, as_json)


@app.command()
@click.argument("a", type=int)
@click.argument("b", type=int)
@click.option("--json", "as_json", is_flag=True)
def add(a: int, b: int, as_json: bool) -> None:
    """Add two numbers."""
    start = time.perf_counter()
    show("add", a + b, start, as_json)


def main() -> None:
    """Run the command line."""
    app()
