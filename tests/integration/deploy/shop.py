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


@app.command()
def visit(ctx: Context, name: str = "") -> dict[str, object]:
    """Count the calls of the session, and remember the names."""
    ctx.state["visits"] = ctx.state.get("visits", 0) + 1
    ctx.state.setdefault("names", [])
    if name:
        ctx.state["names"].append(name)
    return {"visits": ctx.state["visits"], "names": ctx.state["names"], "kept": ctx.state.is_kept}


@app.command(timeout=60)
def visits(ctx: Context) -> int:
    """Return the number of calls of the session, in a process of its own."""
    return ctx.state.get("visits", 0)


@app.resource("shop://facts/one")
def fact() -> str:
    """Return a fact."""
    return "one"


if __name__ == "__main__":
    app()
