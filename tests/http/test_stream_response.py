"""Streams: sent item by item, paused for slow clients, closed when the client disconnects."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, post

from tooli import AuthError, NotFoundError, Tooli

ACCEPT_NDJSON = (b"accept", b"application/x-ndjson")
ACCEPT_SSE = (b"accept", b"text/event-stream")
sync_and_async = pytest.mark.parametrize("tool", ["rows", "arows"])


class StreamingApp:
    """An app with streams, and what happened to them."""

    def __init__(self, **settings: Any) -> None:
        self.yielded = 0  # items
        self.threads: set[int] = set()
        self.closed = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.gate = threading.Event()
        app = Tooli("streams", version="1")

        @app.command()
        def rows(n: int, fail_after: int = -1) -> Iterator[dict]:
            """Yield rows in a thread."""
            try:
                for i in range(n):
                    if i == fail_after:
                        raise NotFoundError("no more")
                    self.yielded += 1
                    self.threads.add(threading.get_ident())
                    yield {"i": i, "text": "a\nb\u2028c"}
            finally:
                self.threads.add(threading.get_ident())
                self.closed.set()

        @app.command()
        async def arows(n: int, fail_after: int = -1) -> AsyncIterator[dict]:
            """Yield rows on the event loop."""
            try:
                for i in range(n):
                    if i == fail_after:
                        raise NotFoundError("no more")
                    self.yielded += 1
                    yield {"i": i, "text": "a\nb\u2028c"}
                    await asyncio.sleep(0)
            finally:
                self.closed.set()

        @app.command()
        def held(n: int) -> Iterator[int]:
            """Yield one item, then the others when the gate is open."""
            yield 0
            self.waiting.release()
            self.gate.wait(120)
            yield from range(1, n)

        @app.command()
        async def silent() -> AsyncIterator[int]:
            """Yield nothing."""
            try:
                await asyncio.Event().wait()
                yield 1
            finally:
                self.closed.set()

        @app.command()
        def plain() -> list[int]:
            """Return a list."""
            return [1, 2]

        @app.command()
        def interrupted(after: int = 0) -> Iterator[int]:
            """Raise KeyboardInterrupt after some items."""
            yield from range(after)
            raise KeyboardInterrupt

        self.api = app.asgi(mcp=False, **settings)


def parse_events(body: bytes) -> list[tuple[str, Any]]:
    """Return the kind and data of server-sent events."""
    events: list[tuple[str, Any]] = []
    for block in body.decode().split("\n\n"):
        kind, data = "message", None
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = json.loads(value)
        if data is not None:
            events.append((kind, data))
    return events


@sync_and_async
async def test_ndjson_has_one_line_per_item(tool: str) -> None:
    client = await post(StreamingApp().api, tool, {"n": 3}, ACCEPT_NDJSON)
    assert client.headers["content-type"] == "application/x-ndjson"
    assert "content-length" not in client.headers
    assert [json.loads(line)["i"] for line in client.body.splitlines()] == [0, 1, 2]
    assert len(client.sent) == 1 + 3 + 1  # the headers, a message per item, the end


@sync_and_async
async def test_server_sent_events_have_one_event_per_item(tool: str) -> None:
    client = await post(StreamingApp().api, tool, {"n": 2}, ACCEPT_SSE)
    assert client.headers["content-type"] == "text/event-stream"
    assert client.headers["cache-control"] == "no-store"
    events = parse_events(client.body)
    assert [kind for kind, _ in events] == ["message", "message", "end"]
    assert events[0][1] == {"i": 0, "text": "a\nb\u2028c"}
    assert events[2][1]["meta"]["tool"] == f"streams.{tool}"


@sync_and_async
async def test_failing_stream_ends_with_the_error(tool: str) -> None:
    client = await post(StreamingApp().api, tool, {"n": 5, "fail_after": 2}, ACCEPT_NDJSON)
    assert client.status == 200
    *items, last = [json.loads(line) for line in client.body.splitlines()]
    assert len(items) == 2
    assert last["error"]["code"] == "E3010"
    assert last["error"]["details"] == {"items_before_failure": 2}
    events = parse_events(
        (await post(StreamingApp().api, tool, {"n": 5, "fail_after": 2}, ACCEPT_SSE)).body
    )
    assert [kind for kind, _ in events] == ["message", "message", "error"]


@sync_and_async
@pytest.mark.parametrize("accept", [ACCEPT_NDJSON, ACCEPT_SSE])
async def test_failure_before_the_first_item_has_an_error_status(
    tool: str, accept: tuple[bytes, bytes]
) -> None:
    client = await post(StreamingApp().api, tool, {"n": 5, "fail_after": 0}, accept)
    assert (client.status, client.code) == (404, "E3010")
    client = await post(StreamingApp().api, tool, {"n": "x"}, accept)
    assert (client.status, client.code) == (422, "E1003")


@sync_and_async
@pytest.mark.parametrize(
    "accept",
    [
        *(b"", b"*/*", b"application/json", b"application/json, application/x-ndjson", b";;,"),
        *(b"application/x-ndjson;q=0", b"application/x-ndjson;q=x", b"text/html"),
        b"text/event-stream;q=0.4, application/json;q=0.5",
    ],
)
async def test_other_accept_headers_get_one_envelope(tool: str, accept: bytes) -> None:
    client = await post(StreamingApp().api, tool, {"n": 2}, (b"accept", accept))
    assert len(client.json()["result"]) == 2


async def test_empty_stream_has_no_items() -> None:
    assert (await post(StreamingApp().api, "rows", {"n": 0}, ACCEPT_NDJSON)).body == b""
    assert [
        k
        for k, _ in parse_events(
            (await post(StreamingApp().api, "rows", {"n": 0}, ACCEPT_SSE)).body
        )
    ] == ["end"]


async def test_dry_run_of_a_stream_returns_the_plan() -> None:
    client = await post(StreamingApp().api, "rows", {"n": 2}, ACCEPT_NDJSON, query=b"dry_run=1")
    assert json.loads(client.body)["tool"] == "streams.rows"


async def test_list_is_not_streamed() -> None:
    assert (await post(StreamingApp().api, "plain", {}, ACCEPT_NDJSON)).json()["result"] == [1, 2]


async def test_keyboard_interrupt_in_a_stream_is_an_error() -> None:
    assert (await post(StreamingApp().api, "interrupted", {}, ACCEPT_NDJSON)).code == "E4130"
    client = await post(StreamingApp().api, "interrupted", {"after": 1}, ACCEPT_NDJSON)
    assert json.loads(client.body.splitlines()[-1])["error"]["code"] == "E4130"


async def test_sync_generator_runs_in_one_thread() -> None:
    app = StreamingApp()
    await post(app.api, "rows", {"n": 50}, ACCEPT_NDJSON)
    assert len(app.threads) == 1
    assert threading.get_ident() not in app.threads


async def test_items_are_sent_as_they_are_yielded() -> None:
    app = StreamingApp()
    client = AsgiClient(app.api)
    client.send_body(b'{"n":2}')
    task = client.start("POST", "/tools/held", [HOST, JSON, ACCEPT_NDJSON])
    await client.wait_for_messages(2)
    assert client.body == b"0\n"
    app.gate.set()
    await task
    assert client.body == b"0\n1\n"


@sync_and_async
async def test_generator_is_paused_while_the_client_does_not_read(tool: str) -> None:
    app = StreamingApp()
    client = AsgiClient(app.api)
    client.send_body(b'{"n":100000}')
    client.is_reading.clear()
    task = client.start("POST", f"/tools/{tool}", [HOST, JSON, ACCEPT_NDJSON])
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert app.yielded <= 40
    client.disconnect()
    client.is_reading.set()
    await asyncio.wait_for(task, 120)
    assert await asyncio.to_thread(app.closed.wait, 120)
    assert app.yielded < 1000


@sync_and_async
@pytest.mark.parametrize("accept", [ACCEPT_NDJSON, ACCEPT_SSE])
async def test_disconnect_ends_the_stream(tool: str, accept: tuple[bytes, bytes]) -> None:
    app = StreamingApp()
    client = AsgiClient(app.api)
    client.send_body(b'{"n":100000000}')
    task = client.start("POST", f"/tools/{tool}", [HOST, JSON, accept])
    await client.wait_for_messages(5)
    client.disconnect()
    await asyncio.wait_for(task, 120)
    assert await asyncio.to_thread(app.closed.wait, 120)


async def test_disconnect_before_the_first_item_closes_the_tool() -> None:
    app = StreamingApp()
    client = AsgiClient(app.api)
    client.send_body(b"{}")
    client.disconnect()
    await asyncio.wait_for(client.start("POST", "/tools/silent", [HOST, JSON, ACCEPT_SSE]), 120)
    assert app.closed.is_set()
    assert client.sent == []


async def test_stream_counts_towards_the_limit_until_its_thread_ends() -> None:
    app = StreamingApp(limit=2, queue_timeout=0)
    for address in ("192.0.2.1", "192.0.2.2"):
        client = AsgiClient(app.api)
        client.address = address
        client.send_body(b'{"n":2}')
        task = client.start("POST", "/tools/held", [HOST, JSON, ACCEPT_NDJSON])
        assert await asyncio.to_thread(app.waiting.acquire, True, 20)
        client.disconnect()
        await asyncio.wait_for(task, 120)
    for tool, accept in (("held", ACCEPT_NDJSON), ("plain", JSON)):
        refused = await post(app.api, tool, {"n": 1} if tool == "held" else {}, accept)
        assert (refused.status, refused.code) == (503, "E4075")
    app.gate.set()
    deadline = asyncio.get_running_loop().time() + 20
    while (await post(app.api, "plain", {})).status == 503:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


async def test_complete_stream_does_not_count_towards_the_limit() -> None:
    app = StreamingApp(limit=1, queue_timeout=120)
    for tool in ("rows", "arows") * 3:  # each waits until the thread of the last one has ended
        assert (await post(app.api, tool, {"n": 3}, ACCEPT_NDJSON)).status == 200


async def test_idle_event_stream_sends_comments() -> None:
    app = StreamingApp(heartbeat=0.01)
    client = AsgiClient(app.api)
    client.send_body(b"{}")
    task = client.start("POST", "/tools/silent", [HOST, JSON, ACCEPT_SSE])
    await client.wait_for_messages(3)
    client.disconnect()
    await task
    assert client.body.startswith(b": still here\n\n: still here\n\n")


async def test_idle_ndjson_stream_sends_nothing() -> None:
    app = StreamingApp(heartbeat=0.001)
    client = AsgiClient(app.api)
    client.send_body(b"{}")
    task = client.start("POST", "/tools/silent", [HOST, JSON, ACCEPT_NDJSON])
    for _ in range(20):
        await asyncio.sleep(0.001)
    client.disconnect()
    await task
    assert client.sent == []


@sync_and_async
async def test_client_that_does_not_read_times_out(tool: str) -> None:
    app = StreamingApp(stall_timeout=0.01)
    client = AsgiClient(app.api)
    client.send_body(b'{"n":100000000}')
    task = client.start("POST", f"/tools/{tool}", [HOST, JSON, ACCEPT_NDJSON])
    await client.wait_for_messages(3)
    client.is_reading.clear()
    await asyncio.wait_for(task, 120)
    assert await asyncio.to_thread(app.closed.wait, 120)


@sync_and_async
@pytest.mark.parametrize("accept", [ACCEPT_NDJSON, ACCEPT_SSE])
async def test_cancelled_stream_ends_with_an_error(tool: str, accept: tuple[bytes, bytes]) -> None:
    app = StreamingApp()
    client = AsgiClient(app.api)
    client.send_body(b'{"n":100000000}')
    task = client.start("POST", f"/tools/{tool}", [HOST, JSON, accept])
    await client.wait_for_messages(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 120)
    assert b'"code":"E4143"' in client.sent[-1]["body"]
    assert client.sent[-1]["more_body"] is False
    assert await asyncio.to_thread(app.closed.wait, 120)


async def test_cancellation_before_the_first_item_has_an_error_status() -> None:
    app = StreamingApp()
    client = AsgiClient(app.api)
    client.send_body(b"{}")
    task = client.start("POST", "/tools/silent", [HOST, JSON, ACCEPT_SSE])
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (client.status, client.code) == (503, "E4143")


async def test_concurrent_streams_send_all_items() -> None:
    app = StreamingApp()
    clients = await asyncio.gather(
        *[post(app.api, t, {"n": 200}, ACCEPT_NDJSON) for t in ("rows", "arows") * 10]
    )
    assert all(client.body.count(b"\n") == 200 for client in clients)


@pytest.mark.parametrize(
    ("scopes", "text"),
    [
        ([5, None, ["a"], {"b": 1}, "c", "a b", 'q"'], "c"),
        (5, ""),
        (["x" * 101, "y"], "y"),
        ([f"s{i}" for i in range(1000)], " ".join([f"s{i}" for i in range(50)])),
    ],
)
async def test_missing_scopes_of_a_command_are_untrusted(scopes: Any, text: str) -> None:
    """A command, which may be isolated, can report any details."""
    app = Tooli("a")

    @app.command()
    def fail() -> None:
        raise AuthError("no", code="E2001", details={"missing_scopes": scopes})

    client = await post(app.asgi(), "fail", {})
    assert json.loads(client.body)["error"]["code"] == "E2001"
    challenge = dict(client.sent[0]["headers"])[b"www-authenticate"].decode()
    assert challenge.endswith(f', scope="{text}"' if text else 'lacks a scope."')
