"""Show the keywords of Typer in the signature of `Tooli`."""

from __future__ import annotations

from inspect import signature

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


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
