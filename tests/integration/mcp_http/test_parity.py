"""MCP over HTTP, in both eras, answers as MCP over stdin and stdout does: case by case."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.parity.test_parity import ALL, _name
from tests.parity.zoo import make_app

from tooli.mcp import mcp_endpoint
from tooli.mcp.http_transport import McpEndpoint
from tooli.mcp.stdio_transport import to_json
from tooli.pipeline.stdout_capture import route_stdout
from tooli.testing import Case
from tooli.testing.parity import without_volatile_fields
from tooli.testing.server_interfaces import HandshakeInterface, StatelessInterface

CASES = [pytest.param(c, id=_name(r, c)) for r, c in ALL if c.argv is None and "mcp" not in c.skip]


class Host:
    """An endpoint on an event loop of its own, asked without a network."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self._ended = self.run(self._start())

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def _start(self) -> Any:
        self._stop, started = asyncio.Event(), asyncio.Event()

        async def live() -> None:
            async with self._endpoint.running():
                started.set()
                await self._stop.wait()

        task = self.loop.create_task(live())
        await started.wait()
        return task

    async def _end(self) -> None:
        self._stop.set()
        await self._ended

    def close(self) -> None:
        self.run(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(60)
        self.loop.close()

    def post(self, message: dict[str, Any], **headers: str) -> tuple[dict[bytes, bytes], bytes]:
        return self.run(self._post(to_json(message), headers))

    async def _post(self, body: bytes, headers: dict[str, str]) -> tuple[dict[bytes, bytes], bytes]:
        payload = {
            "host": "127.0.0.1:80",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in payload.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        forever = asyncio.Event()
        answered: dict[bytes, bytes] = {}
        parts: list[bytes] = []

        async def receive() -> Any:
            if not waiting:
                await forever.wait()
            return waiting.pop()

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                answered.update(event["headers"])
            else:
                parts.append(event.get("body", b""))

        await self._endpoint(scope, receive, send)
        return answered, b"".join(parts)


def last_message(body: bytes) -> dict[str, Any]:
    """The answer: the body itself, or the last event of a stream."""
    lines = [line for line in body.decode().split("\n") if line.startswith("data: {")]
    return json.loads(lines[-1][6:] if lines else body)


class HandshakeOverHttp(HandshakeInterface):
    """A session of the older era."""

    def __init__(self, app: Any, host: Host) -> None:
        self.host = host
        self.session = ""
        super().__init__(app)

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        more = {"mcp_session_id": self.session} if self.session else {}
        headers, body = self.host.post(message, mcp_protocol_version="2025-11-25", **more)
        if method == "initialize":
            self.session = headers[b"mcp-session-id"].decode()
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            self.host.post(ready, mcp_protocol_version="2025-11-25", mcp_session_id=self.session)
        return last_message(body)


class StatelessOverHttp(StatelessInterface):
    """Requests that stand for themselves."""

    def __init__(self, app: Any, host: Host) -> None:
        self.host = host
        super().__init__(app)

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        from tooli.mcp.protocol import CAPABILITIES_KEY, STATELESS_VERSIONS, VERSION_KEY

        meta = {
            **params.get("_meta", {}),
            VERSION_KEY: STATELESS_VERSIONS[-1],
            CAPABILITIES_KEY: {},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        _, body = self.host.post(
            message,
            mcp_protocol_version=STATELESS_VERSIONS[-1],
            mcp_method=method,
            mcp_name=params["name"],
        )
        return last_message(body)


@pytest.fixture(scope="module")
def surfaces() -> Any:
    app = make_app()
    host = Host(mcp_endpoint(app))
    restore = route_stdout()
    yield {
        "handshake": (HandshakeInterface(app), HandshakeOverHttp(app, host)),
        "stateless": (StatelessInterface(app), StatelessOverHttp(app, host)),
    }
    restore()
    host.close()


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_answer(surfaces: Any, case: Case, era: str) -> None:
    near, far = surfaces[era]
    expected, found = (
        without_volatile_fields(near.send_case(case).envelope),
        without_volatile_fields(far.send_case(case).envelope),
    )
    found["meta"].pop("session_id", None)  # a session has a name over HTTP
    assert found == expected
