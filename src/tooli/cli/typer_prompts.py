"""Typer's prompts, on the terminal itself: never on a stream that carries data, never in vain."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from tooli.cli.process import is_terminal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.cli.main import Invocation

_PROMPT_MODULES = ("typer._click.termui", "click.termui")
"""Where the functions are that Typer asks with, in its versions."""


@contextmanager
def prompt_on_terminal(command: Any, invocation: Invocation | None) -> Generator[None]:
    """While Typer reads a line: who is asked is asked on the terminal, or not at all.

    What cannot be asked is missing then, and Typer names the option to pass.
    """
    if invocation is None or not any(getattr(param, "prompt", None) for param in command.params):
        yield
        return
    is_real_stdin = sys.stdin is sys.__stdin__  # a test that has put its own there answers by it
    if (
        invocation.is_machine_mode
        or invocation.options().no_input
        or (is_real_stdin and not _can_prompt())
    ):
        for param in command.params:
            param.prompt = None
    if not is_real_stdin or is_terminal(sys.stdin):
        yield
        return
    from tooli.pipeline.terminal_prompts import ask_hidden, ask_line

    originals: list[tuple[Any, str, Any]] = []
    for module in filter(None, map(sys.modules.get, _PROMPT_MODULES)):
        for name, replacement in (
            ("visible_prompt_func", ask_line),
            ("hidden_prompt_func", ask_hidden),
        ):
            originals.append((module, name, getattr(module, name)))
            setattr(module, name, replacement)
    try:
        yield
    finally:
        for module, name, original in originals:
            setattr(module, name, original)


def _can_prompt() -> bool:
    """Whether a person sees a question, and can answer."""
    from tooli.pipeline.terminal_prompts import has_terminal

    return is_terminal(sys.stdout) and has_terminal()
