"""The words of a command line after the program: the command and its arguments."""

from __future__ import annotations

from tooli.core import BUILTIN_COMMANDS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.core.tool import Tool


def command_words(tool: Tool, argv: Sequence[str]) -> list[str]:
    """Return a command and its arguments as they are typed after the program name."""
    if is_read_as_command(tool, argv):
        return [tool.name, *argv]
    return [*tool.cli_path, *argv]


def is_read_as_command(tool: Tool, argv: Sequence[str]) -> bool:
    """True if the first argument of an app's only command would be read as a command's name."""
    if tool.cli_path or tool.returns_printed_text or not argv:
        return False
    return argv[0] == tool.name or argv[0] in BUILTIN_COMMANDS
