"""Find a Tooli or Typer app in Python: in a file, in a module, or in an installed program."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location

from tooli.app import Tooli
from tooli.core import default_app_name
from tooli.errors import (
    DefinitionError,
    DependencyError,
    InputError,
    NotFoundError,
    Suggestion,
    ToolError,
)
from tooli.schema.described import clean_text
from tooli.sources.console_scripts import AppStarted, catch_start, load_console_script
from tooli.sources.source_grammar import split_reference

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import ModuleType
    from typing import TypeGuard

    from typer import Typer


class NotATyperAppError(InputError):
    """A name in a module is an object of another kind: a command of Click, a function."""


def load_python_app(reference: str) -> Tooli:
    """Load an app by its reference. A plain Typer is wrapped in a Tooli.

    Raises NotATyperAppError if the name in a module is no app of Tooli or Typer, and
    DependencyError if the module cannot be imported.
    """
    path, attribute = split_reference(reference)
    if not attribute and not path.endswith(".py"):
        installed = load_console_script(path)
        if installed is not None:
            return name_after_program(installed, path)
    try:
        module, started = _execute(path)
    except ToolError:
        raise
    except (Exception, SystemExit) as failure:
        raise _cannot_be_loaded(reference, path, failure) from failure
    name = default_app_name(vars(module))
    if started is not None and not attribute:
        return _named_after(started, name)
    found = _select_app(module, attribute, reference)
    return found if isinstance(found, Tooli) else wrap_typer(found, name)


def _execute(path: str) -> tuple[ModuleType, Typer | None]:
    """Import a file or a module; return it, and the app that it starts while it is imported.

    A module may start its app without `if __name__ == "__main__":`. The app is not run.
    """
    name = os.path.basename(path)[:-3]
    is_file = path.endswith(".py")
    if is_file:
        _import_typer_for(path)
    try:
        with catch_start():
            return _load_file(path) if is_file else _load_module(path), None
    except AppStarted as started:
        if not is_file:  # Python has removed it from `sys.modules`
            raise InputError(
                f"The module {path!r} starts its app while it is imported.",
                field="source",
                suggestion=Suggestion("fix", 'Start it below `if __name__ == "__main__":`.'),
            ) from None
        return sys.modules[name], started.app


def _import_typer_for(path: str) -> None:
    """Import Typer if a file mentions it, so that the start of its app is noticed."""
    try:
        with open(path, "rb") as file:
            mentions_typer = b"typer" in file.read()
    except OSError:
        return
    if mentions_typer:
        import_module("typer")


def _cannot_be_loaded(reference: str, path: str, failure: BaseException) -> DependencyError:
    """Return the error for a module that failed while it was imported."""
    if isinstance(failure, SystemExit):
        reason = f"it exits ({failure.code}) while it is imported"
    elif isinstance(failure, DefinitionError):
        reason = str(failure)
    else:
        place = "" if isinstance(failure, SyntaxError) else _failing_line(path, failure)
        reason = f"{type(failure).__name__}: {failure}{place}"
    suggestion = _suggest_program(reference) if isinstance(failure, SystemExit) else None
    command = f"python {path}" if path.endswith(".py") else f"python -m {path}"
    return DependencyError(
        f"{reference} cannot be loaded: {clean_text(reason, 500)}",
        field="source",
        suggestion=suggestion or Suggestion("fix", f"Correct it. To see the traceback: {command}"),
    )


def _failing_line(path: str, failure: BaseException) -> str:
    """Return the line of a file that failed, such as " (app.py:3)"."""
    found = ""
    traceback = failure.__traceback__
    while traceback is not None:
        if os.path.basename(traceback.tb_frame.f_code.co_filename) == os.path.basename(path):
            found = f" ({os.path.basename(path)}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return found


def name_after_program(app: Typer, program: str) -> Tooli:
    """Return the app of an installed program. Its name is the program's, unless it has one."""
    found = _named_after(app, program)
    found._state.reference = (program,)
    return found


def _named_after(app: Typer, name: str) -> Tooli:
    """Return an app as a Tooli, with a name if it has none."""
    found = app if isinstance(app, Tooli) else wrap_typer(app, name)
    if "name" not in found._state.typer_kwargs:
        found._state.name = name
    return found


def wrap_typer(served: Typer, default_name: str) -> Tooli:
    """Return a Tooli that serves a plain Typer, with its callback and under its name."""
    name = getattr(served.info.name, "value", served.info.name)
    help_text = getattr(served.info.help, "value", served.info.help)
    wrapper = Tooli(name or default_name, description=help_text)
    wrapper._state.served_typer = served
    wrapper._state.needs_launcher = True
    return wrapper


def is_python_reference(word: str) -> bool:
    """True if a word names a file or a module, and an app in it."""
    return word[:1] != "-" and (word.endswith(".py") or ":" in word)


def _load_file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise NotFoundError(f"There is no file {path!r}.", field="source")
    folder, name = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = spec_from_file_location(name[:-3], path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name[:-3]] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    """Import a module: an installed one, or else one of the current folder.

    The current folder may be a repository of somebody else. Its modules must not replace installed
    ones, so it comes last on the path, and only if it is needed.
    """
    package = name.partition(".")[0]
    if not package:
        raise NotFoundError(f"{name!r} is not the name of a module.", field="source")
    if find_spec(package) is None:
        sys.path.append(os.getcwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and not f"{name}.".startswith(f"{missing.name}."):
            raise
        message = f"There is no module {name!r}. For a file, add its extension: {name}.py"
        raise NotFoundError(message, field="source") from None


def _select_app(module: ModuleType, attribute: str, reference: str) -> Typer:
    """Return the app of a module: the named one, the one called `app`, or the only one."""
    apps = {name: value for name, value in vars(module).items() if _is_app(value)}
    if attribute:
        if attribute in apps:
            return apps[attribute]
        known = ", ".join(apps) or "none"
        is_other = hasattr(module, attribute) and not reference.partition(":")[0].endswith(".py")
        error = NotATyperAppError if is_other else InputError
        raise error(
            f"{reference!r} is not an app. Apps in this module: {known}.",
            field="source",
            suggestion=_suggest_program(reference),
        )
    if "app" in apps:
        return apps["app"]
    distinct = list({id(value): value for value in apps.values()}.values())
    if len(distinct) == 1:
        return distinct[0]
    if not apps:
        raise InputError(
            f"There is no app in {reference!r}.",
            field="source",
            suggestion=_suggest_program(reference),
        )
    raise InputError(
        f"There are several apps in {reference!r}. Name one of {', '.join(apps)}.", field="source"
    )


def _suggest_program(reference: str) -> Suggestion | None:
    """Suggest to read a file as a program: it may be made with Click, argparse or another one."""
    path, _ = split_reference(reference)
    if not path.endswith(".py"):
        return None
    fix = f"If it is a program that is made with Click or argparse, use exe:{path}"
    return Suggestion("retry_with_modified_input", fix, example=f"exe:{path}")


def _is_app(value: object) -> TypeGuard[Typer]:
    typer = sys.modules.get("typer")
    return isinstance(value, Tooli) or (typer is not None and isinstance(value, typer.Typer))
