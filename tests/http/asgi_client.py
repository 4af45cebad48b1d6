"""A client that calls an ASGI application message by message."""

from __future__ import annotations

import asyncio
import json
from typing import Any

Header = tuple[bytes, bytes]
HOST: Header = (b"host", b"localhost:8000")
JSON: Header = (b"content-type", b"application/json")


class AsgiClient:
    """One request. `sent` contains the messages of the response so far."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.address: str | None = None
        self.sent: list[dict[str, Any]] = []
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._sent_event = asyncio.Event()
        self.is_reading = asyncio.Event()  # cleared: the application must wait to send
        self.is_reading.set()

    async def _send(self, message: Any) -> None:
        await self.is_reading.wait()
        self.sent.append(message)
        self._sent_event.set()

    def send_body(self, body: bytes = b"", more: bool = False) -> None:
        """Send a chunk of the body."""
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def disconnect(self) -> None:
        """Close the connection."""
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def wait_for_messages(self, count: int) -> None:
        """Wait until the response has `count` messages."""
        while len(self.sent) < count:
            self._sent_event.clear()
            await asyncio.wait_for(self._sent_event.wait(), 120)

    def start(
        self, method: str, path: str, headers: list[Header], query: bytes = b"", root: str = ""
    ) -> asyncio.Task[None]:
        """Send the request line and headers; return the task of the application."""
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "root_path": root,
            "query_string": query,
            "headers": headers,
            "client": None if self.address is None else (self.address, 40_000),
        }
        response = self.api(scope, self._incoming.get, self._send)
        return asyncio.get_running_loop().create_task(response)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {k.decode(): v.decode("latin-1") for k, v in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The code of the error, or None. Checks the keys of the envelope."""
        envelope = self.json()
        assert list(envelope) == ["ok", "result" if envelope["ok"] else "error", "meta"]
        return None if envelope["ok"] else envelope["error"]["code"]


async def send(
    api: Any,
    method: str,
    path: str,
    body: bytes | None = None,
    *headers: Header,
    query: bytes = b"",
    host: tuple[Header, ...] = (HOST,),
) -> AsgiClient:
    """Send a complete request and return it with its response."""
    client = AsgiClient(api)
    client.send_body(body or b"")
    sent_headers = [*host, *headers]
    if body is not None and b"content-type" not in dict(sent_headers):
        sent_headers.append(JSON)
    await asyncio.wait_for(client.start(method, path, sent_headers, query), 120)
    return client


async def post(
    api: Any, path: str, arguments: Any = None, *headers: Header, **options: Any
) -> AsgiClient:
    """Call a tool."""
    return await send(
        api, "POST", f"/tools/{path}", json.dumps(arguments or {}).encode(), *headers, **options
    )
