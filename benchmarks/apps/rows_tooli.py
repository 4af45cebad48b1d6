"""A stream of rows, written with tooli."""

import time
from collections.abc import Iterator

from tooli import Tooli

app = Tooli(name="demo", version="1.0.0")


@app.command()
def rows(count: int, pause: float = 0.0) -> Iterator[dict[str, object]]:
    """Make rows, one after the other."""
    for number in range(count):
        if pause and number:
            time.sleep(pause)
        yield {"id": number, "name": f"row {number}", "even": number % 2 == 0}


@app.command()
def ping() -> str:
    """Answer."""
    return "pong"


def main() -> None:
    """Run the command line."""
    app()
