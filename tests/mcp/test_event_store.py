"""The events of a session: what a client that comes back is told."""

from __future__ import annotations

from typing import Any

from mcp_types import JSONRPCNotification

from tooli.mcp.event_store import MemoryEventStore


def message(name: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method=name)


async def told(events: MemoryEventStore, last: str) -> tuple[str | None, list[str]]:
    heard: list[str] = []

    async def hear(event: Any) -> None:
        heard.append(event.message.method)

    return await events.replay_events_after(last, hear), heard


async def test_what_came_after() -> None:
    events = MemoryEventStore()
    first = await events.store_event("1", None)
    await events.store_event("1", message("a"))
    await events.store_event("2", message("other"))
    second = await events.store_event("1", message("b"))
    assert await told(events, first) == ("1", ["a", "b"])
    assert await told(events, second) == ("1", [])


async def test_what_nobody_knows() -> None:
    events = MemoryEventStore()
    await events.store_event("1", message("a"))
    for last in ("", "1", "x@1", "1@2", "@1"):
        assert await told(events, last) == (None, [])


async def test_the_oldest_go_first() -> None:
    events = MemoryEventStore(max_streams=2, max_events=2)
    first = await events.store_event("1", message("a"))
    for name in ("b", "c", "d"):
        await events.store_event("1", message(name))
    assert await told(events, first) == ("1", ["c", "d"])
    await events.store_event("2", message("x"))
    await events.store_event("3", message("y"))
    assert await told(events, first) == (None, [])
