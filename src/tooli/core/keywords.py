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
        """Keywords of `@app.command(…)` and `app.lazy_command(…)`, except `name`.

        The docstrings of the fields are the table in docs/reference.md.
        """

        cls: type[TyperCommand] | None
        options_metavar: str | None
        deprecated: bool | str
        """Mark the command as deprecated, with an optional message for its callers."""

        annotations: Behavior | None
        """`ReadOnly`, `Idempotent`, `Destructive`, `OpenWorld`, or several joined by `|`."""
        capabilities: Sequence[str] | frozenset[str] | set[str] | None
        """What the command may access, such as `fs:read:./data` and `net:read`."""
        auth: Sequence[str] | None
        """The scopes that a caller needs; an empty list allows every caller."""
        requires_approval: bool
        """The command runs only if a human approves the call."""
        human_in_the_loop: bool
        """The same rule as `requires_approval`; documents list it separately."""
        danger_level: DangerLevel | None
        """`none`, `low`, `medium`, `high`, `critical` or `forbidden`."""
        agent_auto_confirm: bool
        """`ctx.confirm` answers yes for agents; for harmless questions only."""
        isolation: Literal["required"] | None
        """The command runs in a sandbox, or not at all."""
        timeout: float | None
        """Stop the function after this many seconds."""
        rate_limit: str | None
        """How often each caller of a server may run the command, such as `10/minute`."""
        paginated: bool | int
        """Return pages: of 100 records, or of this many."""
        max_tokens: int | None
        """Limit every answer to about this many tokens."""
        cost_hint: str | None
        """What a call costs, for the documents: `low`, `$0.02 a call`."""
        examples: Sequence[ExampleOptions]
        """Example calls, each with `args` and a `description`."""
        when_to_use: str | None
        """When an agent should choose this command."""
        handoffs: Sequence[str | Handoff | HandoffOptions]
        """The commands that often come next."""
        delegation_hint: str | None
        """Which kind of agent should run the command."""
        error_codes: Mapping[str, str]
        """The command's own error codes and their meanings."""
        task_group: str | None
        """The heading under which the documents list the command."""
        always_visible: bool
        """MCP clients see the tool even if the others are found by search."""
        version: str | None
        """The version of the command, if it differs from the version of the app."""
        native: bool
        """False: always parse the command line with Typer."""
        input_model: type[BaseModel] | type[object] | None
        """A pydantic model whose fields are the parameters."""
        input_schema: Mapping[str, Any] | None
        """A JSON Schema that replaces the generated schema of the arguments."""
        resource: str
        """An MCP resource URI under which a read-only command is available as well."""

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
