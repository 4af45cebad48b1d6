"""The Python door: `app.call(…)` and its kin. The same checks as every door; never exits."""

from __future__ import annotations

from sys import modules
from time import perf_counter

from tooli.core._hot_tables import PYTHON_OPTIONS
from tooli.core.call import DEFAULT_OPTIONS, PYTHON_CALLER, Call, Caller, Failed
from tooli.pipeline.drivers import ONLY_BIND
from tooli.pipeline.option_values import build_options
from tooli.pipeline.prepared_call import PreparedCall

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping
    from typing import Any

    from tooli.core.call import Outcome, Stage
    from tooli.pipeline.result import TooliResult


class PythonSurface:
    """An app's tools as Python calls, with options set once for all of them."""

    __slots__ = ("_app", "_caller", "_options", "_state")

    def __init__(self, app: Any, options: Mapping[str, Any], caller: str | None = None) -> None:
        self._app = app
        self._state = app._state
        if not self._state.policy_resolved:
            from tooli.config.security_settings import apply_security_policy

            apply_security_policy(self._state)
        self._options = options
        self._caller = (
            PYTHON_CALLER if caller is None else Caller("python", caller, maybe_agent=True)
        )

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool; what became of it."""
        return self.run(tool_name, arguments)

    def run(self, name: str, arguments: dict[str, Any]) -> TooliResult[Any]:
        """The same, with the arguments in a dict."""
        return self._prepare(name, arguments).result()

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """The same from async code: coroutines on this loop, other functions in a thread."""
        return await self._prepare(tool_name, arguments).aresult()

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """A tool's items as it makes them; raises the ToolError where it fails."""
        return self._prepare(tool_name, arguments).items()

    def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """The same, in async code."""
        return self._prepare(tool_name, arguments).aitems()

    def _prepare(self, name: str, arguments: dict[str, Any]) -> PreparedCall:
        started = perf_counter()
        state = self._state
        cached = state.prepared_tools.get(name)
        if cached is None:
            tool = self._app.find(name)
            if tool is None:
                return PreparedCall(*_unknown_tool_call(self._app, name, self._caller), started)
            cached = state.prepared_tools[name] = (
                tool,
                self._app.stages_for(tool, DEFAULT_OPTIONS),
            )
        tool, stages = cached
        problem = tool.guidance.problem
        warnings = [problem] if problem is not None else []
        recorder = modules.get("tooli.pipeline.dry_run_recorder")
        is_dry_run = (
            recorder is not None and recorder.is_dry_run_active() and not tool.behavior.read_only
        )
        if is_dry_run or self._options or not arguments.keys() <= tool.param_names:
            option_values = dict(self._options)
            for key in PYTHON_OPTIONS.intersection(arguments) - tool.param_names:
                option_values[key] = arguments.pop(key)
            if is_dry_run:  # what a rehearsed function calls is rehearsed, too
                option_values["dry_run"] = True
            if option_values:
                options, problems = build_options(option_values)
                call = Call(tool, arguments, self._caller, warnings, options, state.policy, meta={})
                call = call.replace(problems=problems, secrets=[])
                return PreparedCall(call, self._app.stages_for(tool, options), started)
        call = Call(tool, arguments, self._caller, warnings, DEFAULT_OPTIONS, state.policy)
        if stages is not ONLY_BIND:
            call = call.replace(meta={}, secrets=[])
        return PreparedCall(call, stages, started)


def _unknown_tool_call(app: Any, name: str, caller: Caller) -> tuple[Call, tuple[Stage, ...]]:
    """A call that is refused because no tool has that name."""
    from tooli.serving.dispatcher import make_toolless_call, unknown_tool_error

    def refuse(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        return Failed(unknown_tool_error(app, name))

    return make_toolless_call(app, caller), (refuse,)


class ToolAccessor:
    """`app.find_files`: the tool as a function that returns a TooliResult."""

    def __init__(self, app: Any, key: str) -> None:
        tool = app.find(key)
        self._app, self._key, self._tool = app, key, tool
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
        return self._app.call(self._key, **arguments)


class GroupAccessor:
    """`app.users`: the tools of a group, as attributes."""

    def __init__(self, app: Any, path: tuple[str, ...], group: Any) -> None:
        self._app, self._path, self._group = app, path, group

    def __getattr__(self, name: str) -> Any:
        found = find_accessor(self._app, self._path, self._group, name)
        if found is None:
            raise AttributeError(f"{'.'.join(self._path)} has no command {name!r}")
        return found


def find_accessor(
    app: Any, path: tuple[str, ...], group: Any, name: str
) -> ToolAccessor | GroupAccessor | None:
    """What an attribute name means at a place in the tree: a tool, a group, or nothing."""
    for candidate in (name, name.replace("_", "-")):
        if candidate in group.commands:
            return ToolAccessor(app, ".".join((*path, candidate)))
        if candidate in group.groups:
            return GroupAccessor(app, (*path, candidate), group.groups[candidate])
    return None
