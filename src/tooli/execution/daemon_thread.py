"""call_in_daemon_thread: await a function that may block forever.

The threads of `asyncio.to_thread` are few, and a process that ends waits for them. A function that
opens a pipe without a writer would occupy one of them, and the process would never end.
"""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")
    A = TypeVar("A")


async def call_in_daemon_thread(fn: Callable[[A], T], argument: A) -> T:
    """Call a function in a thread of its own, with the context variables of the caller.

    If the awaiting task is cancelled, the thread is abandoned.
    """
    from asyncio import get_running_loop  # the caller has imported it

    loop = get_running_loop()
    future: Future[T] = loop.create_future()
    context = copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():  # cancelled
            return
        if error is None:
            future.set_result(value)  # pyright: ignore[reportArgumentType]
        else:
            future.set_exception(error)

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(fn, argument)
        except BaseException as failure:
            error = failure
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    Thread(target=run, name="tooli-input", daemon=True).start()
    return await future
