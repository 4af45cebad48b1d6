"""The apps below an app, each with the apps above it: the levels whose rules apply to it."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tooli.core import AppState
    from tooli.core.protocols import TyperApp
    from tooli.providers import Levels


def iter_levels(state: AppState) -> Iterator[Levels]:
    """Iterate over an app and the apps below it, each with the apps above it, outermost first.

    An app that was added at several places occurs several times. Plain Typer apps have no entry,
    but the apps below them have.
    """
    yield from _iter_below((state,), [app for app, _ in state.groups])


def _iter_below(levels: Levels, inner_apps: Sequence[TyperApp | None]) -> Iterator[Levels]:
    if levels:
        yield levels
    for app in inner_apps:
        state: AppState | None = None if app is None else app.__dict__.get("_state")
        if state is not None:
            inner = [app for app, _ in state.groups]
            yield from _iter_below((*levels, state), inner)
        elif app is not None:
            plain = [info.typer_instance for info in app.registered_groups]
            yield from [found for found in _iter_below(levels, plain) if found != levels]
