"""HttpToolsConnection: trailers, transfer codings, targets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from tests.serving.test_http_protocols import CHUNKED, HEAD, Transport, application, run_loop
from uvicorn.server import ServerState

from tooli.serving.httptools_protocol import MAX_PIPELINED_REQUESTS, HttpToolsConnection


@pytest.fixture
async def connection() -> Any:
    config = uvicorn.Config(application, http=HttpToolsConnection, log_config=None, ws="none")
    config.load()
    protocol = HttpToolsConnection(config, ServerState(), {})
    transport = Transport()
    protocol.connection_made(transport)  # type: ignore[arg-type]
    yield protocol, transport
    protocol.connection_lost(None)


async def test_trailer_is_not_added_to_the_headers(connection: Any) -> None:
    protocol, transport = connection
    protocol.data_received(CHUNKED + b"1\r\nx\r\n0\r\nHost: evil\r\nX: 1\r\n\r\n")
    await run_loop()
    assert [name for name, _ in protocol.scope["headers"]] == [b"host", b"transfer-encoding"]
    assert transport.written.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "request_bytes",
    [
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
        b"GET http://evil/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT evil:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_unusual_message_is_refused(connection: Any, request_bytes: bytes) -> None:
    protocol, transport = connection
    protocol.data_received(request_bytes)
    assert transport.written.startswith(b"HTTP/1.1 400")
    assert transport.is_closed
    protocol.data_received(HEAD + b"Content-Length: 0\r\n\r\n")  # nothing is read any more
    await run_loop()
    assert transport.written.count(b"HTTP/1.1 ") == 1


NEXT = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_requests_of_a_pipeline_are_limited(connection: Any) -> None:
    """Each of them is parsed when it arrives, and needs memory until it is answered."""
    protocol, transport = connection
    protocol.data_received(NEXT * MAX_PIPELINED_REQUESTS)
    for _ in range(MAX_PIPELINED_REQUESTS):
        await run_loop()
    assert transport.written.count(b"HTTP/1.1 200") == MAX_PIPELINED_REQUESTS
    assert not transport.is_closed
    protocol.data_received(NEXT * (MAX_PIPELINED_REQUESTS + 1))
    assert transport.is_closed
    assert len(protocol.pipeline) < MAX_PIPELINED_REQUESTS


async def test_pipeline_is_not_read_faster_than_it_is_answered(connection: Any) -> None:
    protocol, _ = connection
    paused: list[bool] = []
    protocol.data_received(NEXT * 50)
    while protocol.pipeline:
        await asyncio.sleep(0)
        paused.append(protocol.flow.read_paused)
    await run_loop()
    assert set(paused[:40]) == {True}
    assert not protocol.flow.read_paused
