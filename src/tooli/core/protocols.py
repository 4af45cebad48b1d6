"""Types that all packages share: the App protocol, the JSON types, the keywords of an app.

    if TYPE_CHECKING:
        from tooli.core.protocols import App, JsonObject, JsonValue

`tooli.app` imports the packages below it, so they cannot import the class `Tooli`. They use the
protocols `App` and `ToolSource` instead.

The type of a JSON value depends on what the code does with it:

    JsonObject   a document that the code builds, or whose fields it reads by name: a schema, an
                 envelope, the params of a request. The type checker does not check its fields.
    JsonValue    a value that is decoded, written or returned as it is. To read its members, narrow
                 it with `isinstance(value, dict)`; the type checker then knows their type.
    object       a parameter that accepts any value and tests it with `isinstance`, `is_object` or
                 `is_list` (`tooli.text.jsonable`).

The TypedDicts are the keywords of the public functions:

    def command(self, name: str | None = None, **options: Unpack[CommandOptions]) -> …

A misspelled keyword or a value of the wrong type is an error in the editor. At run time,
`tooli.core.definitions` checks keywords and values. `tests/core/test_protocols.py` checks that the
keywords here are those accepted at run time.

These types exist for type checkers only: at run time this module is empty and nothing imports it.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
    from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

    from pydantic import BaseModel
    from typer import Typer
    from typer.core import TyperCommand, TyperGroup
    from typer.models import CommandInfo, TyperInfo
    from typing_extensions import Required, Unpack

    from tooli.core import AppState
    from tooli.core._hot_tables import CallOptions
    from tooli.core.call import Call, Caller, Options, Problem, Stage
    from tooli.core.catalog import Catalog, Handoff
    from tooli.core.sampling import Sampler
    from tooli.core.tool import Behavior, Tool
    from tooli.pipeline.prepared_call import TooliResult
    from tooli.providers import CommandGroup
    from tooli.storage.state_files import MemoryFailureHistory

    F = TypeVar("F", bound=Callable[..., object])

    JsonValue: TypeAlias = (
        "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
    )
    """Any JSON value."""

    JsonObject: TypeAlias = dict[str, Any]
    """A JSON object that is built or read by field name."""

    DangerLevel: TypeAlias = Literal["none", "low", "medium", "high", "critical", "forbidden"]
    SecurityPolicyName: TypeAlias = Literal["off", "standard", "strict"]
    Transport: TypeAlias = Literal["stdio", "http", "sse"]

    PipeFormat: TypeAlias = Literal["jsonl", "json", "csv", "text"]

    class PipeOptions(TypedDict, total=False):
        """A value of `pipe_input=` or `pipe_output=`."""

        format: Required[PipeFormat]
        schema: Mapping[str, object]
        description: str

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

        deprecated_version: str | None
        """The version of the app that refuses the command; until then it is deprecated."""
        sunset: str | None
        """The last day of the command, such as `2027-01-31`; until then it is deprecated."""
        annotations: Behavior | None
        """`ReadOnly`, `Idempotent`, `Destructive`, `OpenWorld`, or several joined by `|`."""
        capabilities: Sequence[str] | frozenset[str] | set[str] | None
        """What the command may access, such as `fs:read:./data` and `net:read`."""
        auth: Sequence[str] | None
        """The scopes that a caller needs; an empty list allows every caller."""
        requires_approval: bool
        """The command runs only if a human approves the call."""
        human_in_the_loop: bool
        """Has the effect of `requires_approval`; documents list it separately."""
        danger_level: DangerLevel | None
        """`none`, `low`, `medium`, `high`, `critical` or `forbidden`."""
        agent_auto_confirm: bool
        """`ctx.confirm` answers yes for agents; for harmless questions only."""
        isolation: Literal["required"] | None
        """The command runs in a sandbox, or not at all."""
        callers: Sequence[Literal["direct", "code"]] | None
        """`["code"]`: only scripts may call the command; `["direct"]`: scripts may not."""
        timeout: float | None
        """Stop the function after this many seconds."""
        rate_limit: str | None
        """How often each caller of a server may run the command, such as `10/minute`."""
        paginated: bool | int
        """Return pages of 100 records, or of the given number of records."""
        max_tokens: int | None
        """Limit every answer to about this many tokens."""
        cost_hint: Literal["low", "medium", "high"] | None
        """What a call costs, for the documents: `low`, `medium` or `high`."""
        summary: str | None
        """One line about the command, in place of the first line of the docstring."""
        tags: Sequence[str]
        """Words by which documents and searches group the command."""
        title: str | None
        """The name that hosts show to people, over MCP."""
        icons: Sequence[str | Mapping[str, object]]
        """Icons for MCP clients: URLs, or dicts with `src`, `mimeType`, `sizes` and `theme`."""
        meta: Mapping[str, object]
        """Entries for the `_meta` of the MCP tool, such as `{"anthropic/alwaysLoad": True}`."""
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
        pipe_input: PipeFormat | PipeOptions | None
        """What the command reads from a pipe, if its types do not say it."""
        pipe_output: PipeFormat | PipeOptions | None
        """What the command writes to a pipe, if its types do not say it."""
        always_visible: bool
        """MCP clients see the tool even if the others are found by search."""
        own_options: Sequence[str]
        """The safety options (`dry_run`, `yes`, `timeout`) that parameters replace on purpose."""
        version: str | None
        """The version of the command, if it differs from the version of the app."""
        pre_validate: Callable[..., object] | None
        """A function that checks a call before it runs; its parameters are those it needs."""
        native: bool
        """False: always parse the command line with Typer."""
        input_model: type[BaseModel] | type[object] | None
        """A pydantic model whose fields are the parameters."""
        input_schema: Mapping[str, object] | None
        """A JSON Schema that replaces the generated schema of the arguments."""
        output_schema: Mapping[str, object] | None
        """A JSON Schema that replaces the generated schema of the result."""
        resource: str
        """An MCP resource URI under which a read-only command is available as well."""

    class SurfaceOptions(CallOptions, total=False):
        """Keywords of `app.options(…)`: framework options, and what the calling code provides."""

        caller: str | None
        """The name of the calling program, for example of an agent framework."""
        sampler: Sampler | None
        """Answers `ctx.sample`: a function that takes a `Sample` and returns the model's text."""
        on_event: Callable[[JsonObject], object] | None
        """Called with each event of a running call: its progress, log messages and artifacts."""

    class ScriptOptions(TypedDict, total=False):
        """Keywords of `app.orchestrate(code, …)`."""

        inputs: Mapping[str, Any]
        """Variables of the script: JSON values by name."""
        tools: Sequence[str]
        """The tools that it may call; the default is all of them."""
        read_only: bool
        """It may call only tools that change nothing."""
        max_calls: int
        """The maximum number of calls, 100 by default."""
        concurrency: int
        """The maximum number of calls at a time, 8 by default."""
        yes: bool
        """Confirm destructive tools."""
        timeout: float
        """Stop the script and its calls after this many seconds."""
        dry_run: bool
        """Run only what reads, and return the plan of all other calls."""
        idempotency_key: str
        """Run the script only once with this key."""

    class CallbackOptions(_SharedTyperOptions, total=False):
        """Keywords of `@app.callback(…)`."""

        cls: type[TyperGroup] | None
        options_metavar: str | None
        deprecated: bool
        invoke_without_command: bool
        subcommand_metavar: str | None
        chain: bool
        result_callback: Callable[..., object] | None

    class GroupOptions(CallbackOptions, total=False):
        """Keywords of `app.add_typer(…)`."""

        name: str | None
        callback: Callable[..., object] | None

    class AppOptions(_SharedTyperOptions, total=False):
        """Keywords of `typer.Typer(…)` that `Tooli(…)` accepts."""

        cls: type[TyperGroup] | None
        options_metavar: str
        deprecated: bool
        invoke_without_command: bool
        subcommand_metavar: str | None
        chain: bool
        result_callback: Callable[..., object] | None
        callback: Callable[..., object] | None
        add_completion: bool
        rich_markup_mode: Literal["markdown", "rich"] | None
        suggest_commands: bool
        pretty_exceptions_enable: bool
        pretty_exceptions_show_locals: bool
        pretty_exceptions_short: bool

    class TyperKwargs(AppOptions, total=False):
        """Keywords that `Tooli(…)` passes to `typer.Typer(…)`."""

        name: str | None

    Completions: TypeAlias = Mapping[str, Sequence[object] | Callable[..., object]]

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
        annotations: Mapping[str, object] | None

    class TyperApp(Protocol):
        """The attributes in which a `typer.Typer` stores its registrations."""

        info: TyperInfo
        registered_commands: list[CommandInfo]
        registered_groups: list[TyperInfo]
        registered_callback: TyperInfo | None

    class TypedLine(Protocol):
        """A command line, as suggestions of another line need it."""

        typer_argv: list[str]  # the words without the framework flags
        command_prefix_length: int  # the number of these words before the arguments
        arguments: dict[str, Any]  # as text; also those from environment variables
        parent_flags: set[str]  # flags that are no framework flags, such as those of callbacks
        is_ambiguous: bool  # Typer may parse the line differently

    class ReadLine(Protocol):
        """A command line whose command is not known."""

        options: dict[str, Any]  # the framework options
        path: tuple[str, ...]  # the groups that it names
        problems: list[Problem]
        unknown_command: str | None
        builtin: str | None

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

        def _resolve_handoffs(self, tool: Tool) -> Tool:
            """Return a tool whose handoffs name commands of the app."""
            ...

        def _find_line_problems(self, argv: Sequence[str]) -> list[str]:
            """Return what is wrong with a command line, which does not include the program."""
            ...

    class App(TyperApp, ToolSource, Protocol):
        """The part of `Tooli` that registers, finds and calls tools."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Run the command line."""
            ...

        def _run_command_line(self, *args: Any, **kwargs: Any) -> object:
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

        def list_resources(self) -> list[JsonObject]:
            """Return the descriptions of the resources."""
            ...

        def list_prompts(self) -> list[JsonObject]:
            """Return the descriptions of the prompts."""
            ...

        def builtins(self, name: str | None = None) -> App:
            """Return an app with the built-in commands, or with those that `name` selects."""
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
