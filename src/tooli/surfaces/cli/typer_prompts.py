"""Typer's prompts, on the terminal itself: never on a stream that carries data, never in vain."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from tooli.surfaces.cli.channel import is_terminal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.surfaces.cli.main import Session

_HOMES = ("typer._click.termui", "click.termui")
"""Where the functions are that Typer asks with, in its versions."""


@contextmanager
def asking_on_the_terminal(command: Any, session: Session | None) -> Generator[None]:
    """While Typer reads a line: who is asked is asked on the terminal, or not at all.

    What cannot be asked is missing then, and Typer names the option to pass.
    """
    if session is None or not any(getattr(param, "prompt", None) for param in command.params):
        yield
        return
    ours = sys.stdin is sys.__stdin__  # a test that has put its own there answers by it
    if session.machine or session.options().no_input or (ours and not _can_ask()):
        for param in command.params:
            param.prompt = None
    if not ours or is_terminal(sys.stdin):
        yield
        return
    from tooli.call.asking import ask_hidden, ask_line

    kept: list[tuple[Any, str, Any]] = []
    for home in filter(None, map(sys.modules.get, _HOMES)):
        for name, ours_instead in (
            ("visible_prompt_func", ask_line),
            ("hidden_prompt_func", ask_hidden),
        ):
            kept.append((home, name, getattr(home, name)))
            setattr(home, name, ours_instead)
    try:
        yield
    finally:
        for home, name, theirs in kept:
            setattr(home, name, theirs)


def _can_ask() -> bool:
    """Whether a person sees a question, and can answer."""
    from tooli.call.asking import has_terminal

    return is_terminal(sys.stdout) and has_terminal()
