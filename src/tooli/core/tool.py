"""Tool: everything that is known about one command. It is read once and never changes.

    function ── read_tool ──▶ Tool ── params ──▶ Param ── shape ──▶ Scalar | Choice | ListOf | …

Command line flags, schemas, documents and exports are derived from the shapes of the parameters,
so that a signature is inspected only once.
"""

from __future__ import annotations

from tooli.core import Record, find_loaded, plain_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from tooli.config.app_settings import AppSettings
    from tooli.core.catalog import Handoff
    from tooli.core.command_route import CommandRoute
    from tooli.core.docstring import Doc
    from tooli.core.protocols import JsonObject
    from tooli.pipeline.custom_stages import CustomStage
    from tooli.pipeline.lifespan import Lifespan
    from tooli.schema.described import SchemaCheck


class Missing:
    """The type of MISSING, which marks a parameter without a default."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


# ------------------------------------------------------------------ shapes


class Scalar(Record):
    """One str, int, float or bool."""

    type: type


SCALAR_SHAPES: dict[object, Scalar] = {t: Scalar(t) for t in (str, int, float, bool)}
"""The shapes of plain types, by type."""


class PathShape(Record):
    """One path; `type` is the class to construct."""

    type: type


class Choice(Record):
    """One of a few values: the members of an Enum or the values of a Literal."""

    values: tuple[Any, ...]
    enum: type | None = None

    @property
    def raw_values(self) -> list[Any]:
        """The values of a Literal, or the `value` of each member of an Enum."""
        return [c if self.enum is None else c.value for c in self.values]

    @property
    def labels(self) -> list[str]:
        """The values as they are typed on a command line."""
        return list(map(str, self.raw_values))


class ListOf(Record):
    """Any number of values of one shape, in a list, set, frozenset or tuple."""

    item: Shape
    container: type = list


class TupleOf(Record):
    """A tuple of fixed length, one shape for each position."""

    items: tuple[Shape, ...]


class Maybe(Record):
    """A shape, or None."""

    item: Shape


class ParsedText(Record):
    """One value that pydantic parses from text: a date, a UUID, a Decimal, a union."""

    annotation: Any


class Structured(Record):
    """An object with fields: a model, a dataclass, a TypedDict or a dict. Its text is JSON."""

    annotation: Any


class Injected(Record):
    """A parameter that tooli fills in: a "context", a "typer" context or a "dependency"."""

    kind: str


class TyperOnly(Record):
    """A type that only Typer supports: its open files and custom parsers."""

    annotation: Any


class Handle(Record):
    """A reference to a value: input to read, a secret, a file to write.

    The subclasses are in `tooli.inputs`. Each defines its parser, JSON Schema and help.
    """

    annotation: Any = None
    is_secret = False  # True: the value must not appear in any output
    expected_value = "a value"  # what it refers to
    expected_text, expected_json = "", "a value"  # valid values on a command line, and elsewhere
    metavar = ""  # placeholder in help: FILE, SECRET

    def parse(self, value: object, param: Param, is_cli_text: bool) -> object:
        """Return the handle for a value. `is_cli_text` is True if it comes from a command line."""
        raise NotImplementedError

    def default_when_missing(self, *, may_read_stdin: bool) -> object:
        """Return the value of a required parameter that is not given; MISSING if there is none."""
        return MISSING

    def schema(self, describe: Callable[[Any], JsonObject] | None = None) -> JsonObject:
        """Return the JSON Schema of the value. `describe` describes types that are not plain."""
        raise NotImplementedError


if TYPE_CHECKING:
    Shape: TypeAlias = (
        Scalar
        | PathShape
        | Choice
        | ListOf
        | TupleOf
        | Maybe
        | ParsedText
        | Structured
        | Injected
        | TyperOnly
        | Handle
    )


# ------------------------------------------------------------------ parameters


class Param(Record):
    """One parameter of a tool.

    `option_kwargs` holds the arguments of Option(…) or Argument(…) that are not defaults.
    """

    name: str
    shape: Shape
    annotation: Any
    kind: str  # "option" | "argument" | "injected"
    required: bool
    default: Any = MISSING
    flags: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    decls: tuple[str, ...] = ()  # the names given to Option(…)
    has_tooli_info: bool = False  # declared with tooli's Option or Argument, not with Typer's
    option_kwargs: Mapping[str, Any] = {}
    is_fast_path: bool = True  # False: only Typer can parse it
    exact_type: type | None = None  # a value of exactly this type needs no conversion
    has_valid_default: bool = False  # the default needs no conversion
    constraints: tuple[Any, ...] = ()  # from Annotated: Within, Identifier, …
    schema: Mapping[str, object] | None = None  # the declared schema; None: it follows from `shape`
    is_omittable: bool = False  # has no default: the function gets it only if the caller gives it

    @property
    def help(self) -> str | None:
        """The help text of Option(help=…) or Argument(help=…), without rich markup."""
        text = self.option_kwargs.get("help")
        return plain_text(text) if self.schema is None else text

    @property
    def hidden(self) -> bool:
        """True if `--help` does not show it."""
        return bool(self.option_kwargs.get("hidden"))

    @property
    def is_flag(self) -> bool:
        """True if it is an option without a value."""
        return self.kind == "option" and (
            bool(self.option_kwargs.get("count")) or is_bool(self.shape)
        )

    @property
    def is_multiple(self) -> bool:
        """True if it can be given more than once."""
        return isinstance(unwrap_optional(self.shape), ListOf)

    @property
    def is_choice(self) -> bool:
        """True if it takes one of a few values."""
        return isinstance(unwrap_optional(self.shape), Choice)

    @property
    def nargs(self) -> int:
        """The number of command line arguments that one value takes."""
        shape = unwrap_optional(self.shape)
        return len(shape.items) if isinstance(shape, TupleOf) else 1


def unwrap_optional(shape: Shape) -> Shape:
    """Return the shape without its Maybe."""
    return shape.item if isinstance(shape, Maybe) else shape


def item_shape(shape: Shape) -> Shape:
    """Return the shape of one value: without its Maybe and its ListOf."""
    shape = unwrap_optional(shape)
    return shape.item if isinstance(shape, ListOf) else shape


def is_bool(shape: Shape) -> bool:
    """True if the shape is a bool or an optional bool."""
    shape = unwrap_optional(shape)
    return isinstance(shape, Scalar) and shape.type is bool


def is_handle(shape: Shape) -> bool:
    """True if the shape is a handle, a list of handles, or a tuple with a handle."""
    shape = item_shape(shape)
    return any([isinstance(item, Handle) for item in getattr(shape, "items", (shape,))])


def is_path(shape: Shape) -> bool:
    """True if values of the shape name files."""
    shape = unwrap_optional(shape)
    if isinstance(shape, ListOf):
        return is_path(shape.item)
    if isinstance(shape, TupleOf):
        return any([is_path(item) for item in shape.items])
    return isinstance(shape, PathShape) or (isinstance(shape, Handle) and not shape.is_secret)


def is_structured(shape: Shape) -> bool:
    """True if the text of a value is JSON: an object or a list of objects."""
    return isinstance(item_shape(shape), Structured)


def has_handle(params: tuple[Param, ...]) -> bool:
    """True if there is a handle, or a list of handles, among the parameters."""
    return any([is_handle(param.shape) for param in params])


MAX_PROBLEMS = 50
"""Maximum number of problems that one input error lists."""
MAX_QUOTED_CHARS = 100
"""Maximum number of characters of a value that a message repeats."""
MAX_PATH_CHARS = 300
"""Maximum number of characters of a path to a part of an argument."""
MAX_MESSAGE_CHARS = 2000
"""Maximum number of characters in the message about one value."""


def quote(value: object) -> str:
    """Return the `repr` of a value for a message. A long one is cut."""
    if isinstance(value, str):
        if len(value) <= MAX_QUOTED_CHARS:
            return repr(value)
        if _may_be_redacted():
            return f"the text of {len(value)} characters"
        return f"{value[:MAX_QUOTED_CHARS]!r}… ({len(value)} characters)"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} with {len(value)} items"  # pyright: ignore[reportUnknownArgumentType]
    try:
        return cut_text(repr(value), MAX_QUOTED_CHARS)
    except ValueError:  # an integer with more digits than Python converts to text
        return "the number"


def cut_text(text: str, max_chars: int) -> str:
    """Return a text with at most `max_chars` characters; an ellipsis replaces the rest."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def join_path(*steps: str | int) -> str:
    """Return a path to a part of an argument, such as `user.tags.0`. Long names are cut."""
    names = [cut_text(str(step), MAX_QUOTED_CHARS) for step in steps[:MAX_PATH_CHARS]]
    return cut_text(".".join(names), MAX_PATH_CHARS)


def count_text(count: int, *, is_minimum: bool) -> str:
    """Return the end of a message about the first of several errors."""
    return f" (and {'at least ' if is_minimum else ''}{count - 1} more)" if count > 1 else ""


def cut_message(message: str) -> str:
    """Return a message with at most `MAX_MESSAGE_CHARS` characters."""
    if len(message) > MAX_MESSAGE_CHARS and _may_be_redacted():
        return "the value is not valid"
    return cut_text(message, MAX_MESSAGE_CHARS)


def _may_be_redacted() -> bool:
    """True if the call may have secrets. A part of a secret would not be found and redacted."""
    secrets = find_loaded("tooli.core.call_secrets", "call_secrets")
    return secrets is not None and secrets.get() is not None


class ConversionError(Exception):
    """A value that is not valid for its parameter.

    `location` is the path to the invalid part of the value. `suggested_value` is a value that is
    probably right. `other_errors` are further errors in the same value. `has_more` is True if the
    value may have more errors than that, because the conversion stopped at `MAX_PROBLEMS`.
    """

    def __init__(
        self,
        message: str,
        location: tuple[str | int, ...] = (),
        suggested_value: object = None,
        code: str = "E1003",
    ) -> None:
        message = cut_message(message)
        super().__init__(message)
        self.message = message
        self.location = location
        self.suggested_value = suggested_value
        self.code = code
        self.other_errors: Sequence[ConversionError] = ()
        self.has_more = False


MAX_PATH_BYTES, MAX_NAME_BYTES = 4096, 255
"""Maximum size of a path, and of a name in it. Linux has the same limits."""


def check_path_size(path: str) -> None:
    """Raise a ConversionError if a path is too long. Resolving it would take quadratic time."""
    if len(path) * 4 <= MAX_NAME_BYTES:
        return
    data = path.encode("utf-8", "replace")  # one byte for each undecodable byte
    if len(data) > MAX_PATH_BYTES:
        raise ConversionError(f"the path has {len(data)} bytes; the maximum is {MAX_PATH_BYTES}")
    longest = max([len(name) for name in data.replace(b"\\", b"/").split(b"/")])
    if longest > MAX_NAME_BYTES:
        raise ConversionError(
            f"the path has a name of {longest} bytes; the maximum is {MAX_NAME_BYTES}"
        )


def merge_errors(errors: Sequence[ConversionError], *, has_more: bool = False) -> ConversionError:
    """Return the first error, with the others in `other_errors`."""
    first = errors[0]
    first.other_errors = errors[1:]
    first.has_more = has_more
    return first


# ------------------------------------------------------------------ the tool


class Behavior(Record):
    """Side effects of a tool, as MCP's tool annotations. Combine several with `|`."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    def __or__(self, other: Behavior) -> Behavior:
        return Behavior(
            self.read_only or other.read_only,
            self.destructive or other.destructive,
            self.idempotent or other.idempotent,
            self.open_world or other.open_world,
        )

    def labels(self) -> tuple[str, ...]:
        """Return the names of the flags that are set: "read-only", "destructive"."""
        return tuple(
            name.replace("_", "-")
            for name in ("read_only", "idempotent", "destructive", "open_world")
            if getattr(self, name)
        )


class Guard(Record):
    """Access rules: who may run a tool, what it may access, and whether a human must approve."""

    scopes: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] = ()
    approval: bool = False
    human_in_the_loop: bool = False
    danger: str | None = None
    auto_confirm: bool = False  # confirmations are answered with yes for an agent
    isolation: str | None = None  # "required": run in a sandbox or not at all
    app_permissions: tuple[tuple[str, ...], ...] = ()  # `permissions=` of its app and those above
    policy: str = "off"  # the strictest `security_policy=` along its path
    apps: tuple[str, ...] = ()  # the names of the apps along its path, if there are several
    audience: tuple[str, ...] = ()  # only callers with one of these scopes see it; empty: all
    callers: tuple[str, ...] = ()  # "direct", "code" (scripts); empty: both

    @property
    def needs_human(self) -> bool:
        """True if a human must approve every call."""
        return self.approval or self.human_in_the_loop

    @property
    def may_need_approval(self) -> bool:
        """True if `--yes` may not be enough to run it."""
        return self.needs_human or self.danger in ("critical", "forbidden")


_READ_CAPABILITIES = frozenset(("fs:read", "net:read", "env:read", "none"))
_RISKY_LEVELS = frozenset(("medium", "high", "critical", "forbidden"))


def can_only_read(capabilities: Sequence[str]) -> bool:
    """True if none of the capabilities allows a change. An empty list declares nothing."""
    return all([":".join(c.split(":")[:2]) in _READ_CAPABILITIES for c in capabilities])


class Guidance(Record):
    """Information that helps an agent to choose a tool and the next step."""

    examples: tuple[Mapping[str, Any], ...] = ()
    when_to_use: str | None = None
    handoffs: tuple[Handoff, ...] = ()
    handoffs_resolved: bool = False  # True once each command is a catalog key
    problem: str | None = None  # an error in the definition; the command still runs
    delegation_hint: str | None = None
    error_codes: Mapping[str, str] = {}
    task_group: str | None = None
    versions: tuple[str, ...] = ()  # all versions of the command, if there are several
    sunset: str | None = None  # the date after which it is refused
    deprecated_version: str | None = None  # the version of the app that refuses it
    always_visible: bool = False  # listed even if the other tools are found by search
    may_return_next: bool = False  # it may return a `Next`
    may_return_partial: bool = False  # it may return a `Partial`
    summary: str | None = None  # replaces the first line of the docstring
    doc: Doc | None = None  # replaces the docstring: it is external text, without sections
    tags: tuple[str, ...] = ()
    output_schema: Mapping[str, object] | None = None  # replaces the generated schema
    mcp: Mapping[str, Any] = {}  # what MCP clients get as well: `title`, `icons` and `meta`
    pipe_input: str | Mapping[str, Any] | None = None  # replaces what the types say
    pipe_output: str | Mapping[str, Any] | None = None


class Limits(Record):
    """Timeout, page size, token limit, rate limit and cost hint."""

    timeout: float | None = None
    max_tokens: int | None = None
    cost_hint: str | None = None
    paginated: bool = False
    page_size: int | None = None  # records on a page, unless the caller sets a limit
    returns_page: bool = False  # it may return a `Page`
    rate_limit: str | None = None  # calls of one caller on a server: "10/minute"
    rate_counters: tuple[tuple[str, str], ...] = ()  # each rate, and the key of its counter
    stops_itself: bool = False  # the function stops at the deadline: it is not run in a process


DEFAULT_BEHAVIOR, DEFAULT_GUARD, DEFAULT_GUIDANCE, DEFAULT_LIMITS = (
    Behavior(),
    Guard(),
    Guidance(),
    Limits(),
)


class Tool(Record):
    """One command, as every interface sees it."""

    app: str
    path: tuple[str, ...]
    id: str  # app and path, as in `meta.tool`
    cli_path: tuple[str, ...]  # after the program name; empty if the app has one command
    fn: Callable[..., Any]
    params: tuple[Param, ...]
    param_names: frozenset[str]
    returns: Any = MISSING  # the return annotation, evaluated when it is needed
    is_streaming: bool = False  # produces its result item by item
    returns_printed_text: bool = False  # declares no result: printed text is the result
    version: str | None = None
    behavior: Behavior = DEFAULT_BEHAVIOR
    guard: Guard = DEFAULT_GUARD
    guidance: Guidance = DEFAULT_GUIDANCE
    limits: Limits = DEFAULT_LIMITS
    hidden: bool = False
    deprecated: bool | str = False
    help: str | None = None
    epilog: str | None = None  # the last text of the help
    is_fast_path: bool = True  # False: only Typer can parse its command line
    passes_arguments: bool = False  # takes arguments that it does not declare: `--json` is one
    input_model: tuple[str, type] | None = None  # `input_model=`: parameter name and model
    schema: Mapping[str, object] | None = None  # `input_schema=`: replaces the generated schema
    argument_check: SchemaCheck | None = None  # checks all arguments, by a JSON Schema
    has_handles: bool = False  # takes inputs, secrets or output files
    may_have_secrets: bool = False  # an argument may be a secret or contain one
    has_dependencies: bool = False  # has parameters with `Depends`
    needs_loop: bool = False  # a dependency is async
    lifespans: tuple[Lifespan, ...] = ()
    settings: tuple[AppSettings, ...] = ()
    custom_stages: tuple[CustomStage, ...] = ()  # added with `app.use`
    pre_validate: Callable[..., object] | None = None  # checks a call before it runs
    checked_params: tuple[str, ...] = ()  # their values have a method `pre_validate`
    route: CommandRoute | None = None  # Typer runs it, because of callbacks or custom classes
    is_provided: bool = False  # by a provider, so no command of the app loses its name to it

    @property
    def name(self) -> str:
        """The last part of its path: the command's own name."""
        return self.path[-1] if self.path else self.app

    @property
    def key(self) -> str:
        """Its key in the catalog: the path with dots, such as "users.create"."""
        return ".".join(self.path)

    @property
    def doc(self) -> Doc:
        """The parsed docstring, or the parsed `help=` that replaces it, without rich markup."""
        from tooli.core.docstring import docstring_of, read_docstring

        if self.guidance.doc is not None:
            return self.guidance.doc
        doc = read_docstring(docstring_of(self.fn) if self.help is None else self.help)
        if self.help is not None and not doc.params:
            doc = doc.replace(params=read_docstring(docstring_of(self.fn)).params)
        return doc.replace(summary=self.guidance.summary or doc.summary)

    @property
    def public_params(self) -> tuple[Param, ...]:
        """The parameters that callers can give, in order."""
        return tuple(p for p in self.params if p.kind != "injected")

    @property
    def command_params(self) -> tuple[Param, ...]:
        """The parameters that are typed after the command's name: without those of callbacks."""
        route = self.route
        return tuple(p for p in self.public_params if not (route and route.is_of_callback(p.name)))

    @property
    def effects(self) -> Behavior:
        """The effects that hosts and documents are told: never more harmless than the rules.

        Capabilities, approvals and danger correct `behavior`, which alone decides about `--yes`.
        """
        declared, guard = self.behavior, self.guard
        may_change = not can_only_read(guard.capabilities)
        is_risky = declared.destructive or guard.needs_human or guard.danger in _RISKY_LEVELS
        only_reads = declared.read_only or (bool(guard.capabilities) and not may_change)
        read_only = only_reads and not may_change and not is_risky
        return Behavior(
            read_only=read_only,
            destructive=may_change or is_risky or (guard.danger == "low" and not read_only),
            idempotent=declared.idempotent,
            open_world=declared.open_world or any([c[:4] == "net:" for c in guard.capabilities]),
        )

    def param(self, name: str) -> Param | None:
        """Return the parameter of that name, or None."""
        return next((p for p in self.params if p.name == name), None)

    def arguments_by_param(self, bound: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return bound arguments by parameter name: the fields of the model of `input_model=`."""
        if self.input_model is None:
            return bound
        model, names = bound[self.input_model[0]], [p.name for p in self.public_params]
        return {name: bound[name] if name in bound else getattr(model, name) for name in names}
