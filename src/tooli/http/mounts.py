"""Mount: another ASGI application at a path of the HTTP server, such as the MCP server."""

from __future__ import annotations

import asyncio
from contextvars import Context
from functools import partial

from tooli.http.http_request import BODY_METHODS, read_body
from tooli.serving.asgi_receive import receive_until

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Coroutine, Iterable

    from tooli.http.asgi import HttpSettings
    from tooli.http.http_request import HttpRequest
    from tooli.serving import AsgiApp, Message


END_TIMEOUT = 5.0
"""Seconds that an application gets to end after it was disconnected. Then it is cancelled."""


class MountedStream:
    """The response of a mounted application. It can be ended while the application runs."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._application_task = asyncio.current_task()
        self._lock = asyncio.Lock()  # the last event is not sent within another one
        self._is_complete = False
        self._end_task: Task[None] | None = None
        self._ended = asyncio.Event()  # set: the response was ended before it was complete
        self.receive = request.receive
        if request.verified_token is not None:
            self.receive = receive_until(self._ended, request.receive)

    @property
    def has_ended(self) -> bool:
        """True if the response was ended before it was complete."""
        return self._ended.is_set()

    async def send(self, message: Message) -> None:
        """Send a message of the application, unless the response was ended."""
        async with self._lock:
            if not self.has_ended:
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    self._is_complete = True
                await self._request.send(message)

    def end_after(self, last_event: Coroutine[object, object, bytes]) -> None:
        """End the response with an event that is not known yet, and end the application."""
        self._end_task = asyncio.get_running_loop().create_task(self._end(last_event))

    async def _end(self, last_event: Coroutine[object, object, bytes]) -> None:
        event = await last_event
        async with self._lock:
            if self._is_complete:
                return
            self._ended.set()  # the application receives a disconnection
            await self._request.write(event, is_last=True)
        await asyncio.sleep(END_TIMEOUT)
        assert self._application_task is not None
        self._application_task.cancel()

    def close(self) -> None:
        """Stop waiting for the last event, because the application has ended."""
        if self._end_task is not None:
            self._end_task.cancel()


def _is_event_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    types = [value for name, value in headers if name.lower() == b"content-type"]
    return any([value.lower().startswith(b"text/event-stream") for value in types])


class Mount:
    """An ASGI application at a path; an empty path matches every request."""

    def __init__(self, path: str, app: AsgiApp) -> None:
        self.path = path.rstrip("/")
        self.app = app
        self.starts_on_demand = bool(getattr(app, "starts_on_demand", False))
        self._inbox: asyncio.Queue[Message] | None = None
        self._lifespan_replies: asyncio.Queue[str] | None = None
        self._startup: Task[None] | None = None
        self._lifespan_task: Task[None] | None = None

    def matches(self, path: str) -> bool:
        """True if a path is the path of the mount, or below it."""
        return path == self.path or path.startswith(self.path + "/")

    async def respond(
        self,
        request: HttpRequest,
        settings: HttpSettings,
        wait_for_last_event: Callable[[HttpRequest], Coroutine[object, object, bytes]],
        get_challenge: Callable[[HttpRequest, Iterable[str]], tuple[bytes, bytes]] | None = None,
    ) -> None:
        """Pass a request to the application. Reads the body first, so that our limits apply.

        If the response is an event stream, it ends when `wait_for_last_event` returns an event.
        With `get_challenge`, the application can refuse a token that lacks scopes.
        """
        pending_messages: list[Message] = []
        if request.method in BODY_METHODS:
            body = await read_body(request, settings)
            pending_messages.append({"type": "http.request", "body": body, "more_body": False})

        stream = MountedStream(request)

        async def receive() -> Message:
            return pending_messages.pop() if pending_messages else await stream.receive()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.is_response_started = True
                own = message.get("headers", ())
                headers = [*own, *request.common_headers(message["status"], own)]
                message = {**message, "headers": headers}
                if request.verified_token is not None and _is_event_stream(headers):
                    stream.end_after(wait_for_last_event(request))
            await stream.send(message)

        scope = {**request.scope, "tooli.scopes": request.scopes}
        scope["tooli.principal"] = request.principal
        scope["tooli.request"] = request.server_request
        if get_challenge is not None:
            scope["tooli.challenge"] = partial(get_challenge, request)
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:
            if not stream.has_ended:
                raise
        finally:
            stream.close()

    # -------------------------------------------------------------- lifespan

    @property
    def is_running(self) -> bool:
        """True if the application was started on this event loop."""
        startup = self._startup
        return (
            startup is not None
            and startup.done()
            and startup.get_loop() is asyncio.get_running_loop()
            and not startup.cancelled()
            and startup.exception() is None
        )

    async def start(self, state: object) -> None:
        """Start the application, if it supports the lifespan protocol and is not running.

        Requests that arrive during the startup wait for it.
        """
        loop, startup = asyncio.get_running_loop(), self._startup
        is_starting = startup is not None and startup.get_loop() is loop and not startup.done()
        if not is_starting and not self.is_running:
            # the application outlives the request that starts it, so it gets a context of its own
            startup = self._startup = Context().run(loop.create_task, self._start(state))
        assert startup is not None
        await asyncio.shield(startup)

    async def _start(self, state: object) -> None:
        self._inbox, self._lifespan_replies = asyncio.Queue(), asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}
        self._lifespan_task = asyncio.get_running_loop().create_task(
            self._run_lifespan({**scope, "state": state})
        )
        await self._send_lifespan_event("startup")

    async def stop(self) -> None:
        """Shut the application down."""
        self._startup = None
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
