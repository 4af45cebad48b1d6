"""Make names different: a name that is used already gets a number."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class UniqueNames:
    """Names that are all different.

    The next number of each name is kept. Thousands of equal names, which a hostile source may list,
    therefore take linear time.
    """

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._counts: dict[str, int] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._used

    def add(self, base: str, numbered: Callable[[int], str]) -> str:
        """Add a name and return it: `base`, or `numbered(2)`, `numbered(3)`, … if it is used."""
        name = base
        count = self._counts.get(base, 1)
        while name in self._used:
            count += 1
            name = numbered(count)
        self._counts[base] = count
        self._used.add(name)
        return name
