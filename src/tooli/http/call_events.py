"""CallEvents: what a running call reports, sent to its client as events.

    tool ── ctx.report, ctx.log, ctx.artifact ──▶ StreamPeer ──▶ StreamSource ──▶ client

A client asks for them with `Accept: text/event-stream` or `application/x-ndjson;events=true`. It
cannot be asked questions: a StreamPeer supports none.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.event_peer import EventPeer

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.http.stream_response import StreamSource


MAX_UNSENT_EVENTS = 1000
"""Maximum number of events that wait for a slow client. Further events are dropped."""
MAX_UNSENT_BYTES = 1 << 20
"""Maximum size of these events together."""


class CallEvent(Record):
    """An event that is not an item of the result: its type, and the event as JSON."""

    name: str
    data: bytes


class StreamPeer(EventPeer):
    """The client of a call that receives its events."""

    def __init__(self) -> None:
        self.cancelled = False
        self.source: StreamSource | None = None  # set when the call starts

    def send_event(self, name: str, data: bytes) -> None:
        """Send an event, or drop it if the client reads too slowly."""
        if self.source is not None:
            self.source.put_event(CallEvent(name, data))


def has_context(tool: Tool) -> bool:
    """True if the function takes a Context, so that it can report progress."""
    return any([getattr(p.shape, "kind", None) == "context" for p in tool.params])
