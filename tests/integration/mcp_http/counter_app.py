"""An app that counts the calls of each session."""

from __future__ import annotations

from typing import Any

from tooli import Context, Tooli

app = Tooli("counter")


@app.command()
def count(ctx: Context) -> dict[str, Any]:
    """Count a call."""
    ctx.state["calls"] = ctx.state.get("calls", 0) + 1
    return {"calls": ctx.state["calls"], "kept": ctx.state.is_kept}


@app.command()
async def count_async(ctx: Context) -> dict[str, Any]:
    """Count a call."""
    return count(ctx)


@app.resource("counter://calls")
def calls(ctx: Context) -> str:
    """The number of calls."""
    return str(ctx.state.get("calls", 0))


if __name__ == "__main__":
    app()
