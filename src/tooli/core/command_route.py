"""The route of a command through Typer, so that callbacks and custom classes run on every call.

A command has a route if its app or one of its groups has a callback, or if one of their classes
changes how a command runs. The stage `callbacks` then runs the call as Typer runs a command line.
"""

from __future__ import annotations

from contextvars import ContextVar

from tooli.core import Record, find_loaded

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core import AppState
    from tooli.core.tool import Param


CONVERTING_KEYWORDS = frozenset(("parser", "click_type", "callback"))
"""Keywords of Option(…) whose code converts or checks a value."""

_DESCRIPTIVE_METHODS = frozenset(
    (
        *("format_help", "format_usage", "format_help_text", "format_options", "format_epilog"),
        *("format_commands", "list_commands", "get_help", "get_usage", "get_short_help_str"),
        *("get_help_option", "get_help_option_names", "collect_usage_pieces", "shell_complete"),
        *("to_info_dict", "__module__", "__qualname__", "__doc__", "__annotations__", "tooli_app"),
        *("__abstractmethods__", "_abc_impl", "__weakref__", "__dict__", "__slots__"),
        *("__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotate__"),
    )
)
"""Members of a command class that change how a command looks, but not how it runs."""


def changes_runs(cls: type | None) -> bool:
    """True if a custom command class may change how a command is found, parsed or run."""
    for base in () if cls is None else cls.__mro__:
        is_library_class = (
            base.__module__.partition(".")[0] in _LIBRARIES
            and find_loaded(base.__module__, base.__qualname__) is base
        )
        if not is_library_class and not vars(base).keys() <= _DESCRIPTIVE_METHODS:
            return True
    return False


_LIBRARIES = frozenset(("typer", "click", "tooli", "builtins", "abc", "typing"))


EXIT_KEY = "ended_by_callback"
"""The key in the metadata of a call that a callback ended with exit code 0."""


class RoutedParam(Record):
    """Where Typer takes a parameter: from the command, or from the callback of a group.

    `level` counts the groups along the path. 0 is the app itself, None is the command.
    """

    name: str  # the parameter's name in the function that takes it
    level: int | None
    param: Param  # as its function declares it


class CommandRoute(Record):
    """The way to a command in Typer's command tree."""

    state: AppState  # of the app that is called
    path: tuple[str, ...]
    registration: Any
    params: Mapping[str, RoutedParam]  # by the parameter's name in the tool

    @property
    def may_end_early(self) -> bool:
        """True if an option of a callback may print a text and end the call, as `--version`."""
        routed = self.params.values()
        return any([r.level is not None and "callback" in r.param.option_kwargs for r in routed])

    def is_of_callback(self, name: str) -> bool:
        """True if a callback takes the parameter."""
        routed = self.params.get(name)
        return routed is not None and routed.level is not None


class CommandRun:
    """A command line or a call while Typer runs it."""

    def is_for(self, registration: object) -> bool:
        """True if this is a call of a command that did not come from a command line."""
        return False

    def call_function(self, parsed: Mapping[str, Any]) -> object:
        """Call the function of the command with the values that Typer has parsed."""
        raise NotImplementedError


current_run: ContextVar[CommandRun | None] = ContextVar("tooli_command_run", default=None)
"""What Typer runs in this context."""
