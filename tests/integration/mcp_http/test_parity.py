"""MCP over HTTP and over stdio give equal answers to every parity case."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient
from tests.mcp.test_http_transport import ACCEPT
from tests.parity.sample_apps import make_app
from tests.parity.test_parity import SAMPLE_APP_CASES

from tooli.mcp import mcp_endpoint
from tooli.mcp.http_transport import McpEndpoint
from tooli.mcp.stdio_transport import to_json
from tooli.pipeline.stdout_capture import route_stdout
from tooli.testing import Case
from tooli.testing.app_interfaces import HandshakeInterface, StatelessInterface
from tooli.testing.assertions import without_volatile_fields

CASES = [
    param
    for param in SAMPLE_APP_CASES
    if param.values[0].argv is None and "mcp" not in param.values[0].skip
]


class EndpointThread:
    """Runs an endpoint on the event loop of a thread; requests need no network."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint
        self._started = threading.Event()
        # `asyncio.run` also cancels the tasks that sse_starlette leaves on the loop
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(60)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._endpoint.running():
            self._started.set()
            await self._stop.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def post(self, message: dict[str, Any], **headers: str) -> AsgiClient:
        """Send a message; return the client with the response."""
        posted = self._post(to_json(message), headers)
        return asyncio.run_coroutine_threadsafe(posted, self._loop).result(60)

    async def _post(self, body: bytes, headers: dict[str, str]) -> AsgiClient:
        client = AsgiClient(self._endpoint)
        client.send_body(body)
        more = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
        await client.start("POST", "/mcp", [HOST, JSON, ACCEPT, *more])
        return client


def last_message(body: bytes) -> dict[str, Any]:
    """Return the answer in a body: the body itself, or the last event of a stream."""
    lines = [line for line in body.decode().split("\n") if line.startswith("data: {")]
    return json.loads(lines[-1][6:] if lines else body)


class HandshakeOverHttp(HandshakeInterface):
    """A session of a handshake version over HTTP."""

    def __init__(self, app: Any, endpoint_thread: EndpointThread) -> None:
        self.endpoint_thread = endpoint_thread
        self.session = ""
        super().__init__(app)

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        session_header = {"mcp_session_id": self.session} if self.session else {}
        response = self.endpoint_thread.post(
            message, mcp_protocol_version="2025-11-25", **session_header
        )
        if method == "initialize":
            self.session = response.headers["mcp-session-id"]
            initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            self.endpoint_thread.post(
                initialized, mcp_protocol_version="2025-11-25", mcp_session_id=self.session
            )
        return last_message(response.body)


class StatelessOverHttp(StatelessInterface):
    """Requests of a stateless version over HTTP."""

    def __init__(self, app: Any, endpoint_thread: EndpointThread) -> None:
        self.endpoint_thread = endpoint_thread
        super().__init__(app)

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        from tooli.mcp.protocol import CAPABILITIES_KEY, STATELESS_VERSIONS, VERSION_KEY

        meta = {
            **params.get("_meta", {}),
            VERSION_KEY: STATELESS_VERSIONS[-1],
            CAPABILITIES_KEY: {},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        response = self.endpoint_thread.post(
            message,
            mcp_protocol_version=STATELESS_VERSIONS[-1],
            mcp_method=method,
            mcp_name=params["name"],
        )
        return last_message(response.body)


@pytest.fixture(scope="module")
def interfaces() -> Any:
    app = make_app()
    endpoint_thread = EndpointThread(mcp_endpoint(app, expose_errors=True))
    restore = route_stdout()
    yield {
        "handshake": (HandshakeInterface(app), HandshakeOverHttp(app, endpoint_thread)),
        "stateless": (StatelessInterface(app), StatelessOverHttp(app, endpoint_thread)),
    }
    restore()
    endpoint_thread.close()


@pytest.mark.parametrize("kind", ["handshake", "stateless"])
@pytest.mark.parametrize("case", CASES)
def test_http_equals_stdio(interfaces: Any, case: Case, kind: str) -> None:
    stdio, http = interfaces[kind]
    expected, found = (
        without_volatile_fields(stdio.send_case(case).envelope),
        without_volatile_fields(http.send_case(case).envelope),
    )
    found["meta"].pop("session_id", None)  # only HTTP sessions have an id
    assert found == expected
