"""Disconnect an ASGI application from its client, so that it ends in its usual way."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.serving import Message, Receive


def receive_until(ended: asyncio.Event, receive: Receive) -> Receive:
    """Return a function that receives messages, and a disconnection when an event is set."""

    async def receive_or_end() -> Message:
        received = asyncio.ensure_future(receive())
        waiting = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait({received, waiting}, return_when=asyncio.FIRST_COMPLETED)
            return {"type": "http.disconnect"} if ended.is_set() else received.result()
        finally:
            received.cancel()
            waiting.cancel()

    return receive_or_end
