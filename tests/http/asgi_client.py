"""A client that calls an ASGI application message by message."""

from __future__ import annotations

import asyncio
import json
from typing import Any

Header = tuple[bytes, bytes]
HOST: Header = (b"host", b"localhost:8000")
JSON: Header = (b"content-type", b"application/json")


class Client:
    """One request. `sent` contains the messages of the response so far."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.sent: list[dict[str, Any]] = []
        self.arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.grew = asyncio.Event()
        self.may_send = asyncio.Event()
        self.may_send.set()

    async def _send(self, message: Any) -> None:
        await self.may_send.wait()
        self.sent.append(message)
        self.grew.set()

    def say(self, body: bytes = b"", more: bool = False) -> None:
        """Send a chunk of the body."""
        self.arriving.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        """Close the connection."""
        self.arriving.put_nowait({"type": "http.disconnect"})

    async def until(self, count: int) -> None:
        """Wait until the response has `count` messages."""
        while len(self.sent) < count:
            self.grew.clear()
            await asyncio.wait_for(self.grew.wait(), 120)

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
        }
        work = self.api(scope, self.arriving.get, self._send)
        return asyncio.get_running_loop().create_task(work)

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
        told = self.json()
        assert list(told) == (["ok", "result", "meta"] if told["ok"] else ["ok", "error", "meta"])
        return None if told["ok"] else told["error"]["code"]


async def send(
    api: Any,
    method: str,
    path: str,
    body: bytes | None = None,
    *headers: Header,
    query: bytes = b"",
    host: tuple[Header, ...] = (HOST,),
) -> Client:
    """Send a complete request and return it with its response."""
    client = Client(api)
    client.say(body or b"")
    sent_headers = [*host, *headers]
    if body is not None and b"content-type" not in dict(sent_headers):
        sent_headers.append(JSON)
    await asyncio.wait_for(client.start(method, path, sent_headers, query), 120)
    return client


async def post(api: Any, path: str, arguments: Any = None, *headers: Header, **more: Any) -> Client:
    """Call a tool."""
    return await send(
        api, "POST", f"/tools/{path}", json.dumps(arguments or {}).encode(), *headers, **more
    )
