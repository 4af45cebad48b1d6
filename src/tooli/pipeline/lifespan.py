"""Lifespan: what a process needs once, opened before its calls and closed at its end.

    server       ─▶ LifespanTask.start ─▶ all calls ─▶ LifespanTask.stop
    Python       ─▶ with app.lifespan_context(): all calls
    command line ─▶ LifespanRunner: opened for one call, if nothing has opened it

The value that the function yields is `ctx.lifespan`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from contextvars import Context as ContextVariables
from typing import cast

from tooli.errors import InternalError
from tooli.pipeline.context import update_context
from tooli.pipeline.drivers import code_flags
from tooli.pipeline.resource_runner import ResourceRunner, as_context_manager

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from tooli.core import AppState
    from tooli.core.call import Call
    from tooli.core.protocols import App

_ASYNC_GENERATOR = 0x200  # flag of a code object


class Lifespan:
    """The lifespan of one app: a function that yields once."""

    def __init__(self, fn: Callable[..., Any], app: object) -> None:
        self.fn = fn
        self._app = app
        self.is_open = False  # True: opened for all calls of this process
        self.value: Any = None

    def enter(self) -> Any:
        """Call the function; return its context manager, sync or async."""
        code = getattr(getattr(self.fn, "__wrapped__", self.fn), "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        found: Any = as_context_manager(self.fn, {names[0]: self._app} if names else {})
        if isinstance(found, tuple):  # of a function with @contextmanager
            (found,) = cast("tuple[Any]", found)
        if not (hasattr(found, "__enter__") or hasattr(found, "__aenter__")):
            name = getattr(self.fn, "__name__", repr(self.fn))
            raise InternalError(f"The lifespan {name} must yield, or return a context manager.")
        return found

    @property
    def is_async(self) -> bool:
        """True if it has to be opened on an event loop."""
        inner = getattr(self.fn, "__wrapped__", self.fn)
        return bool(code_flags(inner) & _ASYNC_GENERATOR)


def set_lifespan(app: App, fn: Callable[..., Any]) -> None:
    """Set the lifespan of an app."""
    app._state.lifespan = Lifespan(fn, app)
    app._state.invalidate()


def find_lifespans(state: AppState) -> list[Lifespan]:
    """Return the lifespans of an app and of the apps that were added to it, the outermost first."""
    found = [] if state.lifespan is None else [state.lifespan]
    for app, _ in state.groups:
        inner: AppState | None = vars(app).get("_state")
        if inner is not None:
            found += [item for item in find_lifespans(inner) if item not in found]
    return found


# ------------------------------------------------------------------ one call


class LifespanRunner(ResourceRunner):
    """Runs a function after the lifespans of its apps are opened, for this call only."""

    sees_errors = False  # a lifespan does not see the errors of calls, as on a server

    def needs_loop(self, call: Call) -> bool:
        """True if a lifespan is async."""
        return any([lifespan.is_async for lifespan in call.tool.lifespans])

    def open(self, call: Call, stack: ExitStack) -> Call:
        """Open the lifespans that are not open."""
        values = [
            lifespan.value if lifespan.is_open else stack.enter_context(lifespan.enter())
            for lifespan in call.tool.lifespans
        ]
        return _with_value(call, values[-1])

    async def aopen(self, call: Call, stack: AsyncExitStack) -> Call:
        """Open the lifespans that are not open, from async code."""
        value = None
        for lifespan in call.tool.lifespans:
            value = lifespan.value if lifespan.is_open else await _aenter(lifespan, stack)
        return _with_value(call, value)


async def _aenter(lifespan: Lifespan, stack: AsyncExitStack) -> Any:
    manager = lifespan.enter()
    if hasattr(manager, "__aenter__"):
        return await stack.enter_async_context(manager)
    return stack.enter_context(manager)


def _with_value(call: Call, value: object) -> Call:
    changed = call.replace(lifespan=value)
    return changed.replace(arguments=update_context(call.arguments, lifespan=value))


# ------------------------------------------------------------------ a process


class LifespanContext:
    """A context manager in which the lifespans of an app are open for all calls of this process."""

    def __init__(self, state: AppState) -> None:
        self._lifespans = find_lifespans(state)
        self._stack: ExitStack | None = None
        self._async_stack: AsyncExitStack | None = None

    def __enter__(self) -> None:
        lifespans = self._closed()
        if any([lifespan.is_async for lifespan in lifespans]):
            raise InternalError("The lifespan is async: use `async with app.lifespan_context()`.")
        self._stack = ExitStack()
        try:
            for lifespan in lifespans:
                lifespan.value = self._stack.enter_context(lifespan.enter())
                lifespan.is_open = True
                self._stack.callback(_mark_closed, lifespan)
        except BaseException:
            self._stack.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._stack is not None
        self._stack.__exit__(kind, exc, trace)

    async def __aenter__(self) -> None:
        self._async_stack = AsyncExitStack()
        try:
            for lifespan in self._closed():
                lifespan.value = await _aenter(lifespan, self._async_stack)
                lifespan.is_open = True
                self._async_stack.callback(_mark_closed, lifespan)
        except BaseException:
            await self._async_stack.aclose()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._async_stack is not None
        await self._async_stack.__aexit__(kind, exc, trace)

    def _closed(self) -> list[Lifespan]:
        """Return the lifespans that are not open: a server in the same process may have them."""
        return [lifespan for lifespan in self._lifespans if not lifespan.is_open]


def _mark_closed(lifespan: Lifespan) -> None:
    lifespan.is_open, lifespan.value = False, None


class LifespanTask:
    """Keeps the lifespans of an app open on an event loop, in a task of its own.

    Task groups and timeouts must be closed by the task that opened them. A server whose event loop
    ends without a shutdown cancels the task, which closes the lifespans as well.
    """

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._stop: asyncio.Event | None = None

    async def start(self) -> None:
        """Open the lifespans, if they are not open on this event loop. Raises what they raise."""
        loop, task = asyncio.get_running_loop(), self._task
        if task is None or task.done() or task.get_loop() is not loop:
            if not find_lifespans(self._state):
                return
            self._started, self._stop = loop.create_future(), asyncio.Event()
            # the task outlives the request that starts it, so it gets a context of its own
            coroutine = self._run(self._started, self._stop)
            self._task = ContextVariables().run(loop.create_task, coroutine)
        assert self._started is not None
        await asyncio.shield(self._started)

    async def _run(self, started: asyncio.Future[None], stop: asyncio.Event) -> None:
        context = LifespanContext(self._state)
        try:
            await context.__aenter__()
        except BaseException as exc:
            if not started.done():
                started.set_exception(exc)
            return
        try:
            started.set_result(None)
            await stop.wait()
        finally:
            await context.__aexit__(None, None, None)

    async def stop(self) -> None:
        """Close the lifespans, if they are open on this event loop. Raises what they raise."""
        task, self._task = self._task, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            assert self._stop is not None
            self._stop.set()
            await task
