"""Decorators for built-in commands with a special output or special settings."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def owns_stdout(fn: Any) -> Any:
    """Mark a command that writes to stdout itself."""
    fn.tooli_mode = "text"
    return fn


def returns_text(fn: Any) -> Any:
    """Mark a command that returns text, which is printed as it is."""
    fn.tooli_mode = "plain"
    return fn


def returns_document(fn: Any) -> Any:
    """Mark a command that returns a document, which is printed without an envelope unless --json is
    set.
    """
    fn.tooli_mode = "jsonl"
    return fn


def runs_with_invalid_settings(fn: Any) -> Any:
    """Mark a command that shows settings: it runs even if they are invalid."""
    fn.tooli_runs_with_invalid_settings = True
    return fn


def long_running(fn: Any) -> Any:
    """Mark a command that runs until it is stopped: the setting `timeout` does not apply to it."""
    fn.tooli_long_running = True
    return fn
