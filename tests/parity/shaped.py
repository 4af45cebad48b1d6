"""An app whose results are long: lists, generators and async generators of the same records."""

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
    """One record; each is another."""
    return Row(
        n=i,
        name=f"row {i}",
        kind="odd" if i % 2 else "even",
        owner=Owner(name="ada") if i % 3 else None,
        tags=[f"t{i % 5}", "all"],
    )


def make_app() -> Tooli:
    """The app, new."""
    app = Tooli("long", version="1.0")
    made: list[int] = []
    app.__dict__["made"] = made

    @app.command()
    def rows(count: int = 12) -> list[Row]:
        """A list."""
        return [row(i) for i in range(count)]

    @app.command()
    def stream(count: int = 12) -> Iterator[Row]:
        """A generator."""
        made.clear()
        for i in range(count):
            made.append(i)
            yield row(i)

    @app.command()
    async def astream(count: int = 12) -> AsyncIterator[Row]:
        """An async generator."""
        made.clear()
        for i in range(count):
            made.append(i)
            yield row(i)

    @app.command(paginated=5)
    def pages(count: int = 12) -> list[Row]:
        """A list that is paged unless somebody says otherwise."""
        return [row(i) for i in range(count)]

    @app.command()
    def source(count: int = 12, most: int = 4, *, ctx: Context) -> Page[Row]:
        """Pages at the source, of its own size."""
        first = int(ctx.page.cursor or 0)
        size = min(ctx.page.limit or most, most)
        last = min(first + size, count)
        following = str(last) if last < count else None
        return Page([row(i) for i in range(first, last)], next_cursor=following, total=count)

    @app.command()
    def careless(count: int = 12, *, ctx: Context) -> Page[Row]:
        """Pages at the source, and gives more than it is asked for."""
        first = int(ctx.page.cursor or 0)
        last = min(first + 7, count)
        following = str(last) if last < count else None
        return Page((row(i) for i in range(first, last)), next_cursor=following)

    @app.command()
    def text(lines: int = 40) -> str:
        """One long text."""
        return "".join([f"line {i} is “{i * i}”\n" for i in range(lines)])

    @app.command()
    def one(size: int = 40) -> dict[str, Any]:
        """One object with long parts."""
        return {"numbers": list(range(size)), "text": "x" * size, "whole": size}

    @app.command(max_tokens=300)
    def bounded(count: int = 40) -> list[Row]:
        """A list that says itself how long its answer may be."""
        return [row(i) for i in range(count)]

    @app.command()
    def owned(limit: int = 3, cursor: str = "") -> list[int]:
        """Has parameters that are called as the framework's are."""
        return list(range(limit + len(cursor)))

    @app.command()
    def onward(count: int = 12) -> Next[list[int]]:
        """Says what to do next, besides."""
        return Next(list(range(count)), "rows", {"count": 1}, why="To see them.")

    return app
