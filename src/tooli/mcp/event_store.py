"""MemoryEventStore: the latest events of an MCP session, for clients that reconnect.

Events are stored as JSON, so that their size is the memory that they need. Three limits apply: per
session, per caller and per process. They hold for a single event as well.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from weakref import WeakSet

from mcp.server.streamable_http import EventMessage, EventStore
from mcp_types import JSONRPCError, jsonrpc_message_adapter

from tooli.mcp.protocol import INTERNAL_ERROR

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mcp.server.streamable_http import EventCallback, EventId, StreamId
    from mcp_types import JSONRPCMessage

    StoredEvent: TypeAlias = tuple[int, bytes]

MAX_STREAMS, MAX_EVENTS_PER_STREAM = 32, 100
"""Maximum number of streams per session and of events per stream. The oldest are dropped."""

MAX_STORED_BYTES, MAX_BYTES_PER_CALLER, MAX_BYTES_OF_ALL_STORES = 8 << 20, 64 << 20, 256 << 20
"""Maximum size of the events of a session, of a caller and of a process."""

LARGE_EVENT_BYTES = 1 << 16
"""After a larger event, `on_large_event` is called."""

RELEASE_STREAM = "tooli-release"
"""The stream of messages that are not stored: they replace the last message of the SDK's loop."""

_MAX_NUMBER_DIGITS = 19  # `int` raises a ValueError for thousands of digits
_STORES: WeakSet[MemoryEventStore] = WeakSet()


class MemoryEventStore(EventStore):
    """The latest events of the latest streams of one session. `owner` is the key of its caller."""

    def __init__(
        self,
        owner: str = "",
        max_streams: int = MAX_STREAMS,
        max_events: int = MAX_EVENTS_PER_STREAM,
        on_large_event: Callable[[MemoryEventStore], None] | None = None,
    ) -> None:
        self.owner = owner
        self._on_large_event = on_large_event
        self._max_streams, self._max_events = max_streams, max_events
        self._streams: OrderedDict[StreamId, deque[StoredEvent]] = OrderedDict()
        self._last_event_number = 0
        self.size = 0  # bytes of all events and ids of streams
        _STORES.add(self)

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store an event; its id contains the id of the stream."""
        if stream_id == RELEASE_STREAM:
            return RELEASE_STREAM
        self._last_event_number += 1
        events = self._streams.get(stream_id)
        if events is None:
            events = self._streams[stream_id] = deque()
            self.size += len(stream_id)  # a request id of the client
        self._streams.move_to_end(stream_id)
        data, size = _encode_event(message)
        events.append((self._last_event_number, data))
        self.size += len(data)
        if len(events) > self._max_events:
            self.size -= len(events.popleft()[1])
        while len(self._streams) > self._max_streams:
            self._drop_stream()
        while self.size > MAX_STORED_BYTES:
            self.drop_oldest()
        _limit_all_stores()
        if size > LARGE_EVENT_BYTES and self._on_large_event is not None:
            self._on_large_event(self)
        return f"{self._last_event_number}@{stream_id}"

    def _drop_stream(self) -> None:
        stream_id, events = self._streams.popitem(last=False)
        self.size -= len(stream_id) + sum([len(data) for _, data in events])

    def drop_oldest(self) -> None:
        """Drop the oldest event of the oldest stream."""
        events = next(iter(self._streams.values()))
        if len(events) > 1:
            self.size -= len(events.popleft()[1])
        else:
            self._drop_stream()

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send the events after an event; return None if its stream is unknown."""
        number, at_sign, stream_id = last_event_id.partition("@")
        events = self._streams.get(stream_id)
        is_number = number.isdecimal() and len(number) <= _MAX_NUMBER_DIGITS
        if not at_sign or not is_number or events is None:
            return None
        for event_number, data in list(events):
            if event_number > int(number) and data:
                message = jsonrpc_message_adapter.validate_json(data)
                await send_callback(EventMessage(message, f"{event_number}@{stream_id}"))
        return stream_id


def _encode_event(message: JSONRPCMessage | None) -> tuple[bytes, int]:
    """Return the JSON of an event and its size. An answer that is too large becomes an error.

    Other messages that are too large are not stored; the result is then empty.
    """
    if message is None:
        return b"", 0
    data = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    if len(data) <= MAX_STORED_BYTES:
        return data, len(data)
    if not hasattr(message, "result") and not hasattr(message, "error"):
        return b"", len(data)
    error = {
        "code": INTERNAL_ERROR,
        "message": "The answer is too large to be sent again. Send the request again.",
    }
    answer = JSONRPCError.model_validate(
        {"jsonrpc": "2.0", "id": getattr(message, "id", None), "error": error}
    )
    return answer.model_dump_json(by_alias=True, exclude_unset=True).encode(), len(data)


def _limit_all_stores() -> None:
    """Drop events if those of a caller or of all callers are too large.

    Events are dropped from the largest store of the caller who uses most memory.
    """
    while True:
        sizes: Counter[str] = Counter()
        for store in _STORES:
            sizes[store.owner] += store.size
        owner, size = sizes.most_common(1)[0]
        if size <= MAX_BYTES_PER_CALLER and sizes.total() <= MAX_BYTES_OF_ALL_STORES:
            return
        own = [store for store in _STORES if store.owner == owner]
        max(own, key=lambda store: store.size).drop_oldest()
