"""The keywords of the public functions, for type checkers and editors.

    def command(self, name: str | None = None, **options: Unpack[CommandOptions]) -> …

A misspelled keyword or a value of the wrong type is an error in the editor. At run time this
module is empty and nothing imports it. `tooli.core.definitions` checks keywords and values at run
time. `tests/core/test_keywords.py` checks that the keywords here are those accepted at run time.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal, TypeAlias, TypedDict

    from pydantic import BaseModel
    from typer.core import TyperCommand, TyperGroup
    from typing_extensions import Required

    from tooli.core.handoffs import Handoff
    from tooli.core.tool import Behavior

    DangerLevel: TypeAlias = Literal["none", "low", "medium", "high", "critical", "forbidden"]
    SecurityPolicy: TypeAlias = Literal["off", "standard", "strict"]
    Transport: TypeAlias = Literal["stdio", "http", "sse"]

    class ExampleOptions(TypedDict, total=False):
        """One entry of `examples=`: the arguments after the command's name."""

        args: Required[Sequence[str | float]]
        description: str

    class HandoffOptions(TypedDict, total=False):
        """One entry of `handoffs=`."""

        command: Required[str]
        when: str

    class _SharedTyperOptions(TypedDict, total=False):
        """Keywords that Typer's `command`, `callback`, `add_typer` and `Typer` share."""

        context_settings: dict[Any, Any] | None
        help: str | None
        epilog: str | None
        short_help: str | None
        add_help_option: bool
        no_args_is_help: bool
        hidden: bool
        rich_help_panel: str | None

    class CommandOptions(_SharedTyperOptions, total=False):
        """Keywords of `@app.command(…)` and `app.lazy_command(…)`, except `name`."""

        cls: type[TyperCommand] | None
        options_metavar: str | None
        deprecated: bool | str

        annotations: Behavior | None
        capabilities: Sequence[str] | frozenset[str] | set[str] | None
        auth: Sequence[str] | None
        requires_approval: bool
        human_in_the_loop: bool
        danger_level: DangerLevel | None
        agent_auto_confirm: bool
        isolation: Literal["required"] | None
        timeout: float | None
        rate_limit: str | None
        paginated: bool | int
        max_tokens: int | None
        cost_hint: str | None
        examples: Sequence[ExampleOptions]
        when_to_use: str | None
        handoffs: Sequence[str | Handoff | HandoffOptions]
        delegation_hint: str | None
        error_codes: Mapping[str, str]
        task_group: str | None
        always_visible: bool
        version: str | None
        native: bool
        input_model: type[BaseModel] | type[object] | None
        input_schema: Mapping[str, Any] | None
        resource: str

    class CallbackOptions(_SharedTyperOptions, total=False):
        """Keywords of `@app.callback(…)`."""

        cls: type[TyperGroup] | None
        options_metavar: str | None
        deprecated: bool
        invoke_without_command: bool
        subcommand_metavar: str | None
        chain: bool
        result_callback: Callable[..., Any] | None

    class GroupOptions(CallbackOptions, total=False):
        """Keywords of `app.add_typer(…)`."""

        name: str | None
        callback: Callable[..., Any] | None

    class AppOptions(_SharedTyperOptions, total=False):
        """Keywords of `typer.Typer(…)` that `Tooli(…)` accepts."""

        cls: type[TyperGroup] | None
        options_metavar: str
        deprecated: bool
        invoke_without_command: bool
        subcommand_metavar: str | None
        chain: bool
        result_callback: Callable[..., Any] | None
        callback: Callable[..., Any] | None
        add_completion: bool
        rich_markup_mode: Literal["markdown", "rich"] | None
        suggest_commands: bool
        pretty_exceptions_enable: bool
        pretty_exceptions_show_locals: bool
        pretty_exceptions_short: bool

    class TyperSettings(AppOptions, total=False):
        """Keywords that `Tooli(…)` passes to `typer.Typer(…)`."""

        name: str | None

    Completions: TypeAlias = Mapping[str, Sequence[Any] | Callable[..., Any]]

    class PromptOptions(TypedDict, total=False):
        """Keywords of `@app.prompt(…)`, except the name."""

        title: str | None
        description: str | None
        complete: Completions | None
        auth: Sequence[str] | None

    class ResourceOptions(PromptOptions, total=False):
        """Keywords of `@app.resource(…)`, except the URI."""

        name: str | None
        mime_type: str | None
        size: int | None
        annotations: Mapping[str, Any] | None
