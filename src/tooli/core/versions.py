"""Versions of commands: numbers such as `2.1`, or dates such as `2026-01-31`.

add@1.0 ─▶ split_version ─▶ ("add", "1.0")
["1.0", "2.0", "3.0rc1"] ─▶ highest_version ─▶ "2.0"
"""

from __future__ import annotations

import re

from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    VersionKey: TypeAlias = tuple[str, tuple[int, ...], bool, tuple[object, ...]]
    """The kind of version, its numbers, whether it is stable, and the parts of a pre-release."""

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)(?:[-._]?([A-Za-z][A-Za-z0-9.-]*))?(?:\+[A-Za-z0-9.-]+)?")
_PARTS = re.compile(r"\d+|[A-Za-z]+")


def compare_key(version: str) -> VersionKey:
    """Return a key that orders versions. A pre-release comes before its release.

    Raises DefinitionError for text that is neither numbers nor a date.
    """
    date = _DATE.fullmatch(version)
    if date is not None:
        return ("date", tuple(map(int, date.groups())), True, ())
    found = _NUMBERS.fullmatch(version)
    if found is None or len(version) > 64:
        raise DefinitionError(
            f"version={version[:80]!r}: must be numbers such as '2.1', or a date such as "
            "'2026-01-31'"
        )
    numbers = [int(part) for part in found.group(1).split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    label = found.group(2)
    parts = [
        (1, int(p), "") if p.isdigit() else (0, 0, p.lower()) for p in _PARTS.findall(label or "")
    ]
    return ("numbers", tuple(numbers), label is None, tuple(parts))


def is_date(text: object) -> bool:
    """True if a text is a date such as `2026-01-31`."""
    if not isinstance(text, str) or _DATE.fullmatch(text) is None:
        return False
    from datetime import date

    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_stable(version: str) -> bool:
    """True if a version is no pre-release."""
    return compare_key(version)[2]


def sort_versions(versions: Sequence[str]) -> list[str]:
    """Return versions of one command, the highest first. Raises DefinitionError if kinds differ."""
    keys = {version: compare_key(version) for version in versions}
    if len({key[0] for key in keys.values()}) > 1:
        raise DefinitionError(
            f"the versions {', '.join(versions)} must be all numbers, or all dates"
        )
    return sorted(versions, key=keys.__getitem__, reverse=True)


def highest_version(versions: Sequence[str]) -> str:
    """Return the highest version that is no pre-release; else the highest one."""
    ordered = sort_versions(versions)
    return next((version for version in ordered if is_stable(version)), ordered[0])


def split_version(name: str) -> tuple[str, str | None]:
    """Return the parts of `add@1.0`; the version is None in a name without one."""
    base, found, version = name.rpartition("@")
    return (base, version) if found and base else (name, None)
