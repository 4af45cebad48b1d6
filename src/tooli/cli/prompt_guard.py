"""Questions that a command asks itself: `input`, `getpass`, `typer.prompt`, `typer.confirm`.

In mode `text` they work as with Typer: they read the terminal or the pipe. Where nobody can answer
(in a machine mode, with `--no-input`, for an agent and in CI) they fail at once, so that no command
waits for an answer. An agent or a CI system may still pipe the answers to a command in mode `text`.
`--yes` answers `typer.confirm` with yes in every mode.

`CommandOutput.guard_prompts` replaces `input` and loads this module when it is needed.
"""

from __future__ import annotations

import os
import stat
import sys
from select import select

from tooli.core.option_words import option_flag
from tooli.errors import InputError, Suggestion, shell_quote
from tooli.pipeline.call_questions import echo_answer, find_answering_param, question_message
from tooli.pipeline.prompt_functions import (
    PROMPT_FUNCTIONS,
    find_getpass,
    read_question,
    replace_in_module,
)

if sys.platform != "win32":
    from fcntl import ioctl
    from termios import FIONREAD

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from tooli.cli import CommandOutput, Invocation
    from tooli.core.tool import Param
    from tooli.pipeline.prompt_functions import AskedQuestion

PIPE_GRACE_SECONDS = 0.5
"""How long an agent or a CI system may take to write an answer to the pipe."""


def guard_modules(output: CommandOutput) -> None:
    """Replace the functions that read an answer, in all modules that are loaded."""
    for name in PROMPT_FUNCTIONS:
        if name in sys.modules:
            _guard_module(output, sys.modules[name])


def guarded_getpass(output: CommandOutput) -> ModuleSpec | None:
    """Return the spec of `getpass`, whose functions are replaced as soon as it is loaded."""
    return find_getpass(lambda module: _guard_module(output, module))


def _guard_module(output: CommandOutput, module: ModuleType) -> None:
    def guard(function: str, original: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: _ask(output, function, original, args, kwargs)

    output.replaced.extend(replace_in_module(module, guard))


def ask_line(output: CommandOutput, *args: object) -> str:
    """Answer a call of `input`, or raise InputError."""
    original = next(original for _, name, original in output.replaced if name == "input")
    return _ask(output, "input", original, args, {})


def _ask(
    output: CommandOutput,
    function: str,
    original: Callable[..., Any] | None,
    args: tuple[object, ...],
    kwargs: dict[str, Any],
) -> Any:
    invocation = output.invocation
    question = read_question(function, args)
    if question.is_confirmation and invocation.line.options.get("yes"):
        return echo_answer(question, "y")
    if original is None or not can_answer(invocation):
        raise unanswered_error(invocation, question)
    return original(*args, **kwargs)


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


def unanswered_error(invocation: Invocation, question: AskedQuestion) -> InputError:
    """Return the error for a question that nobody can answer. It says how to answer it."""
    line = invocation.line
    param = None
    if line.tool is not None:
        param = find_answering_param(line.tool, question, line.arguments)
    prog = invocation.caller.prog or (invocation.state.name,)
    argv = [*prog, *[word for word in invocation.argv if word not in ("--no-input", "--json")]]
    mode = option_flag("output", line.tool, "text")
    pipe = f"echo <answer> | {' '.join(map(shell_quote, [*argv, mode]))}"
    if question.is_confirmation:
        flag = option_flag("yes", line.tool, True) if param is None else _longest_flag(param)
        return _error(
            question,
            Suggestion(
                "ask_human",
                f"Ask a human, then pass {flag} to answer yes.",
                argv=[*prog, *_with_flag(invocation.argv, flag)],
            ),
        )
    if param is not None and param.is_flag:
        flag = _longest_flag(param)
        fix = f"Pass {flag} to answer yes, or pipe the answer to the command in mode text."
    elif param is not None:
        name = _longest_flag(param) if param.flags else f"the argument {param.name!r}"
        fix = f"Pass {name} if it is the answer, or pipe the answer to the command in mode text."
    else:
        fix = "Pipe the answer to the command in mode text, or run it at a terminal."
    return _error(
        question,
        Suggestion(
            "retry_with_modified_input",
            fix,
            # A shell rejects this line: nobody gives the placeholder as the answer.
            example=pipe,
            applicability="has_placeholders",
        ),
    )


def _error(question: AskedQuestion, suggestion: Suggestion) -> InputError:
    message = question_message(question)
    return InputError(message, code="E1038", suggestion=suggestion, is_retryable=False)


def _with_flag(argv: Sequence[str], flag: str) -> list[str]:
    """Return a line with one more flag, before `--`, without `--no-input`."""
    words = [word for word in argv if word != "--no-input"]
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], flag, *words[end:]]


def _longest_flag(param: Param) -> str:
    return max(param.flags, key=len)
