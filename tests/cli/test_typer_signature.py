"""The signature of a subclass shows the keywords of Typer."""

from __future__ import annotations

from inspect import signature
from typing import Any

import typer

from tooli.cli.typer_signature import show_keywords_of_typer


def test_keywords_of_typer_replace_the_keyword_arguments() -> None:
    class App(typer.Typer):
        def __init__(self, name: str = "app", *, own: int = 1, **kwargs: Any) -> None:
            super().__init__(**kwargs)

    show_keywords_of_typer(App)
    names = [*signature(App).parameters]
    assert names[:2] == ["name", "own"]
    assert "no_args_is_help" in names and "kwargs" not in names
