"""detect-context, config show: how a run is seen and set up."""

from __future__ import annotations

import os
from typing import Annotated

from tooli.builtins.marks import inspects
from tooli.contract.info import Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.config.layers import Settings, Word
    from tooli.detect import Candidate, ExecutionContext


def add_detection(whole: Any, app: Any) -> None:
    """`detect-context`."""
    whole.command("detect-context")(_detect(app))


def add_config(group: Any, app: Any) -> None:
    """`config show`."""
    group.command("show")(_show(app))


def _detect(app: Any) -> Any:
    @inspects
    def detect_context(
        deep: Annotated[
            bool, Option("--deep", help="Look at processes above and at files of containers, too.")
        ] = False,
    ) -> dict[str, object]:
        """Show who seems to be calling, by which signals, and what such a caller gets."""
        from tooli.detect import detect_execution_context

        context = detect_execution_context(deep=deep)
        return {**_about(context), "behavior": _behavior(context), **_settings(app)}

    return detect_context


def _show(app: Any) -> Any:
    @inspects
    def show(
        origin: Annotated[
            bool, Option("--origin", help="What every layer says, and in which file and line.")
        ] = False,
    ) -> dict[str, object]:
        """Show the settings that hold: flags, variables, project, user, system, defaults."""
        settings = _settled(app)
        values: dict[str, object]
        if origin:
            values = {name: _said(settings, name) for name in _names(settings)}
        else:
            values = {name: _public(name, settings.get(name)) for name in _names(settings)}
        return values if not settings.faults else {**values, "faults": _faults(settings)}

    return show


# ------------------------------------------------------------------ callers


def _about(context: ExecutionContext) -> dict[str, object]:
    """The context in the contract's words."""
    shown = {name: getattr(context, name) for name in type(context).__match_args__}
    shown["category"] = str(context.category)
    shown["signals"] = list(context.signals)
    shown["candidates"] = [_candidate(one) for one in context.candidates]
    return shown


def _candidate(one: Candidate) -> dict[str, object]:
    return {
        "name": one.name,
        "category": str(one.category),
        "confidence": one.confidence,
        "decides": one.decides,
        "signals": list(one.signals),
    }


def _behavior(context: ExecutionContext) -> dict[str, object]:
    from tooli.adapt import BEHAVIOUR

    manner = BEHAVIOUR[context.category]
    shown = {name: getattr(manner, name) for name in type(manner).__match_args__}
    return {name: value for name, value in shown.items() if value is not None}


# ------------------------------------------------------------------ settings


def _settled(app: Any) -> Settings:
    """The settings of this run; those of the process where no command line is running."""
    settled = app._house.settled
    if settled is None:
        from tooli.config.layers import settle

        settled = settle(app._house.name)
    return settled


def _settings(app: Any) -> dict[str, object]:
    settings = _settled(app)
    shown: dict[str, object] = {
        "configuration": {name: _held(settings, name) for name in _names(settings)}
    }
    if settings.files:
        shown["files"] = [_near(place.path) for place in settings.files]
    return shown if not settings.faults else {**shown, "faults": _faults(settings)}


def _names(settings: Settings) -> list[str]:
    from tooli.config.keys import KEYS

    return [name for name in KEYS if settings.word(name) is not None]


def _held(settings: Settings, name: str) -> dict[str, object]:
    word = settings.word(name)
    assert word is not None
    return {"value": _public(name, word.value), "origin": _near(word.origin)}


def _said(settings: Settings, name: str) -> dict[str, object]:
    """The value that holds and where from, and what the other layers say."""
    held = settings.word(name)
    assert held is not None
    shown: dict[str, object] = {"value": _public(name, held.value), "layer": held.layer}
    if held.origin != held.layer:
        shown["origin"] = _near(held.origin)
    others = [_other(name, word) for word in settings.words[name] if word is not held]
    return {**shown, "overruled": others} if others else shown


def _other(name: str, word: Word) -> dict[str, object]:
    shown: dict[str, object] = {"value": _public(name, word.value), "layer": word.layer}
    return shown if word.origin == word.layer else {**shown, "origin": _near(word.origin)}


def _public(name: str, value: Any) -> Any:
    """A value as anybody may see it: an address without its password."""
    if name != "store" or not isinstance(value, str):
        return value
    from tooli.state.ledger_postgres import without_secrets

    return without_secrets(value)


def _faults(settings: Settings) -> list[str]:
    return [f"{_near(one.origin)}: {one.message}" for one in settings.faults]


def _near(path: str) -> str:
    """A path as it is said here: below this folder, relative to it."""
    try:
        here = os.getcwd()
    except OSError:
        return path
    return path[len(here) + 1 :] if path.startswith(here + os.sep) else path
