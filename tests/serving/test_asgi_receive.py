"""A function that receives messages until an event is set."""

from __future__ import annotations

import asyncio
from typing import Any

from tooli.serving.asgi_receive import receive_until


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
