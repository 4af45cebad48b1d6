"""The HTTP interfaces of the parity tests. They send a case to the ASGI app without a network."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tooli.core._hot_tables import HTTP_OPTIONS, OPTION_KINDS
from tooli.core.event_loop import run_awaitable
from tooli.core.record import Record
from tooli.testing.parity import Interface, InterfaceResponse, register_interface
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_object, to_jsonable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractAsyncContextManager

    from tooli.app import Tooli
    from tooli.serving import AsgiApp, Message
    from tooli.testing.parity import Case


class HttpResponse(Record):
    """A response: status, headers and the chunks of the body."""

    status: int
    headers: Mapping[str, str]
    chunks: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks)

    def json(self) -> Any:
        """The body as a JSON document."""
        return json.loads(self.body)

    def lines(self) -> list[Any]:
        """The lines of the body as JSON documents."""
        return [json.loads(line) for line in self.body.split(b"\n") if line]


async def send_request(
    api: AsgiApp,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    query: str = "",
) -> HttpResponse:
    """Send one request to an ASGI application and return the response."""
    request_headers = {
        "host": "localhost",
        **({"content-type": "application/json"} if body else {}),
    }
    request_headers |= {name.lower(): value for name, value in (headers or {}).items()}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode("latin-1")) for name, value in request_headers.items()
        ],
    }
    incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if incoming:
            return incoming.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await api(scope, receive, send)
    head = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return HttpResponse(sent[0]["status"], head, tuple(m.get("body", b"") for m in sent[1:]))


def run_lifespan(api: AsgiApp) -> AbstractAsyncContextManager[AsgiApp]:
    """Context manager that starts and shuts down an ASGI application."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def live() -> AsyncGenerator[AsgiApp]:
        inbox: asyncio.Queue[Message] = asyncio.Queue()
        outbox: asyncio.Queue[Message] = asyncio.Queue()
        lifespan_task = asyncio.ensure_future(
            api({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put)
        )
        inbox.put_nowait({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        try:
            yield api
        finally:
            inbox.put_nowait({"type": "lifespan.shutdown"})
            await lifespan_task

    return live()


_OPTIONS_WITH_VALUE = [name for name in HTTP_OPTIONS if OPTION_KINDS[name] != "flag"]
_QUERY_NAMES = {
    "detailed": "response_format",
    "concise": "response_format",
    **{name: name for name in HTTP_OPTIONS},
}


@register_interface
class HttpInterface(Interface):
    """`POST /tools/{command}`."""

    name, surface = "http", "http"
    accept = "application/json"

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case is skipped, for example because HTTP lacks an option, or None."""
        if case.options.keys() - _QUERY_NAMES.keys():
            return "HTTP has no word for the option"
        return super().skip_reason(case)

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope in the body of the response."""
        return InterfaceResponse(run_awaitable(post_case(self.app, case, self.accept)).json())


@register_interface
class HttpLinesInterface(HttpInterface):
    """`POST /tools/{command}` with the items of a stream as JSON lines."""

    name, streams = "http-lines", True
    accept = "application/x-ndjson"

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the items, or the error in the last line if the stream failed."""
        response = run_awaitable(post_case(self.app, case, self.accept))
        if response.headers["content-type"] == "application/json":
            envelope = response.json()
            if not envelope["ok"]:
                return InterfaceResponse({"ok": False, "error": envelope["error"]})
            result = envelope.get("result", [])
            return InterfaceResponse(
                {"ok": True, "result": result if isinstance(result, list) else [result]}
            )
        lines = response.lines()
        if lines and is_object(lines[-1]) and lines[-1].get("ok") is False:
            return InterfaceResponse({"ok": False, "error": lines[-1]["error"]})
        return InterfaceResponse({"ok": True, "result": lines})


async def post_case(app: Tooli, case: Case, accept: str) -> HttpResponse:
    """Send a case as a POST request and return the response."""
    arguments = to_jsonable(dict(case.arguments), [])
    options = case.options.items()
    query = urlencode(
        [
            _query_pair(name, value)
            for name, value in options
            if value or name in _OPTIONS_WITH_VALUE
        ]
    )
    async with run_lifespan(app.asgi(mcp=False)) as api:
        return await send_request(
            api,
            "POST",
            f"/tools/{case.tool.replace(' ', '/')}",
            body=encode(arguments, []),
            headers={"accept": accept},
            query=query,
        )


def _query_pair(name: str, value: Any) -> tuple[str, str]:
    if _QUERY_NAMES[name] == "response_format":
        return _QUERY_NAMES[name], name
    return _QUERY_NAMES[name], str(value) if name in _OPTIONS_WITH_VALUE else "true"
