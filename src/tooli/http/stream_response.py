"""Streams: a tool's items sent one by one, as lines or as events, no faster than they are read.

generator ──▶ Feed ──▶ writer ──▶ client
    ▲          │
    └─ room ◀──┘      no room: the generator waits; no client: it is closed
"""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Semaphore, Thread

from tooli.errors import Interrupted
from tooli.http.client_timeouts import ClientTimeout, wait_with_timeout
from tooli.pipeline.async_drivers import aclosing

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Future, Task
    from typing import Any

    from tooli.http.http_request import HttpRequest
    from tooli.http.http_settings import Headers, HttpSettings
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented

MAX_BUFFERED_ITEMS = 16
"""How many items may be on their way; the generator rests until there is room."""

_MAX_RETRY_AFTER = 86_400
_SCOPE_CHARACTERS = frozenset(map(chr, range(0x21, 0x7F))) - {'"', "\\"}
"""The letters of a scope, as a header takes them."""


class StreamEnd:
    """Follows the last item: the end of the answer, or None if the client has disconnected."""

    __slots__ = ("presented",)

    def __init__(self, presented: Presented | None) -> None:
        self.presented = presented


# ------------------------------------------------------------------ from the tool


class StreamSource:
    """A running stream's items, as JSON, in the order in which the tool makes them.

    It is among those that are `live` until its generator has ended and its client is served: one
    that nobody reads any more may still hold a thread.
    """

    def __init__(self, prepared: PreparedCall, active_streams: set[StreamSource]) -> None:
        self.prepared = prepared
        self._active_streams = active_streams
        self._is_generator_done = self._is_client_done = False
        active_streams.add(self)
        self._loop = asyncio.get_running_loop()
        self._ready: deque[bytes | StreamEnd] = deque()
        self._waiter: Future[None] | None = None

    def end(self) -> None:
        """The generator has ended; in whichever thread."""
        self._is_generator_done = True
        if self._is_client_done:
            self._active_streams.discard(self)

    def mark_client_done(self) -> None:
        """The client is served, or has left."""
        self._is_client_done = True
        if self._is_generator_done:
            self._active_streams.discard(self)

    def put(self, entry: bytes | StreamEnd) -> None:
        """Add an entry; on the loop's own thread."""
        self._ready.append(entry)
        self._wake()

    def disconnect(self) -> None:
        """The client has left: what was meant for it is dropped."""
        self._ready.clear()
        self.put(StreamEnd(None))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self, timeout: float) -> bytes | StreamEnd | None:
        """The next entry; None where nothing came for so long."""
        if not self._ready:
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(timeout, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if not self._ready:
            return None
        entry = self._ready.popleft()
        if isinstance(entry, bytes):
            self.make_room()
        return entry

    def make_room(self) -> None:
        """An entry is taken: the tool may make another."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Close the generator: nobody wants the rest."""
        raise NotImplementedError


class ThreadStreamSource(StreamSource):
    """A sync generator, in one thread from its first item to its end: it may hold what is bound
    to a thread."""

    def __init__(self, prepared: PreparedCall, active_streams: set[StreamSource]) -> None:
        super().__init__(prepared, active_streams)
        self._free_slots = Semaphore(MAX_BUFFERED_ITEMS)
        self._is_stopped = False
        try:
            Thread(target=self._run, name="tooli-stream", daemon=True).start()
        except RuntimeError:  # the machine has no more of them
            active_streams.discard(self)
            raise

    def _run(self) -> None:
        try:
            self._produce()
        finally:
            self.end()

    def _produce(self) -> None:
        items = self.prepared.stream()
        try:
            while self._free_slots.acquire() and not self._is_stopped:
                self._put_threadsafe(next(items))
            items.close()
            self._put_threadsafe(StreamEnd(None))
        except StopIteration as end:
            self._put_threadsafe(StreamEnd(end.value))
        except BaseException as exc:  # Ctrl-C inside of a tool does not end the server
            self._put_threadsafe(StreamEnd(self.prepared.fail(exc)))

    def _put_threadsafe(self, entry: bytes | StreamEnd) -> None:
        try:
            self._loop.call_soon_threadsafe(self.put, entry)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._is_stopped = True

    def make_room(self) -> None:
        """An entry is taken: the tool may make another."""
        self._free_slots.release()

    async def stop(self) -> None:
        """Let the thread close the generator as soon as it gives the next item."""
        self._is_stopped = True
        self._free_slots.release()


class TaskStreamSource(StreamSource):
    """An async generator, on the loop."""

    def __init__(self, prepared: PreparedCall, active_streams: set[StreamSource]) -> None:
        super().__init__(prepared, active_streams)
        self._free_slots = asyncio.Semaphore(MAX_BUFFERED_ITEMS)
        self._task: Task[None] = self._loop.create_task(self._produce())
        self._task.add_done_callback(lambda _: self.end())

    async def _produce(self) -> None:
        ended: list[Presented] = []
        try:
            async with aclosing(self.prepared.astream(ended)) as items:
                async for item in items:
                    self.put(item)
                    await self._free_slots.acquire()
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # Ctrl-C inside of a tool does not end the server
            ended.append(self.prepared.fail(exc))
        self.put(StreamEnd(ended[-1]))

    def make_room(self) -> None:
        """An entry is taken: the tool may make another."""
        self._free_slots.release()

    async def stop(self) -> None:
        """Cancel the generator where it stands, and wait until it has tidied up."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=5)


# ------------------------------------------------------------------ to the client


class NdjsonWriter:
    """One JSON value a line; the last line of a failing stream is the failure's envelope."""

    content_type = b"application/x-ndjson"
    keepalive = b""  # a line cannot say nothing

    def item(self, value: bytes) -> bytes:
        """One item."""
        return value + b"\n"

    def failure(self, envelope: bytes) -> bytes:
        """What is said where the stream breaks."""
        return envelope + b"\n"

    def end(self, envelope: bytes) -> bytes:
        """What is said at its good end."""
        return b""


class SseWriter(NdjsonWriter):
    """Server-sent events; the end is an event of its own, with what there is to say about it."""

    content_type = b"text/event-stream"
    keepalive = b": still here\n\n"

    def item(self, value: bytes) -> bytes:
        """One item."""
        return b"data: " + value + b"\n\n"

    def failure(self, envelope: bytes) -> bytes:
        """What is said where the stream breaks."""
        return b"event: error\ndata: " + envelope + b"\n\n"

    def end(self, envelope: bytes) -> bytes:
        """What is said at its good end."""
        return b"event: end\ndata: " + envelope + b"\n\n"


def start_stream(prepared: PreparedCall, active_streams: set[StreamSource]) -> StreamSource:
    """Run the call; its items come as they are made."""
    source = TaskStreamSource if prepared.is_async else ThreadStreamSource
    return source(prepared, active_streams)


async def send_stream(
    request: HttpRequest, source: StreamSource, stream_format: str, settings: HttpSettings
) -> None:
    """Send a call's items as they come; a client that leaves ends it."""
    writer = SseWriter() if stream_format == "events" else NdjsonWriter()
    disconnect_task = asyncio.get_running_loop().create_task(_wait_for_disconnect(request, source))
    try:
        await _send_items(request, source, writer, settings)
    except ClientTimeout:
        pass  # it does not read: to it nothing can be said
    except asyncio.CancelledError:
        await _send_terminated(request, source.prepared, writer)
    finally:
        disconnect_task.cancel()
        source.mark_client_done()
        await source.stop()


async def _send_items(
    request: HttpRequest, source: StreamSource, writer: NdjsonWriter, settings: HttpSettings
) -> None:
    while not isinstance(entry := await source.get(settings.heartbeat), StreamEnd):
        chunk = writer.keepalive if entry is None else writer.item(entry)
        if chunk:
            if not request.is_response_started:
                await request.start_response(200, (b"content-type", writer.content_type))
            await wait_with_timeout(settings.stall_timeout, request.write(chunk))
    presented = entry.presented
    if presented is None:
        return
    if not presented.ok and not request.is_response_started:
        await request.respond(
            presented.http_status, presented.envelope_json(), *failure_headers(presented)
        )
        return
    if not request.is_response_started:
        await request.start_response(200, (b"content-type", writer.content_type))
    write_end = writer.end if presented.ok else writer.failure
    await request.write(write_end(presented.envelope_json()), is_last=True)


async def _wait_for_disconnect(request: HttpRequest, source: StreamSource) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    source.disconnect()


async def _send_terminated(
    request: HttpRequest, prepared: PreparedCall, writer: NdjsonWriter
) -> None:
    presented = prepared.fail(termination_error())
    if request.is_response_started:
        await request.write(writer.failure(presented.envelope_json()), is_last=True)
    else:
        await request.respond(presented.http_status, presented.envelope_json())


def termination_error() -> Interrupted:
    """The error of a call that the end of the server cut short."""
    return Interrupted("The server is ending; the call was stopped.", code="E4143")


def failure_headers(presented: Presented) -> Headers:
    """Return the headers of a failure: when to retry, or which scopes are missing."""
    error = presented.error
    if error is None or not error.details:
        return ()
    if error.code == "E2001":
        scopes: Any = error.details.get("missing_scopes", ())
        scope_text = " ".join([scope for scope in scopes if _SCOPE_CHARACTERS.issuperset(scope)])
        challenge = f'Bearer realm="tooli", error="insufficient_scope", scope="{scope_text}"'
        return ((b"www-authenticate", challenge.encode("ascii")),)
    retry_after: Any = error.details.get("retry_after")
    if type(retry_after) not in (int, float) or not 0 <= retry_after <= _MAX_RETRY_AFTER:
        return ()
    return ((b"retry-after", b"%d" % -(-retry_after // 1)),)
