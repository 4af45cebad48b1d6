"""Change what an ASGI application receives: disconnect its client, or read its body before it."""

from __future__ import annotations

import asyncio
from math import inf

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


async def read_messages(receive: Receive, max_bytes: float = inf) -> list[Message] | None:
    """Return the messages with the body of a request; None if it has more than `max_bytes`."""
    messages: list[Message] = []
    size = 0
    while not messages or (
        messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False)
    ):
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
        if size > max_bytes:
            return None
    return messages


def replay_messages(messages: list[Message], receive: Receive) -> Receive:
    """Return a function that receives messages that were read before, and then new ones."""
    pending = iter(messages)

    async def receive_again() -> Message:
        message = next(pending, None)
        return await receive() if message is None else message

    return receive_again


class BodyCounter:
    """Receives the messages of a request and counts the bytes of its body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.size = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self.size += len(message.get("body", b""))
        return message
