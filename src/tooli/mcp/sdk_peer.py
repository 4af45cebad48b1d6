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

from tooli.core.peer import Peer
from tooli.mcp.input_requests import client_supports
from tooli.mcp.protocol import DEFAULT_LOG_LEVEL, LOG_LEVEL_KEY, LOG_LEVELS, MODERN_VERSIONS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Future
    from typing import Any

    from mcp.server.context import ServerRequestContext

    from tooli.core.peer import Question

MAX_QUEUED_MESSAGES = 1000
"""How many messages may wait for a client that reads slowly; what is said beyond is dropped."""

_REQUEST_TYPES: dict[str, tuple[Any, Any]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class SdkPeer(Peer):
    """One request's client, through the SDK's session."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], logger: str) -> None:
        self.ctx = ctx
        self.cancelled = False
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._outbox: deque[Callable[[], Awaitable[Any]] | None] = deque()
        self._outbox_event = asyncio.Event()
        self._open_questions: set[Future[Any]] = set()
        self._min_log_level = _min_log_level(ctx)
        self.shutdown_future: asyncio.Future[None] = self._loop.create_future()

    # -------------------------------------------------------------- what a tool says

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come; the SDK stays silent where no token was given."""
        self._enqueue(lambda: self.ctx.session.report_progress(done, total, message))

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on, as loud as the client wants it."""
        if level in LOG_LEVELS and LOG_LEVELS.index(level) >= self._min_log_level:
            self._enqueue(lambda: self._send_log(level, data))

    async def _send_log(self, level: Any, data: Any) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=self._logger)
        notification = types.LoggingMessageNotification(params=params)
        await self.ctx.session.send_notification(notification, self.ctx.request_id)

    def disconnect_client(self) -> None:
        """End the client's stream, where it can come back for the answer."""
        close = self.ctx.close_sse_stream
        if close is not None:
            self._enqueue(close)

    def _enqueue(self, message: Callable[[], Awaitable[Any]]) -> None:
        if not self.cancelled and len(self._outbox) < MAX_QUEUED_MESSAGES:
            self._outbox.append(message)
            self._loop.call_soon_threadsafe(self._outbox_event.set)

    # -------------------------------------------------------------- what a tool asks

    def supports(self, method: str) -> bool:
        """Whether the client can answer such a question while the call waits."""
        session = self.ctx.session
        declared = session.client_capabilities
        if not session.can_send_request or declared is None:
            return False
        declared_json = declared.model_dump(by_alias=True, exclude_none=True)
        return client_supports(declared_json, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The client's answers; the thread waits for them, or for the client to give up."""
        from concurrent.futures import CancelledError

        future = asyncio.run_coroutine_threadsafe(self.ask_async(questions), self._loop)
        self._open_questions.add(future)
        try:
            return future.result()
        except CancelledError:
            from tooli.errors import Interrupted

            raise Interrupted("The client cancelled the call.") from None
        finally:
            self._open_questions.discard(future)

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The same on the event loop."""
        return {key: await self._send_question(question) for key, question in questions.items()}

    async def _send_question(self, question: Question) -> Any:
        request_type, result_type = _REQUEST_TYPES[question.method]
        message = {"method": question.method, "params": question.params()}
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            result = await self.ctx.session.send_request(
                request_type.model_validate(message), result_type, metadata=metadata
            )
        except Exception as failure:  # the client refused, went away, or answered nonsense
            from tooli.errors import DependencyError

            raise DependencyError(
                f"The client did not answer {question.method}: {failure}"
            ) from failure
        return result.model_dump(by_alias=True, exclude_none=True, mode="json")

    # -------------------------------------------------------------- its courier

    async def run_and_flush(self, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The answer to a call, after everything that was said on the way to it."""
        sender = asyncio.ensure_future(self._send_outbox())
        try:
            try:
                return await work
            finally:
                self._outbox.append(None)  # an answer or a refusal: behind all that was said
                self._outbox_event.set()
                if not self.cancelled:
                    await sender
        except BaseException:
            self.cancel()
            sender.cancel()
            raise

    async def _send_outbox(self) -> None:
        while True:
            await self._outbox_event.wait()
            self._outbox_event.clear()
            while self._outbox:
                message = self._outbox.popleft()
                if message is None:
                    return
                try:
                    await message()
                except Exception:  # what was said on the way is no part of the answer
                    continue

    def stop(self) -> None:
        """The server has to end before the call does."""
        if not self.shutdown_future.done():
            self.shutdown_future.set_result(None)

    def cancel(self) -> None:
        """Nobody waits for the answer any more: the tool is told as soon as it looks."""
        self.cancelled = True
        for question in list(self._open_questions):
            question.cancel()


def _min_log_level(ctx: ServerRequestContext[Any, Any]) -> int:
    """The quietest level that the client wants to hear."""
    meta: Any = ctx.meta or {}
    if ctx.protocol_version in MODERN_VERSIONS:
        level = meta.get(LOG_LEVEL_KEY)
        return LOG_LEVELS.index(level) if level in LOG_LEVELS else len(LOG_LEVELS)
    return LOG_LEVELS.index(connection_state(ctx).get("level", DEFAULT_LOG_LEVEL))


def connection_state(ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """What we remember about a connection, as long as it lasts."""
    return ctx.session._connection.state.setdefault("tooli", {})
