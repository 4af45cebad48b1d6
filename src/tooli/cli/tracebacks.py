"""Tracebacks of an author's exceptions, without the frames of tooli."""

from __future__ import annotations

import os
from types import TracebackType

import typer

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import App

    ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]

_OWN_ROOT = __file__[: -len("cli/tracebacks.py")]
_TYPER_ROOT = typer.__file__[: -len("__init__.py")]
_STANDARD_TRACEBACK = ("TYPER_STANDARD_TRACEBACK", "_TYPER_STANDARD_TRACEBACK")
"""Variables with which Typer shows Python's own tracebacks."""


def skip_internal_frames(exc: BaseException) -> BaseException:
    """Return the exception with a traceback that starts in the author's code."""
    trace = exc.__traceback__
    while trace is not None and _is_in(trace, _OWN_ROOT, _TYPER_ROOT):
        trace = trace.tb_next
    return exc.with_traceback(trace) if trace is not None else exc


def hide_own_frames(app: App, hook: ExceptHook) -> ExceptHook:
    """Return an exception hook that calls `hook` with a traceback without frames of tooli."""
    is_pretty = getattr(app, "pretty_exceptions_enable", True) and not any(
        os.environ.get(name) for name in _STANDARD_TRACEBACK
    )

    def show(kind: type[BaseException], exc: BaseException, trace: TracebackType | None) -> object:
        shown = without_own_frames(trace, is_short=is_pretty)
        return hook(kind, exc.with_traceback(shown), shown)

    return show


def without_own_frames(trace: TracebackType | None, *, is_short: bool) -> TracebackType | None:
    """Return a traceback without the frames of tooli.

    With `is_short`, it starts below the last frame in which rich's guard variable is true.
    """
    frames: list[TracebackType] = []
    while trace is not None:
        if is_short and trace.tb_frame.f_locals.get("_rich_traceback_guard"):
            frames.clear()
        elif not _is_in(trace, _OWN_ROOT):
            frames.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for entry in reversed(frames):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def _is_in(trace: TracebackType, *roots: str) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(roots)
