"""An app that only Typer can run: it has a callback, a custom type and a typer.Context."""

from __future__ import annotations

import os
import sys
import time

import typer

from tooli import Tooli

app = Tooli("typer-path", version="1")


@app.callback()
def before(loud: bool = False, leave_with: int = -1) -> None:
    """Run before every command."""
    if leave_with >= 0:
        sys.exit(leave_with)


def lower(text: str) -> str:
    """Parse an argument."""
    if text == "bad":
        raise ValueError("invalid")
    return text.lower()


@app.command()
def echo(text: str = typer.Argument(parser=lower)) -> str:
    """Return the text in lower case."""
    return text


@app.command()
def crash(ctx: typer.Context) -> str:
    """Fail."""
    raise ZeroDivisionError(ctx.info_name)


@app.command()
def sleep() -> int:
    """Wait."""
    os.write(2, b"ready\n")
    time.sleep(600)
    return 0


@app.command()
def say(child: bool = False):
    """Print."""
    typer.echo("printed")
    if child:
        os.system("echo from a child")


@app.command()
def leave(code: int):
    """Raise typer.Exit."""
    raise typer.Exit(code)


@app.command()
def abort():
    """Raise typer.Abort."""
    raise typer.Abort


@app.command()
def refuse():
    """Raise typer.BadParameter."""
    raise typer.BadParameter("invalid")


if __name__ == "__main__":
    app()
