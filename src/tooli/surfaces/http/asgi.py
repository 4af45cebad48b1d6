"""Api: an app's tools over HTTP. A bare ASGI application, on the standard library alone.

    scope ─▶ Exchange ─▶ Guard ─▶ path ─┬▶ a tool:  body ▸ Call ▸ Outcome ▸ envelope │ stream
                                        ├▶ a page:  /, /health, /tools, /openapi.json
                                        └▶ a mount: /mcp

Whatever goes wrong on this way is answered with an envelope as well.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial

from tooli.call.envelope import document
from tooli.call.failure import as_tool_error
from tooli.call.model import Failed
from tooli.call.pipeline import is_async
from tooli.errors import InputError, InternalError, Suggestion, check_keywords
from tooli.surfaces.crew import Crew
from tooli.surfaces.http.bodies import read_arguments
from tooli.surfaces.http.exchange import Exchange, Gone, Refused
from tooli.surfaces.http.guard import Guard
from tooli.surfaces.http.mounts import Mount
from tooli.surfaces.http.pages import OPEN, Pages
from tooli.surfaces.http.refusals import Refusals
from tooli.surfaces.http.settings import Settings
from tooli.surfaces.http.streams import (
    answer_stream,
    headers_of,
    start_feed,
    status_of,
    terminated,
)
from tooli.surfaces.http.words import NOBODY, caller_of, form_wanted, read_options
from tooli.surfaces.serving import Desk, no_such_tool, too_busy, without_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.call.model import Problem
    from tooli.contract.tool import Tool
    from tooli.errors import ToolError
    from tooli.surfaces.http.settings import Headers, Receive, Scope, Send, SettingWords
    from tooli.surfaces.http.streams import Feed
    from tooli.surfaces.http.strict import Letter
    from tooli.surfaces.serving import Served

_GET, _POST = b"GET, HEAD, OPTIONS", b"POST, OPTIONS"
_ALLOWED_HEADERS = (
    b"authorization, content-type, accept, tooli-caller, tooli-caller-version, tooli-session-id, "
    b"mcp-session-id, mcp-protocol-version, last-event-id, prefer, idempotency-key"
)


def make_api(app: Any, said: SettingWords) -> Api:
    """The application for an app, with settings given by keyword."""
    check_keywords("asgi", said, Settings.__match_args__)
    return Api(app, Settings(**said))


class Api:
    """The application: call it as ASGI does."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.desk = Desk(app)
        self.settings = settings
        self.guard = Guard(settings, self.desk.verifier())
        self.mounts = [Mount(path, inner) for path, inner in settings.mounts.items()]
        self._pages = Pages(self.desk, self.guard.secured, settings)
        self._paths: dict[str, Tool] = {}
        self._edition = -1
        self._running = 0  # calls that are answered whole
        self._streams: set[Feed] = set()
        self._crew = Crew(settings.threads)
        self._refusals = Refusals(app)
        self._letter: Letter | None = None
        self._restore: Callable[[], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or live as long as the server does."""
        kind = scope["type"]
        if kind == "http":
            exchange = Exchange(scope, receive, send)
            try:
                await self._serve(exchange)
            except (Exception, asyncio.CancelledError) as exc:
                await self._end_badly(exchange, exc)
        elif kind == "lifespan":
            await self._live(scope, receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _end_badly(self, exchange: Exchange, exc: BaseException) -> None:
        """Answer a request that was stopped on its way, where it can still be answered."""
        if isinstance(exc, Refused):
            error = exc.error
            await self._refuse(exchange, error, *exc.headers)
            if self._refusals.wants(error):
                await self._crew.do(lambda: self._refusals.note(error, exchange.address))
        elif isinstance(exc, asyncio.CancelledError):
            if not exchange.begun:
                await self._refuse(exchange, terminated())
        elif not isinstance(exc, Gone):
            _report(exc)
            if exchange.begun:
                raise exc
            await self._refuse(exchange, InternalError("The server itself failed."))

    async def _refuse(
        self, exchange: Exchange, error: ToolError, *headers: tuple[bytes, bytes]
    ) -> None:
        body = document(Failed(error), without_tool(self.desk.app, NOBODY), lambda: 0)
        await exchange.answer(error.http_status, body, *headers)

    # -------------------------------------------------------------- the way to what is asked for

    @property
    def paths(self) -> Mapping[str, Tool]:
        """The tool at each path: by its words, dotted, and by its name in other protocols."""
        if self._edition != self.desk.edition:
            edition = self.desk.edition
            paths: dict[str, Tool] = {}
            tools: Mapping[str, Tool] = self.desk.tools if self.settings.tools else {}
            for name, tool in tools.items():
                for said in ("/".join(tool.path), tool.key, name):
                    paths.setdefault(f"/tools/{said}", tool)
            for tool in tools.values():  # its own words win over another's short name
                paths[f"/tools/{'/'.join(tool.path)}"] = tool
            self._paths, self._edition = paths, edition
        return self._paths

    async def _serve(self, exchange: Exchange) -> None:
        self.guard.admit(exchange)
        path, method = exchange.path, exchange.method
        if method == "OPTIONS" and b"access-control-request-method" in exchange.headers:
            await self._answer_preflight(exchange)
            return
        if path not in OPEN:
            self.guard.identify(exchange)
        tool = self.paths.get(path)
        if tool is not None and method == "POST":
            await self._call(exchange, tool)
            return
        for mount in self.mounts:
            if mount.takes(path):
                await mount.answer(exchange, self.settings)
                return
        if tool is None and path not in self._pages.paths():
            raise Refused(self._nowhere(path))
        allowed = _GET if tool is None else _POST
        if method == "OPTIONS":
            await exchange.answer_empty(204, (b"allow", allowed))
        elif tool is None and method in ("GET", "HEAD"):
            body, headers = self._pages.get(path)
            await exchange.answer(200, body, *headers)
        else:
            said = f"{path} does not take {method}; it takes {allowed.decode()}."
            raise Refused(InputError(said, code="E1405"), (b"allow", allowed))

    async def _answer_preflight(self, exchange: Exchange) -> None:
        """Tell a browser what a page of an allowed origin may send."""
        private = exchange.headers.get(b"access-control-request-private-network")
        await exchange.answer_empty(
            204,
            (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
            (b"access-control-allow-headers", _ALLOWED_HEADERS),
            (b"access-control-max-age", b"600"),
            *([(b"access-control-allow-private-network", b"true")] if private else []),
        )

    def _nowhere(self, path: str) -> InputError:
        """The error for a path that leads to nothing; below /tools/ it names a command."""
        if not path.startswith("/tools/"):
            places = ", ".join(["/tools/{command}", *self._pages.paths()])
            return InputError(
                "Nothing is served at this path.",
                code="E1404",
                suggestion=Suggestion("retry_with_modified_input", f"There are: {places}."),
            )
        return no_such_tool(self.desk.app, path[len("/tools/") :][:200])

    # -------------------------------------------------------------- calling a tool

    async def _call(self, exchange: Exchange, tool: Tool) -> None:
        under_way = self._running + len(self._streams) + self._crew.left  # left: waited for no more
        if under_way >= self.settings.limit:
            raise Refused(too_busy(), (b"retry-after", b"1"))
        self._running += 1
        try:
            arguments, heads = await read_arguments(exchange, self.settings), exchange.headers
            options, problems = read_options(exchange.query, heads.get(b"idempotency-key"))
            if b"prefer" in heads:
                problems += await self._heed_preference(exchange, tool, arguments)
            caller = caller_of(exchange, tool)
            served = self.desk.open(tool, arguments, caller, options=options, problems=problems)
            form = form_wanted(heads.get(b"accept")) if tool.streams else "whole"
            if form == "whole":
                if tool.prints and self._restore is None:
                    self._route()
                if is_async(tool.fn):
                    status, body, headers = await _run_on_loop(served)
                else:
                    status, body, headers = await self._crew.do(partial(_run_in_thread, served))
                await exchange.answer(status, body, *headers)
                return
            feed = start_feed(served, self._streams)
        finally:
            self._running -= 1
        await answer_stream(exchange, feed, form, self.settings)

    async def _heed_preference(
        self, exchange: Exchange, tool: Tool, arguments: Mapping[str, Any]
    ) -> tuple[Problem, ...]:
        """What is wrong by the letter of the schema, where the request wants to know."""
        from tooli.surfaces.http.strict import APPLIED, Letter, wants_strict

        if not wants_strict(exchange.headers[b"prefer"]):
            return ()
        letter = self._letter = self._letter or Letter()
        problems = await self._crew.do(lambda: letter.problems(tool, arguments))
        exchange.extra = (*exchange.extra, APPLIED)
        return problems

    # -------------------------------------------------------------- a server's life

    def _route(self) -> None:
        from tooli.call.printing import route_stdout

        self._restore = route_stdout()

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self._route()
                    for mount in self.mounts:
                        await mount.start(scope.get("state", {}))
                except Exception as exc:
                    await send({"type": "lifespan.startup.failed", "message": str(exc)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _end(self) -> None:
        for mount in self.mounts:
            await mount.stop()
        self._crew.dismiss()
        if self._restore is not None:
            self._restore()
            self._restore = None


def _run_in_thread(served: Served) -> tuple[int, bytes, Headers]:
    """The status, the envelope and the head of a call; whatever the tool raises is its failure."""
    try:
        answer = served.run()
    except BaseException as exc:  # Ctrl-C inside of a tool does not end the server
        answer = served.answer(Failed(as_tool_error(exc)))
    return status_of(answer.outcome), answer.document(), headers_of(answer.outcome)


async def _run_on_loop(served: Served) -> tuple[int, bytes, Headers]:
    """The same for an async function."""
    try:
        answer = await served.arun()
    except asyncio.CancelledError:
        raise
    except BaseException as exc:  # Ctrl-C inside of a tool does not end the server
        answer = served.answer(Failed(as_tool_error(exc)))
    return status_of(answer.outcome), answer.document(), headers_of(answer.outcome)


def _report(exc: BaseException) -> None:
    """A defect of ours, told to whoever runs the server."""
    from traceback import print_exception

    print_exception(type(exc), exc, exc.__traceback__, file=sys.stderr)
