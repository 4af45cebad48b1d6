"""The app that agent programs use in the tests, with a command for each permission rule."""

from tooli import Context, Tooli
from tooli.annotations import Destructive, ReadOnly

app = Tooli("shop", description="Look after a small shop.", version="1.0.0")
ITEMS = ("green tea", "black tea", "rice")


@app.command(annotations=ReadOnly)
def find(text: str = "") -> list[str]:
    """Find items by a part of their name."""
    return [item for item in ITEMS if text in item]


@app.command(annotations=ReadOnly, paginated=True)
def sales() -> list[dict[str, int]]:
    """List all sales."""
    return [{"sale": number, "price": number * 2} for number in range(250)]


@app.command(annotations=ReadOnly)
def stock(ctx: Context) -> dict[str, int]:
    """Count the items."""
    ctx.warn("the count is from yesterday")
    return {"items": len(ITEMS)}


@app.command(annotations=ReadOnly)
def log() -> list[dict[str, str]]:
    """Return the whole log, which is longer than any agent shows."""
    return [{"entry": f"{number:05}", "text": "é" * (number % 60)} for number in range(5_000)]


@app.command(
    annotations=ReadOnly, always_visible=True, meta={"anthropic/maxResultSizeChars": 100_000}
)
def report() -> str:
    """Write a report that is longer than other results may be."""
    return "all is well\n" * 7_000


@app.command(meta={"anthropic/searchHint": "restocking"})
def add(name: str) -> str:
    """Add an item."""
    return f"added {name}"


@app.command(annotations=Destructive, danger_level="critical")
def wipe() -> str:
    """Delete all items."""
    return "all items were deleted"


if __name__ == "__main__":
    app()
