"""Types that all packages share: the App protocol and the JSON types.

    if TYPE_CHECKING:
        from tooli.core.protocols import App, JsonObject, JsonValue

`tooli.app` imports the packages below it, so they cannot import the class `Tooli`. They use the
protocols `App` and `ToolSource` instead.

The type of a JSON value depends on what the code does with it:

    JsonObject   a document that the code builds, or whose fields it reads by name: a schema, an
                 envelope, the params of a request. The type checker does not check its fields.
    JsonValue    a value that is decoded, written or returned as it is. To look into it, narrow it
                 with `isinstance(value, dict)`; the type checker then knows the members.
    object       a parameter that accepts any value and tests it with `isinstance`, `is_object` or
                 `is_list` (`tooli.text.jsonable`).

These types exist for type checkers only: at run time this module is empty and nothing imports it.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any, Protocol, TypeAlias, TypeVar

    from typer import Typer
    from typer.models import CommandInfo, TyperInfo
    from typing_extensions import Unpack

    from tooli.core.app_state import AppState
    from tooli.core.call import Call, Caller, Options, Stage
    from tooli.core.catalog import Catalog
    from tooli.core.keywords import CommandOptions, GroupOptions
    from tooli.core.tool import Tool
    from tooli.pipeline.prepared_call import TooliResult
    from tooli.providers.local import CommandGroup
    from tooli.storage.failure_history import MemoryFailureHistory

    F = TypeVar("F", bound=Callable[..., Any])

    JsonValue: TypeAlias = (
        "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
    )
    """Any JSON value."""

    JsonObject: TypeAlias = dict[str, Any]
    """A JSON object that is built or read by field name."""

    class TyperApp(Protocol):
        """The attributes in which a `typer.Typer` stores its registrations."""

        info: TyperInfo
        registered_commands: list[CommandInfo]
        registered_groups: list[TyperInfo]
        registered_callback: TyperInfo | None

    class ToolSource(Protocol):
        """The part of an app that is needed to list, describe and export its tools."""

        _state: AppState

        @property
        def catalog(self) -> Catalog:
            """Every tool of the app."""
            ...

        def tree(self) -> CommandGroup:
            """Return the app's commands and groups."""
            ...

        def find(self, name: str) -> Tool | None:
            """Return the tool of that name, or None."""
            ...

    class App(TyperApp, ToolSource, Protocol):
        """The part of `Tooli` that registers, finds and calls tools."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Run the command line."""
            ...

        def _run_command_line(self, *args: Any, **kwargs: Any) -> Any:
            """Run the command line, even if a subclass overrides `__call__`."""
            ...

        def command(
            self, name: str | None = None, **options: Unpack[CommandOptions]
        ) -> Callable[[F], F]:
            """Register a function as a command."""
            ...

        def add_typer(self, typer_instance: Typer, **options: Unpack[GroupOptions]) -> None:
            """Add another app as a group of commands."""
            ...

        def builtins(self, name: str | None = None) -> App:
            """Return an app with the built-in commands, or with those of one name."""
            ...

        def prepare(
            self, call: Call, failure_history: MemoryFailureHistory | None = None
        ) -> tuple[Call, tuple[Stage, ...]]:
            """Return a call with the state that the app adds to it, and its stages."""
            ...

        def stages_for(
            self, tool: Tool, options: Options, caller: Caller | None = None
        ) -> tuple[Stage, ...]:
            """Return the stages that apply to a tool, outermost first."""
            ...

        def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
            """Run a tool from Python."""
            ...

        async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
            """Run a tool from async code."""
            ...

        def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
            """Iterate over the items of a tool's result as the tool produces them."""
            ...

        def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
            """Iterate over the items of a tool's result in async code."""
            ...
