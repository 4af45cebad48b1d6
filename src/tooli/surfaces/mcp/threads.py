"""Threads: where the calls of ordinary functions run, beside the event loop that serves them.

Not asyncio's pool: a few calls that wait for a human would fill it, and one that never ends
would keep the process from ending.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from threading import Thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST = 256
"""How many calls run at the same time; the next one waits for a place."""


class Threads:
    """A thread for each call, as long as there is a place for one."""

    def __init__(self, most: int = MOST) -> None:
        self._places = asyncio.Semaphore(most)

    async def run(self, work: Callable[[], Any]) -> Any:
        """The result of the work; who stops waiting for it does not stop it."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, failure: BaseException | None) -> None:
            self._places.release()
            if done.done():  # nobody waits for it any more
                return
            if failure is None:
                done.set_result(result)
            else:
                done.set_exception(failure)

        def labour() -> None:
            result, failure = None, None
            try:
                result = work()
            except BaseException as exc:
                failure = exc
            try:
                loop.call_soon_threadsafe(settle, result, failure)
            except RuntimeError:  # the loop has ended
                pass

        Thread(target=copy_context().run, args=(labour,), daemon=True, name="tooli-call").start()
        return await done
