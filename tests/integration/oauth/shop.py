"""A shop whose commands need scopes."""

from __future__ import annotations

from collections.abc import Iterator

from tooli import Context, Tooli

app = Tooli("shop", version="1.0", security_policy="strict")


@app.command(auth=["shop:read"])
def peek() -> str:
    """Look at the stock."""
    return "tea"


@app.command(auth=["shop:write"])
def put(thing: str) -> str:
    """Put something on the stock."""
    return thing


@app.command(auth=["shop:write"])
def rows() -> Iterator[int]:
    """Return rows one by one."""
    yield from range(3)


@app.command(auth=[])
def whoami(ctx: Context) -> dict[str, object]:
    """Tell who calls."""
    return {"principal": ctx.caller.principal, "scopes": sorted(ctx.caller.scopes)}


@app.resource("shop://stock", auth=["shop:write"])
def stock() -> str:
    """Return the stock."""
    return "tea"


@app.prompt(auth=["shop:write"])
def order(thing: str) -> str:
    """Ask for an order."""
    return f"Order {thing}"


if __name__ == "__main__":
    app()
