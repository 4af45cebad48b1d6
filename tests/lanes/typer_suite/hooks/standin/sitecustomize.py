"""The start-up module that puts a stand-in class in ``typer.Typer``'s place.

Python imports it in every process whose ``PYTHONPATH`` has this folder. As soon as ``typer``
has been imported, each of its modules' ``Typer`` becomes the class that
``TYPER_SUITE_CLASS`` names as ``module:name``; modules of Typer that are imported later take
the name from there. Nothing is imported before the program itself imports ``typer``.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def _standin(original: type[Any]) -> type[Any]:
    """Import the stand-in class, which has to be a subclass of the real one by now."""
    module, _, name = os.environ["TYPER_SUITE_CLASS"].partition(":")
    standin = getattr(importlib.import_module(module), name)
    if standin is original or not issubclass(standin, original):
        raise ImportError(f"{module}.{name} is not a subclass of typer.Typer")
    return standin


def _substitute(typer: ModuleType) -> None:
    """Point every loaded module of Typer at the stand-in class."""
    original = typer.Typer
    standin = _standin(original)
    for name, module in list(sys.modules.items()):
        ours = name == "typer" or name.startswith("typer.")
        if ours and getattr(module, "Typer", None) is original:
            module.Typer = standin  # type: ignore[attr-defined]


class _AfterTyper:
    """A finder that finds only ``typer``, and substitutes once it has been executed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find ``typer`` as Python would, with the substitution after its execution."""
        spec = PathFinder.find_spec(name, path, target) if name == "typer" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _substitute(module)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("TYPER_SUITE_CLASS"):
    sys.meta_path.insert(0, _AfterTyper)  # type: ignore[arg-type]
