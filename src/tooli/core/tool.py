"""Tool: everything the house knows about one function, read once, never changed.

    function ──reading──▶ Tool ── params ──▶ Param ── shape ──▶ Scalar | Choice | ListOf | …

Flags, schemas, documents and exports `match` on a Param's shape; nobody reads a
signature twice.
"""

from __future__ import annotations

import sys

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from tooli.core.handoffs import Handoff
    from tooli.pipeline.custom_stages import CustomStage
    from tooli.schema.docstring import Doc


class Missing:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


# ------------------------------------------------------------------ shapes


class Scalar(Record):
    """One str, int, float or bool."""

    type: type


SCALAR_SHAPES: dict[Any, Scalar] = {t: Scalar(t) for t in (str, int, float, bool)}
"""The shapes that need no thought."""


class PathShape(Record):
    """One path; the class is the one to make."""

    type: type


class Choice(Record):
    """One of a few values: an Enum's members or a Literal's words."""

    values: tuple[Any, ...]
    enum: type | None = None

    @property
    def labels(self) -> list[str]:
        """The words that its values are typed as."""
        values = self.values if self.enum is None else [choice.value for choice in self.values]
        return list(map(str, values))


class ListOf(Record):
    """Any number of one shape, gathered into a list, set, frozenset or tuple."""

    item: Shape
    container: type = list


class TupleOf(Record):
    """A fixed row of shapes."""

    items: tuple[Shape, ...]


class Maybe(Record):
    """A shape, or None."""

    item: Shape


class ParsedText(Record):
    """One value that pydantic reads from a piece of text: a date, a UUID, a Decimal, a union."""

    annotation: Any


class Structured(Record):
    """An object with parts: a model, a dataclass, a TypedDict, a dict. JSON text, @file, dots."""

    annotation: Any


class Injected(Record):
    """Not a parameter for callers: `context` is ours, `typer` is Typer's."""

    kind: str


class TyperOnly(Record):
    """Something only Typer understands: its open files, its custom parsers."""

    annotation: Any


class Handle(Record):
    """A way to a value, instead of the value: input to be read, a secret, a file to be written.

    What stands for it, in words and in JSON, is its own to say: see `tooli.inputs`.
    """

    annotation: Any = None
    is_secret = False  # what it leads to is shown to nobody

    def parse(self, value: Any, param: Param, is_cli_text: bool) -> Any:
        """The handle that a value names; `typed` is whether it stands on a command line."""
        raise NotImplementedError

    def default_when_missing(self, *, may_read_stdin: bool) -> Any:
        """What stands in for a value that must be given and was not; MISSING for nothing."""
        return MISSING

    def schema(self) -> dict[str, Any]:
        """What JSON may hold in its place."""
        raise NotImplementedError

    @property
    def expected_text(self) -> str:
        """What is to be given, in words."""
        raise NotImplementedError

    @property
    def metavar(self) -> str:
        """The same, as help has it."""
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

    `settings` holds what Option(…) or Argument(…) said beyond their defaults;
    `fast` is whether the light engine understands all of it.
    """

    name: str
    shape: Shape
    annotation: Any
    kind: str  # "option" | "argument" | "injected"
    required: bool
    default: Any = MISSING
    flags: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    decls: tuple[str, ...] = ()  # the names as Option(…) was given them
    has_tooli_info: bool = False  # Option or Argument were tooli's own, not Typer's
    settings: Mapping[str, Any] = {}
    is_fast_path: bool = True
    exact_type: type | None = None  # values of just this class need no fitting
    has_valid_default: bool = False  # the default may be used as it is
    constraints: tuple[Any, ...] = ()  # what Annotated says of its text: Within, Identifier, …

    @property
    def help(self) -> str | None:
        """What the author wrote in Option(help=…)."""
        return self.settings.get("help")

    @property
    def hidden(self) -> bool:
        """Whether people's help leaves it out."""
        return bool(self.settings.get("hidden"))

    @property
    def is_flag(self) -> bool:
        """Whether it is given by its name alone, without a value."""
        return self.kind == "option" and (bool(self.settings.get("count")) or is_bool(self.shape))

    @property
    def is_multiple(self) -> bool:
        """Whether it may be given more than once."""
        return isinstance(unwrap_optional(self.shape), ListOf)

    @property
    def is_choice(self) -> bool:
        """Whether it takes one of a few values."""
        return isinstance(unwrap_optional(self.shape), Choice)

    @property
    def nargs(self) -> int:
        """How many words one value takes."""
        shape = unwrap_optional(self.shape)
        return len(shape.items) if isinstance(shape, TupleOf) else 1


def unwrap_optional(shape: Shape) -> Shape:
    """The shape without the None that may stand in for it."""
    return shape.item if isinstance(shape, Maybe) else shape


def is_bool(shape: Shape) -> bool:
    """Whether it is a bool, or None."""
    shape = unwrap_optional(shape)
    return isinstance(shape, Scalar) and shape.type is bool


def is_handle(shape: Shape) -> bool:
    """Whether it is a way to a value, or a list of such."""
    shape = unwrap_optional(shape)
    return isinstance(shape.item if isinstance(shape, ListOf) else shape, Handle)


def is_path(shape: Shape) -> bool:
    """Whether it names files: a path, a way to what is in one, or several of such."""
    shape = unwrap_optional(shape)
    if isinstance(shape, ListOf):
        return is_path(shape.item)
    if isinstance(shape, TupleOf):
        return any([is_path(item) for item in shape.items])
    return isinstance(shape, PathShape) or (isinstance(shape, Handle) and not shape.is_secret)


def is_structured(shape: Shape) -> bool:
    """Whether its text is JSON: an object with parts, or a list of such."""
    shape = unwrap_optional(shape)
    if isinstance(shape, ListOf):
        return is_structured(shape.item)
    return isinstance(shape, Structured)


def has_handle(params: tuple[Param, ...]) -> bool:
    """True if there is a handle, or a list of handles, among the parameters."""
    return any([is_handle(param.shape) for param in params])


def may_contain_secret(params: tuple[Param, ...]) -> bool:
    """Whether a secret may be among the arguments: one by itself, or a part of something else."""
    if "tooli.inputs.secret" not in sys.modules:  # then nobody has one
        return False
    return any([is_structured(p.shape) or _is_secret(unwrap_optional(p.shape)) for p in params])


def _is_secret(shape: Shape) -> bool:
    shape = shape.item if isinstance(shape, ListOf) else shape
    return isinstance(shape, Handle) and shape.is_secret


# ------------------------------------------------------------------ the tool


class Behavior(Record):
    """What a tool does to the world. Combine with `|`."""

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
        """The behaviours that hold, as documents name them."""
        return tuple(
            name.replace("_", "-")
            for name in ("read_only", "idempotent", "destructive", "open_world")
            if getattr(self, name)
        )


class Guard(Record):
    """Who may run a tool, what it may touch, and whether a human is asked."""

    scopes: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] = ()
    approval: bool = False
    human_in_the_loop: bool = False
    danger: str | None = None
    auto_confirm: bool = False  # its questions are harmless: an agent's answer is yes
    isolation: str | None = None  # "required": held by the kernel, or not run at all
    app_permissions: tuple[
        tuple[str, ...], ...
    ] = ()  # what its apps let their commands touch at most

    @property
    def needs_human(self) -> bool:
        """Whether no flag runs it: a human has to agree."""
        return self.approval or self.human_in_the_loop

    @property
    def may_need_approval(self) -> bool:
        """Whether more than a `--yes` may stand before it."""
        return self.needs_human or self.danger in ("critical", "forbidden")


GUARD_KEYWORDS = (
    *("auth", "capabilities", "requires_approval", "human_in_the_loop", "danger_level"),
    *("agent_auto_confirm", "isolation"),
)
"""What an author says about guarding a command: where none of it is said, nothing is read."""


class Guidance(Record):
    """What helps an agent to choose a tool and to go on from it."""

    examples: tuple[Mapping[str, Any], ...] = ()
    when_to_use: str | None = None
    handoffs: tuple[Handoff, ...] = ()
    handoffs_resolved: bool = False  # True once each names a command of the app
    problem: str | None = None  # an error in the definition that leaves the command usable
    delegation_hint: str | None = None
    error_codes: Mapping[str, str] = {}
    task_group: str | None = None
    always_visible: bool = False  # shown even where tools are found by searching
    may_return_next: bool = False  # its result may say what to run next


class Limits(Record):
    """How long, how much, how dear."""

    timeout: float | None = None
    max_tokens: int | None = None
    cost_hint: str | None = None
    paginated: bool = False
    page_size: int | None = None  # records on a page, where nobody says how many
    returns_page: bool = False  # it may return a `Page`: it pages at the source
    rate_limit: str | None = None  # how often one caller may run it where many come in: "10/minute"


DEFAULT_BEHAVIOR, DEFAULT_GUARD, DEFAULT_GUIDANCE, DEFAULT_LIMITS = (
    Behavior(),
    Guard(),
    Guidance(),
    Limits(),
)


class Tool(Record):
    """One function, as every door sees it."""

    app: str
    path: tuple[str, ...]
    id: str  # app and path: what `meta.tool` says
    cli_path: tuple[str, ...]  # what is typed after the program: nothing where it is the only one
    fn: Callable[..., Any]
    params: tuple[Param, ...]
    param_names: frozenset[str]
    returns: Any = MISSING  # the return annotation, evaluated when it is needed
    is_streaming: bool = False  # gives its result item by item
    returns_printed_text: bool = False  # declares no result: what it prints is what it says
    version: str | None = None
    behavior: Behavior = DEFAULT_BEHAVIOR
    guard: Guard = DEFAULT_GUARD
    guidance: Guidance = DEFAULT_GUIDANCE
    limits: Limits = DEFAULT_LIMITS
    hidden: bool = False
    deprecated: bool | str = False
    help: str | None = None
    is_fast_path: bool = True  # the light engine may run it
    input_model: tuple[str, Any] | None = None  # the parameter that takes all others as one model
    schema: Mapping[str, Any] | None = None  # what the author wants said about the arguments
    has_handles: bool = (
        False  # takes input, secrets or output files: something is to open and close
    )
    may_have_secrets: bool = False  # a secret may be among its arguments
    custom_stages: tuple[CustomStage, ...] = ()  # those that its apps add with `app.use`

    @property
    def name(self) -> str:
        """The command as it is typed: the last part of its path."""
        return self.path[-1] if self.path else self.app

    @property
    def key(self) -> str:
        """Its name in the catalogue: the whole path, dotted."""
        return ".".join(self.path)

    @property
    def doc(self) -> Doc:
        """Its docstring, or the help that the author gave instead, read into parts."""
        from tooli.schema.docstring import read_docstring

        text = getattr(self.fn, "func", self.fn).__doc__
        if self.help is None:
            return read_docstring(text)
        parsed = read_docstring(self.help)
        if not parsed.params:
            parsed.params.update(read_docstring(text).params)
        return parsed

    @property
    def public_params(self) -> tuple[Param, ...]:
        """The parameters that callers give, in order."""
        return tuple(p for p in self.params if p.kind != "injected")

    def param(self, name: str) -> Param | None:
        """The parameter of that name."""
        for param in self.params:
            if param.name == name:
                return param
        return None
