"""ResourceRunner: opens what a call needs before its function runs, and closes it afterwards.

    run  ─▶ open ─▶ function ─▶ value   ─▶ close
                            └─▶ stream ─▶ items … ─▶ close

What is opened last is closed first. An exception of the function is raised inside generators, so
that they can roll back. They cannot suppress it.
"""

from __future__ import annotations

from contextlib import (
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)

from tooli.core.call import Runner
from tooli.core.event_loop import iterate_async, run_awaitable
from tooli.pipeline import async_drivers
from tooli.pipeline.drivers import (
    aclose_stream,
    close_stream,
    code_flags,
    invoke,
    is_async,
    is_async_stream,
    is_stream,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from typing import Any

    from tooli.core.call import Call

_GENERATOR, _ASYNC_GENERATOR = 0x20, 0x200  # flags of a code object
_NO_ERROR = (None, None, None)


class ResourceRunner(Runner):
    """Runs a function with resources. Subclasses open them."""

    sees_errors = True  # False: the resources are closed as after a call without an error

    def needs_loop(self, call: Call) -> bool:
        """True if a resource is opened with async code."""
        raise NotImplementedError

    def open(self, call: Call, stack: ExitStack) -> Call:
        """Open the resources on a stack; return the call with them."""
        raise NotImplementedError

    async def aopen(self, call: Call, stack: AsyncExitStack) -> Call:
        """Open the resources from async code."""
        raise NotImplementedError

    def run(self, call: Call) -> Any:
        """Run the call and return its value, or an iterator of its items."""
        if self.needs_loop(call) or is_async(call.tool.fn):
            # one event loop for the resources and the function
            if call.tool.is_streaming:
                return iterate_async(self._astream(call))
            return run_awaitable(self.arun(call))
        stack = ExitStack()
        with _closed_on_error(stack, self.sees_errors):
            inner = self.open(call, stack)
            value: Any = invoke(inner.replace(runner=self.inner))
        if is_stream(value):
            return _iterate(value, stack, self.sees_errors)
        stack.close()
        return value

    async def arun(self, call: Call) -> Any:
        """Run the call on an event loop; return its value or an async iterator of its items."""
        stack = AsyncExitStack()
        async with _aclosed_on_error(stack, self.sees_errors):
            inner = await self.aopen(call, stack)
            value = await async_drivers.invoke(inner.replace(runner=self.inner))
        items = async_drivers.as_async_stream(value)
        if items is not None:
            return _aiterate(items, stack, self.sees_errors)
        await stack.aclose()
        return value

    async def _astream(self, call: Call) -> AsyncGenerator[Any]:
        items = await self.arun(call)
        if not is_async_stream(items):  # a plan, for example
            yield items
            return
        try:
            async for item in items:
                yield item
        finally:
            await aclose_stream(items)


@contextmanager
def _closed_on_error(stack: ExitStack, sees_errors: bool) -> Generator[None]:
    """Close a stack if an exception is raised, which no resource can suppress."""
    try:
        yield
    except BaseException as exc:
        stack.__exit__(*((type(exc), exc, exc.__traceback__) if sees_errors else _NO_ERROR))
        raise


@asynccontextmanager
async def _aclosed_on_error(stack: AsyncExitStack, sees_errors: bool) -> AsyncGenerator[None]:
    try:
        yield
    except BaseException as exc:
        await stack.__aexit__(*((type(exc), exc, exc.__traceback__) if sees_errors else _NO_ERROR))
        raise


def _iterate(items: Iterator[Any], stack: ExitStack, sees_errors: bool) -> Iterator[Any]:
    """Yield the items of a stream, then close it and the stack."""
    with _closed_on_error(stack, sees_errors):
        try:
            yield from items
        finally:
            close_stream(items)
    stack.close()


async def _aiterate(
    items: AsyncIterator[Any], stack: AsyncExitStack, sees_errors: bool
) -> AsyncGenerator[Any]:
    async with _aclosed_on_error(stack, sees_errors):
        try:
            async for item in items:
                yield item
        finally:
            await aclose_stream(items)
    await stack.aclose()


def as_context_manager(fn: Any, arguments: dict[str, Any]) -> Any:
    """Call a function; return the context manager of a generator, or the value in a tuple.

    The context manager of a generator function closes the generator.
    """
    flags = code_flags(fn) or code_flags(getattr(fn.__class__, "__call__", None))  # noqa: B004
    if flags & _ASYNC_GENERATOR:
        return asynccontextmanager(fn)(**arguments)
    if flags & _GENERATOR:
        return contextmanager(fn)(**arguments)
    return (fn(**arguments),)
