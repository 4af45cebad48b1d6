"""An app to be served in a real process: python -m tests.integration.http.served PORT …"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tooli import ToolError, Tooli
from tooli.http.http_server import serve_http

app = Tooli("served", version="1.0", description="For tests.")


@app.command()
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@app.command()
def which() -> int:
    """The process that answers."""
    return os.getpid()


@app.command()
def say(text: str) -> None:
    """Print, at every level there is."""
    print(text)
    os.system("echo from a child")


@app.command()
def wait(begun: Path, go: Path) -> str:
    """Say that it has begun, and wait until it may go on."""
    begun.write_text("begun")
    while not go.exists():
        time.sleep(0.01)
    return "done"


@app.command()
async def await_for_ever(begun: Path) -> str:
    """Never ends."""
    import asyncio

    begun.write_text("begun")
    await asyncio.Event().wait()
    return ""


@app.command()
def rows(go: Path, closed: Path) -> Iterator[int]:
    """One row, and when it may go on, as many as anybody wants."""
    try:
        yield 0
        while not go.exists():
            time.sleep(0.01)
        yield from range(1, 10**9)
    finally:
        closed.write_text("closed")


@app.command()
async def arows(go: Path, closed: Path) -> AsyncIterator[int]:
    """The same on the loop."""
    import asyncio

    try:
        yield 0
        while not go.exists():
            await asyncio.sleep(0.01)
        for i in range(1, 10**9):
            yield i
    finally:
        closed.write_text("closed")


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    try:
        serve_http(app, mcp=False, **settings)
    except ToolError as error:
        print(json.dumps(error.to_dict()), file=sys.stderr)
        sys.exit(error.exit_code)
