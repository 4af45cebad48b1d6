"""CallEvents: progress and log messages of a running call, sent to its client as events.

    tool ── ctx.report, ctx.log ──▶ EventPeer ──▶ StreamSource ──▶ event: progress │ log

A client asks for them with `Accept: text/event-stream`. Over plain HTTP it cannot be asked
questions: an EventPeer supports none.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.peer import Peer
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.http.stream_response import StreamSource


MAX_UNSENT_EVENTS = 1000
"""Maximum number of events that wait for a slow client. Further events are dropped."""


class CallEvent(Record):
    """A server-sent event that is not an item of the result."""

    name: bytes
    data: bytes

    def chunk(self) -> bytes:
        """Return the event as it is sent."""
        return b"event: %b\ndata: %b\n\n" % (self.name, self.data)


class EventPeer(Peer):
    """The client of a call that receives its progress and its log messages."""

    def __init__(self) -> None:
        self.cancelled = False
        self.source: StreamSource | None = None  # set when the call starts

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send the event `progress`."""
        fields: JsonObject = {"done": done, "total": total, "message": message}
        present = {name: value for name, value in fields.items() if value is not None}
        self._send(b"progress", present)

    def log(self, level: str, data: object) -> None:
        """Send the event `log`."""
        self._send(b"log", {"level": level, "message": data})

    def _send(self, name: bytes, fields: JsonObject) -> None:
        if self.source is not None and not self.cancelled:
            self.source.put_event(CallEvent(name, encode(fields, [])))


def has_context(tool: Tool) -> bool:
    """True if the function takes a Context, so that it can report progress."""
    return any([getattr(p.shape, "kind", None) == "context" for p in tool.params])
