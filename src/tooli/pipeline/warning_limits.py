"""Limit the number of warnings in an answer."""

from __future__ import annotations

MAX_WARNINGS_PER_KIND = 3
"""Maximum number of warnings of one kind in an answer. A summary line counts the others."""
MAX_WARNINGS = 20
"""Maximum number of warnings in an answer, of all kinds, without the summary lines."""


def limit_warnings(warnings: list[str]) -> list[str]:
    """Return the first warnings of each kind, and a line that counts the others.

    Warnings that begin with the same two words are of one kind, such as those about each
    undeclared file that a command accesses.
    """
    shown: list[str] = []
    counts: dict[str, int] = {}
    omitted = 0
    for line in warnings:
        kind = " ".join(line.split(None, 2)[:2])[:60]
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= MAX_WARNINGS_PER_KIND:
            if len(shown) < MAX_WARNINGS:
                shown.append(line)
            else:
                omitted += 1
    for kind, count in counts.items():
        if count > MAX_WARNINGS_PER_KIND and len(shown) < 2 * MAX_WARNINGS:
            shown.append(f"{count - MAX_WARNINGS_PER_KIND} more warnings that begin with {kind!r}")
    return [*shown, f"{omitted} more warnings of other kinds"] if omitted else shown
