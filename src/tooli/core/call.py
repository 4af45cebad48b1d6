"""Call and Outcome: the only two things that travel through the pipeline."""

from __future__ import annotations

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any, TypeAlias

    from tooli.core.peer import Peer
    from tooli.core.tool import Tool
    from tooli.errors import ToolError
    from tooli.pipeline.single_use_claims import SingleUseClaim
    from tooli.records.record_flow import RecordFlow
    from tooli.records.result_options import ResultOptions


class Caller(Record):
    """Who is asking, through which door, and how they would type a command."""

    surface: str  # "cli" | "python" | "mcp" | "http"
    name: str | None = None
    version: str | None = None
    session: str | None = None
    scopes: frozenset[str] = frozenset()
    prog: tuple[str, ...] | None = None  # None: the app's name
    category: str | None = None  # what kind of caller it seems to be, where that was looked into
    maybe_agent: bool = (
        False  # a model may have made the values up: they are looked at more closely
    )
    principal: str | None = None  # who it is, where a token that was verified says so
    address: str | None = None  # where a request came from; None: no network, it is this machine's

    @property
    def owns_process(self) -> bool:
        """True if the process exists for this call only: a command line."""
        return self.surface == "cli"

    @property
    def is_remote(self) -> bool:
        """True if another program calls through a server (MCP, HTTP)."""
        return self.surface in ("mcp", "http")

    @property
    def is_in_process(self) -> bool:
        """True if Python code in this process calls."""
        return self.surface == "python"

    @property
    def can_prompt(self) -> bool:
        """True if the caller may be asked on the terminal of this process."""
        return self.owns_process

    @property
    def gets_printed_text(self) -> bool:
        """True if the text that a command prints is part of the answer."""
        return not self.is_in_process

    @property
    def uses_environment_token(self) -> bool:
        """True if the caller is identified by the environment of this process."""
        return self.surface in ("cli", "mcp") and self.address is None


class Options(Record):
    """What a caller asks of the framework, not of the tool."""

    yes: bool = False
    dry_run: bool = False
    no_input: bool = False
    quiet: bool = False
    verbose: int = 0
    detailed: bool | None = None  # None: not said, so the first call of a session is detailed
    concise: bool = False  # without what the output schema calls details
    interactive: bool = False  # a person watches: progress bars and questions make sense
    is_machine_mode: bool = False  # stdout belongs to the answer
    stdin_consumed: bool = False  # stdin was read for something else than an input of the tool
    nul: bool = False  # items on stdin end with NUL, not with a newline
    result_options: ResultOptions | None = None  # how much of the result, and which part of it
    timeout: float | None = None  # seconds; the shorter one holds, this or the tool's own
    has_default_timeout: bool = False  # nobody typed that timeout: it is set somewhere
    idempotency_key: str | None = None  # the same key runs the same call once
    apply: str | None = None  # the token of a plan: run exactly that
    extra: Mapping[str, Any] | None = None  # options of core/options.py without a field here


class Problem(Record):
    """One thing wrong with the input of a call; `meant` is what would probably fit instead."""

    code: str
    field: str | None
    message: str
    suggested_value: Any = None


class Call(Record):
    """One request to run one tool.

    `warnings` is the one thing that fills while the call runs: it ends up in `meta`.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    caller: Caller
    warnings: list[str]
    options: Options = Options()
    policy: str = "standard"
    approved: bool = False
    problems: tuple[Problem, ...] = ()  # what the door itself found wrong
    meta: dict[str, Any] | None = None
    peer: Peer | None = None  # the client, where it can be talked to meanwhile
    flow: RecordFlow | None = None  # the way of its records outward, where anything is done to them
    runner: Runner | None = None  # what runs the function, where it is not simply called
    secrets: list[Any] | None = None  # what enters as one, where a tool takes any: none leaves
    claims: tuple[SingleUseClaim, ...] = ()  # what its run uses up


class RedactionPolicy(Record):
    """On what terms an answer goes out, where the call that it answers is not at hand."""

    policy: str = "standard"
    secrets: list[Any] | None = None
    caller: Caller = Caller("python")


class Runner:
    """A way to run a function: under watch, behind walls, in a process of its own.

    Runners stand inside one another: each runs `call.replace(runner=self.inner)`, and the
    innermost one the function. A stage puts one around what is there already, and waits for
    nothing: all work is in these two methods.
    """

    needs_own_process = False  # it has to be run in a process of its own
    kept_fds: tuple[int, ...] = ()  # descriptors that this process talks through

    def __init__(self, inner: Runner | None = None) -> None:
        self.inner = inner

    def run(self, call: Call) -> Any:
        """What the function gives: its value, or an iterator of its items."""
        raise NotImplementedError

    async def arun(self, call: Call) -> Any:
        """The same on an event loop: its value, or an async iterator of its items."""
        raise NotImplementedError


class Ok(Record):
    """The tool ran, and this is what it gave."""

    value: Any


class Failed(Record):
    """The tool did not run, or broke."""

    error: ToolError
    has_started: bool = True  # False: it was refused before the function did anything


if TYPE_CHECKING:
    Outcome: TypeAlias = Ok | Failed

    Stage: TypeAlias = Callable[[Call], Generator[Call, Outcome, Outcome]]
    """One concern around a call: look, `yield` the call onward, look again.

    Return before the `yield` to answer without running the tool; raise a
    `ToolError` to refuse.
    """

MAX_PRINTED_CHARS = 1 << 20
"""How many characters of what a command prints become its result."""

DEFAULT_OPTIONS = Options()
PYTHON_CALLER = Caller("python")
