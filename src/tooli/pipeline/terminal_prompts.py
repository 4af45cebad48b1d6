"""Ask a person, on the terminal itself, never on a stream that carries data."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call
    from tooli.errors import ApprovalRequired, ToolError


def is_auto_confirmed(call: Call) -> bool:
    """Whether a harmless question needs nobody's answer: its author says so, and an agent calls.

    Who seems to call never confirms what may do damage, whatever the author says.
    """
    tool, caller = call.tool, call.caller
    if tool.behavior.destructive or tool.guard.may_need_approval or call.policy == "strict":
        return False
    from tooli.core.caller_profile import CALLER_PROFILES
    from tooli.detect import category_of

    kind = caller.category or (category_of(caller.name) if caller.name else None)
    return kind is not None and CALLER_PROFILES[kind].confirm == "agree"


def can_ask_human(call: Call) -> bool:
    """Whether the door of a call has a human who can be asked now whether it may run.

    A client over MCP, if it can ask; at a command line a person at a terminal, and no agent
    around. Under a strict policy nobody is asked.
    """
    if call.policy == "strict":
        return False
    if call.peer is not None:
        return call.peer.supports("elicitation/create")
    options = call.options
    if not call.caller.can_prompt or not options.interactive or options.no_input:
        return False
    return has_terminal() and not is_agent_present()


def is_agent_present() -> bool:
    """Whether an agent is around, by the environment or by the processes above this one.

    What the environment says of itself (`TOOLI_CALLER=human`) does not hide another mark in it.
    """
    from tooli.detect import detect_execution_context

    candidates = detect_execution_context(deep=True).candidates
    return any([candidate.decides and candidate.category == "ai_agent" for candidate in candidates])


def declined_error(error: ToolError) -> ApprovalRequired:
    """The failure of a call to which a human said no."""
    from tooli.errors import ApprovalRequired, Suggestion

    return ApprovalRequired(
        f"{error.message} A human was asked, and did not agree.",
        code="E2103",
        suggestion=Suggestion("abort", "Do not repeat the call; ask what is wanted instead."),
    )


def ask_yes_no(question: str, *, default: bool = False) -> bool:
    """A person's yes or no; Ctrl-D and an empty line mean the default."""
    choice = "[Y/n]" if default else "[y/N]"
    while True:
        answer = _read_terminal_line(f"{question} {choice} ").strip().lower()
        if not answer:
            return default
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def has_terminal() -> bool:
    """Whether somebody can be asked: stdin is a terminal, or the process has one of its own."""
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        return True
    try:
        os.close(os.open("CONIN$" if sys.platform == "win32" else "/dev/tty", os.O_RDONLY))
    except OSError:
        return False
    return True


def ask_hidden(question: str) -> str:
    """What a person types, unseen; nothing where they do not."""
    from getpass import getpass

    try:
        return getpass(question)
    except EOFError:
        return ""


def ask_line(prompt: str) -> str:
    """One line that a person types on the terminal, without its end; EOFError for Ctrl-D."""
    line = _read_terminal_line(prompt)
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def _read_terminal_line(prompt: str) -> str:
    """One line from the terminal: stdin if it is one, the process's own terminal if not."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return sys.stdin.readline()
    windows = sys.platform == "win32"
    try:  # two files, because one for both would have to seek
        with (
            open("CONOUT$" if windows else "/dev/tty", "w") as terminal_out,
            open("CONIN$" if windows else "/dev/tty") as terminal_in,
        ):
            terminal_out.write(prompt)
            terminal_out.flush()
            return terminal_in.readline()
    except OSError:
        return ""
