"""The apps below an app, with the apps above them."""

from __future__ import annotations

import typer

from tooli import Tooli
from tooli.providers.app_levels import iter_levels


def test_every_app_has_the_apps_above_it() -> None:
    app, group, leaf, other = (Tooli(name) for name in ("app", "group", "leaf", "other"))
    group.add_typer(leaf, name="leaf")
    app.add_typer(group, name="group")
    levels = [tuple(state.name for state in found) for found in iter_levels(app._state)]
    assert levels == [("app",), ("app", "group"), ("app", "group", "leaf")]
    assert list(iter_levels(other._state)) == [(other._state,)]


def test_plain_typer_app_is_skipped_but_not_the_apps_below_it() -> None:
    app, plain, leaf = Tooli("app"), typer.Typer(), Tooli("leaf")
    plain.add_typer(leaf, name="leaf")
    app.add_typer(plain, name="plain")
    levels = [tuple(state.name for state in found) for found in iter_levels(app._state)]
    assert levels == [("app",), ("app", "leaf")]
