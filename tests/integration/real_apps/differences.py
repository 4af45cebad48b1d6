"""The differences between Typer and Tooli that are meant. docs/typer.md has the same list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Difference:
    """A difference that is meant: what it is, why, and how to remove it from Tooli's output."""

    what: str
    reason: str
    remove: Callable[[bytes], bytes]


def remove_panel(output: bytes) -> bytes:
    """Return the output without the panel of the framework options."""
    lines = output.splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if b" Framework options " in line), None)
    if start is None:
        return output
    end = next((i for i in range(start, len(lines)) if "╰".encode() in lines[i]), start)
    return b"".join((*lines[:start], *lines[end + 1 :]))


DIFFERENCES = (
    Difference(
        "`--help` ends with the panel `Framework options`.",
        "It shows the flags that every command accepts. `Tooli(framework_help=False)` and "
        "`TOOLI_FRAMEWORK_HELP=0` remove it.",
        remove_panel,
    ),
)
