"""What an application receives: until an event is set, and bodies that were read before."""

from __future__ import annotations

import asyncio
from typing import Any

from tooli.serving.asgi_receive import (
    BodyCounter,
    read_messages,
    receive_until,
    replay_messages,
)


async def test_messages_are_received_until_the_event_is_set() -> None:
    ended, inbox = asyncio.Event(), asyncio.Queue[Any]()
    receive = receive_until(ended, inbox.get)
    inbox.put_nowait({"type": "http.request"})
    assert await receive() == {"type": "http.request"}
    waiting = asyncio.ensure_future(receive())  # type: ignore[arg-type]
    await asyncio.sleep(0)
    ended.set()
    assert await asyncio.wait_for(waiting, 120) == {"type": "http.disconnect"}
    assert await receive() == {"type": "http.disconnect"}


def make_receive(*messages: dict[str, Any]) -> Any:
    inbox = asyncio.Queue[Any]()
    for message in messages:
        inbox.put_nowait(message)
    return inbox.get


PARTS = (
    {"type": "http.request", "body": b"abc", "more_body": True},
    {"type": "http.request", "body": b"def", "more_body": False},
    {"type": "http.disconnect"},
)


async def test_body_that_was_read_is_received_again() -> None:
    receive = make_receive(*PARTS)
    messages = await read_messages(receive, 6)
    assert messages == [*PARTS[:2]]
    counter = BodyCounter(replay_messages(messages, receive))
    assert [await counter() for _ in PARTS] == [*PARTS]
    assert counter.size == 6


async def test_body_that_is_too_large_is_not_read_to_its_end() -> None:
    assert await read_messages(make_receive(*PARTS), 5) is None
    receive = make_receive(*PARTS)
    assert await read_messages(receive, 2) is None
    assert await receive() == PARTS[1]


async def test_disconnection_ends_the_body() -> None:
    assert await read_messages(make_receive(PARTS[0], PARTS[2]), 9) == [PARTS[0], PARTS[2]]
