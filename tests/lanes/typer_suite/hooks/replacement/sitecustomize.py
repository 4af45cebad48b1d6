"""Replace the class `typer.Typer` when a program imports `typer`.

Python imports this module at the start of every process that has this folder in `PYTHONPATH`. After
`typer` is imported, the name `Typer` in all its modules refers to the class that
`TYPER_SUITE_CLASS` names as `module:name`. Modules of Typer that are imported later import the
replaced name. Nothing is imported before the program itself imports `typer`.
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


def _import_replacement(original: type[Any]) -> type[Any]:
    """Import the replacement; it must be a subclass of the real class now."""
    module, _, name = os.environ["TYPER_SUITE_CLASS"].partition(":")
    replacement = getattr(importlib.import_module(module), name)
    if replacement is original or not issubclass(replacement, original):
        raise ImportError(f"{module}.{name} is not a subclass of typer.Typer")
    return replacement


def _replace_class(typer: ModuleType) -> None:
    """Replace the class in every loaded module of Typer."""
    original = typer.Typer
    replacement = _import_replacement(original)
    for name, module in list(sys.modules.items()):
        is_typer = name == "typer" or name.startswith("typer.")
        if is_typer and getattr(module, "Typer", None) is original:
            module.Typer = replacement  # type: ignore[attr-defined]


class _TyperFinder:
    """A finder for `typer` only, which replaces the class after the module was executed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of `typer`, with a loader that also replaces the class."""
        spec = PathFinder.find_spec(name, path, target) if name == "typer" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _replace_class(module)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("TYPER_SUITE_CLASS"):
    sys.meta_path.insert(0, _TyperFinder)  # type: ignore[arg-type]
