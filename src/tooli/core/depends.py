"""Depends: marks a parameter that a function fills in for each call, instead of the caller."""

from __future__ import annotations

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.core.tool import Param


class Depends:
    """A dependency of a command: `db: Annotated[Db, Depends(get_db)]`.

    The function is called for each call, and its result is the argument. If it is a generator
    function, it is closed after the call. Without a function, the annotated class is called.

    Args:
        dependency: A function, a generator function, an async variant of these, or a class.
        use_cache: Whether one call makes the dependency only once, also if several parameters
            need it.
    """

    __slots__ = ("dependency", "use_cache")

    def __init__(
        self, dependency: Callable[..., Any] | None = None, *, use_cache: bool = True
    ) -> None:
        self.dependency = dependency
        self.use_cache = use_cache

    def __repr__(self) -> str:
        name = getattr(self.dependency, "__qualname__", repr(self.dependency))
        return f"Depends({name})"


settings_classes: set[type] = set()
"""The classes of `Tooli(settings=…)`. A parameter with such a class gets the settings object."""


class Dependency(Record):
    """What `Depends` names: the function, its parameters, and how its result is used."""

    fn: Callable[..., Any]
    params: tuple[Param, ...]  # contexts, dependencies, and parameters with a default
    use_cache: bool = True
    is_async: bool = False  # it, or a dependency of it, needs an event loop
    is_settings: bool = False  # `fn` is the class of a settings object


def find_depends(annotation: Any, default: object) -> Any:
    """Return the Depends of a parameter, of tooli or of FastAPI; None if it has none."""
    for marker in (default, *getattr(annotation, "__metadata__", ())[::-1]):
        if type(marker).__name__ == "Depends" and hasattr(marker, "dependency"):
            return marker
    return None
