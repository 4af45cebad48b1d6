"""Make the dependencies of a call: the parameters with `Depends`."""

from __future__ import annotations

import asyncio
from typing import cast

from tooli.core.tool import Injected
from tooli.errors import InternalError
from tooli.pipeline.context import Context, typer_context
from tooli.pipeline.drivers import code_flags, is_awaitable
from tooli.pipeline.resource_runner import ResourceRunner, as_context_manager
from tooli.schema.dependencies import read_dependency
from tooli.schema.tool_reader import read_params

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from contextlib import AsyncExitStack, ExitStack
    from typing import Any

    from tooli.core.call import Call, Runner, Stage, StageRun
    from tooli.core.depends import Dependency
    from tooli.core.tool import Param
    from tooli.pipeline import StageContext

    Made = dict[Any, Any]
    Steps = Generator[tuple[Any, dict[str, Any]], Any, Any]

_DEPENDENCY = Injected("dependency")
_ASYNC_FLAGS = 0x80 | 0x200  # of the code of coroutine functions and async generator functions


def inject_dependencies(context: StageContext) -> Stage:
    """Make the dependencies of a call where its function runs, and close them afterwards."""
    state = context.state

    def inject(call: Call) -> StageRun:
        for settings in call.tool.settings:
            settings.prepare()  # in this process: the function may run in another one
        if not call.tool.has_dependencies:
            return (yield call)
        overrides = state.dependency_overrides
        for _, dependency in _dependencies(call.tool.params):
            if dependency.is_settings and dependency.fn not in overrides:
                find_settings(call, dependency.fn)  # if it is wrong, nothing else is made
        return (yield call.replace(runner=DependencyRunner(overrides, call.runner)))

    return inject


class DependencyRunner(ResourceRunner):
    """Runs a function with its dependencies."""

    def __init__(
        self, overrides: Mapping[Callable[..., Any], Callable[..., Any]], inner: Runner | None
    ) -> None:
        super().__init__(inner)
        self._overrides = overrides

    def needs_loop(self, call: Call) -> bool:
        """True if a dependency is async."""
        return any([self._overridden(dep).is_async for _, dep in _dependencies(call.tool.params)])

    def open(self, call: Call, stack: ExitStack) -> Call:
        """Make the dependencies."""
        steps = self._make_all(call)
        try:
            fn, arguments = next(steps)
            while True:
                made = as_context_manager(fn, arguments)
                is_value = isinstance(made, tuple)  # otherwise it is a context manager
                fn, arguments = steps.send(made[0] if is_value else stack.enter_context(made))
        except StopIteration as end:
            return end.value

    async def aopen(self, call: Call, stack: AsyncExitStack) -> Call:
        """Make the dependencies. Functions that are not async run in a thread."""
        steps = self._make_all(call)
        try:
            fn, arguments = next(steps)
            while True:
                fn, arguments = steps.send(await self._amake(fn, arguments, stack))
        except StopIteration as end:
            return end.value

    async def _amake(self, fn: Any, arguments: dict[str, Any], stack: AsyncExitStack) -> Any:
        if code_flags(fn) & _ASYNC_FLAGS:
            made: Any = as_context_manager(fn, arguments)
        else:
            made = await asyncio.to_thread(as_context_manager, fn, arguments)
        if isinstance(made, tuple):
            (value,) = cast("tuple[Any]", made)
            return await value if is_awaitable(value) else value
        if hasattr(made, "__aenter__"):
            return await stack.enter_async_context(made)
        value = await asyncio.to_thread(made.__enter__)

        async def leave(*details: Any) -> None:
            await asyncio.to_thread(made.__exit__, *details)

        stack.push_async_exit(leave)
        return value

    def _make_all(self, call: Call) -> Steps:
        """Yield each function to call with its arguments; return the call with the results."""
        made: Made = {}
        arguments = dict(call.arguments)
        for name, dependency in _dependencies(call.tool.params):
            arguments[name] = yield from self._make(dependency, call, made)
        return call.replace(arguments=arguments)

    def _make(self, wanted: Dependency, call: Call, made: Made) -> Steps:
        dependency = self._overridden(wanted)
        if wanted.use_cache and dependency.fn in made:
            return made[dependency.fn]
        if dependency.is_settings:
            return find_settings(call, dependency.fn)
        arguments: dict[str, Any] = {}
        for param in dependency.params:
            if param.shape == _DEPENDENCY:
                arguments[param.name] = yield from self._make(param.annotation, call, made)
            elif param.kind == "injected":
                is_context = param.shape == Injected("context")
                arguments[param.name] = Context(call) if is_context else typer_context(call)
        value = yield dependency.fn, arguments
        made[dependency.fn] = value
        return value

    def _overridden(self, dependency: Dependency) -> Dependency:
        fn = self._overrides.get(dependency.fn) if self._overrides else None
        return dependency if fn is None else read_dependency(fn, read_params)


def find_settings(call: Call, cls: Any) -> Any:
    """Return the settings object of a class; raise an InputError if it cannot be made."""
    for settings in call.tool.settings:
        if settings.cls is cls:
            return settings.value()
    name = getattr(cls, "__name__", repr(cls))
    raise InternalError(f"{name} is not the settings class of {call.tool.app}.")


def _dependencies(params: Iterable[Param]) -> list[tuple[str, Dependency]]:
    return [(param.name, param.annotation) for param in params if param.shape == _DEPENDENCY]
