"""Gate: which HTTP requests get through to the MCP server at all.

Host    only names of this server: a page whose name was turned to our address stays out
Origin  only pages of this server, and those that were allowed
token   where there is one, everybody brings it
body    not too large, and not for ever
"""

from __future__ import annotations

import asyncio
from hmac import compare_digest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping, Sequence
    from typing import Any, TypeAlias

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    Asgi: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

LOCAL = ("localhost", "127.0.0.1", "[::1]")
LARGEST_BODY = 4 << 20
BODY_TIME = 30.0
"""Seconds within which the whole body of a request has to be there."""


class Gate:
    """An ASGI application around another one: lets through what may come in."""

    def __init__(
        self,
        inner: Asgi,
        *,
        hosts: Sequence[str] | None = LOCAL,
        origins: Sequence[str] = (),
        token: str | None = None,
        body_time: float = BODY_TIME,
    ) -> None:
        self._inner = inner
        self._hosts = None if hosts is None else frozenset([host.lower() for host in hosts])
        self._origins = frozenset([origin.lower().rstrip("/") for origin in origins])
        self._token = token.encode() if token else None
        self._body_time = body_time

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        refused = self._look_at(scope["headers"])
        if refused is None:
            body = await self._body(scope, receive)
            if isinstance(body, bytes):
                scope = {**scope, "tooli.scopes": None if self._token else frozenset()}
                await self._inner(scope, _replay(body, receive), send)
                return
            refused = body
        if refused[0]:
            await _answer(send, *refused)

    def _look_at(self, headers: Sequence[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        said: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in (b"host", b"origin", b"authorization") and name in said:
                return 400, f"The header {name.decode()} is there twice"
            said[name] = value
        host = said.get(b"host", b"").decode("latin-1").lower()
        if not host or (self._hosts is not None and _name_of(host) not in self._hosts):
            return 421, "This server does not answer to that Host"
        origin = said.get(b"origin")
        if origin is not None and not self._is_welcome(origin.decode("latin-1").lower(), host):
            return 403, "Pages of that Origin may not call this server"
        if self._token is not None:
            kind, _, given = said.get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not compare_digest(given.strip(), self._token):
                return 401, "A valid bearer token is needed"
        return None

    def _is_welcome(self, origin: str, host: str) -> bool:
        if origin in self._origins or origin in (f"http://{host}", f"https://{host}"):
            return True
        scheme, _, name = origin.partition("://")
        local = self._hosts is not None and _name_of(name) in LOCAL
        return scheme in ("http", "https") and local and _name_of(host) in LOCAL

    async def _body(self, scope: Message, receive: Receive) -> bytes | tuple[int, str]:
        """All of a body, or why there will be none; status 0 where the client has left."""
        if scope["method"] != "POST":
            return b""
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > LARGEST_BODY:  # the server checks digits
                return 413, "The body is too large"
        try:
            return await asyncio.wait_for(_read(receive), self._body_time)
        except asyncio.TimeoutError:
            return 408, "The body took too long"
        except ValueError:
            return 413, "The body is too large"
        except ConnectionError:
            return 0, ""


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise ValueError
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        head.append((b"www-authenticate", b'Bearer realm="tooli"'))
    if status in (408, 413):
        head.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _name_of(host: str) -> str:
    """A host without its port."""
    if host[:1] == "[":
        name, closed, _ = host.partition("]")
        return name + closed
    return host.partition(":")[0]
