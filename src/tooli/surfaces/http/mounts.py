"""Mounts: other applications (MCP) behind the same guard, with a life as long as the door's."""

from __future__ import annotations

import asyncio

from tooli.surfaces.http.bodies import read_body

TYPE_CHECKING = False

if TYPE_CHECKING:
    from asyncio import Task

    from tooli.surfaces.http.exchange import Exchange
    from tooli.surfaces.http.settings import Asgi, Message, Settings


class Mount:
    """An application at a path; at an empty one, everywhere."""

    def __init__(self, path: str, app: Asgi) -> None:
        self.path = path.rstrip("/")
        self.app = app
        self._inbox: asyncio.Queue[Message] | None = None
        self._said: asyncio.Queue[str] | None = None
        self._life: Task[None] | None = None

    def takes(self, path: str) -> bool:
        """Whether a path is its own, or below."""
        return path == self.path or path.startswith(self.path + "/")

    async def answer(self, exchange: Exchange, settings: Settings) -> None:
        """Give it a request that the guard let pass; a body is read here, with our patience."""
        waiting: list[Message] = []
        if exchange.method in ("POST", "PUT", "PATCH"):
            body = await read_body(exchange, settings)
            waiting.append({"type": "http.request", "body": body, "more_body": False})

        async def receive() -> Message:
            return waiting.pop() if waiting else await exchange.receive()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.begun = True
                message = {**message, "headers": [*message.get("headers", ()), *exchange.extra]}
            await exchange.send(message)

        who = {"tooli.scopes": exchange.scopes, "tooli.principal": exchange.principal}
        scope = {**exchange.scope, **who}
        await self.app(scope, receive, send)

    # -------------------------------------------------------------- its life

    async def start(self, state: object) -> None:
        """Let it begin; one that knows nothing of beginnings is left alone."""
        self._inbox, self._said = asyncio.Queue(), asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}
        self._life = asyncio.get_running_loop().create_task(self._live({**scope, "state": state}))
        await self._tell("startup")

    async def stop(self) -> None:
        """Let it end."""
        if self._life is not None and not self._life.done():
            await self._tell("shutdown")
            await asyncio.wait({self._life}, timeout=5)
            self._life.cancel()

    async def _live(self, scope: dict[str, object]) -> None:
        assert self._inbox is not None and self._said is not None
        said = self._said

        async def send(message: Message) -> None:
            said.put_nowait(message["type"])

        try:
            await self.app(scope, self._inbox.get, send)
        except Exception:
            pass  # it has no lifespan; what breaks later breaks in an answer
        finally:
            said.put_nowait("lifespan.over")

    async def _tell(self, word: str) -> None:
        assert self._inbox is not None and self._said is not None
        self._inbox.put_nowait({"type": f"lifespan.{word}"})
        if await self._said.get() == f"lifespan.{word}.failed":
            raise RuntimeError(f"what is mounted at {self.path} failed at {word}")
