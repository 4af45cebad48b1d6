"""Events of running calls: progress and log messages, their limits, and the end of a call."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, send

from tooli import Context, SecretInput, Tooli
from tooli.http import call_events

EVENTS = (b"accept", b"text/event-stream, application/json;q=0.5")


def make_app() -> Tooli:
    app = Tooli("events")

    @app.command()
    def work(ctx: Context, steps: int = 2, fail: bool = False) -> dict[str, int]:
        for n in range(steps):
            ctx.report(n, steps, f"step {n}")
            ctx.log({"n": n}, level="debug")
        if fail:
            raise ValueError("broken")
        return {"steps": steps}

    @app.command()
    async def awork(ctx: Context, fail: bool = False) -> int:
        ctx.report(1)
        await asyncio.sleep(0)
        if fail:
            raise ValueError("broken")
        return 1

    @app.command()
    def items(ctx: Context) -> Any:
        yield from ctx.progress([1, 2])

    @app.command()
    async def aitems(ctx: Context) -> Any:
        ctx.log("first")
        yield 1

    @app.command()
    def plain() -> int:
        return 1

    return app


def events_of(client: AsgiClient) -> list[tuple[str, Any]]:
    """Return the names and the data of the events of a response."""
    found: list[tuple[str, Any]] = []
    for block in client.body.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((lines.get("event", "message"), json.loads(lines["data"])))
    return found


async def test_progress_and_logs_are_events_before_the_result() -> None:
    client = await send(make_app().asgi(mcp=False), "POST", "/tools/work", b"{}", EVENTS)
    assert client.headers["content-type"] == "text/event-stream"
    *events, (name, envelope) = events_of(client)
    assert events == [
        (
            "progress",
            {"type": "progress", "message": "step 0", "percent": 0, "done": 0, "total": 2},
        ),
        ("log", {"type": "log", "level": "debug", "message": {"n": 0}}),
        (
            "progress",
            {"type": "progress", "message": "step 1", "percent": 50, "done": 1, "total": 2},
        ),
        ("log", {"type": "log", "level": "debug", "message": {"n": 1}}),
    ]
    assert (name, envelope["result"]) == ("end", {"steps": 2})


async def test_failure_is_the_last_event() -> None:
    body = b'{"fail": true}'
    for tool in ("work", "awork"):
        client = await send(make_app().asgi(mcp=False), "POST", f"/tools/{tool}", body, EVENTS)
        name, envelope = events_of(client)[-1]
        assert (client.status, name, envelope["ok"]) == (200, "error", False)


async def test_failure_before_an_event_has_its_status() -> None:
    body = b'{"steps": "many"}'
    client = await send(make_app().asgi(mcp=False), "POST", "/tools/work", body, EVENTS)
    assert (client.status, client.code) == (422, "E1003")


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("awork", ["progress", "end"]),
        ("items", ["message", "progress", "message", "progress", "end"]),
        ("aitems", ["log", "message", "end"]),
    ],
)
async def test_async_functions_and_generators_send_events(tool: str, names: list[str]) -> None:
    client = await send(make_app().asgi(mcp=False), "POST", f"/tools/{tool}", b"{}", EVENTS)
    assert [name for name, _ in events_of(client)] == names


@pytest.mark.parametrize(
    ("tool", "accept"),
    [
        ("plain", "text/event-stream"),
        ("work", "application/json"),
        ("work", "*/*"),
        ("work", "application/json, text/event-stream;q=0.5"),
    ],
)
async def test_other_calls_get_one_envelope(tool: str, accept: str) -> None:
    headers = ((b"accept", accept.encode()),)
    client = await send(make_app().asgi(mcp=False), "POST", f"/tools/{tool}", b"{}", *headers)
    assert client.headers["content-type"] == "application/json"
    assert client.json()["ok"] is True


async def test_disconnected_client_cancels_the_call() -> None:
    app, ended = Tooli("events"), threading.Event()
    reported: list[bool] = []

    @app.command()
    def work(ctx: Context) -> None:
        try:
            while not ctx.cancelled:
                ctx.report(1)
            reported.append(ctx.cancelled)
            ctx.report(2)
            reported.append(False)
        finally:
            ended.set()

    client = AsgiClient(app.asgi(mcp=False))
    client.send_body(b"{}")
    task = client.start("POST", "/tools/work", [HOST, JSON, EVENTS])
    await client.wait_for_messages(2)
    client.disconnect()
    await asyncio.wait_for(task, 60)
    assert await asyncio.to_thread(ended.wait, 60)
    assert reported == [True]  # the second report raised


async def test_events_for_a_slow_client_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.http.stream_response.MAX_UNSENT_EVENTS", 10)
    app, done = Tooli("events"), threading.Event()

    @app.command()
    def work(ctx: Context) -> int:
        for n in range(500):
            ctx.report(n)
        done.set()
        return 1

    client = AsgiClient(app.asgi(mcp=False))
    client.is_reading.clear()
    client.send_body(b"{}")
    task = client.start("POST", "/tools/work", [HOST, JSON, EVENTS])
    assert await asyncio.to_thread(done.wait, 60)
    client.is_reading.set()
    await asyncio.wait_for(task, 60)
    names = [name for name, _ in events_of(client)]
    assert names[-1] == "end"
    assert len(names) < 100
    (warning,) = events_of(client)[-1][1]["meta"]["warnings"]
    assert warning.endswith("events were dropped: the client reads too slowly.")


async def test_size_of_events_for_a_slow_client_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tooli.http.stream_response.MAX_UNSENT_BYTES", 10_000)
    app, done = Tooli("events"), threading.Event()

    @app.command()
    async def work(ctx: Context) -> Any:
        for _ in range(100):
            ctx.log("x" * 1000)
        done.set()
        yield 1

    client = AsgiClient(app.asgi(mcp=False))
    client.is_reading.clear()
    client.send_body(b"{}")
    task = client.start("POST", "/tools/work", [HOST, JSON, EVENTS])
    assert await asyncio.wait_for(asyncio.to_thread(done.wait, 60), 60)
    client.is_reading.set()
    await asyncio.wait_for(task, 60)
    *events, (name, envelope) = events_of(client)
    assert [name for name, _ in events].count("log") == 9
    assert (name, envelope["meta"]["warnings"]) == (
        "end",
        ["91 events were dropped: the client reads too slowly."],
    )


LINES = (b"accept", b"application/x-ndjson; events=true")


@pytest.mark.parametrize(
    ("tool", "body", "types"),
    [
        ("work", b"{}", ["progress", "log", "progress", "log", "result"]),
        ("work", b'{"fail": true}', ["progress", "log", "progress", "log", "result"]),
        ("awork", b"{}", ["progress", "result"]),
        ("items", b"{}", ["item", "progress", "item", "progress", "result"]),
        ("aitems", b"{}", ["log", "item", "result"]),
        ("plain", b"{}", ["result"]),
    ],
)
async def test_events_are_lines_of_json(tool: str, body: bytes, types: list[str]) -> None:
    client = await send(make_app().asgi(mcp=False), "POST", f"/tools/{tool}", body, LINES)
    assert client.headers["content-type"] == "application/x-ndjson; events=true"
    lines = [json.loads(line) for line in client.body.splitlines()]
    assert [line["type"] for line in lines] == types
    assert lines[-1]["ok"] is (b"fail" not in body)


async def test_failure_before_a_line_has_its_status() -> None:
    body = b'{"steps": "many"}'
    client = await send(make_app().asgi(mcp=False), "POST", "/tools/work", body, LINES)
    assert (client.status, client.code) == (422, "E1003")


async def test_artifacts_are_events_and_in_meta() -> None:
    app = Tooli("events")

    @app.command()
    def work(ctx: Context) -> int:
        ctx.artifact("page", "https://example.org")
        return 1

    client = await send(app.asgi(mcp=False), "POST", "/tools/work", b"{}", EVENTS)
    (name, event), (_, envelope) = events_of(client)
    artifact = {"name": "page", "uri": "https://example.org"}
    assert (name, event) == ("artifact", {"type": "artifact", **artifact})
    assert envelope["meta"]["artifacts"] == [artifact]
    client = await send(app.asgi(mcp=False), "POST", "/tools/work", b"{}")
    assert client.json()["meta"]["artifacts"] == [artifact]


async def test_secrets_are_redacted_in_events() -> None:
    app = Tooli("events")

    @app.command()
    def work(ctx: Context, key: SecretInput[str]) -> int:
        ctx.log(f"using {key.reveal()}")
        ctx.report(1, 2, key.reveal())
        return 1

    body = b'{"key": "sk-very-secret-value"}'
    client = await send(app.asgi(mcp=False), "POST", "/tools/work", body, EVENTS)
    assert b"sk-very-secret-value" not in client.body
    assert [name for name, _ in events_of(client)] == ["log", "progress", "end"]


def test_peer_without_a_source_drops_events() -> None:
    peer = call_events.StreamPeer()
    peer.log("info", "early")
    assert not peer.supports("elicitation/create")
