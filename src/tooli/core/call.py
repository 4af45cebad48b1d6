"""Call, Caller and Outcome: a Call goes into the pipeline, an Outcome comes out."""

from __future__ import annotations

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, MutableMapping
    from typing import Any, TypeAlias

    from tooli.core.peer import Peer
    from tooli.core.protocols import TypedLine
    from tooli.core.stop_signal import StopSignal
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.pipeline.single_use_claims import SingleUseClaim
    from tooli.records.call_options import ResultOptions
    from tooli.records.record_flow import RecordFlow
    from tooli.serving.server_request import ServerRequest


class Caller(Record):
    """Who makes a call, and through which interface."""

    surface: str  # the interface: "cli" | "python" | "mcp" | "http"
    name: str | None = None
    version: str | None = None
    session: str | None = None
    scopes: frozenset[str] = frozenset()
    # The program in suggested command lines; None: the app's name.
    prog: tuple[str, ...] | None = None
    category: str | None = None  # the detected kind of caller; None: not detected
    maybe_agent: bool = False  # stricter checks, because a model may have invented the values
    principal: str | None = None  # the subject of a verified token
    address: str | None = None  # the client's IP address; None: the call is local
    url_prefix: str = ""  # HTTP: what clients write before the paths of the server

    @property
    def owns_process(self) -> bool:
        """True if the process exists for this call only: a command line."""
        return self.surface == "cli"

    @property
    def is_remote(self) -> bool:
        """True if the call comes through a server (MCP, HTTP)."""
        return self.surface in ("mcp", "http")

    @property
    def is_in_process(self) -> bool:
        """True if the call comes from Python code in this process."""
        return self.surface == "python"

    @property
    def is_tool_client(self) -> bool:
        """True if the client calls tools for a model: an MCP client."""
        return self.surface == "mcp"

    @property
    def can_prompt(self) -> bool:
        """True if the caller can answer prompts on the terminal of this process."""
        return self.owns_process

    @property
    def gets_printed_text(self) -> bool:
        """True if the text that a command prints is part of the answer."""
        return not self.is_in_process

    @property
    def uses_environment_token(self) -> bool:
        """True if the token in `TOOLI_TOKEN_FILE` may identify the caller."""
        return self.surface in ("cli", "mcp") and self.address is None


AGENT_TIMEOUT = 120.0
"""Default timeout of an agent's calls, in seconds. `TOOLI_TIMEOUT` overrides it."""


class CallerProfile(Record):
    """The defaults of the command line for one kind of caller.

    A profile never changes which calls are allowed, because detection can be wrong or deceived. For
    every caller, a destructive command needs `--yes`, and an approval needs a human.
    """

    output: str = "auto"  # "auto": text on a terminal, JSON elsewhere
    help: str = "auto"  # "auto": Typer's help on a terminal, plain text elsewhere
    errors: str = "brief"  # in text modes; "brief": show details only with -v
    timeout: float | None = None
    confirm: str = "ask"  # "agree": answer yes if the command has agent_auto_confirm
    color: str = "auto"
    printed: str = "as it is"  # printed text stays on stdout; "result": it becomes the result


CALLER_PROFILES: dict[str, CallerProfile] = {
    "human": CallerProfile(),
    "ai_agent": CallerProfile(
        output="json",
        help="compact",
        errors="full",
        timeout=AGENT_TIMEOUT,
        confirm="agree",
        color="never",
        printed="result",
    ),
    "ci_cd": CallerProfile(output="json", help="plain", errors="full", color="never"),
    "container": CallerProfile(),
    "unknown_automation": CallerProfile(),
    "python_api": CallerProfile(),
}
"""The profile of each kind of caller."""


class Options(Record):
    """The framework options of a call, and facts that the command line adds.

    `core/options.py` describes the framework options.
    """

    yes: bool = False
    dry_run: bool = False
    validate: bool = False  # check the call, and run nothing
    no_input: bool = False
    quiet: bool = False
    verbose: int = 0
    detailed: bool | None = None  # None: only the first call of a session is detailed
    concise: bool = False  # leave out fields that are marked `Detail`
    interactive: bool = False  # a person is at the terminal: progress bars and prompts are shown
    is_machine_mode: bool = False  # stdout carries the result only
    stdin_consumed: bool = False  # stdin was read already, for `--input -` for example
    nul: bool = False  # items on stdin end with NUL instead of a newline
    result_options: ResultOptions | None = None  # filter, fields, paging, budgets
    timeout: float | None = None  # in seconds; the tool's own applies if it is shorter
    has_default_timeout: bool = False  # the timeout comes from a setting, not from the caller
    idempotency_key: str | None = None  # calls with the same key run once
    apply: str | None = None  # a plan token: run exactly that plan
    python_eval: str | None = None  # an expression about the result, which replaces it
    extra: Mapping[str, Any] | None = None  # options of core/options.py without a field here
    given: Mapping[str, Any] | None = None  # the options by name, as the caller gave them
    typed: TypedLine | None = None  # the command line, if there is one


class Problem(Record):
    """One error in the input of a call.

    `suggested_value` is a value that is probably right, or a tuple of all allowed values.
    `replacement` is what to write on the command line in place of an unknown option. `denial` is an
    error that is reported instead of all problems: the caller may not use the input.
    """

    code: str
    field: str | None
    message: str
    suggested_value: Any = None
    replacement: tuple[str, ...] = ()
    # The framework option that is probably meant, and its value.
    suggested_option: tuple[str, Any] | None = None
    denial: ToolError | None = None
    # True for an unknown option, if the next word of the command line may be its value.
    hides_value: bool = False


class SuggestedCall(Record):
    """A call that is suggested to the caller. Each interface shows it in its own form.

    `options` are framework options by name. `tool` is None if only the path of the command is
    known.
    """

    path: tuple[str, ...]
    arguments: Mapping[str, Any] | None
    options: Mapping[str, Any] = {}
    tool: Tool | None = None
    words: tuple[str, ...] = ()  # the command line without the program, if `tool` is None
    has_placeholders: bool = False  # a part of an argument is a placeholder


class Call(Record):
    """One request to run one tool.

    `warnings`, `meta` and `secrets` are filled while the call runs; all else is constant.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    caller: Caller
    warnings: list[str]
    options: Options = Options()
    policy: str = "standard"
    approved: bool = False
    # What the human who approved the call was shown: a digest for each part of the call.
    approved_parts: Mapping[str, str] | None = None
    problems: tuple[Problem, ...] = ()  # errors that the interface found in the input
    meta: dict[str, Any] | None = None
    peer: Peer | None = None  # the client, if the tool can talk to it during the call
    flow: RecordFlow | None = None  # filters and limits for the records of the result
    is_streamed: bool = False  # the items of the result are sent one by one, not as one document
    runner: Runner | None = None  # runs the function; None: it is called directly
    stop: StopSignal | None = None  # for a function that stops itself
    secrets: list[Any] | None = None  # values to remove from every output
    # Claims on approvals and plan tokens. They are used when the function starts.
    claims: tuple[SingleUseClaim, ...] = ()
    lifespan: Any = None  # what the lifespan yields that was opened for this call
    request: ServerRequest | None = None  # the request of a client to a server
    session_data: MutableMapping[str, Any] | None = None  # the values of `ctx.state`
    keeps_session: bool = False  # later calls see them
    is_from_script: bool = False  # a script calls the tool: `orchestrate run`


class RedactionPolicy(Record):
    """Redaction policy for output that has no Call."""

    policy: str = "standard"
    secrets: list[Any] | None = None
    caller: Caller = Caller("python")


class Runner:
    """A way to run a function: monitored, sandboxed or in a process of its own.

    Runners are nested: each runs `call.replace(runner=self.inner)`, and the innermost one calls
    the function. A stage replaces the call's runner with one that wraps it. Subclasses implement
    `run`, and `arun` unless they need a process of their own.
    """

    needs_own_process = False  # True if it must run in a process of its own
    kept_fds: tuple[int, ...] = ()  # file descriptors that the child process must not close

    def __init__(self, inner: Runner | None = None) -> None:
        self.inner = inner

    def process_started(self) -> None:
        """Called in the calling process after the process of its own has started."""

    def process_ended(self) -> None:
        """Called in the calling process after this process has ended. It may take some time."""

    def run(self, call: Call) -> Any:
        """Run the function and return its value, or an iterator of its items."""
        raise NotImplementedError

    async def arun(self, call: Call) -> object:
        """Run the function on an event loop; return its value or an async iterator of its items."""
        raise NotImplementedError


class Work(Record):
    """Work of a stage that may take long. A stage yields it, and the driver runs it.

    The async drivers run it in a thread, so that the event loop does not wait. The `yield` returns
    the Outcome of the work.
    """

    run: Callable[[], Outcome]


class Ok(Record):
    """The tool ran and returned this value."""

    value: Any

    def with_value(self, value: object) -> Outcome:
        """Return the outcome with another value."""
        return Ok(value)


class Failed(Record):
    """The tool failed or was not allowed to run."""

    error: ToolError
    has_started: bool = True  # False: the function did not start
    # The items that succeeded: those of a `Partial`, or those that a stream had before it failed.
    value: list[Any] | None = None

    def with_value(self, value: Any) -> Outcome:
        """Return the outcome with other items that succeeded."""
        return self.replace(value=value)


if TYPE_CHECKING:
    Outcome: TypeAlias = Ok | Failed

    StageRun: TypeAlias = Generator[Call | Work, Outcome, Outcome]
    """The generator that a stage returns for one call."""

    Stage: TypeAlias = Callable[[Call], StageRun]
    """One concern of a call: a generator function that yields the call to the next stage.

    The `yield` returns the Outcome of the next stages; the generator returns its own Outcome.
    Return before the `yield` to answer without running the tool. Raise a ToolError to reject the
    call.
    """

MAX_PRINTED_CHARS = 1 << 20
"""Maximum number of printed characters that become the result of a command."""

DEFAULT_OPTIONS = Options()
PYTHON_CALLER = Caller("python")
