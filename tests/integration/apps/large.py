"""An app whose answers are larger than its callers accept."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import TypedDict

from tooli import Tooli

app = Tooli("large", version="1.0")


class Row(TypedDict):
    n: int
    text: str


def tell(i: int) -> None:
    """Tell the test, on stderr, that a row was made."""
    os.write(2, f"made {i}\n".encode())


@app.command()
def rows(count: int, width: int = 20, *, word: str = "") -> list[Row]:
    """A list."""
    return [Row(n=i, text=word + "x" * width) for i in range(count)]


@app.command()
def stream(count: int, loud: bool = False) -> Iterator[Row]:
    """A generator that says when it is closed."""
    try:
        for i in range(count):
            if loud:
                tell(i)
            yield Row(n=i, text=f"row {i}")
    finally:
        os.write(2, b"closed\n")


@app.command()
async def astream(count: int) -> AsyncIterator[Row]:
    """The same, async."""
    try:
        for i in range(count):
            yield Row(n=i, text=f"row {i}")
    finally:
        os.write(2, b"closed\n")


@app.command()
def limited(limit: int = 2) -> list[int]:
    """Has a limit of its own."""
    return list(range(limit))


@app.command()
def talk(count: int = 1000):
    """Print a lot."""
    for i in range(count):
        print(f"line {i}")


if __name__ == "__main__":
    app()
