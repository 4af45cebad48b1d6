"""Timeouts for waiting on a client."""

from __future__ import annotations

import asyncio

import pytest

from tooli.http.client_timeouts import ClientTimeout, wait_with_timeout


async def test_a_timeout_ends_a_wait() -> None:
    with pytest.raises(ClientTimeout):
        await wait_with_timeout(0.001, asyncio.Event().wait())
    with pytest.raises(ClientTimeout):
        await wait_with_timeout(0.001, asyncio.get_running_loop().create_future())
    task = asyncio.current_task()
    assert task is not None
    assert getattr(task, "cancelling", int)() == 0


async def test_a_wait_returns_what_was_awaited() -> None:
    async def now() -> int:
        return 1

    async def soon() -> int:
        await asyncio.sleep(0)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except asyncio.TimeoutError:
            await asyncio.sleep(0)
        return 2

    async def never() -> None:
        await asyncio.sleep(0)
        raise KeyError

    assert await wait_with_timeout(20, now()) == 1
    assert await wait_with_timeout(20, soon()) == 2
    with pytest.raises(KeyError):
        await wait_with_timeout(20, never())


async def test_a_wait_can_be_cancelled() -> None:
    task = asyncio.ensure_future(wait_with_timeout(20, asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
