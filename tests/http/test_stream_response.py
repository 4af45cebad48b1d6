"""Streams: item by item, no faster than they are read, and closed when nobody reads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.http.asgi_client import HOST, JSON, Client, post

from tooli import NotFoundError, Tooli

LINES = (b"accept", b"application/x-ndjson")
EVENTS = (b"accept", b"text/event-stream")
BOTH = pytest.mark.parametrize("tool", ["rows", "arows"])


class Farm:
    """An app whose streams tell what happens to them."""

    def __init__(self, **settings) -> None:
        self.made = 0
        self.threads: set[int] = set()
        self.closed = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.gate = threading.Event()
        app = Tooli("farm", version="1")

        @app.command()
        def rows(n: int, fail_after: int = -1) -> Iterator[dict]:
            """Some rows."""
            try:
                for i in range(n):
                    if i == fail_after:
                        raise NotFoundError("no more")
                    self.made += 1
                    self.threads.add(threading.get_ident())
                    yield {"i": i, "text": "a\nb\u2028c"}
            finally:
                self.threads.add(threading.get_ident())
                self.closed.set()

        @app.command()
        async def arows(n: int, fail_after: int = -1) -> AsyncIterator[dict]:
            """The same on the loop."""
            try:
                for i in range(n):
                    if i == fail_after:
                        raise NotFoundError("no more")
                    self.made += 1
                    yield {"i": i, "text": "a\nb\u2028c"}
                    await asyncio.sleep(0)
            finally:
                self.closed.set()

        @app.command()
        def held(n: int) -> Iterator[int]:
            """The first at once, the others when the gate is open."""
            yield 0
            self.waiting.release()
            self.gate.wait(120)
            yield from range(1, n)

        @app.command()
        async def silent() -> AsyncIterator[int]:
            """Nothing, for ever."""
            try:
                await asyncio.Event().wait()
                yield 1
            finally:
                self.closed.set()

        @app.command()
        def plain() -> list[int]:
            """No stream at all."""
            return [1, 2]

        @app.command()
        def stopped(after: int = 0) -> Iterator[int]:
            """Ctrl-C on the way."""
            yield from range(after)
            raise KeyboardInterrupt

        self.api = app.asgi(mcp=False, **settings)


def events(body: bytes) -> list[tuple[str, object]]:
    """Server-sent events, read as a browser reads them."""
    found = []
    for block in body.decode().split("\n\n"):
        kind, data = "message", None
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = json.loads(value)
        if data is not None:
            found.append((kind, data))
    return found


@BOTH
async def test_lines(tool: str) -> None:
    client = await post(Farm().api, tool, {"n": 3}, LINES)
    assert client.headers["content-type"] == "application/x-ndjson"
    assert "content-length" not in client.headers
    assert [json.loads(line)["i"] for line in client.body.splitlines()] == [0, 1, 2]
    assert len(client.sent) == 1 + 3 + 1  # the head, each item by itself, the end


@BOTH
async def test_events(tool: str) -> None:
    client = await post(Farm().api, tool, {"n": 2}, EVENTS)
    assert client.headers["content-type"] == "text/event-stream"
    assert client.headers["cache-control"] == "no-store"
    told = events(client.body)
    assert [kind for kind, _ in told] == ["message", "message", "end"]
    assert told[0][1] == {"i": 0, "text": "a\nb\u2028c"}
    assert told[2][1]["meta"]["tool"] == f"farm.{tool}"


@BOTH
async def test_the_last_line_of_a_failing_stream_is_the_failure(tool: str) -> None:
    client = await post(Farm().api, tool, {"n": 5, "fail_after": 2}, LINES)
    assert client.status == 200
    *items, last = [json.loads(line) for line in client.body.splitlines()]
    assert len(items) == 2
    assert last["error"]["code"] == "E3010"
    assert last["error"]["details"] == {"items_before_failure": 2}
    told = events((await post(Farm().api, tool, {"n": 5, "fail_after": 2}, EVENTS)).body)
    assert [kind for kind, _ in told] == ["message", "message", "error"]


@BOTH
@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_a_stream_that_fails_at_once_is_an_ordinary_failure(tool: str, accept) -> None:
    client = await post(Farm().api, tool, {"n": 5, "fail_after": 0}, accept)
    assert (client.status, client.code) == (404, "E3010")
    client = await post(Farm().api, tool, {"n": "x"}, accept)
    assert (client.status, client.code) == (422, "E1003")


@BOTH
@pytest.mark.parametrize(
    "accept",
    [
        *(b"", b"*/*", b"application/json", b"application/json, application/x-ndjson", b";;,"),
        *(b"application/x-ndjson;q=0", b"application/x-ndjson;q=x", b"text/html"),
        b"text/event-stream;q=0.4, application/json;q=0.5",
    ],
)
async def test_otherwise_it_is_one_envelope(tool: str, accept: bytes) -> None:
    client = await post(Farm().api, tool, {"n": 2}, (b"accept", accept))
    assert len(client.json()["result"]) == 2


async def test_an_empty_stream() -> None:
    assert (await post(Farm().api, "rows", {"n": 0}, LINES)).body == b""
    assert [k for k, _ in events((await post(Farm().api, "rows", {"n": 0}, EVENTS)).body)] == [
        "end"
    ]


async def test_a_dry_run_of_a_stream_is_its_plan() -> None:
    client = await post(Farm().api, "rows", {"n": 2}, LINES, query=b"dry_run=1")
    assert json.loads(client.body)["tool"] == "farm.rows"


async def test_what_does_not_stream_is_one_envelope() -> None:
    assert (await post(Farm().api, "plain", {}, LINES)).json()["result"] == [1, 2]


async def test_ctrl_c_inside_of_a_stream() -> None:
    assert (await post(Farm().api, "stopped", {}, LINES)).code == "E4130"
    client = await post(Farm().api, "stopped", {"after": 1}, LINES)
    assert json.loads(client.body.splitlines()[-1])["error"]["code"] == "E4130"


async def test_a_sync_stream_stays_in_one_thread() -> None:
    farm = Farm()
    await post(farm.api, "rows", {"n": 50}, LINES)
    assert len(farm.threads) == 1
    assert threading.get_ident() not in farm.threads


async def test_the_first_item_is_sent_before_the_last_is_made() -> None:
    farm = Farm()
    client = Client(farm.api)
    client.say(b'{"n":2}')
    work = client.start("POST", "/tools/held", [HOST, JSON, LINES])
    await client.until(2)
    assert client.body == b"0\n"
    farm.gate.set()
    await work
    assert client.body == b"0\n1\n"


@BOTH
async def test_a_client_that_does_not_read_holds_the_generator(tool: str) -> None:
    farm = Farm()
    client = Client(farm.api)
    client.say(b'{"n":100000}')
    client.may_send.clear()
    work = client.start("POST", f"/tools/{tool}", [HOST, JSON, LINES])
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert farm.made <= 40
    client.leave()
    client.may_send.set()
    await asyncio.wait_for(work, 120)
    assert await asyncio.to_thread(farm.closed.wait, 120)
    assert farm.made < 1000


@BOTH
@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_a_client_that_leaves_ends_the_stream(tool: str, accept) -> None:
    farm = Farm()
    client = Client(farm.api)
    client.say(b'{"n":100000000}')
    work = client.start("POST", f"/tools/{tool}", [HOST, JSON, accept])
    await client.until(5)
    client.leave()
    await asyncio.wait_for(work, 120)
    assert await asyncio.to_thread(farm.closed.wait, 120)


async def test_a_client_that_leaves_before_the_first_item() -> None:
    farm = Farm()
    client = Client(farm.api)
    client.say(b"{}")
    client.leave()
    await asyncio.wait_for(client.start("POST", "/tools/silent", [HOST, JSON, EVENTS]), 120)
    assert farm.closed.is_set()
    assert client.sent == []


async def test_a_stream_counts_until_its_thread_has_ended() -> None:
    farm = Farm(limit=2)
    for _ in range(2):
        client = Client(farm.api)
        client.say(b'{"n":2}')
        work = client.start("POST", "/tools/held", [HOST, JSON, LINES])
        assert await asyncio.to_thread(farm.waiting.acquire, True, 20)
        client.leave()
        await asyncio.wait_for(work, 120)
    for tool, accept in (("held", LINES), ("plain", JSON)):
        refused = await post(farm.api, tool, {"n": 1} if tool == "held" else {}, accept)
        assert (refused.status, refused.code) == (503, "E4075")
    farm.gate.set()
    until = asyncio.get_running_loop().time() + 20
    while (await post(farm.api, "plain", {})).status == 503:
        assert asyncio.get_running_loop().time() < until
        await asyncio.sleep(0.01)


async def test_a_stream_that_was_read_makes_room() -> None:
    farm = Farm(limit=1)
    for tool in ("rows", "arows") * 3:
        until = asyncio.get_running_loop().time() + 20
        while (await post(farm.api, tool, {"n": 3}, LINES)).status == 503:  # its thread ends yet
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.01)


async def test_a_silent_event_stream_says_that_it_lives() -> None:
    farm = Farm(heartbeat=0.01)
    client = Client(farm.api)
    client.say(b"{}")
    work = client.start("POST", "/tools/silent", [HOST, JSON, EVENTS])
    await client.until(3)
    client.leave()
    await work
    assert client.body.startswith(b": still here\n\n: still here\n\n")


async def test_silent_lines_stay_silent() -> None:
    farm = Farm(heartbeat=0.001)
    client = Client(farm.api)
    client.say(b"{}")
    work = client.start("POST", "/tools/silent", [HOST, JSON, LINES])
    for _ in range(20):
        await asyncio.sleep(0.001)
    client.leave()
    await work
    assert client.sent == []


@BOTH
async def test_a_client_that_never_reads_is_given_up(tool: str) -> None:
    farm = Farm(stall_timeout=0.01)
    client = Client(farm.api)
    client.say(b'{"n":100000000}')
    work = client.start("POST", f"/tools/{tool}", [HOST, JSON, LINES])
    await client.until(3)
    client.may_send.clear()
    await asyncio.wait_for(work, 120)
    assert await asyncio.to_thread(farm.closed.wait, 120)


@BOTH
@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_the_end_of_the_server_is_told(tool: str, accept) -> None:
    farm = Farm()
    client = Client(farm.api)
    client.say(b'{"n":100000000}')
    work = client.start("POST", f"/tools/{tool}", [HOST, JSON, accept])
    await client.until(3)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(work, 120)
    assert b'"code":"E4143"' in client.sent[-1]["body"]
    assert client.sent[-1]["more_body"] is False
    assert await asyncio.to_thread(farm.closed.wait, 120)


async def test_the_end_of_the_server_before_the_first_item() -> None:
    farm = Farm()
    client = Client(farm.api)
    client.say(b"{}")
    work = client.start("POST", "/tools/silent", [HOST, JSON, EVENTS])
    for _ in range(5):
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (client.status, client.code) == (503, "E4143")


async def test_many_streams_at_once() -> None:
    farm = Farm()
    done = await asyncio.gather(
        *[post(farm.api, t, {"n": 200}, LINES) for t in ("rows", "arows") * 10]
    )
    assert all(client.body.count(b"\n") == 200 for client in done)
