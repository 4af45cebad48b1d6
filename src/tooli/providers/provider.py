"""Provider: where tools come from, and the functions that make the tools of a provider.

    class Weather(Provider):
        name = "weather"

        def tools(self):
            yield described_tool("forecast", self.forecast, input_schema={…}, annotations=ReadOnly)

    app.add_provider(Weather(), namespace="weather")

A tool is a name, a JSON Schema, and a callable that takes a dict. It becomes an ordinary `Tool`:
interfaces, stages and documents do not know where it comes from.

Texts of external sources are untrusted. Control sequences and invisible characters are removed, and
the length is limited. A tool whose source says nothing about its effects counts as destructive and
open-world.
"""

from __future__ import annotations

from tooli.core.definitions import (
    check_command_options,
    read_guard,
    read_guidance,
    read_limits,
    with_end,
)
from tooli.core.docstring import Doc
from tooli.core.tool import Behavior, Injected, Param, Tool
from tooli.errors import DefinitionError
from tooli.pipeline.drivers import CO_ASYNC_GENERATOR, CO_COROUTINE, is_async
from tooli.schema.described import (
    JsonSchemaType,
    checked_output,
    checked_schema,
    clean_text,
    make_check,
    read_params,
)
from tooli.schema.tool_reader import read_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from typing_extensions import Unpack

    from tooli.core.protocols import CommandOptions

UNKNOWN_EFFECTS = Behavior(destructive=True, open_world=True)
"""The behavior of a tool whose source says nothing about its effects."""

MAX_NAME_CHARS = 200
_CONTEXT_NAME = "tooli_context"
_CO_GENERATOR = 0x20


class Provider:
    """A source of tools. Subclass it, set `name`, and write `tools`.

    tooli calls `tools` when a tool of the provider is first needed: by a call, a list or a help
    text. An app that only runs its own commands never calls it.
    """

    name: str = ""
    description: str = ""  # the help of the group that `namespace=` creates

    def tools(self) -> Iterable[Tool]:
        """Return the tools. An exception is reported, and hides no tool of another provider."""
        raise NotImplementedError

    @property
    def problems(self) -> Mapping[str, str]:
        """What `tools` has left out, and why: a broken file, an invalid schema. It is reported."""
        return {}

    def check(self) -> None:
        """Raise an error if the source does not work now. The command `doctor` calls it.

        A provider whose list of tools is kept somewhere asks its source here.
        """

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever the tools have changed, from any thread. Must return at once.

        Only servers call this. After `changed`, tooli calls `tools` again and replaces all tools of
        the provider at once; MCP clients get one `list_changed`.
        """

    def close(self) -> None:
        """Release what the provider holds. It is called when the process ends."""


class LocalProvider(Provider):
    """A provider of typed functions: the same tools as `@app.command()` registers.

    math = LocalProvider("math")

    @math.tool(annotations=ReadOnly)
    def add(a: int, b: int) -> int: …
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._tools: list[Tool] = []
        self._changed: list[Callable[[], None]] = []

    def tool(
        self, name: str | None = None, **options: Unpack[CommandOptions]
    ) -> Callable[[Any], Any]:
        """Register a function. Takes the keywords of `@app.command()`; returns the function."""

        def register(fn: Any) -> Any:
            self._tools.append(function_tool(fn, name, **options))
            for changed in self._changed:
                changed()
            return fn

        return register

    def tools(self) -> Iterable[Tool]:
        """Return the tools of the registered functions."""
        return list(self._tools)

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when a function is registered."""
        self._changed.append(changed)


# ------------------------------------------------------------------ tools of typed functions


def function_tool(
    fn: Callable[..., object], name: str | None = None, **options: Unpack[CommandOptions]
) -> Tool:
    """Return the tool of a typed function. Takes the keywords of `@app.command()`."""
    check_command_options("function_tool", options)
    options = with_end(options)
    command_name = name or getattr(fn, "__name__", "").lower().replace("_", "-")
    return read_tool(fn, app="", path=tool_path(command_name), kwargs=options)


def tool_path(name: str | Sequence[str]) -> tuple[str, ...]:
    """Return the path of a tool: its groups and its name, each a word of a command line.

    Raises DefinitionError if a part has no letter or digit.
    """
    parts = name.split(".") if isinstance(name, str) else list(name)
    words = tuple([_command_word(part) for part in parts])
    if not words or not all(words):
        raise DefinitionError(f"{str(name)[:80]!r} is not a name of a tool")
    return words


def _command_word(part: str) -> str:
    kept = [c if c.isascii() and (c.isalnum() or c in "_-") else " " for c in clean_text(part)]
    return "-".join("".join(kept).split()).strip("-")[:MAX_NAME_CHARS]


# ------------------------------------------------------------------ described tools


def described_tool(
    name: str | Sequence[str],
    call: Callable[..., object],
    *,
    input_schema: Mapping[str, object] | None = None,
    output_schema: Mapping[str, object] | None = None,
    description: str = "",
    annotations: Behavior | None = None,
    positional: Sequence[str] = (),
    fill_defaults: bool = False,
    stops_itself: bool | None = None,
    **options: Unpack[CommandOptions],  # pyright: ignore[reportGeneralTypeIssues]  three are above
) -> Tool:
    """Return a tool that a JSON Schema describes.

    `call` gets the arguments as a dict: `call(arguments)`. If it takes two parameters, the second
    one gets the `Context`. It may be async or a generator. It returns a JSON value, and raises the
    errors of `tooli.errors`. docs/providers.md has examples.

    Args:
        name: The name. Dots, or several words in a list, put the tool into groups.
        call: The function that runs the tool.
        input_schema: The JSON Schema of the arguments, an object. It is published unchanged.
        output_schema: The JSON Schema of the result.
        description: What the tool does. The first line is its summary.
        annotations: The effects. Without them, the tool is destructive and open-world.
        positional: The properties that are positional arguments on a command line.
        fill_defaults: Pass the defaults of the schema. Otherwise they are only documented, and a
            property that the caller leaves out is left out of the dict.
        stops_itself: The function stops at the deadline, by `ctx.remaining_time()` or
            `ctx.on_stop(…)`. It runs in this process, so that its connections work. Without it, a
            function with a timeout runs in a copy of the process, which is killed. The default is
            True for async functions, which are cancelled.
        options: Other keywords of `@app.command()`: tags, timeout, title, version, deprecated, …
    """
    check_command_options("described_tool", options)
    options = with_end(options)
    path = tool_path(name)
    key = ".".join(path)
    schema = checked_schema(input_schema, key)
    params = read_params(schema, positional, fill_defaults=fill_defaults)
    tool = _make_tool(path, call, params, options)
    results = tool.guidance.output_schema if output_schema is None else output_schema
    guidance = tool.guidance.replace(
        doc=make_doc(description, tool.guidance.summary),
        output_schema=None if results is None else checked_output(results, key),
    )
    stops_itself = is_async(tool.fn) if stops_itself is None else stops_itself
    tool.fn.__doc__ = clean_text(description).strip()
    return tool.replace(
        behavior=UNKNOWN_EFFECTS if annotations is None else annotations,
        guidance=guidance,
        limits=tool.limits.replace(stops_itself=stops_itself),
        schema=schema,
        argument_check=make_check(schema, params, key),
    )


def _make_tool(
    path: tuple[str, ...],
    call: Callable[..., object],
    params: tuple[Param, ...],
    options: CommandOptions,
) -> Tool:
    """Return a tool with the keywords of its command, but without its schemas."""
    flags = _code_flags(call)
    context_name = _find_context_name(params) if _takes_context(call) else None
    fn = _make_function(call, path[-1], flags, context_name, params)
    if context_name is not None:
        params = (*params, Param(context_name, Injected("context"), None, "injected", False))
    return Tool(
        app="",
        path=path,
        id=".".join(path),
        cli_path=path,
        fn=fn,
        params=params,
        param_names=frozenset([p.name for p in params if p.kind != "injected"]),
        is_streaming=bool(flags & (_CO_GENERATOR | CO_ASYNC_GENERATOR)),
        version=options.get("version"),
        guard=read_guard(options),
        guidance=read_guidance(options, False),
        limits=read_limits(options, False),
        hidden=bool(options.get("hidden")),
        deprecated=options.get("deprecated") or False,
    )


def make_doc(description: str, summary: str | None) -> Doc:
    """Return the words of a source as documentation. They have no sections."""
    first, _, rest = clean_text(description).strip().partition("\n")
    return Doc(summary or first.strip(), rest.strip("\n"), {}, "", {}, "")


def hinted_behavior(
    hints: Mapping[str, object] | None, *, trusted: bool = False, declared: Behavior | None = None
) -> Behavior:
    """Return the effects of a tool from the MCP annotations (`readOnlyHint`, …) of its source.

    A source that is `trusted` decides itself; what it does not say is destructive and open-world.
    The hints of other sources count only where they tighten `declared`, which is what the author of
    the app says, and else destructive and open-world.
    """
    hints = hints or {}
    says_read_only, says_destructive = hints.get("readOnlyHint"), hints.get("destructiveHint")
    if trusted and declared is None:
        read_only = says_read_only is True
        return Behavior(
            read_only=read_only,
            destructive=not read_only and says_destructive is not False,
            idempotent=hints.get("idempotentHint") is True,
            open_world=hints.get("openWorldHint") is not False,
        )
    base = UNKNOWN_EFFECTS if declared is None else declared
    is_destructive = bool(says_destructive) and says_read_only is not True
    return Behavior(
        read_only=base.read_only and not is_destructive and says_read_only is not False,
        destructive=base.destructive or is_destructive,
        idempotent=base.idempotent and hints.get("idempotentHint") is not False,
        open_world=base.open_world or bool(hints.get("openWorldHint")),
    )


def _code_flags(call: object) -> int:
    function: Any = getattr(call, "func", call)  # of a partial
    if not hasattr(function, "__code__"):
        function = type(function).__call__  # of an object with `__call__`
    return getattr(getattr(function, "__code__", None), "co_flags", 0)


def _takes_context(call: Callable[..., object]) -> bool:
    """True if a function takes a second positional parameter."""
    import inspect

    try:
        params = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    return len(required) == 2 or (len(positional) >= 2 and positional[1].name in _CONTEXT_WORDS)


_CONTEXT_WORDS = ("ctx", "context")


def _find_context_name(params: Sequence[Param]) -> str:
    """Return a name for the context that no property of the schema has."""
    names, found = {param.name for param in params}, _CONTEXT_NAME
    while found in names:
        found += "_"
    return found


def _make_function(
    call: Callable[..., Any],
    name: str,
    flags: int,
    context_name: str | None,
    params: Sequence[Param],
) -> Callable[..., Any]:
    """Return the function of a tool, which takes the arguments by name, and passes on a dict."""
    numbers = [p.name for p in params if (p.schema or {}).get("type") == "number"]

    def pack(given: dict[str, Any]) -> tuple[Any, ...]:
        context = None if context_name is None else given.pop(context_name, None)
        for number in numbers:  # 3 is converted to 3.0; JSON does not distinguish them
            value = given.get(number)
            if type(value) is float and value.is_integer() and abs(value) < 2**53:
                given[number] = int(value)
        return (given,) if context_name is None else (given, context)

    def run(**given: Any) -> Any:
        return call(*pack(given))

    async def arun(**given: Any) -> Any:
        return await call(*pack(given))

    def stream(**given: Any) -> Any:
        yield from call(*pack(given))

    async def astream(**given: Any) -> Any:
        async for item in call(*pack(given)):
            yield item

    fn: Any = run
    if flags & CO_ASYNC_GENERATOR:
        fn = astream
    elif flags & CO_COROUTINE:
        fn = arun
    elif flags & _CO_GENERATOR:
        fn = stream
    fn.__name__ = fn.__qualname__ = name.replace("-", "_")
    fn.__module__ = getattr(call, "__module__", None) or __name__
    fn.__annotations__ = {"return": JsonSchemaType({})}
    return fn
