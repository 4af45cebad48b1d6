"""The names of built-in commands in completions and in Typer's messages."""

from __future__ import annotations

import os

from tooli.core import BUILTIN_COMMANDS
from tooli.similar_names import closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.core.protocols import App


def builtin_completions(app: App, incomplete: str) -> list[str]:
    """Return the built-in commands whose names start with a text.

    Without a text, only the commands of the app are completed.
    """
    if not incomplete or not _has_builtins(app):
        return []
    return [name for name in sorted(BUILTIN_COMMANDS) if name.startswith(incomplete)]


def completed_builtins(app: App, argv: Sequence[str]) -> App | None:
    """Return the app of the built-in commands, if a line begins with one of them."""
    name = next((word for word in argv if word[:1] != "-"), "")
    if name not in BUILTIN_COMMANDS or name in app.tree().names:
        return None
    return app.builtins(None if name == "tooli" else name) if _has_builtins(app) else None


def closest_builtin(app: App, name: str) -> str | None:
    """Return the built-in command whose name is the closest one.

    None if no name is close, or if the app is written for Typer: its commands print their results.
    """
    tree = app.tree()
    if not tree.has_builtins or all([tool.returns_printed_text for tool in app.catalog]):
        return None
    return closest_match(name.replace("_", "-"), sorted(BUILTIN_COMMANDS))


def _has_builtins(app: App) -> bool:
    state = app._state
    is_shown = state.framework_help and os.environ.get("TOOLI_FRAMEWORK_HELP") != "0"
    return is_shown and app.tree().has_builtins
