"""An app with long results: lists, generators, async generators and pages of the same records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, TypedDict

from tooli import Context, Next, Page, Tooli


class Owner(TypedDict):
    name: str


class Row(TypedDict):
    n: int
    name: str
    kind: Literal["even", "odd"]
    owner: Owner | None
    tags: list[str]


def row(i: int) -> Row:
    """Return a record. Each index has a different one."""
    return Row(
        n=i,
        name=f"row {i}",
        kind="odd" if i % 2 else "even",
        owner=Owner(name="ada") if i % 3 else None,
        tags=[f"t{i % 5}", "all"],
    )


def make_app() -> Tooli:
    """Return a new app. `app.__dict__["produced"]` lists the records that a stream produced."""
    app = Tooli("records", version="1.0")
    produced: list[int] = []
    app.__dict__["produced"] = produced

    @app.command()
    def rows(count: int = 12) -> list[Row]:
        """A list."""
        return [row(i) for i in range(count)]

    @app.command()
    def stream(count: int = 12) -> Iterator[Row]:
        """A generator."""
        produced.clear()
        for i in range(count):
            produced.append(i)
            yield row(i)

    @app.command()
    async def astream(count: int = 12) -> AsyncIterator[Row]:
        """An async generator."""
        produced.clear()
        for i in range(count):
            produced.append(i)
            yield row(i)

    @app.command(paginated=5)
    def pages(count: int = 12) -> list[Row]:
        """A list with a default page size."""
        return [row(i) for i in range(count)]

    @app.command()
    def source(count: int = 12, max_size: int = 4, *, ctx: Context) -> Page[Row]:
        """Pages that the tool makes itself, with a maximum size."""
        first = int(ctx.page.cursor or 0)
        size = min(ctx.page.limit or max_size, max_size)
        last = min(first + size, count)
        following = str(last) if last < count else None
        return Page([row(i) for i in range(first, last)], next_cursor=following, total=count)

    @app.command()
    def careless(count: int = 12, *, ctx: Context) -> Page[Row]:
        """Pages that the tool makes itself, larger than requested."""
        first = int(ctx.page.cursor or 0)
        last = min(first + 7, count)
        following = str(last) if last < count else None
        return Page((row(i) for i in range(first, last)), next_cursor=following)

    @app.command()
    def text(lines: int = 40) -> str:
        """A long text."""
        return "".join([f"line {i} is “{i * i}”\n" for i in range(lines)])

    @app.command()
    def one(size: int = 40) -> dict[str, Any]:
        """An object with long parts."""
        return {"numbers": list(range(size)), "text": "x" * size, "whole": size}

    @app.command(max_tokens=300)
    def bounded(count: int = 40) -> list[Row]:
        """A list with a limit of tokens."""
        return [row(i) for i in range(count)]

    @app.command()
    def owned(limit: int = 3, cursor: str = "") -> list[int]:
        """Take parameters with the names of framework options."""
        return list(range(limit + len(cursor)))

    @app.command()
    def onward(count: int = 12) -> Next[list[int]]:
        """A list with a suggested next step."""
        return Next(list(range(count)), "rows", {"count": 1}, why="To see them.")

    return app
