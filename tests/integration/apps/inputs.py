"""An app that reads inputs and secrets, prompts, and writes files."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from tooli import Argument, Context, Option, Output, SecretInput, StdinOr, Tooli
from tooli.annotations import Destructive

app = Tooli("inputs", version="1.0", pretty_exceptions_show_locals=True)


@app.command()
def process(data: StdinOr[Iterator[dict]]) -> dict[str, int]:
    """Sum a column."""
    count = total = 0
    for row in data:
        count += 1
        total += int(row["n"])
    return {"rows": count, "total": total}


@app.command()
def rows(data: StdinOr[Iterator[dict]]) -> Iterator[dict]:
    """Return the rows."""
    yield from data


@app.command()
def measure_memory(data: StdinOr[Iterator[dict]]) -> dict[str, int]:
    """Count rows, and return the peak memory."""
    count = sum(1 for _ in data)
    return {"rows": count, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


@app.command()
def size(data: StdinOr[Path]) -> int:
    """Count bytes."""
    return len(data.read_bytes())


@app.command()
def greet(
    data: Annotated[StdinOr[str], Argument()],
    name: Annotated[str, Option(prompt="Who is it")],
) -> str:
    """Ask for a name beside the data."""
    return f"{name}: {data}"


@app.command()
def sign(
    data: Annotated[StdinOr[str], Argument()],
    key: Annotated[SecretInput[str], Option()],
) -> str:
    """Sign the data."""
    return f"{data} {len(key.reveal())} {key}"


@app.command(annotations=Destructive)
def revoke(key: SecretInput[str] | None = None) -> str:
    """Run a destructive command with a secret."""
    return f"revoked {len(key.reveal()) if key else 0}"


@app.command(annotations=Destructive)
def drop(data: StdinOr[str]) -> str:
    """Run a destructive command."""
    return f"dropped {data}"


@app.command()
def confirm(data: StdinOr[str], ctx: Context) -> str:
    """Ask while running."""
    return f"{ctx.confirm('Really?')} {data}"


@app.command()
def crash(key: Annotated[SecretInput[str], Option()], where: str = "") -> str:
    """Crash with a secret in a local variable."""
    copy = [key, {"key": key}]
    raise RuntimeError(f"crashed with {copy} of {key}")


@app.command()
def names(files: list[str]) -> list[str]:
    """Return the names."""
    return files


@app.command()
def slow(out: Annotated[Output, Option()]) -> str:
    """Write a part of the output, then wait."""
    with out.open() as file:
        file.write("half")
        file.flush()
        sys.stderr.write("ready\n")
        sys.stderr.flush()
        time.sleep(60)
    return "done"


if __name__ == "__main__":
    app()
