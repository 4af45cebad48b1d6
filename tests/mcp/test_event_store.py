"""The event store: what is replayed, and the limits per session, caller and process."""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakSet

import pytest
from mcp_types import JSONRPCNotification, JSONRPCResponse

from tooli.mcp import event_store
from tooli.mcp.event_store import MemoryEventStore


def make_event(name: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=name)


async def replay(events: MemoryEventStore, last: str) -> tuple[str | None, list[Any]]:
    """Return the stream and the methods of the events after an event."""
    replayed: list[Any] = []

    async def collect(event: Any) -> None:
        replayed.append(getattr(event.message, "method", event.message))

    return await events.replay_events_after(last, collect), replayed


async def test_events_after_the_last_event_id_are_replayed() -> None:
    events = MemoryEventStore()
    first = await events.store_event("1", None)
    await events.store_event("1", make_event("a"))
    await events.store_event("2", make_event("other"))
    second = await events.store_event("1", make_event("b"))
    assert await replay(events, first) == ("1", ["a", "b"])
    assert await replay(events, second) == ("1", [])


async def test_unknown_event_id_replays_nothing() -> None:
    events = MemoryEventStore()
    await events.store_event("1", make_event("a"))
    for last in ("", "1", "x@1", "1@2", "@1"):
        assert await replay(events, last) == (None, [])


async def test_oldest_events_and_streams_are_dropped_first() -> None:
    events = MemoryEventStore(max_streams=2, max_events=2)
    first = await events.store_event("1", make_event("a"))
    for name in ("b", "c", "d"):
        await events.store_event("1", make_event(name))
    assert await replay(events, first) == ("1", ["c", "d"])
    await events.store_event("2", make_event("x"))
    await events.store_event("3", make_event("y"))
    assert await replay(events, first) == (None, [])


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> WeakSet[MemoryEventStore]:
    stores = WeakSet[MemoryEventStore]()
    monkeypatch.setattr(event_store, "_STORES", stores)
    return stores


def make_answer(text: str) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=7, result={"text": text})


async def test_messages_are_replayed_unchanged() -> None:
    events = MemoryEventStore()
    first = await events.store_event("1", None)
    params = {"uri": "a://b", "_meta": {"x": [1, "ä", None]}}
    sent = [make_answer("ä"), JSONRPCNotification(jsonrpc="2.0", method="n", params=params)]
    for message in sent:
        await events.store_event("1", message)
    replayed: list[Any] = []

    async def collect(event: Any) -> None:
        replayed.append(event.message)

    await events.replay_events_after(first, collect)
    assert replayed == sent


async def test_events_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(make_event("a" * 100).model_dump_json(exclude_unset=True))
    monkeypatch.setattr(event_store, "MAX_STORED_BYTES", 3 * size)
    events = MemoryEventStore()
    first = await events.store_event("1", make_event("a" * 100))
    await events.store_event("1", make_event("b" * 100))
    await events.store_event("1", make_event("c" * 100))
    assert (await replay(events, first))[1] == ["b" * 100, "c" * 100]
    await events.store_event("2", make_event("d" * 200))
    assert events.size <= 3 * size
    assert (await replay(events, first))[1] == ["c" * 100]


async def test_event_that_is_too_large_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_store, "MAX_STORED_BYTES", 500)
    events = MemoryEventStore()
    first = await events.store_event("1", None)
    await events.store_event("1", make_event("e" * 1000))
    assert events.size == len("1")
    await events.store_event("1", make_answer("f" * 1000))
    assert events.size <= 500
    stream, [answer] = await replay(events, first)
    assert (stream, answer.id) == ("1", 7)
    assert "too large" in answer.error.message


async def test_size_counts_bytes() -> None:
    events = MemoryEventStore()
    await events.store_event("1", make_answer("\N{SNOWMAN}" * 1000))
    assert events.size >= 3000


async def test_events_of_all_sessions_are_limited_in_bytes(
    monkeypatch: pytest.MonkeyPatch, stores: WeakSet[MemoryEventStore]
) -> None:
    monkeypatch.setattr(event_store, "MAX_BYTES_OF_ALL_STORES", 1000)
    small, large = MemoryEventStore(), MemoryEventStore()
    await small.store_event("1", make_event("a"))
    for _ in range(20):
        await large.store_event("1", make_event("b" * 100))
    assert small.size + large.size <= 1000
    assert small.size > 0
    del large
    gc.collect()
    for _ in range(3):
        await small.store_event("1", make_event("c" * 100))
    assert small.size > 300


async def test_single_events_of_many_sessions_are_limited(
    monkeypatch: pytest.MonkeyPatch, stores: WeakSet[MemoryEventStore]
) -> None:
    """Each session has one event, and no session is larger than the others."""
    monkeypatch.setattr(event_store, "MAX_BYTES_OF_ALL_STORES", 1000)
    sessions = [MemoryEventStore() for _ in range(20)]
    for session in sessions:
        await session.store_event("1", make_event("b" * 400))
        assert sum([store.size for store in stores]) <= 1000


async def test_events_of_one_caller_are_limited(
    monkeypatch: pytest.MonkeyPatch, stores: WeakSet[MemoryEventStore]
) -> None:
    monkeypatch.setattr(event_store, "MAX_BYTES_PER_CALLER", 1000)
    monkeypatch.setattr(event_store, "MAX_BYTES_OF_ALL_STORES", 2000)
    bob = [MemoryEventStore("bob") for _ in range(4)]
    for store in bob:
        await store.store_event("1", make_event("b" * 150))
    size_of_bob = sum([store.size for store in bob])
    mallory = [MemoryEventStore("mallory") for _ in range(20)]
    for store in mallory:
        await store.store_event("1", make_event("m" * 400))
        assert sum([store.size for store in mallory]) <= 1000
    assert sum([store.size for store in bob]) == size_of_bob


async def test_event_id_with_a_long_number_replays_nothing() -> None:
    """It wrote a traceback to the log of the server."""
    events = MemoryEventStore()
    await events.store_event("1", make_event("a"))
    for number in ("9" * 5000, "²", "٣" * 30, "-1"):
        assert await replay(events, f"{number}@1") == (None, [])
    assert await replay(events, f"{'0' * 18}0@1") == ("1", ["a"])


async def test_ids_of_streams_count(
    monkeypatch: pytest.MonkeyPatch, stores: WeakSet[MemoryEventStore]
) -> None:
    """A request that is cancelled has no answer, but its id can have megabytes."""
    monkeypatch.setattr(event_store, "MAX_STORED_BYTES", 1000)
    monkeypatch.setattr(event_store, "MAX_BYTES_PER_CALLER", 2000)
    sessions = [MemoryEventStore("eve") for _ in range(5)]
    for events in sessions:
        for i in range(20):
            await events.store_event(f"{i}{'x' * 300}", None)
        assert 0 < events.size <= 1000
        assert sum(map(len, events._streams)) == events.size
    assert sum([events.size for events in sessions]) <= 2000
    await sessions[-1].store_event("y" * 5000, None)
    assert sum([events.size for events in sessions]) <= 2000
