"""Send the items and events of a call as they come, as JSON lines or server-sent events.

tool ──▶ StreamSource ──▶ NDJSON │ SSE ──▶ client
  ▲           │
  └ free slot ┘       no free slot: the tool waits; client disconnects or token expires: it ends

With server-sent events, and with `events=true` in NDJSON, a command that takes a Context also sends
its progress, log messages and artifacts, whether it yields items or returns one result.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from threading import Semaphore, Thread

from tooli.core import Record
from tooli.core.event_peer import item_event, result_event
from tooli.errors import Interrupted
from tooli.http.call_events import MAX_UNSENT_BYTES, MAX_UNSENT_EVENTS, CallEvent
from tooli.http.http_request import ClientTimeout, wait_with_timeout
from tooli.http.protected_resource import MAX_CHALLENGE_SCOPES, SCOPE_DESCRIPTION, valid_scopes
from tooli.pipeline.async_drivers import aclosing
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task
    from collections.abc import Callable

    from tooli.http.access_control import AccessControl
    from tooli.http.asgi import Headers, HttpSettings
    from tooli.http.call_events import StreamPeer
    from tooli.http.http_request import HttpRequest
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented

MAX_BUFFERED_ITEMS = 16
"""Maximum number of items that wait to be sent. The tool is paused while the buffer is full."""

_MAX_RETRY_AFTER = 86_400


class StreamEnd:
    """Marks the end of a stream. `presented` is None if the client has disconnected."""

    __slots__ = ("_envelope", "presented")

    def __init__(self, presented: Presented | None, envelope: bytes | None = None) -> None:
        self.presented = presented
        self._envelope = envelope

    def envelope(self, presented: Presented) -> bytes:
        """Return the envelope as JSON."""
        return presented.envelope_json() if self._envelope is None else self._envelope


# ------------------------------------------------------------------ reading from the tool


class StreamSource:
    """The items of a running stream, as JSON, in order.

    It counts as active until both its generator and its response have ended: a stream whose
    client has disconnected may still use a thread.
    """

    caller = ""  # the key under which the streams of a caller are counted
    _free_slot: Callable[[], None]  # lets the tool yield another item

    def __init__(
        self,
        prepared: PreparedCall,
        active_streams: set[StreamSource],
        peer: StreamPeer | None = None,
        *,
        yields_items: bool = True,
    ) -> None:
        self.prepared = prepared
        self._peer = peer
        self._yields_items = yields_items
        self._unsent_events = self._unsent_bytes = self._dropped_events = 0
        if peer is not None:
            peer.source = self
        self._active_streams = active_streams
        self._is_generator_done = self._is_client_done = False
        self.loop = asyncio.get_running_loop()
        active_streams.add(self)
        self._ready: deque[bytes | CallEvent | StreamEnd] = deque()
        self._waiter: Future[None] | None = None

    def mark_generator_done(self) -> None:
        """Record that the generator has ended. May be called in any thread."""
        self._is_generator_done = True
        if self._is_client_done:
            self._active_streams.discard(self)

    def mark_client_done(self) -> None:
        """Record that the response has ended, or that the client has disconnected."""
        self._is_client_done = True
        if self._peer is not None:
            self._peer.cancelled = True
        if self._is_generator_done:
            self._active_streams.discard(self)

    def put(self, entry: bytes | CallEvent | StreamEnd) -> None:
        """Add an entry. Must be called in the event loop's thread."""
        self._ready.append(entry)
        self._wake()

    def put_event(self, event: CallEvent) -> None:
        """Add an event, in any thread. It is dropped if too many wait for a slow client."""
        size = len(event.data)
        if self._unsent_events >= MAX_UNSENT_EVENTS or self._unsent_bytes + size > MAX_UNSENT_BYTES:
            self._dropped_events += 1
            return
        self._unsent_events += 1
        self._unsent_bytes += size
        if _running_loop() is self.loop:
            self.put(event)  # an async function: before its next item
        else:
            self._put_threadsafe(event)

    def _put_threadsafe(self, entry: bytes | CallEvent | StreamEnd) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            self.loop.call_soon_threadsafe(self.put, entry)

    def add_warning(self, presented: Presented) -> Presented:
        """Add a warning to the answer if events were dropped."""
        if self._dropped_events:
            count = self._dropped_events
            presented.add_warnings([f"{count} events were dropped: the client reads too slowly."])
        return presented

    def end(self, presented: Presented | None) -> None:
        """End the stream before the tool ends. Drops the buffered items."""
        self._ready.clear()
        self.put(StreamEnd(presented))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self, timeout: float) -> bytes | CallEvent | StreamEnd | None:
        """Return the next entry, or None if none comes within `timeout` seconds."""
        if not self._ready:
            self._waiter = self.loop.create_future()
            timer = self.loop.call_later(timeout, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if not self._ready:
            return None
        entry = self._ready.popleft()
        if isinstance(entry, bytes):
            self._free_slot()
        elif isinstance(entry, CallEvent):
            self._unsent_events -= 1
            self._unsent_bytes -= len(entry.data)
        return entry

    async def stop(self) -> None:
        """Close the generator."""
        raise NotImplementedError


def _running_loop() -> AbstractEventLoop | None:
    """Return the event loop of this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class ThreadStreamSource(StreamSource):
    """The items of a sync generator, or the result of a sync function.

    The generator runs in one thread from start to end, because it may use resources that are bound
    to a thread.
    """

    def __init__(
        self,
        prepared: PreparedCall,
        active_streams: set[StreamSource],
        peer: StreamPeer | None = None,
        *,
        yields_items: bool = True,
    ) -> None:
        super().__init__(prepared, active_streams, peer, yields_items=yields_items)
        self._free_slots = Semaphore(MAX_BUFFERED_ITEMS)
        self._free_slot = self._free_slots.release
        self._is_stopped = False
        try:
            Thread(target=self._run, name="tooli-stream", daemon=True).start()
        except RuntimeError:  # the system cannot start more threads
            active_streams.discard(self)
            raise

    def _run(self) -> None:
        try:
            if self._yields_items:
                self._produce()
            else:
                self._produce_result()
        finally:
            self.mark_generator_done()

    def _produce_result(self) -> None:
        try:
            presented = self.prepared.run()
        except BaseException as exc:  # Ctrl-C inside a tool does not end the server
            presented = self.prepared.fail(exc)
        self.add_warning(presented)
        self._put_threadsafe(StreamEnd(presented, presented.envelope_json()))

    def _produce(self) -> None:
        items = self.prepared.stream()
        try:
            while self._free_slots.acquire() and not self._is_stopped:
                self._put_threadsafe(next(items))
            items.close()
            self._put_threadsafe(StreamEnd(None))
        except StopIteration as end:
            self._put_threadsafe(StreamEnd(self.add_warning(end.value)))
        except BaseException as exc:  # Ctrl-C inside a tool does not end the server
            self._put_threadsafe(StreamEnd(self.prepared.fail(exc)))

    def _put_threadsafe(self, entry: bytes | CallEvent | StreamEnd) -> None:
        try:
            self.loop.call_soon_threadsafe(self.put, entry)
        except RuntimeError:  # the loop is closed: the server has ended
            self._is_stopped = True

    async def stop(self) -> None:
        """Tell the thread to close the generator, at the latest after its next item."""
        self._is_stopped = True
        self._free_slot()


class TaskStreamSource(StreamSource):
    """The items or the result of an async function, which runs as a task on the event loop."""

    def __init__(
        self,
        prepared: PreparedCall,
        active_streams: set[StreamSource],
        peer: StreamPeer | None = None,
        *,
        yields_items: bool = True,
    ) -> None:
        super().__init__(prepared, active_streams, peer, yields_items=yields_items)
        self._free_slots = asyncio.Semaphore(MAX_BUFFERED_ITEMS)
        self._free_slot = self._free_slots.release
        produce = self._produce if yields_items else self._produce_result
        self._task: Task[None] = self.loop.create_task(produce())
        self._task.add_done_callback(lambda _: self.mark_generator_done())

    async def _produce_result(self) -> None:
        try:
            presented = await self.prepared.arun()
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # Ctrl-C inside a tool does not end the server
            presented = self.prepared.fail(exc)
        self.put(StreamEnd(self.add_warning(presented)))

    async def _produce(self) -> None:
        final: list[Presented] = []
        try:
            async with aclosing(self.prepared.astream(final)) as items:
                async for item in items:
                    self.put(item)
                    await self._free_slots.acquire()
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # Ctrl-C inside a tool does not end the server
            final.append(self.prepared.fail(exc))
        self.put(StreamEnd(self.add_warning(final[-1])))

    async def stop(self) -> None:
        """Cancel the generator, and wait up to five seconds for its end."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=5)


# ------------------------------------------------------------------ writing to the client


class StreamFormat(Record):
    """The chunks of a streamed response. `%b` stands for an item or for the envelope."""

    content_type: bytes
    keepalive: bytes  # sent while the tool yields nothing; empty: nothing is sent
    item: bytes
    failure: bytes  # sent at the end of a failed stream
    end: bytes  # sent at the end of a successful stream; empty: nothing is sent
    has_event_names: bool = True  # False: an event is a line of JSON

    def event_chunk(self, event: CallEvent) -> bytes:
        """Return the chunk of an event that is not an item."""
        if not self.has_event_names:
            return event.data + b"\n"
        return b"event: %b\ndata: %b\n\n" % (event.name.encode(), event.data)

    def last_chunk(self, envelope: bytes, *, ok: bool) -> bytes:
        """Return the last chunk of a response; empty if there is none."""
        if not self.has_event_names:
            return result_event(envelope) + b"\n"
        last = self.end if ok else self.failure
        return last and last % envelope


NDJSON = StreamFormat(
    content_type=b"application/x-ndjson",
    keepalive=b"",  # an empty line is not valid NDJSON
    item=b"%b\n",
    failure=b"%b\n",
    end=b"",
)
"""One JSON value per line. If the stream fails, the last line is the envelope of the error."""

SSE = StreamFormat(
    content_type=b"text/event-stream",
    keepalive=b": still here\n\n",
    item=b"data: %b\n\n",
    failure=b"event: error\ndata: %b\n\n",
    end=b"event: end\ndata: %b\n\n",
)
"""Server-sent events. The last event, `end` or `error`, contains the envelope."""

EVENTS = StreamFormat(
    content_type=b"application/x-ndjson; events=true",
    keepalive=b"",
    item=item_event(b"%b") + b"\n",
    failure=b"",
    end=b"",
    has_event_names=False,
)
"""One event per line, as `--stream` writes them. The last one contains the envelope."""

STREAM_FORMATS = {"ndjson": NDJSON, "sse": SSE, "events": EVENTS}


def start_stream(
    prepared: PreparedCall,
    active_streams: set[StreamSource],
    caller: str = "",
    peer: StreamPeer | None = None,
    *,
    yields_items: bool = True,
) -> StreamSource:
    """Start a call whose items and events are sent as they come. `caller` is its caller's key."""
    source_type = TaskStreamSource if prepared.is_async else ThreadStreamSource
    source = source_type(prepared, active_streams, peer, yields_items=yields_items)
    source.caller = caller
    return source


async def send_stream(
    request: HttpRequest,
    source: StreamSource,
    stream_format: str,
    settings: HttpSettings,
    access_control: AccessControl,
) -> None:
    """Send the items of a call as the tool yields them.

    The stream ends early if the client disconnects, or if its token is no longer valid.
    """
    chunks = STREAM_FORMATS[stream_format]
    watchers = [_wait_for_disconnect(request, source)]
    if request.verified_token is not None:
        watchers.append(_wait_until_revoked(request, source, access_control))
    watcher_tasks = [asyncio.get_running_loop().create_task(watcher) for watcher in watchers]
    try:
        await _send_items(request, source, chunks, settings, access_control)
    except ClientTimeout:
        pass  # no error can be sent to a client that does not read
    except asyncio.CancelledError:
        await _send_terminated(request, source.prepared, chunks)
        raise
    finally:
        for task in watcher_tasks:
            task.cancel()
        source.mark_client_done()
        await source.stop()


async def _send_items(
    request: HttpRequest,
    source: StreamSource,
    chunks: StreamFormat,
    settings: HttpSettings,
    access_control: AccessControl,
) -> None:
    while not isinstance(entry := await source.get(settings.heartbeat), StreamEnd):
        if isinstance(entry, CallEvent):
            chunk = chunks.event_chunk(entry)
        else:
            chunk = chunks.keepalive if entry is None else chunks.item % entry
        if chunk:
            if not request.is_response_started:
                await request.start_response(200, (b"content-type", chunks.content_type))
            await wait_with_timeout(settings.stall_timeout, request.write(chunk))
    presented = entry.presented
    if presented is None:
        return
    if not presented.ok and not request.is_response_started:
        headers = access_control.resource.complete_challenge(request, failure_headers(presented))
        await request.respond(presented.http_status, entry.envelope(presented), *headers)
        return
    if not request.is_response_started:
        await request.start_response(200, (b"content-type", chunks.content_type))
    last = chunks.last_chunk(entry.envelope(presented), ok=presented.ok)
    await request.write(last, is_last=True)


async def _wait_for_disconnect(request: HttpRequest, source: StreamSource) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    source.end(None)


async def _wait_until_revoked(
    request: HttpRequest, source: StreamSource, access_control: AccessControl
) -> None:
    error = await access_control.wait_until_revoked(request)
    source.end(source.prepared.fail(error))


async def _send_terminated(
    request: HttpRequest, prepared: PreparedCall, chunks: StreamFormat
) -> None:
    presented = prepared.fail(termination_error())
    if request.is_response_started:
        last = chunks.last_chunk(presented.envelope_json(), ok=False)
        await request.write(last, is_last=True)
    else:
        await request.respond(presented.http_status, presented.envelope_json())


def termination_error() -> Interrupted:
    """Return the error for a call that was stopped because the server shuts down."""
    return Interrupted("The server is shutting down; the call was stopped.", code="E4143")


def failure_headers(presented: Presented) -> Headers:
    """Return the headers of a failure: when to retry, or which scopes are missing."""
    error = presented.error
    if error is None or not error.details:
        return ()
    if error.code == "E2001":
        missing: object = error.details.get("missing_scopes")
        texts = [item for item in missing if isinstance(item, str)] if is_list(missing) else []
        scopes = " ".join(valid_scopes(texts)[:MAX_CHALLENGE_SCOPES])  # data of the command
        challenge = (
            'Bearer realm="tooli", error="insufficient_scope", '
            f'error_description="{SCOPE_DESCRIPTION}", scope="{scopes}"'
        )
        return ((b"www-authenticate", challenge.encode("ascii")),)
    retry_after: object = error.details.get("retry_after")
    if not isinstance(retry_after, (int, float)) or isinstance(retry_after, bool):
        return ()
    if not 0 <= retry_after <= _MAX_RETRY_AFTER:
        return ()
    return ((b"retry-after", b"%d" % -(-retry_after // 1)),)
