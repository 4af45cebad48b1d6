"""The words of a command line after the program: the command and its arguments."""

from __future__ import annotations

from tooli.core import BUILTIN_COMMANDS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tooli.core.tool import Param, Tool


def command_words(tool: Tool, argv: Sequence[str]) -> list[str]:
    """Return a command and its arguments as they are typed after the program name."""
    if is_read_as_command(tool, argv):
        return [tool.name, *argv]
    return [*tool.cli_path, *argv]


def callback_options(tools: Iterable[Tool]) -> dict[tuple[str, ...], list[Param]]:
    """Return the visible options of callbacks, by the words that they follow.

    The options of the app's callback follow no words, those of a group the name of the group.
    """
    found: dict[tuple[str, ...], list[Param]] = {}
    for tool in tools:
        for param in tool.public_params if tool.route is not None else ():
            routed = tool.route.params.get(param.name) if tool.route is not None else None
            if routed is None or routed.level is None or (param.hidden and not param.required):
                continue
            options = found.setdefault(tool.path[: routed.level], [])
            if not any([param.flags == other.flags for other in options]):
                options.append(param)
    return found


def is_read_as_command(tool: Tool, argv: Sequence[str]) -> bool:
    """True if the first argument of an app's only command would be read as a command's name."""
    if tool.cli_path or tool.returns_printed_text or not argv:
        return False
    return argv[0] == tool.name or argv[0] in BUILTIN_COMMANDS
