"""Events of HTTP streams, kept in memory so that a client can resume a stream."""

from __future__ import annotations

from collections import OrderedDict, deque

from mcp.server.streamable_http import EventMessage, EventStore

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mcp.server.streamable_http import EventCallback, EventId, StreamId
    from mcp_types import JSONRPCMessage

MAX_STREAMS, MAX_EVENTS_PER_STREAM = 32, 100
"""Streams of a session and events of a stream that are kept; the oldest are dropped first."""


class MemoryEventStore(EventStore):
    """The latest events of the latest streams."""

    def __init__(
        self, max_streams: int = MAX_STREAMS, max_events: int = MAX_EVENTS_PER_STREAM
    ) -> None:
        self._max_streams, self._max_events = max_streams, max_events
        self._streams: OrderedDict[StreamId, deque[tuple[int, JSONRPCMessage | None]]] = (
            OrderedDict()
        )
        self._last_event_number = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store an event; its id contains the id of the stream."""
        self._last_event_number += 1
        events = self._streams.get(stream_id)
        if events is None:
            events = self._streams[stream_id] = deque(maxlen=self._max_events)
        self._streams.move_to_end(stream_id)
        events.append((self._last_event_number, message))
        while len(self._streams) > self._max_streams:
            self._streams.popitem(last=False)
        return f"{self._last_event_number}@{stream_id}"

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send the events after an event; return None if its stream is unknown."""
        number, found, stream_id = last_event_id.partition("@")
        events = self._streams.get(stream_id)
        if not found or not number.isdigit() or events is None:
            return None
        for count, message in list(events):
            if count > int(number) and message is not None:
                await send_callback(EventMessage(message, f"{count}@{stream_id}"))
        return stream_id
