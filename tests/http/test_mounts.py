"""Mounted applications: event streams that are ended while the application runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tooli.http import mounts
from tooli.http.asgi import HttpSettings
from tooli.http.http_request import HttpRequest
from tooli.http.mounts import Mount

LAST = b"event: error\n\n"


class Response:
    """A request to a mounted application, whose token is revoked with `revoked`."""

    def __init__(self, application: Any, token: bytes | None = b"t") -> None:
        self.sent: list[Any] = []
        self.revoked, self.is_reading = asyncio.Event(), asyncio.Event()
        self.is_reading.set()
        self.request = HttpRequest(
            {"method": "GET", "path": "/x", "headers": []}, asyncio.Queue[Any]().get, self._send
        )
        self.request.verified_token = token
        mount = Mount("/x", application)
        response = mount.respond(self.request, HttpSettings(), self._wait_for_last_event)
        self.task = asyncio.ensure_future(response)

    async def _send(self, message: Any) -> None:
        await self.is_reading.wait()
        self.sent.append(message)

    async def _wait_for_last_event(self, request: HttpRequest) -> bytes:
        assert request is self.request
        await self.revoked.wait()
        return LAST

    @property
    def body(self) -> list[bytes]:
        return [message["body"] for message in self.sent[1:]]


def start(content_type: bytes) -> dict[str, Any]:
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"Content-Type", content_type)],
    }


def chunk(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def stream(scope: Any, receive: Any, send: Any) -> None:
    await send(start(b"text/event-stream; charset=utf-8"))
    await send(chunk(b"data: 1\n\n"))
    await receive()


async def test_event_stream_ends_with_the_last_event() -> None:
    response = Response(stream)
    await asyncio.sleep(0.01)
    response.revoked.set()
    await asyncio.wait_for(response.task, 120)
    assert response.body == [b"data: 1\n\n", LAST]
    assert response.sent[-1]["more_body"] is False


async def test_last_event_follows_a_chunk_that_waits_for_the_client() -> None:
    async def stream_chunks(scope: Any, receive: Any, send: Any) -> None:
        await send(start(b"text/event-stream"))
        response.is_reading.clear()
        await send(chunk(b"data: 1\n\n"))
        await send(chunk(b"data: 2\n\n"))

    response = Response(stream_chunks)
    await asyncio.sleep(0.01)
    response.revoked.set()
    await asyncio.sleep(0.01)
    response.is_reading.set()
    await asyncio.wait_for(response.task, 120)
    assert response.body[-1] == LAST
    assert response.body[0] == b"data: 1\n\n"


async def test_application_that_ignores_the_end_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mounts, "END_TIMEOUT", 0.01)

    async def ignore_cancellation(scope: Any, receive: Any, send: Any) -> None:
        await stream(scope, receive, send)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await send(chunk(b"data: 2\n\n", more=False))

    response = Response(ignore_cancellation)
    await asyncio.sleep(0.01)
    response.revoked.set()
    await asyncio.wait_for(response.task, 120)
    assert response.body == [b"data: 1\n\n", LAST]


@pytest.mark.parametrize(
    ("token", "content_type"), [(b"t", b"text/plain"), (None, b"text/event-stream")]
)
async def test_other_responses_are_complete(token: bytes | None, content_type: bytes) -> None:
    async def respond(scope: Any, receive: Any, send: Any) -> None:
        await send(start(content_type))
        response.revoked.set()
        await asyncio.sleep(0.01)
        await send(chunk(b"all", more=False))

    response = Response(respond, token)
    await asyncio.wait_for(response.task, 120)
    assert response.body == [b"all"]


async def test_shutdown_cancels_the_application() -> None:
    response = Response(stream)
    await asyncio.sleep(0.01)
    response.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await response.task
    assert response.body == [b"data: 1\n\n"]
