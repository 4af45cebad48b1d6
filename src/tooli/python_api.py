"""The Python interface: `app.call(…)`, `app.acall(…)`, `app.stream(…)` and `app.find_files(…)`.

Calls run through the same stages as on every other interface. They return a TooliResult and never
exit the process.
"""

from __future__ import annotations

import os
from time import perf_counter

from tooli.config import load_security_settings
from tooli.core import find_loaded
from tooli.core._hot_tables import CALL_OPTIONS
from tooli.core.call import DEFAULT_OPTIONS, PYTHON_CALLER, Call, Caller, Failed
from tooli.core.current_call import current_call
from tooli.core.placeholder_call import make_placeholder_call
from tooli.detect import category_of, sanitize_value
from tooli.errors import DefinitionError, ToolError
from tooli.pipeline.drivers import ONLY_BIND
from tooli.pipeline.prepared_call import PreparedCall
from tooli.serving.dispatcher import unknown_tool_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping
    from types import ModuleType
    from typing import Any

    from typing_extensions import Unpack

    from tooli.core.call import Outcome
    from tooli.core.peer import Peer
    from tooli.core.protocols import App, JsonObject, ScriptOptions, SurfaceOptions
    from tooli.core.tool import Tool
    from tooli.pipeline.prepared_call import TooliResult
    from tooli.providers import CommandGroup

SURFACE_KEYWORDS = ("caller", "sampler", "on_event")
"""Keywords of `app.options` that are not options of a call."""

PYTHON_OPTIONS = frozenset(
    [name for name, (_, interfaces) in CALL_OPTIONS.items() if "python" in interfaces]
)
"""Options that are keywords in Python."""
SURFACE_OPTIONS = PYTHON_OPTIONS.union(SURFACE_KEYWORDS)

# Looking up a variable in os.environ takes a fifth of the time of a call; its dict is fast.
_environment: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
_encode_name: Callable[[str], Any] = getattr(os.environ, "encodekey", str)
_CALLER_VARIABLE, _SESSION_VARIABLE = map(_encode_name, ("TOOLI_CALLER", "TOOLI_SESSION_ID"))


class PythonSurface:
    """Calls the tools of an app from Python, with framework options that apply to each call."""

    __slots__ = (
        *("_app", "_caller_name", "_on_event", "_options", "_sampler", "_session_data", "_state"),
        "_given_options",
    )

    def __init__(self, app: App, options: SurfaceOptions) -> None:
        self._app = app
        self._state = app._state
        self._given_options = options
        load_security_settings(self._state)
        self._caller_name = caller = options.get("caller")
        self._sampler, self._on_event = options.get("sampler"), options.get("on_event")
        self._options = {k: v for k, v in options.items() if k not in SURFACE_KEYWORDS}
        self._session_data: dict[str, Any] = self._state.session_data if caller is None else {}

    @property
    def commands(self) -> GroupAccessor:
        """The commands of the app as attributes: `app.options(yes=True).commands.drop()`."""
        return GroupAccessor(self, (), self._app.tree())

    def __getattr__(self, name: str) -> ToolAccessor | GroupAccessor:
        found = None if name[:1] == "_" else find_accessor(self, (), self._app.tree(), name)
        if found is None:
            raise AttributeError(f"{self._state.name} has no command {name!r}")
        return found

    def _identify_caller(self) -> Caller:
        """Return the caller: the one that `options(caller=…)` names, or the environment."""
        name = self._caller_name or sanitize_value(os.environ.get("TOOLI_CALLER"))
        version = None if self._caller_name else os.environ.get("TOOLI_CALLER_VERSION")
        session = sanitize_value(os.environ.get("TOOLI_SESSION_ID"))
        if name is None and session is None:
            return PYTHON_CALLER
        is_agent = name is not None and category_of(name) == "ai_agent"
        return Caller("python", name, sanitize_value(version), session, maybe_agent=is_agent)

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool. Never raises: a failure is in the result."""
        return self.call_with(tool_name, arguments)

    def call_with(self, name: str, arguments: dict[str, Any]) -> TooliResult[Any]:
        """Run a tool with its arguments in a dict."""
        return self._prepare(name, arguments).result()

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool from async code. Coroutines run on this event loop, functions in a thread."""
        return await self._prepare(tool_name, arguments).aresult()

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """Iterate over a tool's items as it produces them. Raises the ToolError if it fails."""
        return self._prepare(tool_name, arguments).items()

    def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Iterate over a tool's items in async code. Raises the ToolError if it fails."""
        return self._prepare(tool_name, arguments).aitems()

    def validate(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Check a call and run nothing. Never raises: the errors are in the result."""
        surface = PythonSurface(self._app, {**self._given_options, "validate": True})
        return surface.call_with(tool_name, arguments)

    def list_resources(self) -> list[JsonObject]:
        """Return the descriptions of the resources: their URIs or URI templates."""
        return _served_functions().list_resources(self._app)

    def list_prompts(self) -> list[JsonObject]:
        """Return the descriptions of the prompts: their names and arguments."""
        return _served_functions().list_prompts(self._app)

    def read_resource(self, uri: str) -> TooliResult[Any]:
        """Read a resource. Never raises: a failure is in the result."""
        return self._prepare_resource(uri).result()

    async def aread_resource(self, uri: str) -> TooliResult[Any]:
        """Read a resource from async code."""
        return await self._prepare_resource(uri).aresult()

    def get_prompt(self, prompt_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Fill in a prompt. Never raises: a failure is in the result."""
        return self._prepare_prompt(prompt_name, arguments).result()

    async def aget_prompt(self, prompt_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Fill in a prompt from async code."""
        return await self._prepare_prompt(prompt_name, arguments).aresult()

    def _prepare_resource(self, uri: str) -> PreparedCall:
        served = _served_functions()
        return self._prepare_served(lambda: served.resource_call(self._app, uri, served.is_any))

    def _prepare_prompt(self, name: str, arguments: dict[str, Any]) -> PreparedCall:
        served = _served_functions()
        return self._prepare_served(
            lambda: (served.prompt_request(self._app, name, served.is_any), arguments)
        )

    def _prepare_served(self, find: Callable[[], tuple[Tool, dict[str, Any]]]) -> PreparedCall:
        """Return the call of a resource or a prompt."""
        started = perf_counter()
        try:
            tool, arguments = find()
        except ToolError as error:
            return self._failing_call(error)
        return self._prepare_with(tool, arguments, {**self._options}, started)

    def orchestrate(self, code: str, /, **options: Unpack[ScriptOptions]) -> TooliResult[Any]:
        """Run a Python script that calls the tools. Never raises: a failure is in the result."""
        return self._prepare_script(code, options).result()

    async def aorchestrate(
        self, code: str, /, **options: Unpack[ScriptOptions]
    ) -> TooliResult[Any]:
        """Run a Python script that calls the tools, from async code."""
        return await self._prepare_script(code, options).aresult()

    def _prepare_script(self, code: str, options: ScriptOptions) -> PreparedCall:
        from tooli.orchestrate.run_tool import make_run_tool

        started = perf_counter()
        tool = make_run_tool(self._app)
        arguments: dict[str, Any] = {"code": code, **options}
        option_values: dict[str, Any] = {**self._options}
        for key in PYTHON_OPTIONS.intersection(arguments) - tool.param_names:
            option_values[key] = arguments.pop(key)
        is_active = find_loaded("tooli.pipeline.dry_run_recorder", "is_dry_run_active")
        if is_active is not None and is_active():
            option_values["dry_run"] = True
        return self._prepare_with(tool, arguments, option_values, started)

    def _prepare_with(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        option_values: dict[str, Any],
        started: float,
    ) -> PreparedCall:
        """Return a call with framework options."""
        from tooli.records.call_options import build_options

        options, problems = build_options(option_values)
        fields = self._session_fields()
        caller = self._identify_caller()
        peer = self._make_peer()
        call = Call(tool, arguments, caller, [], options, problems=problems, peer=peer, **fields)
        return PreparedCall(*self._app.prepare(call), started)

    def _make_peer(self) -> Peer | None:
        """Return the calling code as a client, if it answers questions or gets events."""
        if self._sampler is None and self._on_event is None:
            return None
        from tooli.core.sampling import CallbackPeer

        return CallbackPeer(self._sampler, self._on_event)

    def _prepare(self, name: str, arguments: dict[str, object]) -> PreparedCall:
        started = perf_counter()
        state = self._state
        session = self._session_fields()
        cached = state.prepared_tools.get(name)
        if cached is None:
            try:
                tool = self._app.find(name)
            except DefinitionError as error:
                return self._failing_call(error.to_tool_error())
            if tool is None:
                return self._failing_call(unknown_tool_error(self._app, name, arguments))
            stages = self._app.stages_for(tool, DEFAULT_OPTIONS)  # reads the settings
            fills_meta = any([param.kind == "injected" for param in tool.params])
            cached = state.prepared_tools[name] = (state.restrict(tool), stages, fills_meta)
        tool, stages, fills_meta = cached
        is_active = find_loaded("tooli.pipeline.dry_run_recorder", "is_dry_run_active")
        is_dry_run = is_active is not None and is_active() and not tool.behavior.read_only
        if (
            is_dry_run
            or self._options
            or not arguments.keys() <= tool.param_names
            or self._caller_name is not None
            or self._sampler is not None
            or self._on_event is not None
            or _CALLER_VARIABLE in _environment
            or _SESSION_VARIABLE in _environment
        ):
            caller = self._identify_caller()
            option_values: dict[str, Any] = {**self._options}
            for key in PYTHON_OPTIONS.intersection(arguments) - tool.param_names:
                option_values[key] = arguments.pop(key)
            if is_dry_run:  # a call within a dry run is a dry run as well
                option_values["dry_run"] = True
            has_peer = self._sampler is not None or self._on_event is not None
            if option_values or has_peer or caller is not PYTHON_CALLER:
                return self._prepare_with(tool, arguments, option_values, started)
        problem = tool.guidance.problem
        warnings = [problem] if problem is not None else []
        policy = state.effective_policy(tool)
        call = Call(tool, arguments, PYTHON_CALLER, warnings, DEFAULT_OPTIONS, policy, **session)
        if stages is not ONLY_BIND:
            call = call.replace(meta={}, secrets=[])
        elif fills_meta:
            call = call.replace(meta={})
        return PreparedCall(call, stages, started)

    def _session_fields(self) -> dict[str, Any]:
        """Return the fields of a call for `ctx.state`.

        A call inside a request of a client has values of its own: clients must not share them.
        """
        outer = current_call.get()
        is_kept = outer is None or not outer.caller.is_remote
        return {"session_data": self._session_data if is_kept else {}, "keeps_session": is_kept}

    def _failing_call(self, error: ToolError) -> PreparedCall:
        """Return a call that has no tool and fails with the error."""

        def fail(call: Call) -> Generator[Call, Outcome, Outcome]:
            yield from ()
            return Failed(error)

        call = make_placeholder_call(self._app._state, self._identify_caller())
        return PreparedCall(call, (fail,), perf_counter())


def _served_functions() -> ModuleType:
    """Return the module for resources and prompts, which most programs do not need."""
    from tooli.serving import served_functions

    return served_functions


class ToolAccessor:
    """A tool as a function that returns a TooliResult: `app.find_files("*.py")`."""

    def __init__(self, surface: PythonSurface, key: str) -> None:
        tool = surface._app.find(key)
        assert tool is not None
        self._surface, self._key, self._tool = surface, key, tool
        self.__doc__ = tool.fn.__doc__
        self.__wrapped__ = tool.fn
        self.__name__ = getattr(tool.fn, "__name__", key)

    def __call__(self, *args: Any, **arguments: Any) -> TooliResult[Any]:
        public = [param.name for param in self._tool.public_params]
        if len(args) > len(public):
            raise TypeError(f"{self._key}() takes {len(public)} arguments, {len(args)} given")
        for name, value in zip(public, args, strict=False):
            if name in arguments:
                raise TypeError(f"{self._key}() got {name!r} twice")
            arguments[name] = value
        return self._surface.call_with(self._key, arguments)


class GroupAccessor:
    """A group of tools as attributes: `app.users.create("Ada")`."""

    def __init__(self, surface: PythonSurface, path: tuple[str, ...], group: CommandGroup) -> None:
        self._surface, self._path, self._group = surface, path, group

    def __getattr__(self, name: str) -> ToolAccessor | GroupAccessor:
        found = find_accessor(self._surface, self._path, self._group, name)
        if found is None:
            owner = ".".join(self._path) or self._group.state.name
            raise AttributeError(f"{owner} has no command {name!r}")
        return found

    def __dir__(self) -> list[str]:
        return sorted([name.replace("-", "_") for name in self._group.names])


def find_accessor(
    surface: PythonSurface, path: tuple[str, ...], group: CommandGroup, name: str
) -> ToolAccessor | GroupAccessor | None:
    """Return the accessor of a tool or group by attribute name, or None."""
    for candidate in (name, name.replace("_", "-")):
        if candidate in group.commands:
            return ToolAccessor(surface, ".".join((*path, candidate)))
        if candidate in group.groups:
            return GroupAccessor(surface, (*path, candidate), group.groups[candidate])
    return None
