"""The differences between Typer and Tooli that are meant. docs/typer.md has the same list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tooli.core import BUILTIN_COMMANDS
from tooli.core._hot_tables import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.real_apps.command_lines import Line


@dataclass(frozen=True)
class Difference:
    """A difference that is meant: what it is, why, and how to remove it from Tooli's output."""

    what: str
    reason: str
    applies: Callable[[Line], bool]
    remove: Callable[[bytes], bytes]


def remove_panels(output: bytes) -> bytes:
    """Return the output without the panels of tooli."""
    for title in (b" Built-in commands ", b" Framework options "):
        lines = output.splitlines(keepends=True)
        start = next((i for i, line in enumerate(lines) if title in line), None)
        if start is not None:
            end = next((i for i in range(start, len(lines)) if "╰".encode() in lines[i]), start)
            output = b"".join((*lines[:start], *lines[end + 1 :]))
    return output


def remove_completions(output: bytes) -> bytes:
    """Return the output without the completions of tooli."""
    added = {name.encode() for name in (*BUILTIN_COMMANDS, *FLAGS) if name != "--help"}
    return b"\n".join(line for line in output.split(b"\n") if line not in added)


DIFFERENCES = (
    Difference(
        "Help ends with the panels `Built-in commands` and `Framework options`.",
        "They show what tooli adds to every app.",
        lambda line: not line.is_completion,
        remove_panels,
    ),
    Difference(
        "Shell completion offers the built-in commands and the framework flags.",
        "They are part of the app.",
        lambda line: line.is_completion,
        remove_completions,
    ),
)
