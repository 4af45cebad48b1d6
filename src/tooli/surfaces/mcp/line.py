"""Line: the client of a call that the SDK serves, for a tool that talks to it meanwhile.

    tool (a thread, or the loop) ── progress, log, let_go ──▶ outbox ──▶ courier ──▶ client
    tool ◀── answers ◀──────────── ask ────────────────────────────────────────────▶ client

A tool says things in any thread; one courier on the event loop sends them in that order, and
has sent them all before the answer goes out.
"""

from __future__ import annotations

import asyncio
from collections import deque

import mcp_types as types
from mcp.shared.message import ServerMessageMetadata

from tooli.call.peer import Peer
from tooli.surfaces.mcp.asking import declares
from tooli.surfaces.mcp.words import LEVELS, LOG_KEY, MODERN, USUAL_LEVEL

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Future
    from typing import Any

    from mcp.server.context import ServerRequestContext

    from tooli.call.peer import Question

MOST_WAITING = 1000
"""How many messages may wait for a client that reads slowly; what is said beyond is dropped."""

_QUESTIONS: dict[str, tuple[Any, Any]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class Line(Peer):
    """One request's client, through the SDK's session."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], logger: str) -> None:
        self.ctx = ctx
        self.cancelled = False
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._outbox: deque[Callable[[], Awaitable[Any]] | None] = deque()
        self._posted = asyncio.Event()
        self._asked: set[Future[Any]] = set()
        self._loudness = _loudness(ctx)
        self.ended: asyncio.Future[None] = self._loop.create_future()

    # -------------------------------------------------------------- what a tool says

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come; the SDK stays silent where no token was given."""
        self._say(lambda: self.ctx.session.report_progress(done, total, message))

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on, as loud as the client wants it."""
        if level in LEVELS and LEVELS.index(level) >= self._loudness:
            self._say(lambda: self._send_log(level, data))

    async def _send_log(self, level: Any, data: Any) -> None:
        said = types.LoggingMessageNotificationParams(level=level, data=data, logger=self._logger)
        notice = types.LoggingMessageNotification(params=said)
        await self.ctx.session.send_notification(notice, self.ctx.request_id)

    def let_go(self) -> None:
        """End the client's stream, where it can come back for the answer."""
        close = self.ctx.close_sse_stream
        if close is not None:
            self._say(close)

    def _say(self, message: Callable[[], Awaitable[Any]]) -> None:
        if not self.cancelled and len(self._outbox) < MOST_WAITING:
            self._outbox.append(message)
            self._loop.call_soon_threadsafe(self._posted.set)

    # -------------------------------------------------------------- what a tool asks

    def can(self, method: str) -> bool:
        """Whether the client can answer such a question while the call waits."""
        session = self.ctx.session
        declared = session.client_capabilities
        if not session.can_send_request or declared is None:
            return False
        written = declared.model_dump(by_alias=True, exclude_none=True)
        return declares(written, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The client's answers; the thread waits for them, or for the client to give up."""
        from concurrent.futures import CancelledError

        asked = asyncio.run_coroutine_threadsafe(self.ask_async(questions), self._loop)
        self._asked.add(asked)
        try:
            return asked.result()
        except CancelledError:
            from tooli.errors import Interrupted

            raise Interrupted("The client cancelled the call.") from None
        finally:
            self._asked.discard(asked)

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The same on the event loop."""
        return {key: await self._put(question) for key, question in questions.items()}

    async def _put(self, question: Question) -> Any:
        kind, answer = _QUESTIONS[question.method]
        said = {"method": question.method, "params": question.params()}
        related = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            got = await self.ctx.session.send_request(
                kind.model_validate(said), answer, metadata=related
            )
        except Exception as failure:  # the client refused, went away, or answered nonsense
            from tooli.errors import DependencyError

            raise DependencyError(
                f"The client did not answer {question.method}: {failure}"
            ) from failure
        return got.model_dump(by_alias=True, exclude_none=True, mode="json")

    # -------------------------------------------------------------- its courier

    async def carry(self, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The answer to a call, after everything that was said on the way to it."""
        courier = asyncio.ensure_future(self._deliver())
        try:
            try:
                return await work
            finally:
                self._outbox.append(None)  # an answer or a refusal: behind all that was said
                self._posted.set()
                if not self.cancelled:
                    await courier
        except BaseException:
            self.give_up()
            courier.cancel()
            raise

    async def _deliver(self) -> None:
        while True:
            await self._posted.wait()
            self._posted.clear()
            while self._outbox:
                message = self._outbox.popleft()
                if message is None:
                    return
                try:
                    await message()
                except Exception:  # what was said on the way is no part of the answer
                    continue

    def end(self) -> None:
        """The server has to end before the call does."""
        if not self.ended.done():
            self.ended.set_result(None)

    def give_up(self) -> None:
        """Nobody waits for the answer any more: the tool is told as soon as it looks."""
        self.cancelled = True
        for question in list(self._asked):
            question.cancel()


def _loudness(ctx: ServerRequestContext[Any, Any]) -> int:
    """The quietest level that the client wants to hear."""
    meta: Any = ctx.meta or {}
    if ctx.protocol_version in MODERN:
        wanted = meta.get(LOG_KEY)
        return LEVELS.index(wanted) if wanted in LEVELS else len(LEVELS)
    return LEVELS.index(notes_of(ctx).get("level", USUAL_LEVEL))


def notes_of(ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """What we remember about a connection, as long as it lasts."""
    return ctx.session._connection.state.setdefault("tooli", {})
