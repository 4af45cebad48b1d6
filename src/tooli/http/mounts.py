"""Mount: another ASGI application at a path of the HTTP server, such as the MCP server."""

from __future__ import annotations

import asyncio

from tooli.http.http_request import BODY_METHODS, read_body

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Task

    from tooli.http.asgi import HttpSettings
    from tooli.http.http_request import HttpRequest
    from tooli.serving import AsgiApp, Message


class Mount:
    """An ASGI application at a path; an empty path matches every request."""

    def __init__(self, path: str, app: AsgiApp) -> None:
        self.path = path.rstrip("/")
        self.app = app
        self._inbox: asyncio.Queue[Message] | None = None
        self._lifespan_replies: asyncio.Queue[str] | None = None
        self._lifespan_task: Task[None] | None = None

    def matches(self, path: str) -> bool:
        """True if a path is the path of the mount, or below it."""
        return path == self.path or path.startswith(self.path + "/")

    async def respond(self, request: HttpRequest, settings: HttpSettings) -> None:
        """Pass a request to the application. Reads the body first, so that our limits apply."""
        pending_messages: list[Message] = []
        if request.method in BODY_METHODS:
            body = await read_body(request, settings)
            pending_messages.append({"type": "http.request", "body": body, "more_body": False})

        async def receive() -> Message:
            return pending_messages.pop() if pending_messages else await request.receive()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.is_response_started = True
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), *request.extra_headers],
                }
            await request.send(message)

        identity = {"tooli.scopes": request.scopes, "tooli.principal": request.principal}
        scope = {**request.scope, **identity}
        await self.app(scope, receive, send)

    # -------------------------------------------------------------- lifespan

    async def start(self, state: object) -> None:
        """Start the application, if it supports the lifespan protocol."""
        self._inbox, self._lifespan_replies = asyncio.Queue(), asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}
        self._lifespan_task = asyncio.get_running_loop().create_task(
            self._run_lifespan({**scope, "state": state})
        )
        await self._send_lifespan_event("startup")

    async def stop(self) -> None:
        """Shut the application down."""
        if self._lifespan_task is not None and not self._lifespan_task.done():
            await self._send_lifespan_event("shutdown")
            await asyncio.wait({self._lifespan_task}, timeout=5)
            self._lifespan_task.cancel()

    async def _run_lifespan(self, scope: dict[str, object]) -> None:
        assert self._inbox is not None and self._lifespan_replies is not None
        replies = self._lifespan_replies

        async def send(message: Message) -> None:
            replies.put_nowait(message["type"])

        try:
            await self.app(scope, self._inbox.get, send)
        except Exception:
            # The application probably does not support the lifespan protocol. If its
            # startup really failed, its requests show the failure.
            pass
        finally:
            replies.put_nowait("lifespan.over")

    async def _send_lifespan_event(self, event: str) -> None:
        assert self._inbox is not None and self._lifespan_replies is not None
        self._inbox.put_nowait({"type": f"lifespan.{event}"})
        if await self._lifespan_replies.get() == f"lifespan.{event}.failed":
            raise RuntimeError(f"the application mounted at {self.path} failed at {event}")
