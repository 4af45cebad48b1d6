"""Commands that ask questions in their code."""

from __future__ import annotations

import getpass
from enum import Enum
from typing import Optional

import typer
from rich.prompt import Confirm, Prompt

from tooli import Tooli

app = Tooli("asking")


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@app.command()
def remove(target: str, force: bool = False) -> str:
    """Confirm unless a flag is given."""
    if not force:
        typer.confirm(f"Remove {target}?", abort=True)
    return f"removed {target}"


@app.command()
def keep(target: str) -> str:
    """Confirm; no parameter answers."""
    return "removed" if typer.confirm(f"Remove {target}?", default=True) else "kept"


@app.command()
def greet(name: Optional[str] = None) -> str:  # noqa: UP045  as in many apps
    """Ask for a missing option."""
    return f"Hello {name or typer.prompt('Your name')}"


@app.command()
def size() -> int:
    """Ask for a number with a default."""
    return typer.prompt("How many", default=3, type=int)


@app.command()
def paint() -> str:
    """Ask for one of a few values."""
    return typer.prompt("Which color", type=Color, default=Color.RED).value


@app.command()
def line() -> str:
    """Call input."""
    return input("Text: ")


@app.command()
async def aline() -> str:
    """Call input on an event loop."""
    return input("Text: ")


@app.command()
def secret() -> int:
    """Call getpass."""
    return len(getpass.getpass("Secret: "))


@app.command()
def rich_line() -> str:
    """Ask with rich."""
    return f"{Prompt.ask('Which', choices=['a', 'b'])} {Confirm.ask('Sure?')}"


@app.command(timeout=60)
def limited() -> str:
    """Ask in a worker process."""
    return input("Text: ")


@app.command()
def printing(target: str):
    """Confirm, and print the result."""
    typer.confirm(f"Remove {target}?", abort=True)
    print(f"removed {target}")


if __name__ == "__main__":
    app()
