"""Find `typer` while it is imported, and show its keywords in the signature of `Tooli`."""

from __future__ import annotations

from importlib.util import find_spec
from inspect import signature

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from typing import Any


def find_typer(when_loaded: Callable[[], None]) -> ModuleSpec | None:
    """Return the spec of `typer`, whose loader calls `when_loaded` after it has run the module."""
    spec = find_spec("typer")
    if spec is not None and spec.loader is not None:
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_report(module: Any) -> None:
            load(module)
            when_loaded()

        loader.exec_module = load_and_report
    return spec


def show_keywords_of_typer(app_class: type[Any]) -> None:
    """Add Typer's keywords to the signature of a subclass, in place of `**kwargs`."""
    typer_class = app_class.__base__
    init: Any = app_class.__init__
    own = signature(init)
    inherited = signature(typer_class.__init__).parameters
    params = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = {p.name for p in params}
    params += [p for name, p in inherited.items() if name not in names and p.kind is p.KEYWORD_ONLY]
    init.__signature__ = own.replace(parameters=params)
