"""RequestPeer and SdkPeer: the client of a running request, for the function that it runs.

    tool (in a thread or on the loop) ── progress, log ──▶ SdkPeer ──▶ sender task ──▶ client
    tool ◀── answers ◀──────────────────── ask ──────────────────────────────────────▶ client

A tool can send messages from any thread. One task on the event loop sends them in order. All
messages are sent before the answer of the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import mcp_types as types
from mcp.shared.message import ServerMessageMetadata

from tooli.core.peer import UNANSWERED_TEXT, Peer
from tooli.errors import DependencyError, InternalError, Interrupted, TimeoutExceeded
from tooli.mcp.change_notifier import connection_state
from tooli.mcp.protocol import (
    DEFAULT_LOG_LEVEL,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    STATELESS_VERSIONS,
    client_supports,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Future
    from typing import TypeAlias

    from mcp.server.context import ServerRequestContext
    from starlette.requests import Request

    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject

    Ctx: TypeAlias = ServerRequestContext[JsonObject, Request]

QUESTION_TIMEOUT = 300.0
"""Seconds that a client has to answer a question of a call."""

MAX_QUEUED_MESSAGES = 1000
"""Maximum number of messages that wait for a slow client. Further messages are dropped."""

_REQUEST_TYPES: dict[str, tuple[Any, Any]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


class RequestPeer(Peer):
    """The client of one request, which gets nothing but the answer."""

    sends_messages = False  # True: messages are sent before the answer

    def __init__(self) -> None:
        self.cancelled = False
        self._loop = asyncio.get_running_loop()
        self.shutdown_future: asyncio.Future[None] = self._loop.create_future()

    def run_and_flush(self, work: Awaitable[JsonObject]) -> Awaitable[JsonObject]:
        """Return the answer of a call after all its messages are sent. Here are none."""
        return work

    def stop(self) -> None:
        """End the request because the server shuts down before the call ends."""
        if not self.shutdown_future.done():
            self.shutdown_future.set_result(None)

    def cancel(self) -> None:
        """Mark the call as cancelled; the tool sees it in `ctx.cancelled`."""
        self.cancelled = True


class SdkPeer(RequestPeer):
    """The client of one request, through the SDK's session."""

    sends_messages = True

    def __init__(self, ctx: Ctx, logger: str) -> None:
        super().__init__()
        self.ctx = ctx
        self._logger = logger
        self._outbox: deque[Callable[[], Awaitable[object]] | None] = deque()
        self._outbox_event = asyncio.Event()
        self._open_questions: set[Future[Mapping[str, JsonObject] | Exception]] = set()
        self._min_log_level = _min_log_level(ctx)

    # -------------------------------------------------------------- messages of the tool

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification; the SDK drops it if the client gave no token."""
        self._enqueue(lambda: self.ctx.session.report_progress(done, total, message))

    def log(self, level: str, data: Any) -> None:
        """Send a log message if its level is at least the minimum level for the client."""
        if level in LOG_LEVELS and LOG_LEVELS.index(level) >= self._min_log_level:
            self._enqueue(lambda: self._send_log(level, data))

    async def _send_log(self, level: Any, data: Any) -> None:
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=self._logger)
        notification = types.LoggingMessageNotification(params=params)
        await self.ctx.session.send_notification(notification, self.ctx.request_id)

    def disconnect_client(self) -> None:
        """Close the stream to a client that can reconnect to get the answer."""
        close = self.ctx.close_sse_stream
        if close is not None:
            self._enqueue(close)

    def _enqueue(self, message: Callable[[], Awaitable[object]]) -> None:
        if not self.cancelled and len(self._outbox) < MAX_QUEUED_MESSAGES:
            self._outbox.append(message)
            self._loop.call_soon_threadsafe(self._outbox_event.set)

    # -------------------------------------------------------------- questions of the tool

    def supports(self, method: str) -> bool:
        """True if the client can answer this kind of question while the call waits."""
        session = self.ctx.session
        declared = session.client_capabilities
        if not session.can_send_request or declared is None:
            return False
        declared_json = declared.model_dump(by_alias=True, exclude_none=True)
        return client_supports(declared_json, method)

    def can_wait(self) -> bool:
        """False on the event loop of the server, which must read the answer."""
        return asyncio._get_running_loop() is not self._loop

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, JsonObject]:
        """Ask the client; wait for its answers until QUESTION_TIMEOUT or the call's deadline."""
        if not self.can_wait():
            raise InternalError("An async function must ask with `await`, as in `ctx.aelicit`.")
        future = asyncio.run_coroutine_threadsafe(self._try_to_ask(questions), self._loop)
        self._open_questions.add(future)
        try:
            answers = future.result(self.remaining_time())
        except FutureTimeout:
            future.cancel()
            raise TimeoutExceeded(UNANSWERED_TEXT) from None
        except CancelledError:
            raise Interrupted("The client cancelled the call or did not answer it.") from None
        finally:
            self._open_questions.discard(future)
        if isinstance(answers, Exception):
            raise answers
        return answers

    async def _try_to_ask(
        self, questions: Mapping[str, Question]
    ) -> Mapping[str, JsonObject] | Exception:
        """Return the answers or the error.

        asyncio logs the error of a task if nobody waits for it, as after a cancelled call.
        """
        try:
            return await self.ask_async(questions)
        except Exception as error:
            return error

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, JsonObject]:
        """Ask the client from the event loop and return its answers."""
        return {key: await self._send_question(question) for key, question in questions.items()}

    async def _send_question(self, question: Question) -> JsonObject:
        request_type, result_type = _REQUEST_TYPES[question.method]
        message = {"method": question.method, "params": question.params()}
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            result = await asyncio.wait_for(
                self.ctx.session.send_request(
                    request_type.model_validate(message), result_type, metadata=metadata
                ),
                QUESTION_TIMEOUT,
            )
        except asyncio.TimeoutError:
            raise DependencyError(
                f"The client did not answer {question.method} within {QUESTION_TIMEOUT:g} seconds."
            ) from None
        except Exception as failure:  # the client refused, disconnected, or sent an invalid answer
            raise DependencyError(
                f"The client did not answer {question.method}: {failure}"
            ) from failure
        return result.model_dump(by_alias=True, exclude_none=True, mode="json")

    # -------------------------------------------------------------- sending

    async def run_and_flush(self, work: Awaitable[JsonObject]) -> JsonObject:
        """Return the answer of a call after all its messages are sent."""
        sender = asyncio.ensure_future(self._send_outbox())
        try:
            try:
                return await work
            finally:
                self._outbox.append(None)  # marks the end of the outbox
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
                except Exception:  # a lost message does not fail the call
                    continue

    def cancel(self) -> None:
        """Mark the call as cancelled; the tool sees it in `ctx.cancelled`."""
        super().cancel()
        for question in list(self._open_questions):
            question.cancel()


def _min_log_level(ctx: Ctx) -> int:
    """Return the index of the lowest log level that the client wants."""
    if ctx.protocol_version in STATELESS_VERSIONS:
        level = (ctx.meta or {}).get(LOG_LEVEL_KEY)
        return LOG_LEVELS.index(level) if level in LOG_LEVELS else len(LOG_LEVELS)
    return LOG_LEVELS.index(connection_state(ctx).get("level", DEFAULT_LOG_LEVEL))
