"""An app that a test serves over HTTP in another process.

python -m tests.integration.http.served_app SETTINGS     SETTINGS is JSON: keywords of `serve_http`
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tooli import ToolError, Tooli
from tooli.http.http_server import serve_http

app = Tooli("demo", version="1.0", description="For tests.")


@app.command()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@app.command()
def process_id() -> int:
    """Return the id of the process that answers."""
    return os.getpid()


@app.command()
def echo(text: str) -> None:
    """Print the text, and let a child process print to stdout."""
    print(text)
    os.system("echo from a child")


@app.command()
def wait(started: Path, release: Path) -> str:
    """Create the file `started`, then wait until the file `release` exists."""
    started.touch()
    while not release.exists():
        time.sleep(0.01)
    return "done"


@app.command()
async def wait_forever(started: Path) -> str:
    """Create the file `started`, then wait on the event loop until the call is cancelled."""
    import asyncio

    started.touch()
    await asyncio.Event().wait()
    return ""


@app.command()
def crash(code: int = 3) -> None:
    """End the process that answers."""
    os._exit(code)


@app.command()
def use_all_files(started: Path, release: Path) -> int:
    """Open files until none is left, and keep them until the file `release` exists."""
    started.touch()
    files: list[int] = []
    try:
        while True:
            files.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        while not release.exists():
            time.sleep(0.01)
        return len(files)
    finally:
        for file in files:
            os.close(file)


@app.command()
def text(size: int) -> str:
    """Return a long text."""
    return "x" * size


@app.command()
def rows(release: Path, closed: Path) -> Iterator[int]:
    """Yield one row, then many rows once the file `release` exists; create `closed` at the end."""
    try:
        yield 0
        while not release.exists():
            time.sleep(0.01)
        yield from range(1, 10**9)
    finally:
        closed.touch()


@app.command()
async def arows(release: Path, closed: Path) -> AsyncIterator[int]:
    """Yield rows as `rows` does, on the event loop."""
    import asyncio

    try:
        yield 0
        while not release.exists():
            await asyncio.sleep(0.01)
        for i in range(1, 10**9):
            yield i
    finally:
        closed.touch()


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    if os.environ.get("SERVED_APP_PARSER") == "h11":  # as if httptools were not installed
        sys.modules["httptools"] = None  # type: ignore[assignment]
    try:
        serve_http(app, mcp=False, **settings)
    except ToolError as error:
        print(json.dumps(error.to_dict()), file=sys.stderr)
        sys.exit(error.exit_code)
