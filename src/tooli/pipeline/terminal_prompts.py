"""Ask questions on the terminal, never on a stdin or stdout that carries data."""

from __future__ import annotations

import os
import sys

from tooli.core.call import CALLER_PROFILES
from tooli.detect import category_of, detect_from_environment
from tooli.errors import ApprovalRequired, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call
    from tooli.errors import ToolError


def is_auto_confirmed(call: Call) -> bool:
    """True if the caller is an agent and its confirmations are answered with yes.

    Call it only for a tool with `agent_auto_confirm`. It is never True for a destructive command,
    for a command that may need an approval, or under the policy `strict`.
    """
    tool, caller = call.tool, call.caller
    if tool.behavior.destructive or tool.guard.may_need_approval or call.policy == "strict":
        return False
    category = caller.category or (category_of(caller.name) if caller.name else None)
    return category is not None and CALLER_PROFILES[category].confirm == "agree"


def can_ask_human(call: Call) -> bool:
    """True if a human can be asked now whether the call may run.

    The human is the user of an MCP client that supports questions, or a user at a terminal where
    no agent is detected. Under the policy `strict` nobody is asked.
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
    """True if the environment or a parent process indicates an agent.

    `TOOLI_CALLER=human` does not hide other signals.
    """
    candidates = detect_from_environment(deep=True).candidates
    return any([candidate.decides and candidate.category == "ai_agent" for candidate in candidates])


def declined_error(error: ToolError) -> ApprovalRequired:
    """Return the error for a call that a human declined."""
    return ApprovalRequired(
        f"{error.message} A human declined.",
        code="E2103",
        suggestion=Suggestion("abort", "Do not repeat the call. Ask the human what to do instead."),
    )


_RESET_SEQUENCE = "\x1b[0m\x1b(B\x0f\x1b[?25h"  # attributes, character set, cursor


def reset_terminal() -> None:
    """Make the text visible that follows on stderr, if it is a terminal.

    What a command has printed before may have made the text invisible.
    """
    if sys.platform == "win32" or os.environ.get("TERM", "dumb") == "dumb":
        return
    try:
        if sys.stderr.isatty():
            sys.stderr.write(_RESET_SEQUENCE)
    except (OSError, ValueError, AttributeError):
        pass


def ask_yes_no(question: str, *, default: bool = False) -> bool:
    """Ask for yes or no; Ctrl-D and an empty line mean the default."""
    choice = "[Y/n]" if default else "[y/N]"
    while True:
        answer = _read_terminal_line(f"{question} {choice} ").strip().lower()
        if not answer:
            return default
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def has_terminal() -> bool:
    """True if stdin is a terminal, or the process has a controlling terminal."""
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        return True
    try:
        os.close(os.open("CONIN$" if sys.platform == "win32" else "/dev/tty", os.O_RDONLY))
    except OSError:
        return False
    return True


def ask_hidden(question: str) -> str:
    """Ask for a text that is not shown while it is typed; empty if nothing is typed."""
    from getpass import getpass

    try:
        return getpass(question)
    except EOFError:
        return ""


def ask_line(prompt: str) -> str:
    """Ask for a line on the terminal; raise EOFError for Ctrl-D."""
    line = _read_terminal_line(prompt)
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def _read_terminal_line(prompt: str) -> str:
    """Read a line from stdin if it is a terminal, otherwise from the controlling terminal."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return sys.stdin.readline()
    windows = sys.platform == "win32"
    try:  # two files, because a single one would have to be seekable
        with (
            open("CONOUT$" if windows else "/dev/tty", "w") as terminal_out,
            open("CONIN$" if windows else "/dev/tty") as terminal_in,
        ):
            terminal_out.write(prompt)
            terminal_out.flush()
            return terminal_in.readline()
    except OSError:
        return ""
