"""Tracebacks of an author's exceptions, without the frames of tooli."""

from __future__ import annotations

import os
from types import TracebackType

import typer.main

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from typer._click.core import Command

    from tooli.core.protocols import App

    ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]

_OWN_ROOT = __file__[: -len("cli/tracebacks.py")]
_STANDARD_TRACEBACK = ("TYPER_STANDARD_TRACEBACK", "_TYPER_STANDARD_TRACEBACK")
"""Variables with which Typer shows Python's own tracebacks."""


class RaisedException:
    """An exception of a command, passed to Typer in place of arguments. Typer raises and shows it.

    `replay` raises it inside Typer's command, if it can. Otherwise it is raised outside of it.
    """

    def __init__(
        self, exc: BaseException, replay: Callable[[Command], object] | None, *, is_short: bool
    ) -> None:
        self.exc = skip_own_frames(exc)
        self._replay = replay
        self._is_short = is_short

    def raise_for(self, command: Command) -> NoReturn:
        """Raise the exception, with Typer's frames above it if possible."""
        if self._replay is not None:
            self._replay(command)
        # rich omits all frames up to the last one in which this variable is true
        _rich_traceback_guard = self._is_short
        raise self.exc


def skip_own_frames(exc: BaseException) -> BaseException:
    """Return the exception with a traceback that does not start with frames of tooli."""
    trace = exc.__traceback__
    while trace is not None and _is_own(trace):
        trace = trace.tb_next
    return exc.with_traceback(trace) if trace is not None else exc


def shows_typer_frames(app: App) -> bool:
    """True if the traceback of an exception in a command shows the frames of Typer as well."""
    return not (_is_pretty(app) and getattr(app, "pretty_exceptions_short", True))


def _is_pretty(app: App) -> bool:
    return getattr(app, "pretty_exceptions_enable", True) and not any(
        os.environ.get(name) for name in _STANDARD_TRACEBACK
    )


def uses_rich() -> bool:
    """True if Typer writes with rich."""
    main: Any = typer.main
    return bool(getattr(main, "HAS_RICH", getattr(main, "rich", None)))


def hide_own_frames(app: App, hook: ExceptHook) -> ExceptHook:
    """Return an exception hook that calls `hook` with a traceback without frames of tooli."""

    def show(kind: type[BaseException], exc: BaseException, trace: TracebackType | None) -> object:
        shown = without_own_frames(trace, has_guards=_is_pretty(app) and uses_rich())
        return hook(kind, exc.with_traceback(shown), shown)

    return show


def without_own_frames(trace: TracebackType | None, *, has_guards: bool) -> TracebackType | None:
    """Return a traceback without the frames of tooli.

    With `has_guards`, a frame of tooli in which rich's guard variable is true remains: rich omits
    it, and all frames above it.
    """
    frames: list[TracebackType] = []
    while trace is not None:
        is_guard = has_guards and trace.tb_frame.f_locals.get("_rich_traceback_guard")
        if is_guard or not _is_own(trace):
            frames.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for entry in reversed(frames):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def _is_own(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OWN_ROOT)
