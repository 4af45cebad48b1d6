"""ThreadPool: work for an event loop, and work without one."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from tooli.serving.thread_pool import EventLoopThread, ThreadPool


async def test_pool_starts_threads_when_work_waits() -> None:
    pool = ThreadPool(4)
    assert await asyncio.gather(*[pool.run(lambda i=i: i) for i in range(20)]) == list(range(20))
    barrier = threading.Barrier(4, timeout=120)
    await asyncio.gather(*[pool.run(barrier.wait) for _ in range(8)])
    assert pool._thread_count == 4
    pool.shut_down()


async def test_exception_is_raised_in_the_caller() -> None:
    pool = ThreadPool(1)
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 / 0)
    pool.shut_down()


async def test_started_work_has_a_future() -> None:
    pool, release = ThreadPool(1), threading.Event()
    with pytest.raises(ZeroDivisionError):
        await pool.start(lambda: 1 / 0)
    running = pool.start(lambda: release.wait(120), "one")
    queued = pool.start(lambda: 1, "one")
    last = pool.start(lambda: 2, "one")
    assert running.cancel()
    assert queued.cancel()
    await asyncio.sleep(0)
    assert pool.abandoned_by("one") == 1  # the other one has not started
    release.set()
    assert await last == 2
    assert pool.abandoned == 0
    pool.shut_down()


async def test_number_of_threads_is_limited() -> None:
    pool, running, counts = ThreadPool(3), set[int](), list[int]()
    release = threading.Event()

    def work() -> None:
        running.add(threading.get_ident())
        counts.append(len(running))
        release.wait(120)
        running.discard(threading.get_ident())

    calls = [asyncio.ensure_future(pool.run(work)) for _ in range(10)]
    while len(running) < 3:
        await asyncio.sleep(0.001)
    calls[0].cancel()  # its thread still runs
    await asyncio.sleep(0.01)
    assert len(running) == 3
    release.set()
    await asyncio.gather(*calls[1:])
    assert max(counts) == 3
    pool.shut_down()


async def test_caller_leaves_threads_for_others() -> None:
    pool, release, order = ThreadPool(4, share=3), threading.Event(), list[int]()

    def work(number: int) -> None:
        release.wait(120)
        order.append(number)

    slow = [asyncio.ensure_future(pool.run(partial(work, i), "one")) for i in range(10)]
    for _ in range(5):
        assert await asyncio.wait_for(pool.run(lambda: 7, "two"), 120) == 7
    assert pool._started == {"one": 3}
    release.set()
    await asyncio.gather(*slow)
    assert sorted(order) == list(range(10))
    assert not pool._started and not pool._waiting and not pool._in_progress
    pool.shut_down()


async def test_cancelled_work_counts_for_its_caller() -> None:
    pool, release, done = ThreadPool(4, share=2), threading.Event(), list[int]()

    def work() -> None:
        release.wait(120)
        done.append(1)

    calls = [asyncio.ensure_future(pool.run(work, "one")) for _ in range(5)]
    while pool._queue.qsize() or pool._thread_count < 2:
        await asyncio.sleep(0.001)
    for call in calls[:4]:
        call.cancel()
    await asyncio.gather(*calls[:4], return_exceptions=True)
    assert (pool.abandoned_by("one"), pool.abandoned_by("two"), pool.abandoned) == (2, 0, 2)
    assert await asyncio.wait_for(pool.run(lambda: 7, "two"), 120) == 7
    release.set()
    await calls[4]
    while pool.abandoned:
        await asyncio.sleep(0.001)
    assert len(done) == 3  # cancelled work that was waiting is not started
    assert not pool._started and not pool._abandoned and not pool._waiting.get("one")
    pool.shut_down()


def test_submitted_work_gets_a_thread_at_once() -> None:
    pool = ThreadPool(4)
    barrier = threading.Barrier(5, timeout=120)
    for _ in range(4):
        pool.submit(barrier.wait)
    barrier.wait()
    pool.shut_down()


def test_submitted_work_waits_for_a_thread() -> None:
    pool, done = ThreadPool(2), threading.Semaphore(0)
    threads = set[int]()

    def work() -> None:
        threads.add(threading.get_ident())
        done.release()

    for _ in range(20):
        pool.submit(work)
    for _ in range(20):
        assert done.acquire(timeout=120)
    assert len(threads) <= 2
    pool.shut_down()


def test_queued_work_runs_after_a_shutdown() -> None:
    pool, release, done = ThreadPool(1), threading.Event(), threading.Semaphore(0)
    pool.submit(lambda: release.wait(120))
    for _ in range(5):
        pool.submit(done.release)
    pool.shut_down()
    pool.submit(done.release)
    release.set()
    for _ in range(6):
        assert done.acquire(timeout=120)
    pool.shut_down()


def test_loop_thread_runs_coroutines() -> None:
    loop_thread, done = EventLoopThread(), threading.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        done.set()

    for _ in range(2):  # the second one after a shutdown, on a new loop
        loop_thread.submit(work())
        assert done.wait(120)
        done.clear()
        loop_thread.shut_down()


def test_coroutine_can_be_cancelled() -> None:
    loop_thread, started, ended = EventLoopThread(), threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    future = loop_thread.submit(work())
    assert started.wait(120)
    future.cancel()
    assert ended.wait(120)
    loop_thread.shut_down()


def prevent_thread_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def test_work_waits_if_no_more_threads_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, release = ThreadPool(4), threading.Event()
    done = threading.Semaphore(0)
    pool.submit(lambda: release.wait(120))
    with monkeypatch.context() as patch:
        prevent_thread_start(patch)
        pool.submit(done.release)
    assert pool._thread_count == 1
    release.set()
    assert done.acquire(timeout=120)
    pool.submit(done.release)
    assert done.acquire(timeout=120)
    pool.shut_down()


async def test_work_fails_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ThreadPool(4)
    with monkeypatch.context() as patch:
        prevent_thread_start(patch)
        with pytest.raises(RuntimeError, match="start new thread"):
            pool.submit(list)
        with pytest.raises(RuntimeError, match="start new thread"):
            await pool.run(list)
    assert await pool.run(lambda: 7) == 7
    pool.shut_down()


def test_loop_thread_that_cannot_start_is_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop_thread, done = EventLoopThread(), threading.Event()

    async def work() -> None:
        done.set()

    with monkeypatch.context() as patch:
        prevent_thread_start(patch)
        with pytest.raises(RuntimeError, match="start new thread"):
            loop_thread.submit(work())
    loop_thread.submit(work())
    assert done.wait(120)
    loop_thread.shut_down()
