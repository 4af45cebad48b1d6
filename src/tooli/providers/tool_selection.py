"""ToolSelection: the tools of a source that `only=` and `exclude=` of a provider select."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tooli.errors import DefinitionError
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


class ToolSelection:
    """Names of tools, or patterns with `*`. Raises a DefinitionError if they are not lists."""

    def __init__(
        self, provider: str, only: Sequence[str] | None, exclude: Sequence[str] | None
    ) -> None:
        self._only = None if only is None else _check_names(provider, "only", only)
        self._exclude = _check_names(provider, "exclude", exclude or ())

    def includes(self, name: str) -> bool:
        """True if the tool is used."""
        if any([fnmatchcase(name, pattern) for pattern in self._exclude]):
            return False
        return self._only is None or any([fnmatchcase(name, pattern) for pattern in self._only])

    def find_unknown(self, names: Sequence[str]) -> dict[str, str]:
        """Return the problems of `only=`: names that the source does not have."""
        return {
            pattern: f"only=: the source has no tool {pattern!r}{did_you_mean(pattern, names)}"
            for pattern in self._only or ()
            if not any([fnmatchcase(name, pattern) for name in names])
        }


def _check_names(provider: str, keyword: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all([isinstance(name, str) for name in names]):  # pyright: ignore
        raise DefinitionError(f"{provider}({keyword}={names!r}): must be a list of names")
    return tuple(names)
