"""Find the known name that a misspelled one most likely stands for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_EDITS = 6


def did_you_mean(name: object, candidates: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" with the closest candidate, or "" if none is close."""
    suggestion = closest_match(name, candidates) if isinstance(name, str) else None
    return f"; did you mean {suggestion!r}?" if suggestion not in (None, "", name) else ""


def closest_match(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate closest to a name, or None if none is close."""
    best, best_distance = None, 1 + max(len(name) > 1, min(len(name) // 3, _MAX_EDITS))
    for candidate in candidates:
        if len(name) <= 2 and not _may_be_short_form(name.lower(), candidate.lower()):
            continue
        if abs(len(candidate) - len(name)) < best_distance:
            distance = _edit_distance(name.lower(), candidate.lower(), best_distance)
            if distance < best_distance:
                best, best_distance = candidate, distance
    return best


def _may_be_short_form(name: str, candidate: str) -> bool:
    """True if a name of one or two letters may stand for a candidate: `ad` for `add`, not `cd`."""
    return name == candidate or candidate.startswith(name) or sorted(name) == sorted(candidate)


def is_near(name: str, candidate: str) -> bool:
    """True if a name is certainly a misspelling of the candidate: at most one edit in it.

    `prune` is not a misspelling of `no_prune`, and a name of three letters may mean another one.
    """
    name, candidate = (text.lower().replace("-", "_") for text in (name, candidate))
    return name == candidate or (len(name) > 3 and _edit_distance(name, candidate, 2) < 2)


def _edit_distance(left: str, right: str, limit: int) -> int:
    """Count the edits (change, insert, delete, swap) between two texts, up to `limit`."""
    if len(left) > 64 or len(right) > 64:
        return 0 if left == right else limit
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, x in enumerate(left, 1):
        older, before = before, row
        row = [i]
        for j, y in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == right[j - 2] and y == left[i - 2]:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) >= limit:
            return limit
    return row[-1]
