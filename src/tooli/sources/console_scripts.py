"""Find the app of an installed program by its name, such as `typer-cli` or `mytool`.

A console script names an app, or a function that starts one. The function is called to find out
which app it starts: the app is not run. `typer.run(function)` also starts an app. `tooli run` calls
the function to run it, with `Tooli` in the place of `typer.Typer`.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.metadata import entry_points

from tooli.app import Tooli
from tooli.core import AppState
from tooli.errors import InputError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from importlib.metadata import EntryPoint
    from typing import Any

    from typer import Typer


class AppStarted(BaseException):
    """Raised in place of running an app. `except Exception` in the program does not catch it."""

    def __init__(self, app: Typer) -> None:
        self.app = app


def is_console_script(name: str) -> bool:
    """True if a program of this name is installed."""
    return bool(name) and bool(entry_points(group="console_scripts", name=name))


def load_console_script(name: str) -> Typer | None:
    """Return the app of an installed program; None if there is no program of this name.

    Raises InputError if the program starts no app of Typer.
    """
    if not is_console_script(name):
        return None
    target, script = _load(name)
    if _is_typer(target):
        return target
    used = _used_apps(target)
    if len(used) == 1:
        return used[0]
    app = _find_started_app(target, name) if _may_start_app(target, script) else None
    if app is None:
        raise _not_an_app(name)
    return app


def find_entry_function(name: str) -> Callable[[], Any]:
    """Return the function that the program of this name calls; raise InputError if it has no app.

    The function is an app itself, or it starts one.
    """
    target, script = _load(name)
    if not (_is_typer(target) or _may_start_app(target, script)):
        raise _not_an_app(name)
    return target


def _load(name: str) -> tuple[Any, EntryPoint]:
    """Import what a console script calls; return it and the entry point."""
    script = next(iter(entry_points(group="console_scripts", name=name)))
    return script.load(), script


def _not_an_app(name: str) -> InputError:
    return InputError(
        f"The program {name!r} is not made with Typer.",
        field="source",
        suggestion=Suggestion(
            "retry_with_modified_input",
            f"exe:{name} reads programs that are made with Click, argparse and others.",
            example=f"exe:{name}",
        ),
    )


def replace_typer() -> None:
    """Let modules that are imported from now on get `Tooli` as `typer.Typer`."""
    import typer.main

    AppState.replaces_commands = True  # as Typer does
    typer.Typer = typer.main.Typer = Tooli  # type: ignore[misc]  # pyright: ignore


def _is_typer(value: object) -> bool:
    typer = sys.modules.get("typer")
    return typer is not None and isinstance(value, (typer.Typer, Tooli))


def _used_apps(function: Any) -> list[Any]:
    """Return the apps among the global names that a function uses."""
    code = getattr(function, "__code__", None)
    module_globals: dict[str, Any] = getattr(function, "__globals__", {})
    names = () if code is None else code.co_names
    found = [module_globals[name] for name in names if name in module_globals]
    return list({id(value): value for value in found if _is_typer(value)}.values())


def _may_start_app(function: object, script: EntryPoint) -> bool:
    """True if the program's own package uses Typer. Other programs must not be started."""
    typer = sys.modules.get("typer")
    package = script.module.partition(".")[0]
    modules = [m for n, m in sys.modules.items() if n.partition(".")[0] == package]
    values = [value for module in modules for value in vars(module).values()]
    return typer is not None and any(value is typer or _is_typer(value) for value in values)


@contextmanager
def catch_start() -> Generator[None]:
    """Raise AppStarted in this block where an app of Tooli or Typer is started."""

    def stop(self: Typer, *args: object, **kwargs: object) -> None:
        raise AppStarted(self)

    typer = sys.modules.get("typer")
    classes: tuple[Any, ...] = (Tooli,) if typer is None else (typer.Typer, Tooli)
    originals = [cls.__call__ for cls in classes]
    try:
        for cls in classes:
            cls.__call__ = stop
        yield
    finally:
        for cls, original in zip(classes, originals, strict=True):
            cls.__call__ = original


def _find_started_app(function: Callable[[], object], name: str) -> Typer | None:
    """Call the function of a console script; return the app that it starts, without running it."""
    argv, sys.argv = sys.argv, [name]
    try:
        with catch_start():
            function()
    except AppStarted as started:
        return started.app
    except (Exception, SystemExit) as failure:
        message = f"The program {name!r} ended before it started an app: {failure}"
        raise InputError(message, field="source") from failure
    finally:
        sys.argv = argv
    return None
