"""Questions that a command asks itself: `input`, `getpass`, `typer.prompt`, `typer.confirm`.

In mode `text` they work as with Typer: they read the terminal or the pipe. Where nobody can answer
(in a machine mode, with `--no-input`, for an agent and in CI) they fail at once, so that no command
waits for an answer. An agent or a CI system may still pipe the answers to a command in mode `text`.

`CommandOutput.guard_prompts` replaces `input` and loads this module when it is needed.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib.machinery import PathFinder
from select import select

from tooli.core.option_words import option_flag
from tooli.errors import InputError, Suggestion, shell_quote

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import FIONREAD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from tooli.cli import CommandOutput, Invocation
    from tooli.core.tool import Param, Tool

PIPE_GRACE_SECONDS = 0.5
"""How long an agent or a CI system may take to write an answer to the pipe."""

_PROMPT_FUNCTIONS = {
    "getpass": ("_raw_input", "win_getpass"),
    "typer._click.termui": ("visible_prompt_func", "_getchar"),
    "click.termui": ("visible_prompt_func", "_getchar"),
}
"""Functions that read an answer, by module. `hidden_prompt_func` of Typer calls `getpass`."""

_CONFIRMING_FLAGS = ("yes", "force", "assume_yes", "confirm", "no_confirm", "non_interactive")
"""Names of parameters that usually answer a question with yes."""


def guard_modules(output: CommandOutput) -> None:
    """Replace the functions that read an answer, in all modules that are loaded."""
    for name in _PROMPT_FUNCTIONS:
        if name in sys.modules:
            _guard_module(output, sys.modules[name])


def find_getpass(output: CommandOutput) -> ModuleSpec | None:
    """Return the spec of `getpass`, whose functions are replaced as soon as it is loaded."""
    spec = PathFinder.find_spec("getpass")
    loader: Any = None if spec is None else spec.loader
    if loader is not None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _guard_module(output, module)

        loader.exec_module = exec_module
    return spec


def _guard_module(output: CommandOutput, module: ModuleType) -> None:
    for name in _PROMPT_FUNCTIONS.get(module.__name__, ()):
        original = getattr(module, name, None)
        if original is not None or name == "_getchar":
            output.replaced.append((module, name, original))
            setattr(module, name, _guarded(output, original))


def _guarded(output: CommandOutput, original: Callable[..., Any] | None) -> Callable[..., Any]:
    def ask(*args: Any, **kwargs: Any) -> Any:
        if original is None or not can_answer(output.invocation):
            raise unanswered_error(output.invocation, _question(args))
        return original(*args, **kwargs)

    return ask


def ask_line(output: CommandOutput, *args: object) -> str:
    """Answer a call of `input`, or raise InputError."""
    if can_answer(output.invocation):
        original = next(original for _, name, original in output.replaced if name == "input")
        return original(*args)
    raise unanswered_error(output.invocation, _question(args))


def _question(args: tuple[object, ...]) -> str:
    """Return the text of a question. Typer displays it, and passes its last character only."""
    caller = sys._getframe(2).f_locals if args and len(str(args[0])) <= 1 else {}
    text = caller.get("text", args[0] if args else "")
    return str(text).strip().rstrip(":").strip()


# ------------------------------------------------------------------ can anybody answer?


def can_answer(invocation: Invocation, *, is_piped: bool = True) -> bool:
    """True if a question that a command asks now can be answered, by a person or by a pipe.

    `is_piped` is False if stdin does not carry the answers.
    """
    tool = invocation.line.tool
    is_server = tool is not None and hasattr(tool.fn, "tooli_long_running")
    if is_server or invocation.is_machine_mode or invocation.line.options.get("no_input"):
        return False
    profile = invocation.caller_profile
    return profile is None or profile.output == "auto" or (is_piped and has_piped_answer())


_piped_answer_seen = False


def has_piped_answer() -> bool:
    """True if stdin is a file or a pipe that has data, or had data for an earlier question."""
    global _piped_answer_seen
    _piped_answer_seen = _piped_answer_seen or _has_data(PIPE_GRACE_SECONDS)
    return _piped_answer_seen


def _has_data(seconds: float) -> bool:
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            return os.lseek(descriptor, 0, os.SEEK_CUR) < os.fstat(descriptor).st_size
        if sys.platform == "win32" or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return False
        is_readable = bool(select([descriptor], [], [], seconds)[0])
        return is_readable and any(ioctl(descriptor, FIONREAD, b"\0" * 4))  # 0 at its end
    except (OSError, ValueError, AttributeError):
        return False


# ------------------------------------------------------------------ the error


def unanswered_error(invocation: Invocation, question: str) -> InputError:
    """Return the error for a question that nobody can answer. It says how to answer it."""
    tool = invocation.line.tool
    flag = None if tool is None else _confirming_flag(tool)
    asked = f"The command asks {question!r}" if question else "The command asks for input"
    command = " ".join(map(shell_quote, _argv_without_mode(invocation)))
    if flag is not None:
        fix = f"Pass {flag} to answer yes, or pipe the answer to the command in mode text."
    else:
        fix = "Pipe the answer to the command in mode text, or run it at a terminal."
    return InputError(
        f"{asked}, and nobody can answer.",
        code="E1038",
        suggestion=Suggestion(
            "retry_with_modified_input",
            fix,
            # A shell rejects this line: nobody gives the placeholder as the answer.
            example=f"echo <answer> | {command} {option_flag('output', tool, 'text')}",
            applicability="has_placeholders",
        ),
    )


def _confirming_flag(tool: Tool) -> str | None:
    found: list[Param] = [
        param for param in tool.public_params if param.is_flag and param.name in _CONFIRMING_FLAGS
    ]
    return max(found[0].flags, key=len) if found and found[0].flags else None


def _argv_without_mode(invocation: Invocation) -> list[str]:
    prog = invocation.caller.prog or (invocation.state.name,)
    return [*prog, *[word for word in invocation.argv if word not in ("--no-input", "--json")]]
