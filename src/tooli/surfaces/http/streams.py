"""Streams: a tool's items sent one by one, as lines or as events, no faster than they are read.

generator ──▶ Feed ──▶ writer ──▶ client
    ▲          │
    └─ room ◀──┘      no room: the generator waits; no client: it is closed
"""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Semaphore, Thread

from tooli.call.envelope import encode, encoder
from tooli.call.failure import outcome_of
from tooli.call.model import Failed, Ok
from tooli.call.pipeline import is_async, stream
from tooli.errors import Interrupted
from tooli.surfaces.http.patience import Late, within

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Iterator
    from typing import Any

    from tooli.call.model import Outcome
    from tooli.surfaces.http.exchange import Exchange
    from tooli.surfaces.http.settings import Headers, Settings
    from tooli.surfaces.serving import Served

AHEAD = 16
"""How many items may be on their way; the generator rests until there is room."""

_LONGEST_WAIT = 86_400
_SCOPE = frozenset(map(chr, range(0x21, 0x7F))) - {'"', "\\"}
"""The letters of a scope, as a header takes them."""


class End:
    """What stands behind the last item: the outcome, or nothing where the client has left."""

    __slots__ = ("outcome",)

    def __init__(self, outcome: Outcome | None) -> None:
        self.outcome = outcome


# ------------------------------------------------------------------ from the tool


class Feed:
    """A running stream's items, as JSON, in the order in which the tool makes them.

    It is among those that are `live` until its generator has ended and its client is served: one
    that nobody reads any more may still hold a thread.
    """

    def __init__(self, served: Served, live: set[Feed]) -> None:
        self.served = served
        self._live = live
        self._is_over = self._is_served = False
        live.add(self)
        self._loop = asyncio.get_running_loop()
        self._ready: deque[bytes | End] = deque()
        self._waiter: Future[None] | None = None

    def end(self) -> None:
        """The generator has ended; in whichever thread."""
        self._is_over = True
        if self._is_served:
            self._live.discard(self)

    def part(self) -> None:
        """The client is served, or has left."""
        self._is_served = True
        if self._is_over:
            self._live.discard(self)

    def put(self, entry: bytes | End) -> None:
        """Add an entry; on the loop's own thread."""
        self._ready.append(entry)
        self._wake()

    def leave(self) -> None:
        """The client has left: what was meant for it is dropped."""
        self._ready.clear()
        self.put(End(None))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self, seconds: float) -> bytes | End | None:
        """The next entry; None where nothing came for so long."""
        if not self._ready:
            self._waiter = self._loop.create_future()
            alarm = self._loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                alarm.cancel()
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


class ThreadFeed(Feed):
    """A sync generator, in one thread from its first item to its end: it may hold what is bound
    to a thread."""

    def __init__(self, served: Served, live: set[Feed]) -> None:
        super().__init__(served, live)
        self._room = Semaphore(AHEAD)
        self._stopped = False
        try:
            Thread(target=self._run, name="tooli-stream", daemon=True).start()
        except RuntimeError:  # the machine has no more of them
            live.discard(self)
            raise

    def _run(self) -> None:
        try:
            self._make()
        finally:
            self.end()

    def _make(self) -> None:
        items = stream(self.served.call, self.served.stages)
        write = encoder(self.served.call.warnings, self.served.call)
        try:
            while self._room.acquire() and not self._stopped:
                self._post(write(next(items)))
            items.close()
            self._post(End(None))
        except StopIteration as end:
            self._post(End(end.value))
        except BaseException as exc:  # Ctrl-C inside of a tool does not end the server
            self._post(End(outcome_of(exc)))

    def _post(self, entry: bytes | End) -> None:
        try:
            self._loop.call_soon_threadsafe(self.put, entry)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._stopped = True

    def make_room(self) -> None:
        """An entry is taken: the tool may make another."""
        self._room.release()

    async def stop(self) -> None:
        """Let the thread close the generator as soon as it gives the next item."""
        self._stopped = True
        self._room.release()


class TaskFeed(Feed):
    """An async generator, on the loop."""

    def __init__(self, served: Served, live: set[Feed]) -> None:
        super().__init__(served, live)
        self._room = asyncio.Semaphore(AHEAD)
        self._task: Task[None] = self._loop.create_task(self._make())
        self._task.add_done_callback(lambda _: self.end())

    async def _make(self) -> None:
        from tooli.call import aio

        write = encoder(self.served.call.warnings, self.served.call)
        ended: list[Outcome] = []
        try:
            items = aio.stream(self.served.call, self.served.stages, ended)
            async with aio.aclosing(items):
                async for item in items:
                    self.put(write(item))
                    await self._room.acquire()
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # Ctrl-C inside of a tool does not end the server
            ended.append(outcome_of(exc))
        self.put(End(ended[-1]))

    def make_room(self) -> None:
        """An entry is taken: the tool may make another."""
        self._room.release()

    async def stop(self) -> None:
        """Cancel the generator where it stands, and wait until it has tidied up."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=5)


# ------------------------------------------------------------------ to the client


class Lines:
    """One JSON value a line; the last line of a failing stream is the failure's envelope."""

    kind = b"application/x-ndjson"
    pulse = b""  # a line cannot say nothing

    def item(self, value: bytes) -> bytes:
        """One item."""
        return value + b"\n"

    def failure(self, envelope: bytes) -> bytes:
        """What is said where the stream breaks."""
        return envelope + b"\n"

    def end(self, envelope: bytes) -> bytes:
        """What is said at its good end."""
        return b""


class Events(Lines):
    """Server-sent events; the end is an event of its own, with what there is to say about it."""

    kind = b"text/event-stream"
    pulse = b": still here\n\n"

    def item(self, value: bytes) -> bytes:
        """One item."""
        return b"data: " + value + b"\n\n"

    def failure(self, envelope: bytes) -> bytes:
        """What is said where the stream breaks."""
        return b"event: error\ndata: " + envelope + b"\n\n"

    def end(self, envelope: bytes) -> bytes:
        """What is said at its good end."""
        return b"event: end\ndata: " + envelope + b"\n\n"


def start_feed(served: Served, live: set[Feed]) -> Feed:
    """Run the call; its items come as they are made."""
    return (TaskFeed if is_async(served.call.tool.fn) else ThreadFeed)(served, live)


async def answer_stream(exchange: Exchange, feed: Feed, form: str, settings: Settings) -> None:
    """Send a call's items as they come; a client that leaves ends it."""
    writer = Events() if form == "events" else Lines()
    leaving = asyncio.get_running_loop().create_task(_wait_until_gone(exchange, feed))
    try:
        await _send(exchange, feed, writer, settings)
    except Late:
        pass  # it does not read: to it nothing can be said
    except asyncio.CancelledError:
        await _say_terminated(exchange, feed.served, writer)
    finally:
        leaving.cancel()
        feed.part()
        await feed.stop()


async def _send(exchange: Exchange, feed: Feed, writer: Lines, settings: Settings) -> None:
    served = feed.served
    while not isinstance(entry := await feed.get(settings.heartbeat), End):
        piece = writer.pulse if entry is None else writer.item(entry)
        if piece:
            if not exchange.begun:
                await exchange.begin(200, (b"content-type", writer.kind))
            await within(settings.stall_timeout, exchange.write(piece))
    outcome = entry.outcome
    if outcome is None:
        return
    if isinstance(outcome, Failed) and not exchange.begun:
        answer = served.answer(outcome)
        await exchange.answer(status_of(outcome), answer.document(), *headers_of(outcome))
        return
    if not exchange.begun:
        await exchange.begin(200, (b"content-type", writer.kind))
    for value in _rest(outcome):
        piece = writer.item(encode(value, served.call.warnings, served.call))
        await within(settings.stall_timeout, exchange.write(piece))
    if isinstance(outcome, Failed):
        last = writer.failure(served.answer(outcome).document())
    else:
        last = writer.end(served.answer(Ok(None)).document())
    await exchange.write(last, last=True)


async def _wait_until_gone(exchange: Exchange, feed: Feed) -> None:
    while (await exchange.receive())["type"] != "http.disconnect":
        pass
    feed.leave()


def _rest(outcome: Outcome) -> Iterator[Any]:
    """What a call that did not stream after all leaves to be sent."""
    value: Any = outcome.value if isinstance(outcome, Ok) else None
    if type(value) in (list, tuple):
        yield from value
    elif type(value) in (set, frozenset):
        from tooli.contract.jsonable import ordered

        yield from ordered(value)
    elif value is not None:
        yield value


async def _say_terminated(exchange: Exchange, served: Served, writer: Lines) -> None:
    outcome = Failed(terminated())
    document = served.answer(outcome).document()
    if exchange.begun:
        await exchange.write(writer.failure(document), last=True)
    else:
        await exchange.answer(status_of(outcome), document)


def terminated() -> Interrupted:
    """The error of a call that the end of the server cut short."""
    return Interrupted("The server is ending; the call was stopped.", code="E4143")


def status_of(outcome: Outcome) -> int:
    """The HTTP status of an outcome."""
    if isinstance(outcome, Ok):
        return 200
    status = outcome.error.http_status
    return status if 400 <= status <= 599 else 500


def headers_of(outcome: Outcome) -> Headers:
    """What the head of an answer says about a failure: when to come again, what is missing."""
    error = outcome.error if isinstance(outcome, Failed) else None
    if error is None or not error.details:
        return ()
    if error.code == "E2001":
        scopes: Any = error.details.get("missing_scopes", ())
        words = " ".join([word for word in scopes if _SCOPE.issuperset(word)])
        said = f'Bearer realm="tooli", error="insufficient_scope", scope="{words}"'
        return ((b"www-authenticate", said.encode("ascii")),)
    wait: Any = error.details.get("retry_after")
    if type(wait) not in (int, float) or not 0 <= wait <= _LONGEST_WAIT:
        return ()
    return ((b"retry-after", b"%d" % -(-wait // 1)),)
