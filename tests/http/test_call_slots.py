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
    api = app.asgi(mcp=False, limit=4, tokens=tokens)
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
    api = app.asgi(mcp=False, limit=4, tokens=tokens)
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
def test_caller_has_three_quarters_of_the_slots(limit: int, share: int) -> None:
    slots = CallSlots(limit, ThreadPool(1))
    for _ in range(share):
        slots.enter("one")
    with pytest.raises(HttpError):
        slots.enter("one")
    slots.enter("two")


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
    api = gates.asgi(mcp=False, limit=4, threads=4)
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
