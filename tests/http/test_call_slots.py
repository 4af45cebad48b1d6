"""Slots of calls: slow bodies, slow readers, callers with many requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Event, Semaphore
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, post

from tooli import Tooli
from tooli.core.caller_key import caller_key
from tooli.http.call_slots import CallSlots
from tooli.http.http_request import HttpError
from tooli.serving.thread_pool import ThreadPool

app = Tooli("app")


@app.command()
def add(a: int) -> int:
    """Add one."""
    return a + 1


@app.command()
def count() -> Iterator[int]:
    """Count to a high number."""
    yield from range(10**9)


def start_body(api: Any, *headers: tuple[bytes, bytes]) -> tuple[AsgiClient, Any]:
    """Start a request whose body is not complete."""
    client = AsgiClient(api)
    task = client.start("POST", "/tools/add", [HOST, JSON, *headers])
    client.send_body(b'{"a":', more=True)
    return client, task


def bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {token}".encode()


async def test_slow_bodies_take_no_slot() -> None:
    tokens: dict[str, Any] = {"one": None, "two": None}
    api = app.asgi(mcp=False, limit=4, queue_timeout=0, tokens=tokens)
    open_bodies = [start_body(api, bearer("one")) for _ in range(3)]
    await asyncio.sleep(0)
    for _ in range(5):
        assert (await post(api, "add", {"a": 1}, bearer("two"))).status == 200
    refused = await post(api, "add", {"a": 1}, bearer("one"))
    assert (refused.status, refused.code) == (503, "E4075")
    assert refused.headers["retry-after"] == "1"
    for client, task in open_bodies:
        client.send_body(b"1}")
        await asyncio.wait_for(task, 120)
        assert client.json()["result"] == 2
    assert (await post(api, "add", {"a": 1}, bearer("one"))).status == 200


async def test_slow_readers_take_no_slot() -> None:
    api = app.asgi(mcp=False, limit=1)
    slow, task = start_body(api)
    slow.is_reading.clear()
    slow.send_body(b"1}")
    while not api._slots._running_calls:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    while api._slots._running_calls:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    assert not task.done()
    slow.is_reading.set()
    await asyncio.wait_for(task, 120)
    assert slow.status == 200


async def test_streams_count_for_their_caller() -> None:
    tokens: dict[str, Any] = {"one": None, "two": None}
    api = app.asgi(mcp=False, limit=4, queue_timeout=0, tokens=tokens)
    streams: list[tuple[AsgiClient, Any]] = []
    for _ in range(3):
        client = AsgiClient(api)
        accept = (b"accept", b"application/x-ndjson")
        task = client.start("POST", "/tools/count", [HOST, JSON, accept, bearer("one")])
        client.send_body(b"{}")
        await client.wait_for_messages(2)
        client.is_reading.clear()
        streams.append((client, task))
    assert (await post(api, "add", {"a": 1}, bearer("one"))).status == 503
    assert (await post(api, "add", {"a": 1}, bearer("two"))).status == 200
    for client, task in streams:
        client.disconnect()
        client.is_reading.set()
        await asyncio.wait_for(task, 120)


async def test_slot_is_freed_after_errors() -> None:
    api = app.asgi(mcp=False, limit=1)
    for body in (b"{", b"[]", b'{"a":"x"}'):
        client = AsgiClient(api)
        client.send_body(body)
        await asyncio.wait_for(client.start("POST", "/tools/add", [HOST, JSON]), 120)
        assert 400 <= client.status < 500
    client, task = start_body(api)
    client.disconnect()
    await asyncio.wait_for(task, 120)
    assert (await post(api, "add", {"a": 1})).status == 200


@pytest.mark.parametrize(("limit", "share"), [(1, 1), (2, 1), (3, 2), (4, 3), (256, 192)])
async def test_caller_has_three_quarters_of_the_slots(limit: int, share: int) -> None:
    slots = CallSlots(limit, ThreadPool(1))
    for _ in range(share):
        await slots.enter("one")
    with pytest.raises(HttpError):
        await slots.enter("one")
    await slots.enter("two")


# ------------------------------------------------------------------ waiting


async def run_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_requests_of_a_caller_wait_in_order() -> None:
    slots = CallSlots(4, ThreadPool(1), 120)
    for _ in range(3):
        await slots.enter("one")
    entered: list[int] = []

    async def enter(number: int) -> None:
        await slots.enter("one")
        entered.append(number)

    tasks = [asyncio.ensure_future(enter(i)) for i in range(4)]
    await run_loop()
    assert entered == []
    await slots.enter("two")  # others do not wait for this caller
    for i in range(4):
        slots.leave("one")
        await tasks[i]
        assert entered == [*range(i + 1)]


async def test_calls_wait_for_a_slot_in_order() -> None:
    slots = CallSlots(1, ThreadPool(1), 120)
    await slots.start()
    started: list[int] = []

    async def start(number: int) -> None:
        await (slots.wait_for_room() if number == 1 else slots.start())
        started.append(number)

    tasks = [asyncio.ensure_future(start(i)) for i in range(3)]
    await run_loop()
    assert started == []
    slots.end()
    await run_loop()
    assert started == [0]
    slots.end()  # the second one waits for room, but takes no slot
    await asyncio.gather(*tasks)
    assert started == [0, 1, 2]
    assert slots._running_calls == 1


@pytest.mark.parametrize("is_admitted", [True, False])
async def test_cancelled_request_keeps_no_slot(is_admitted: bool) -> None:
    slots = CallSlots(1, ThreadPool(1), 120)
    await slots.enter("one")
    await slots.start()
    waiting = [asyncio.ensure_future(slots.enter("one")), asyncio.ensure_future(slots.start())]
    await run_loop()
    if is_admitted:  # the slots are taken for the requests, which have not run since
        slots.leave("one")
        slots.end()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    if not is_admitted:
        slots.leave("one")
        slots.end()
    await asyncio.wait_for(slots.enter("one"), 120)
    await asyncio.wait_for(slots.start(), 120)
    assert slots._waiting == 0
    assert not slots._waiting_requests and not slots._waiting_calls


async def test_request_that_waits_too_long_is_refused() -> None:
    slots = CallSlots(1, ThreadPool(1), 0.01)
    await slots.enter("one")
    await slots.start()
    for waiting in (slots.enter("one"), slots.start(), slots.wait_for_room()):
        with pytest.raises(HttpError) as refused:
            await waiting
        assert refused.value.headers == ((b"retry-after", b"1"),)
    assert slots._waiting == 0


async def test_number_of_waiting_requests_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.http.call_slots.MAX_WAITING", 1)
    slots = CallSlots(1, ThreadPool(1), 120)
    await slots.start()
    first = asyncio.ensure_future(slots.start())
    await run_loop()
    with pytest.raises(HttpError):
        await slots.start()
    slots.end()
    await first


async def test_one_caller_leaves_room_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """One caller could use all places of the queue, so that others were refused at once."""
    monkeypatch.setattr("tooli.http.call_slots.MAX_WAITING", 4)
    slots = CallSlots(2, ThreadPool(1), 120)
    for caller in ("ali", "eve"):
        await slots.enter(caller)
    waiting = [asyncio.ensure_future(slots.enter("eve")) for _ in range(3)]
    await run_loop()
    with pytest.raises(HttpError):
        await slots.enter("eve")
    waiting.append(asyncio.ensure_future(slots.enter("ali")))
    await run_loop()
    for caller in ("ali", "eve", "eve", "eve"):
        slots.leave(caller)
    await asyncio.gather(*waiting)


async def test_end_of_an_abandoned_call_admits_a_waiting_one() -> None:
    gates, release = Tooli("app"), Event()
    gates.command("gate")(lambda: release.wait(120))
    gates.command("ping")(lambda: 7)
    api = gates.asgi(mcp=False, limit=1, threads=4, queue_timeout=120)
    _, task = call_gate(api, "10.0.0.1")
    while not api._slots._running_calls or api._thread_pool._queue.qsize():  # type: ignore[attr-defined]
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    waiting = asyncio.ensure_future(post(api, "ping", {}))
    await run_loop()
    assert not waiting.done()
    release.set()
    assert (await asyncio.wait_for(waiting, 120)).json()["result"] == 7


async def test_burst_of_requests_is_served() -> None:
    api = app.asgi(mcp=False, limit=8, threads=2, queue_timeout=120)
    answers = await asyncio.gather(*[post(api, "add", {"a": i}) for i in range(600)])
    assert [answer.json()["result"] for answer in answers] == [*range(1, 601)]
    assert api._slots._waiting == 0  # type: ignore[attr-defined]


def call_gate(api: Any, address: str, *headers: tuple[bytes, bytes]) -> tuple[AsgiClient, Any]:
    client = AsgiClient(api)
    client.address = address
    client.send_body(b"{}")
    return client, client.start("POST", "/tools/gate", [HOST, JSON, *headers])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("10.0.0.1", "a"), ("10.0.0.1", "b")),  # principals at the same address
        (("10.0.0.1", "shared"), ("10.0.0.2", "shared")),  # addresses with the same token
        (("10.0.0.1", "a"), ("10.0.0.1", "shared")),
        (("2001:db8::1", "shared"), ("2001:db8:0:1::1", "shared")),
    ],
)
@pytest.mark.parametrize("threads", [2, 4])
async def test_slow_calls_leave_threads_for_others(
    one: tuple[str, str], two: tuple[str, str], threads: int
) -> None:
    gates = Tooli("app")
    release, running = Event(), Semaphore(0)

    @gates.command()
    def gate() -> str:
        """Wait."""
        running.release()
        assert release.wait(120)
        return "done"

    @gates.command()
    def ping() -> int:
        """Return at once."""
        return 7

    tokens: dict[str, Any] = {"a": None, "b": None}
    api = gates.asgi(mcp=False, threads=threads, token="shared", tokens=tokens)
    slow = [call_gate(api, one[0], bearer(one[1])) for _ in range(20)]
    for _ in range(threads - 1):
        while not running.acquire(blocking=False):
            await asyncio.sleep(0.001)
    for _ in range(3):
        client = AsgiClient(api)
        client.address = two[0]
        client.send_body(b"{}")
        await asyncio.wait_for(
            client.start("POST", "/tools/ping", [HOST, JSON, bearer(two[1])]), 120
        )
        assert client.json()["result"] == 7
    assert not running.acquire(blocking=False)
    release.set()
    for client, task in slow:
        await asyncio.wait_for(task, 120)
        assert client.json()["result"] == "done"


async def test_cancelled_calls_count_for_their_caller() -> None:
    gates, release = Tooli("app"), Event()
    gates.command("gate")(lambda: release.wait(120))
    gates.command("ping")(lambda: 7)
    api = gates.asgi(mcp=False, limit=4, queue_timeout=0, threads=4)
    for _ in range(3):
        _, task = call_gate(api, "10.0.0.1")
        while not api._slots._running_calls or api._thread_pool._queue.qsize():  # type: ignore[attr-defined]
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    client, task = call_gate(api, "10.0.0.1")
    await asyncio.wait_for(task, 120)
    assert (client.status, client.code) == (503, "E4075")
    client = AsgiClient(api)
    client.address = "10.0.0.2"
    client.send_body(b"{}")
    await asyncio.wait_for(client.start("POST", "/tools/ping", [HOST, JSON]), 120)
    assert client.json()["result"] == 7
    release.set()


def test_principal_is_not_counted_as_an_address() -> None:
    assert caller_key("10.0.0.1", "10.0.0.2") != caller_key(None, "10.0.0.1")
    assert caller_key(None, "::ffff:10.0.0.1") == caller_key(None, "10.0.0.1")
