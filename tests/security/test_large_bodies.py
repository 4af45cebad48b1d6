"""Large request bodies: they wait as bytes, are parsed in a thread, and are limited per caller."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, post

from tooli import Tooli
from tooli.http import asgi, call_slots, http_request
from tooli.text import json_limits

LARGE = {"items": ["x" * 1000] * 100}


def make_app() -> Tooli:
    app = Tooli("app")

    @app.command()
    def count(items: list[Any]) -> int:
        return len(items)

    @app.command()
    async def count_async(items: list[Any]) -> int:
        return len(items)

    return app


@pytest.mark.parametrize("command", ["count", "count-async"])
@pytest.mark.parametrize("headers", [[], [(b"prefer", b"handling=strict")]])
@pytest.mark.parametrize("is_large", [True, False])
async def test_large_bodies_are_parsed_in_a_thread(
    command: str, headers: list[Any], is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def parse(body: bytes) -> Any:
        threads.append(threading.current_thread())
        return http_request.parse_arguments(body)

    monkeypatch.setattr(asgi, "parse_arguments", parse)
    body = LARGE if is_large else {"items": ["x"] * 100}
    client = await post(make_app().asgi(mcp=False), command, body, *headers)
    assert client.json()["result"] == 100
    assert len(threads) == 1
    assert (threads[0] is not threading.current_thread()) is is_large


async def test_waiting_calls_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def parse(body: bytes) -> Any:
        parsed.append(len(body))
        return http_request.parse_arguments(body)

    monkeypatch.setattr(asgi, "parse_arguments", parse)
    app = make_app()
    release, started = threading.Event(), threading.Semaphore(0)

    @app.command()
    def wait() -> bool:
        started.release()
        return release.wait(120)

    api: Any = app.asgi(mcp=False)
    share = api._thread_pool._share
    waiting = [asyncio.ensure_future(post(api, "wait")) for _ in range(share)]
    for _ in range(share):
        await asyncio.to_thread(started.acquire)
    parsed.clear()
    clients = [AsgiClient(api) for _ in range(5)]
    tasks: list[Any] = []
    for client in clients:
        client.send_body(json.dumps(LARGE).encode())
        tasks.append(client.start("POST", "/tools/count", [HOST, JSON]))
    while sum(map(len, api._thread_pool._waiting.values())) < 5:
        await asyncio.sleep(0)
    assert parsed == []
    release.set()
    await asyncio.wait_for(asyncio.gather(*tasks, *waiting), 120)
    assert len(parsed) == 5
    assert [client.json()["result"] for client in clients] == [100] * 5
    assert api._slots._held_bytes == {}


async def test_bodies_of_one_caller_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_slots, "MAX_HELD_BYTES", 250_000)
    release = threading.Event()
    app = make_app()

    @app.command()
    def wait(items: list[str]) -> bool:
        return release.wait(120)

    api: Any = app.asgi(mcp=False, tokens={"a": None, "b": None})
    token, other = (b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")
    waiting = [asyncio.ensure_future(post(api, "wait", LARGE, token)) for _ in range(2)]
    while sum(api._slots._held_bytes.values()) < 200_000:
        await asyncio.sleep(0)
    refused = await post(api, "count", LARGE, token)
    assert refused.code == "E4075"
    assert (await post(api, "count", {"items": []}, token)).json()["result"] == 0
    assert (await post(api, "count", LARGE, other)).json()["result"] == 100
    release.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 120)
    assert api._slots._held_bytes == {}


async def test_number_of_lists_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_limits, "MAX_JSON_CONTAINERS", 1000)
    api = make_app().asgi(mcp=False)
    assert (await post(api, "count", {"items": [[]] * 990})).json()["result"] == 990
    for items in ([[]] * 1001, [[{}]] * 501):
        refused = await post(api, "count", {"items": items})
        assert refused.code == "E1008"
        assert "lists and objects" in refused.json()["error"]["message"]
    assert (await post(api, "count", {"items": ["[{"] * 2000})).json()["result"] == 2000
