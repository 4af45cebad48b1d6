"""Delay the parts of rich that Typer's help and messages do not need.

`typer.rich_utils` imports rich's Markdown and Traceback, and with them a parser of Markdown and a
syntax highlighter. Together they take longer than the rest of rich. Help needs Markdown only with
`rich_markup_mode="markdown"`, and Traceback only shows exceptions. While `typer.rich_utils` is
imported, both are classes that import the real ones at the first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

_MODULE = "typer.rich_utils"
_DELAYED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}


class DelayedClass(type):
    """The metaclass of a class in `typer.rich_utils` that stands for a class of rich."""

    def _load(cls) -> Any:
        """Import the real class, and put it in the place of this one."""
        real = getattr(import_module(cls.__module__), cls.__name__)
        users = vars(sys.modules[_MODULE])
        if users.get(cls.__name__) is cls:
            users[cls.__name__] = real
        return real

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance of the real class."""
        return cls._load()(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._load(), name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._load())

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._load())


class _DelayedModule(ModuleType):
    """Stands for a module of rich while `typer.rich_utils` is imported."""

    def __getattr__(self, name: str) -> Any:
        if name == _DELAYED[self.__name__]:
            return DelayedClass(name, (), {"__module__": self.__name__})
        if name[:2] == "__":  # such as `__path__`, which the import statement reads
            raise AttributeError(name)
        sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)


class _RichUtilsFinder:
    """An import hook for `typer.rich_utils`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == _MODULE else None
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_with_delayed_rich(module: ModuleType) -> None:
            delayed = [_DelayedModule(name) for name in _DELAYED if name not in sys.modules]
            for stand_in in delayed:
                sys.modules[stand_in.__name__] = stand_in
            try:
                execute(module)
            finally:
                for stand_in in delayed:
                    if sys.modules.get(stand_in.__name__) is stand_in:
                        del sys.modules[stand_in.__name__]

        loader.exec_module = execute_with_delayed_rich
        return spec


def delay_rich() -> None:
    """Delay the parts of rich when `typer.rich_utils` is imported."""
    if _MODULE not in sys.modules and _RichUtilsFinder not in sys.meta_path:
        sys.meta_path.insert(0, _RichUtilsFinder)  # type: ignore[arg-type]
