"""The call that is running in this context, for calls from Python and servers."""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Any, TypeVar

    from tooli.core.call import Call

    R = TypeVar("R")

current_call: ContextVar[Call | None] = ContextVar("tooli_call", default=None)
"""None outside of calls, and on the command line, where the process runs one call only."""


def iterate_within(call: Call, items: Generator[Any, None, R]) -> Generator[Any, None, R]:
    """Yield items, with the call set while they are produced; return their return value.

    Code that receives an item between two steps does not see the call.
    """
    try:
        while True:
            token = current_call.set(call)
            try:
                item = next(items)
            except StopIteration as end:
                return end.value
            finally:
                current_call.reset(token)
            yield item
    finally:
        items.close()


async def aiterate_within(call: Call, items: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """Yield the items of an async generator, with the call set while they are produced."""
    try:
        while True:
            token = current_call.set(call)
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            finally:
                current_call.reset(token)
            yield item
    finally:
        await items.aclose()
