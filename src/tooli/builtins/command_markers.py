"""How a built-in command answers, where it is not like any other command."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def owns_stdout(fn: Any) -> Any:
    """Mark a command that speaks on stdout itself: no mode of ours gets in its way."""
    fn.tooli_mode = "text"
    return fn


def returns_text(fn: Any) -> Any:
    """Mark a command whose result is a text to be read or piped: it comes out as it is."""
    fn.tooli_mode = "plain"
    return fn


def returns_document(fn: Any) -> Any:
    """Mark a command whose result is a document: it stands alone unless `--json` is asked for."""
    fn.tooli_mode = "jsonl"
    return fn


def runs_with_invalid_settings(fn: Any) -> Any:
    """Mark a command that shows how a run is set up: it runs even where that is wrong."""
    fn.tooli_runs_with_invalid_settings = True
    return fn


def long_running(fn: Any) -> Any:
    """Mark a command that runs until somebody ends it: settings about calls are not about it."""
    fn.tooli_long_running = True
    return fn
