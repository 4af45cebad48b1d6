"""The caller of the call that is running in this context, for calls from Python and servers."""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Any, TypeVar

    from tooli.core.call import Caller

    R = TypeVar("R")

current_caller: ContextVar[Caller | None] = ContextVar("tooli_caller", default=None)
"""None outside of calls, and on the command line, where the environment identifies the caller."""


def iterate_as(caller: Caller, items: Generator[Any, None, R]) -> Generator[Any, None, R]:
    """Yield items, with the caller set while they are produced; return their return value.

    Code that receives an item between two steps does not see the caller.
    """
    try:
        while True:
            token = current_caller.set(caller)
            try:
                item = next(items)
            except StopIteration as end:
                return end.value
            finally:
                current_caller.reset(token)
            yield item
    finally:
        items.close()


async def aiterate_as(caller: Caller, items: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """Yield the items of an async generator, with the caller set while they are produced."""
    try:
        while True:
            token = current_caller.set(caller)
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            finally:
                current_caller.reset(token)
            yield item
    finally:
        await items.aclose()
