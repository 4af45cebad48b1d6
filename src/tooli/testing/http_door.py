"""The HTTP doors of the parity kit: the same case as a request, answered without a network."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tooli.call import aio
from tooli.call.envelope import encode
from tooli.call.wishes import SHAPING, WISHES
from tooli.contract.jsonable import jsonable
from tooli.contract.record import Record
from tooli.testing.parity import Answer, Door, door

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractAsyncContextManager

    from tooli.app import Tooli
    from tooli.surfaces.http.settings import Asgi, Message
    from tooli.testing.parity import Case


class Response(Record):
    """What came back: the status, the head, and the body, in the pieces in which it came."""

    status: int
    headers: Mapping[str, str]
    pieces: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.pieces)

    def json(self) -> Any:
        """The document that the body is."""
        return json.loads(self.body)

    def lines(self) -> list[Any]:
        """The documents that its lines are."""
        return [json.loads(line) for line in self.body.split(b"\n") if line]


async def request(
    api: Asgi,
    method: str,
    path: str,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    query: str = "",
) -> Response:
    """Send one request to an ASGI application, and gather the answer."""
    said = {"host": "localhost", **({"content-type": "application/json"} if body else {})}
    said |= {name.lower(): value for name, value in (headers or {}).items()}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in said.items()],
    }
    arriving: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if arriving:
            return arriving.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await api(scope, receive, send)
    head = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Response(sent[0]["status"], head, tuple(m.get("body", b"") for m in sent[1:]))


def alive(api: Asgi) -> AbstractAsyncContextManager[Asgi]:
    """The application as long as a server runs it: started before, ended after."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def live() -> AsyncGenerator[Asgi]:
        inbox: asyncio.Queue[Message] = asyncio.Queue()
        said: asyncio.Queue[Message] = asyncio.Queue()
        life = asyncio.ensure_future(
            api({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, said.put)
        )
        inbox.put_nowait({"type": "lifespan.startup"})
        assert (await said.get())["type"] == "lifespan.startup.complete"
        try:
            yield api
        finally:
            inbox.put_nowait({"type": "lifespan.shutdown"})
            await life

    return live()


_VALUED = (*SHAPING, *WISHES)
_QUERY = {
    "yes": "yes",
    "dry_run": "dry_run",
    "detailed": "response_format",
    "concise": "response_format",
    **{name: name for name in _VALUED},
}


@door
class HttpDoor(Door):
    """`POST /tools/{command}`."""

    name, surface = "http", "http"
    accept = "application/json"

    def declines(self, case: Case) -> str | None:
        """Why the door is not asked: some options make sense at a terminal alone."""
        if case.options.keys() - _QUERY.keys():
            return "HTTP has no word for the option"
        return super().declines(case)

    def answer(self, case: Case) -> Answer:
        """The envelope in the answer's body."""
        return Answer(aio.finish(ask(self.app, case, self.accept)).json())


@door
class HttpLinesDoor(HttpDoor):
    """The same, with the items of a stream as lines."""

    name, streams = "http-lines", True
    accept = "application/x-ndjson"

    def answer(self, case: Case) -> Answer:
        """The items; a failing stream's last line is its error."""
        response = aio.finish(ask(self.app, case, self.accept))
        if response.headers["content-type"] == "application/json":
            told = response.json()
            if not told["ok"]:
                return Answer({"ok": False, "error": told["error"]})
            result = told.get("result", [])
            return Answer({"ok": True, "result": result if isinstance(result, list) else [result]})
        lines = response.lines()
        if lines and isinstance(lines[-1], dict) and lines[-1].get("ok") is False:
            return Answer({"ok": False, "error": lines[-1]["error"]})
        return Answer({"ok": True, "result": lines})


async def ask(app: Tooli, case: Case, accept: str) -> Response:
    """Send a case as a request."""
    arguments = jsonable(dict(case.arguments), [])
    said = case.options.items()
    query = urlencode([_said(name, value) for name, value in said if value or name in _VALUED])
    async with alive(app.asgi(mcp=False)) as api:
        return await request(
            api,
            "POST",
            f"/tools/{case.tool.replace(' ', '/')}",
            body=encode(arguments, []),
            headers={"accept": accept},
            query=query,
        )


def _said(name: str, value: Any) -> tuple[str, str]:
    if _QUERY[name] == "response_format":
        return _QUERY[name], name
    return _QUERY[name], str(value) if name in _VALUED else "true"
