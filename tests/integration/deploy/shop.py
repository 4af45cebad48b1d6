"""An app that tells which process has answered."""

from __future__ import annotations

import os

from tooli import Context, Tooli

app = Tooli("shop", version="1")


@app.command()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.command()
def process() -> str:
    """Return the id of the process."""
    return str(os.getpid())


@app.command()
def whoami(ctx: Context) -> str:
    """Return the name of the client."""
    return str(ctx.caller.name)


@app.command()
def steps(ctx: Context, count: int = 3) -> int:
    """Report progress."""
    return sum([1 for _ in ctx.progress(list(range(count)))])


@app.resource("shop://facts/one")
def fact() -> str:
    """Return a fact."""
    return "one"


if __name__ == "__main__":
    app()
