"""Add notes to a failed call: what the caller may have meant, and with `-v` the traceback."""

from __future__ import annotations

from tooli.cli.builtin_names import closest_builtin
from tooli.pipeline import load_location

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.cli import Invocation
    from tooli.core.call import Call, Failed


def add_notes(invocation: Invocation, outcome: Failed, call: Call) -> Call:
    """Return a failed call with its notes."""
    if not call.tool.cli_path:
        _add_hint(invocation, call)
    if not call.options.verbose:
        return call
    return load_location("tooli.cli.verbose_errors:report_to")(invocation, outcome, call)


def _add_hint(invocation: Invocation, call: Call) -> None:
    """Warn that the first argument may be a misspelled built-in command.

    An app with one command takes it as an argument, as Typer does.
    """
    line = invocation.line
    arguments = line.typer_argv[line.command_prefix_length :]
    word = next((word for word in arguments if word[:1] != "-"), "")
    meant = closest_builtin(invocation.app, word) if word and line.arguments else None
    if meant is not None and meant != word:
        call.warnings.append(f"{word!r} was taken as an argument: did you mean {meant!r}?")
