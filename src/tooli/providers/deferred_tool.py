"""DeferredTool: a tool whose parameters and schemas are read when they are first needed.

A document may describe thousands of operations, of which a call needs one. The name, the summary
and the rules of a deferred tool are known. The first access to another field loads all of them.
"""

from __future__ import annotations

from tooli.core.definitions import (
    check_command_options,
    read_guard,
    read_guidance,
    read_limits,
    with_end,
)
from tooli.core.tool import Guidance, Tool
from tooli.providers.provider import UNKNOWN_EFFECTS, make_doc, tool_path
from tooli.schema.described import clean_text, read_params

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar

    from typing_extensions import Unpack

    from tooli.core import Record
    from tooli.core.protocols import CommandOptions, JsonObject
    from tooli.core.tool import Behavior, Param

    _Base = Record
else:
    _Base = object


class _Deferred(_Base):
    """A record that reads some of its fields from another one, on first access."""

    __slots__ = ()
    plain_class: ClassVar[Any]
    deferred_fields: ClassVar[frozenset[str]]

    def __init__(self, load: Callable[[], Any], fields: dict[str, Any]) -> None:
        set_field = object.__setattr__
        set_field(self, "load", load)
        for name, value in fields.items():
            set_field(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Load the fields that are not set."""
        if name not in self.deferred_fields:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        loaded: Any = object.__getattribute__(self, "load")()
        for field in self.deferred_fields:
            object.__setattr__(self, field, getattr(loaded, field))
        return object.__getattribute__(self, name)

    def replace(self, **changes: Any) -> Any:
        """Return a copy with some fields changed. It is deferred as well, if that is possible."""
        names: Sequence[str] = self.plain_class.__match_args__
        if not self.deferred_fields.isdisjoint(changes):
            return self.plain_class(**{name: getattr(self, name) for name in names} | changes)
        known = {name: getattr(self, name) for name in names if name not in self.deferred_fields}
        return type(self)(object.__getattribute__(self, "load"), known | changes)

    def __reduce__(self) -> Any:
        names: Sequence[str] = self.plain_class.__match_args__
        return self.plain_class, tuple([getattr(self, name) for name in names])


class _ToolLoader:
    """Loads a tool once."""

    def __init__(
        self, load: Callable[[], Tool], outline: Callable[[], JsonObject | None] | None
    ) -> None:
        self._load = load
        self._outline = outline
        self._tool: Tool | None = None

    def __call__(self) -> Tool:
        """Return the tool."""
        if self._tool is None:
            self._tool = self._load()
        return self._tool

    def outline_params(self) -> tuple[Param, ...] | None:
        """Return the parameters of an outline, if the tool is not loaded and has a valid one."""
        schema = self._outline() if self._outline is not None and self._tool is None else None
        return None if schema is None else read_params(schema, ())


class DeferredTool(_Deferred, Tool):
    """A tool whose parameters and schemas are read when they are first needed."""

    load: _ToolLoader  # pyright: ignore[reportGeneralTypeIssues]  `__init__` sets it
    __init__ = _Deferred.__init__
    plain_class = Tool
    deferred_fields = frozenset(
        (
            *("params", "param_names", "schema", "argument_check"),
            *("has_handles", "may_have_secrets"),
        )
    )

    @property
    def signature_params(self) -> Sequence[Param]:
        """The parameters for a signature, without the inner parts of their schemas."""
        loader: _ToolLoader = object.__getattribute__(self, "load")
        found = loader.outline_params()
        return self.public_params if found is None else found


class DeferredGuidance(_Deferred, Guidance):
    """The guidance of a deferred tool: the schema of its result is read when it is needed."""

    load: Callable[[], Guidance]  # pyright: ignore[reportGeneralTypeIssues]
    __init__ = _Deferred.__init__
    plain_class = Guidance
    deferred_fields = frozenset(("output_schema",))


def deferred_tool(
    name: str | Sequence[str],
    load: Callable[[], Tool],
    *,
    outline: Callable[[], JsonObject | None] | None = None,
    description: str = "",
    annotations: Behavior | None = None,
    stops_itself: bool = False,
    returns_page: bool = False,
    **options: Unpack[CommandOptions],  # pyright: ignore[reportGeneralTypeIssues]  two are above
) -> Tool:
    """Return a tool whose parameters and schemas `load` returns when they are first needed.

    `load` returns a tool of `described_tool`, is called once, and must not fail. `outline` returns
    the schema of the arguments for the signature in a list, if that is faster. The other keywords
    are those of `described_tool`; `returns_page=True` is for a function that returns a `Page`.
    """
    check_command_options("deferred_tool", options)
    options = with_end(options)
    path = tool_path(name)
    load_once = _ToolLoader(load, outline)

    def run(**given: Any) -> Any:
        return load_once().fn(**given)

    run.__name__ = run.__qualname__ = path[-1].replace("-", "_")
    run.__module__ = load.__module__
    run.__doc__ = clean_text(description).strip()
    declared = read_guidance(options, False)
    guidance = {field: getattr(declared, field) for field in Guidance.__match_args__}
    del guidance["output_schema"]
    guidance["doc"] = make_doc(description, declared.summary)
    fields: dict[str, Any] = {
        **_TOOL_DEFAULTS,
        "app": "",
        "path": path,
        "id": ".".join(path),
        "cli_path": path,
        "fn": run,
        "version": options.get("version"),
        "behavior": UNKNOWN_EFFECTS if annotations is None else annotations,
        "guard": read_guard(options),
        "guidance": DeferredGuidance(lambda: load_once().guidance, guidance),
        "limits": read_limits(options, returns_page).replace(stops_itself=stops_itself),
        "hidden": bool(options.get("hidden")),
        "deprecated": options.get("deprecated") or False,
    }
    return DeferredTool(load_once, fields)


def _read_defaults() -> dict[str, Any]:
    plain = Tool("", (), "", (), _read_defaults, (), frozenset())
    names: Sequence[str] = Tool.__match_args__
    return {n: getattr(plain, n) for n in names if n not in DeferredTool.deferred_fields}


_TOOL_DEFAULTS = _read_defaults()
