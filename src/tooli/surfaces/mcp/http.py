"""MCP over HTTP: Streamable HTTP at `/mcp`, or the older SSE transport, and a server for either.

    request ─▶ Gate ─▶ Endpoint ─▶ the SDK's transport ─▶ AppServer

The Endpoint is bare ASGI: it can stand behind another door's guard instead of the Gate.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from typing import Any

    from tooli.surfaces.mcp.gate import Message, Receive, Send
    from tooli.surfaces.mcp.sdk import AppServer

RETRY = 100
"""After how many milliseconds a client that was let go may come back for its answer."""

GRACE = 5.0
"""Seconds that calls in flight get when the server is asked to end."""


FLUSH = 2.0
"""Seconds that the last answers get to reach their clients."""


class Endpoint:
    """The MCP server of an app as an ASGI application, with a life of its own."""

    def __init__(self, server: AppServer, transport: str = "http", path: str = "/mcp") -> None:
        self.server = server
        self._path = path
        self._serve = (_Sse if transport == "sse" else _Streamable)(server, path)
        self._posts = 0  # requests whose answer is not out yet

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or live as long as the process serves."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST":
            self._posts += 1
            try:
                await self._serve.answer(scope, receive, send)
            finally:
                self._posts -= 1
        elif scope["type"] == "http":
            await self._serve.answer(scope, receive, send)

    async def close(self, grace: float) -> None:
        """End in order: calls get a while, and what they answer gets out."""
        import asyncio

        await self.server.close(grace)
        left = FLUSH
        while self._posts and left > 0:
            await asyncio.sleep(0.02)
            left -= 0.02

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.close(GRACE)
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """The server at work; what commands print becomes their result meanwhile."""
        from tooli.call.printing import route_stdout

        async with AsyncExitStack() as stack:
            stack.callback(route_stdout())
            await stack.enter_async_context(self._serve.running())
            yield


class _Streamable:
    """Streamable HTTP, in both eras: sessions for those who shake hands, none for the others."""

    def __init__(self, server: AppServer, path: str) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from tooli.surfaces.mcp.events import Events

        class Manager(StreamableHTTPSessionManager):
            """Each session has events of its own: the ids of streams repeat in every session."""

            @property
            def event_store(self) -> Events:  # type: ignore[override]
                return Events()

            @event_store.setter
            def event_store(self, given: object) -> None:
                pass

        self._paths = (path, f"{path}/")
        self._manager = Manager(server, retry_interval=RETRY)

    def running(self) -> Any:
        return self._manager.run()

    async def answer(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["path"] not in self._paths:
            await _nothing_here(send)
        else:
            await self._manager.handle_request(scope, receive, send)


class _Sse:
    """The transport of 2024: a stream at `/sse`, and messages posted beside it."""

    def __init__(self, server: AppServer, path: str) -> None:
        from mcp.server.sse import SseServerTransport

        self._server = server
        self._transport = SseServerTransport("/messages/")
        self._lifespan: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with self._server.lifespan(self._server) as state:
            self._lifespan = state
            yield

    async def answer(self, scope: Message, receive: Receive, send: Send) -> None:
        from mcp.server.runner import serve_dual_era_loop

        if scope["path"] == "/messages/":
            await self._transport.handle_post_message(scope, receive, send)
        elif scope["path"] == "/sse" and scope["method"] == "GET":
            async with self._transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await serve_dual_era_loop(
                    self._server, incoming, outgoing, lifespan_state=self._lifespan
                )
        else:
            await _nothing_here(send)


async def _nothing_here(send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


# ------------------------------------------------------------------ serving


def mcp_endpoint(
    app: Any, *, deferred: bool = False, transport: str = "http", path: str = "/mcp"
) -> Endpoint:
    """An app's MCP server as an ASGI application; whoever serves it keeps strangers out."""
    need_sdk()
    from tooli.surfaces.mcp.sdk import make_server
    from tooli.surfaces.mcp.service import Service

    return Endpoint(make_server(Service(app, deferred=deferred)), transport, path)


def serve_mcp_http(
    app: Any,
    transport: str = "http",
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    token: str | None = None,
    deferred: bool = False,
    hosts: Sequence[str] | None = None,
    origins: Sequence[str] = (),
) -> None:
    """Serve an app to MCP clients over HTTP until the process is asked to end.

    A token may also come from TOOLI_TOKEN. Raises an InputError where it cannot be started like
    that, and a DependencyError where the SDK is missing; nothing is served then.
    """
    import sys

    from tooli.surfaces.listening import check_address, find_token, listen, url_of
    from tooli.surfaces.mcp.gate import Gate

    token = find_token(token)
    check_address(host, secured=token is not None)
    endpoint = mcp_endpoint(app, deferred=deferred, transport=transport)
    gate = Gate(endpoint, hosts=hosts or _names(host), origins=origins, token=token)
    with listen(host, port) as listener:
        from tooli.surfaces.network import run_server

        path = "/sse" if transport == "sse" else "/mcp"
        where = f"{url_of(listener)}{path}"
        print(f"{app._house.name} is served at {where}", file=sys.stderr, flush=True)
        run_server(gate, listener, GRACE, before_end=endpoint.close)


def _names(host: str) -> tuple[str, ...] | None:
    """The names that a server at an address answers to; None where it cannot know them."""
    from tooli.surfaces.listening import LOOPBACK, is_everywhere, is_loopback

    if is_everywhere(host):
        return None  # a token is needed there, which no page of another site has
    names = LOOPBACK if is_loopback(host) else (*LOOPBACK, host)
    return tuple([f"[{name}]" if ":" in name and name[0] != "[" else name for name in names])


def need_sdk() -> None:
    """Say how to get the SDK, where it is missing."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        from tooli.errors import DependencyError, Suggestion

        raise DependencyError(
            "MCP over HTTP needs the MCP SDK, which is not installed.",
            suggestion=Suggestion("fix", "Run: pip install 'tooli[mcp]'"),
        )
