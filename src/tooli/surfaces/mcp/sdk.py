"""The SDK's low-level server, made from an app: every method, in both eras.

    Service (tools) ─┐
    Shelf (resources, prompts, completion) ─┼─▶ make_server ─▶ Server ─▶ stdio | HTTP | SSE
    News (what changes) ─┘

The SDK speaks the protocol; what is answered comes from the rooms above, as plain dicts.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from traceback import print_exception
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from tooli.surfaces.crew import Crew
from tooli.surfaces.mcp.line import Line, notes_of
from tooli.surfaces.mcp.news import News
from tooli.surfaces.mcp.offers import not_found
from tooli.surfaces.mcp.service import caller_named
from tooli.surfaces.mcp.shelf import Shelf
from tooli.surfaces.mcp.words import INTERNAL_ERROR, MODERN, RpcError
from tooli.surfaces.serving import MOST_CALLS, too_busy

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from typing import TypeAlias

    from mcp.server.context import ServerRequestContext

    from tooli.call.model import Caller
    from tooli.surfaces.mcp.service import Request, Service

    Ctx: TypeAlias = ServerRequestContext[Any, Any]
    Params: TypeAlias = dict[str, Any]
    Answerer: TypeAlias = Callable[["AppServer", Ctx, Params, bool], Awaitable[Any]]

SHUTDOWN = -32000
"""The code of an answer to a call that the end of the server cut short."""


class AppServer(Server[Any]):
    """The SDK's server of one app, and the requests that it is busy with."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.shelf = Shelf(service)
        self.news = News(service.app)
        self.listeners = ListenHandler(self.news.bus)
        self.crew = Crew(MOST_CALLS)
        self._busy: dict[asyncio.Future[Any], Line] = {}
        self._closing = False
        info = service.info()
        super().__init__(
            info["name"],
            version=info["version"],
            description=info.get("description"),
            instructions=service.instructions(),
            lifespan=_lifespan,
            get_tool_input_schema=self._input_schema,
            on_subscriptions_listen=self.listeners,
        )
        self.middleware.append(self.news.remember)
        for method, (params, answer) in _METHODS.items():
            self.add_request_handler(method, params, _handler(self, answer))

    def get_capabilities(
        self, *_: Any, protocol_version: str | None = None, **__: Any
    ) -> types.ServerCapabilities:
        """What the service says it can do: the same on every transport."""
        modern = protocol_version in MODERN
        return types.ServerCapabilities.model_validate(self.service.capabilities(modern=modern))

    def _input_schema(self, name: str) -> Any:
        from tooli.views.mcp import arguments_schema

        tool = self.service.tools.get(name)
        return arguments_schema(tool) if tool is not None else None

    # -------------------------------------------------------------- running

    @property
    def _is_full(self) -> bool:
        """Whether as many calls run as may; some wait for a human, some nobody waits for."""
        return len(self._busy) + self.crew.left >= MOST_CALLS

    async def fulfil(self, ctx: Ctx, make: Callable[[Line], Request]) -> dict[str, Any]:
        """The answer to a request that runs a function of the app's."""
        if self._closing:
            raise MCPError(SHUTDOWN, "The server is ending; it takes no more calls.")
        line = Line(ctx, self.service.desk.name)
        request = make(line)
        came: Any = ctx.request
        if came is not None:  # over a network, through a guard that has looked at the token
            known = came.scope.get
            request.grant(known("tooli.scopes", ()), known("tooli.principal"))
        if self._is_full:
            return request.refuse(too_busy())
        work = request.arun() if request.is_async else self.crew.do(request.run)
        job = asyncio.ensure_future(line.carry(work))
        self._busy[job] = line
        job.add_done_callback(self._look_at)
        try:
            await asyncio.wait({job, line.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            line.ended.cancel()
            if not job.done():  # the client has given up, or the server has to
                line.give_up()
                job.cancel()
        if not job.done():
            raise MCPError(SHUTDOWN, "The server is ending; the call was cancelled.")
        return job.result()

    async def close(self, grace: float) -> None:
        """End in order: no new calls, a while for those that run, and an answer to the rest."""
        self._closing = True
        self.listeners.close()
        awaited = {job for job, line in self._busy.items() if not line.cancelled}
        if awaited:
            await asyncio.wait(awaited, timeout=grace)
        for line in list(self._busy.values()):
            line.end()

    def _look_at(self, job: asyncio.Future[Any]) -> None:
        """A job counts until it is done; one that nobody waits for may end as it likes."""
        del self._busy[job]
        if not job.cancelled():
            job.exception()


@asynccontextmanager
async def _lifespan(server: Any) -> AsyncGenerator[dict[str, Any]]:
    server.news.begin()
    try:
        yield {}
    finally:
        server.listeners.close()
        server.news.end()


def make_server(service: Service) -> AppServer:
    """The SDK's server of an app."""
    return AppServer(service)


# ------------------------------------------------------------------ the methods


def _handler(server: AppServer, answer: Answerer) -> Callable[[Ctx, Any], Awaitable[Any]]:
    """A handler for the SDK: it gets the parameters as they came, and may refuse them."""

    async def handle(ctx: Ctx, params: Any) -> Any:
        try:
            return await answer(server, ctx, dict(ctx.params or {}), ctx.protocol_version in MODERN)
        except RpcError as refused:
            raise MCPError(refused.code, refused.message, refused.data) from None
        except MCPError:
            raise
        except Exception as defect:  # ours: its words are for the server's log, not for clients
            print_exception(defect, file=sys.stderr)
            raise MCPError(INTERNAL_ERROR, "Internal server error") from None

    return handle


async def _discover(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    return server.service.discover()


def _lists(page: Callable[[AppServer], Callable[..., Any]]) -> Answerer:
    """How a list is answered: a page of it, from wherever it is kept."""

    async def answer(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
        return page(server)(params.get("cursor"), modern=modern)

    return answer


def _runs(find: Callable[[AppServer], Callable[..., Request]]) -> Answerer:
    """How a request is answered that runs a function of the app's."""

    async def answer(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
        caller = caller_of(ctx)
        return await server.fulfil(
            ctx, lambda line: find(server)(params, caller, line, modern=modern)
        )

    return answer


async def _subscribe(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    if not server.shelf.knows(params["uri"]):
        raise not_found(params["uri"], modern)
    server.news.watch(ctx, params["uri"], on=True)
    return {}


async def _unsubscribe(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    server.news.watch(ctx, params["uri"], on=False)
    return {}


async def _set_level(server: AppServer, ctx: Ctx, params: Params, modern: bool) -> Any:
    notes_of(ctx)["level"] = params["level"]
    return {}


_METHODS: dict[str, tuple[Any, Answerer]] = {
    "server/discover": (types.RequestParams, _discover),
    "tools/list": (types.PaginatedRequestParams, _lists(lambda s: s.service.list_tools)),
    "tools/call": (types.CallToolRequestParams, _runs(lambda s: s.service.request)),
    "resources/list": (types.PaginatedRequestParams, _lists(lambda s: s.shelf.resources)),
    "resources/templates/list": (types.PaginatedRequestParams, _lists(lambda s: s.shelf.templates)),
    "resources/read": (types.ReadResourceRequestParams, _runs(lambda s: s.shelf.reading)),
    "resources/subscribe": (types.SubscribeRequestParams, _subscribe),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, _unsubscribe),
    "prompts/list": (types.PaginatedRequestParams, _lists(lambda s: s.shelf.prompts)),
    "prompts/get": (types.GetPromptRequestParams, _runs(lambda s: s.shelf.asking)),
    "completion/complete": (types.CompleteRequestParams, _runs(lambda s: s.shelf.completing)),
    "logging/setLevel": (types.SetLevelRequestParams, _set_level),
}


def caller_of(ctx: Ctx) -> Caller:
    """Who is calling: the client's own name, and its session."""
    client = ctx.session.client_params
    info = client.client_info if client is not None else None
    said = {"name": info.name, "version": info.version} if info is not None else None
    if ctx.request is None:  # stdin and stdout: the environment is the client's own
        return caller_named(said)
    client = getattr(ctx.request, "client", None)
    caller = caller_named(said, {"TOOLI_SESSION_ID": ctx.session._connection.session_id or ""})
    return caller.replace(address=str(client[0]) if client and client[0] else "network")
