"""An app whose commands report events and ask a language model."""

from __future__ import annotations

from collections.abc import Iterator

from tooli import Context, DependencyError, SecretInput, Tooli

app = Tooli("talking", version="1.0")


@app.command()
def bake(ctx: Context, loaves: int = 2, fail: bool = False) -> Iterator[str]:
    """Bake loaves."""
    ctx.log("The oven is hot.", level="warning")
    for number in ctx.progress(range(1, loaves + 1)):
        yield f"loaf {number}"
    if fail:
        raise DependencyError("The oven is cold.")
    ctx.artifact("bill", "https://bakery.example/bills/17", mime_type="text/html")


@app.command(timeout=120)
def bake_apart(ctx: Context, loaves: int = 2) -> Iterator[str]:
    """Bake loaves in a process of its own."""
    ctx.log("The oven is hot.", level="warning")
    for number in ctx.progress(range(1, loaves + 1)):
        yield f"loaf {number}"
    ctx.artifact("bill", "https://bakery.example/bills/17", mime_type="text/html")


@app.command(isolation="required", capabilities=["none"])
def bake_isolated(ctx: Context, loaves: int = 2) -> Iterator[str]:
    """Bake loaves in a sandbox."""
    ctx.log("The oven is hot.", level="warning")
    for number in ctx.progress(range(1, loaves + 1)):
        yield f"loaf {number}"
    ctx.artifact("bill", "https://bakery.example/bills/17", mime_type="text/html")


@app.command()
async def abake(ctx: Context, loaves: int = 2):
    """Bake loaves on an event loop."""
    ctx.log("The oven is hot.", level="warning")
    for number in range(1, loaves + 1):
        yield f"loaf {number}"
        ctx.report(number, loaves)
    ctx.artifact("bill", "https://bakery.example/bills/17", mime_type="text/html")


@app.command()
def slogan(ctx: Context, product: str) -> str:
    """Write a slogan."""
    return ctx.sample(f"A slogan for {product}.", system="Use five words.", max_tokens=50)


@app.command(timeout=120)
def slogan_apart(ctx: Context, product: str) -> str:
    """Write a slogan in a process of its own."""
    return ctx.sample(f"A slogan for {product}.", system="Use five words.", max_tokens=50)


@app.command()
async def aslogan(ctx: Context, product: str) -> str:
    """Write a slogan on an event loop."""
    return await ctx.asample(f"A slogan for {product}.", system="Use five words.", max_tokens=50)


@app.command()
def leak(ctx: Context, key: SecretInput[str]) -> str:
    """Report a secret."""
    ctx.log(f"\x1b[31mkey {key.reveal()}")
    ctx.report(1, 2, key.reveal())
    ctx.artifact(key.reveal(), f"https://bakery.example/{key.reveal()}")
    return "done"


@app.command()
def flood(ctx: Context, events: int = 100_000) -> str:
    """Report many events."""
    for number in range(events):
        ctx.log(f"event {number}" + "x" * 1000, level="error")
    return "done"


if __name__ == "__main__":
    app()
