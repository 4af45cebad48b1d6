"""EventPeer: the client of a call that receives its progress, logs and artifacts as JSON events.

    tool ── ctx.report, ctx.log, ctx.artifact ──▶ EventPeer ──▶ send_event(name, data)

    {"type":"progress","message":…,"percent":…,"done":…,"total":…}
    {"type":"log","level":…,"message":…}
    {"type":"artifact","name":…,"uri":…,"mime_type":…}
    {"type":"item","value":…}                   an item of a stream
    {"type":"result","ok":…,…}                  the envelope, which is the last event

The functions of this module write `--stream`, server-sent events and NDJSON. The Context has
already redacted the texts.
"""

from __future__ import annotations

from tooli.core.peer import Peer
from tooli.core.tool import cut_text
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.peer import Artifact
    from tooli.core.protocols import JsonObject

MAX_EVENT_CHARS = 10_000
"""Maximum length of a message in an event."""
MAX_EVENT_BYTES = 1 << 16
"""Maximum size of an event. The message of a larger one is left out."""


class EventPeer(Peer):
    """The client of a call that receives events. An interface implements `send_event`."""

    def send_event(self, name: str, data: bytes) -> None:
        """Send an event, in any thread: its type, and the event as JSON."""
        raise NotImplementedError

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send the event `progress`."""
        self._send(progress_event(done, total, message))

    def log(self, level: str, data: object) -> None:
        """Send the event `log`."""
        self._send(log_event(level, data))

    def artifact(self, artifact: Artifact) -> None:
        """Send the event `artifact`."""
        self._send(artifact_event(artifact))

    def _send(self, event: JsonObject) -> None:
        if not self.cancelled:
            self.send_event(event["type"], encode_event(event))


def progress_event(done: float, total: float | None, message: str | None) -> JsonObject:
    """Return the event for the progress of a call."""
    event: JsonObject = {"type": "progress"}
    if message is not None:
        event["message"] = cut_text(message, MAX_EVENT_CHARS)
    percent = compute_percent(done, total)
    if percent is not None:
        event["percent"] = percent
    event["done"] = done
    if total is not None:
        event["total"] = total
    return event


def compute_percent(done: float, total: float | None) -> float | None:
    """Return the progress in percent, from 0 to 100; None if the total is unknown."""
    if total is None or not total > 0:
        return None
    try:
        percent = round(max(0.0, min(100.0, 100 * done / total)), 1)
    except OverflowError:  # an integer that is too large for a float
        return 100 if done > 0 else 0
    return int(percent) if percent == int(percent) else percent


def log_event(level: str, message: object) -> JsonObject:
    """Return the event for a log entry. Its message is a text or any JSON value."""
    if isinstance(message, str):
        message = cut_text(message, MAX_EVENT_CHARS)
    return {"type": "log", "level": level, "message": message}


def artifact_event(artifact: Artifact) -> JsonObject:
    """Return the event for something that the call has made."""
    return {"type": "artifact", **artifact.to_dict()}


def encode_event(event: JsonObject) -> bytes:
    """Return an event as JSON. The message of one that is too large is left out."""
    data = encode(event, [])
    if len(data) <= MAX_EVENT_BYTES:
        return data
    return encode({**event, "message": f"omitted: a message of {len(data)} bytes"}, [])


def item_event(item: bytes) -> bytes:
    """Return the event for an item of a stream, which is JSON."""
    return b'{"type":"item","value":%b}' % item


def result_event(envelope: bytes) -> bytes:
    """Return the event for the end of a call, whose envelope is JSON."""
    return b'{"type":"result",' + envelope[1:]
