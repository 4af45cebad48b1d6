"""Find the original of a command that transforms or versions have replaced."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.providers import Registration


def origin_of(registration: Registration) -> Registration:
    """Return the command that an author has registered, before transforms and versions."""
    return [*_chain(registration)][-1]


def is_transformed(registration: Registration) -> bool:
    """True if transforms have changed a command."""
    return any([getattr(one, "is_transformed", False) for one in _chain(registration)])


def _chain(registration: Registration | None) -> Iterator[Registration]:
    while registration is not None:
        yield registration
        registration = getattr(registration, "_inner", None)
