"""An app whose results are larger than its callers accept."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import TypedDict

from tooli import Tooli

app = Tooli("large", version="1.0")


class Row(TypedDict):
    n: int
    text: str


def report_row(i: int) -> None:
    """Report on stderr that a row was created."""
    os.write(2, f"created {i}\n".encode())


@app.command()
def rows(count: int, width: int = 20, *, word: str = "") -> list[Row]:
    """Return a list."""
    return [Row(n=i, text=word + "x" * width) for i in range(count)]


@app.command()
def stream(count: int, loud: bool = False) -> Iterator[Row]:
    """Yield rows; report on stderr when the generator is closed."""
    try:
        for i in range(count):
            if loud:
                report_row(i)
            yield Row(n=i, text=f"row {i}")
    finally:
        os.write(2, b"closed\n")


@app.command()
async def astream(count: int) -> AsyncIterator[Row]:
    """Yield rows in a coroutine; report on stderr when the generator is closed."""
    try:
        for i in range(count):
            yield Row(n=i, text=f"row {i}")
    finally:
        os.write(2, b"closed\n")


@app.command()
def limited(limit: int = 2) -> list[int]:
    """Return a list; has a parameter that is named like a framework option."""
    return list(range(limit))


@app.command()
def talk(count: int = 1000):
    """Print a lot."""
    for i in range(count):
        print(f"line {i}")


if __name__ == "__main__":
    app()
