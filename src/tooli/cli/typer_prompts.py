"""The prompts of Typer's options, where nobody may be able to answer them.

Typer's commands load this module if an option has a prompt.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager

from tooli.cli.process import is_terminal
from tooli.cli.prompt_guard import can_answer
from tooli.pipeline.terminal_prompts import ask_hidden, ask_line, has_terminal
from tooli.pipeline.typer_calls import report_missing

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from typer._click.core import Parameter

    from tooli.cli import Invocation

_PROMPT_MODULES = ("typer._click.termui", "click.termui")
"""Modules that may contain Typer's prompt functions, depending on its version."""


@contextmanager
def guard_option_prompts(params: Sequence[Parameter], invocation: Invocation) -> Generator[None]:
    """While Typer parses a line, report an option with a prompt as missing if nobody can answer.

    A prompt reads what it reads with Typer, the terminal or the pipe. If the command itself reads
    data from the pipe, the prompt reads the terminal. `params` are the options with prompts.
    """
    tool = invocation.line.tool
    is_real_stdin = sys.stdin is sys.__stdin__  # a test that replaces stdin answers the prompts
    reads_stdin = is_real_stdin and tool is not None and tool.has_handles
    has_data_on_stdin = reads_stdin and not is_terminal(sys.stdin)
    replaced: list[tuple[object, str, object]] = []
    if has_data_on_stdin and can_answer(invocation, is_piped=False) and has_terminal():
        for module in filter(None, map(sys.modules.get, _PROMPT_MODULES)):
            replaced.append((module, "visible_prompt_func", ask_line))
            replaced.append((module, "hidden_prompt_func", ask_hidden))
    elif has_data_on_stdin or not can_answer(invocation, is_piped=is_real_stdin):
        replaced += [(param, "prompt_for_value", report_missing(param)) for param in params]
    originals = [vars(owner).get(name, _MISSING) for owner, name, _ in replaced]
    for owner, name, replacement in replaced:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for (owner, name, _), original in zip(replaced, originals, strict=True):
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


_MISSING = object()
