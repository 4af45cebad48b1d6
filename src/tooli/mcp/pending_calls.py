"""Pending calls of the stdio server. Each gets one answer, and can send messages while it runs."""

from __future__ import annotations

from itertools import count
from threading import Condition, Event
from time import monotonic

from tooli.core.peer import Peer
from tooli.errors import Interrupted
from tooli.mcp.input_requests import client_supports
from tooli.mcp.protocol import (
    DEFAULT_LOG_LEVEL,
    INTERNAL_ERROR,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    RpcError,
    is_request_id,
)
from tooli.mcp.stdio_transport import alternate_id
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.stdio_server import StdioServer
    from tooli.mcp.stdio_transport import StdioTransport


class RequestTracker:
    """The requests of one client that are not answered yet."""

    def __init__(self, transport: StdioTransport) -> None:
        self.transport = transport
        self.requests: dict[RequestId, StdioPeer | None] = {}  # None: the SDK runs it
        self.condition = Condition()  # not held during writes, which can block
        self._replies_in_progress = 0  # answers that are being sent

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self.requests

    @property
    def is_busy(self) -> bool:
        """True if a request is not answered yet, or its answer is being sent."""
        return bool(self.requests or self._replies_in_progress)

    def reply(self, request_id: RequestId | None, message: JsonObject | None) -> None:
        """Remove a request and send its answer. If `request_id` is None, send a notification."""
        with self.condition:  # the client may reuse the id as soon as it has the answer
            if request_id is not None:
                self.requests.pop(request_id, None)
            self._replies_in_progress += 1
        try:
            if message is not None:
                self.transport.write(message)
        finally:
            with self.condition:
                self._replies_in_progress -= 1
                self.condition.notify_all()

    def wait(self, timeout: float) -> None:
        """Wait for the answers while the client is connected."""
        deadline = monotonic() + timeout
        with self.condition:
            while self.is_busy and monotonic() < deadline and not self.transport.is_disconnected():
                self.condition.wait(0.1)


class PendingCalls(RequestTracker):
    """The calls of one client that are not answered yet, and the questions it was asked."""

    def __init__(self, server: StdioServer) -> None:
        super().__init__(server.transport)
        self.server = server
        self._pending_questions: dict[str, PendingQuestion] = {}
        self._question_numbers = count(1)

    @property
    def is_full(self) -> bool:
        """True if the limit of concurrent calls is reached."""
        return len(self.requests) + self._replies_in_progress >= MAX_CONCURRENT_CALLS

    def cancel(self, request_id: object) -> bool:
        """Cancel a call at the client's request; return False if there is no such call."""
        if not is_request_id(request_id):
            return False
        with self.condition:
            request = self.requests.get(request_id) or self.requests.get(alternate_id(request_id))
            if request is None:
                return False
            request.cancelled = True
        if request.on_cancel is not None:
            request.on_cancel()
        for question in list(self._pending_questions.values()):
            if question.request is request:
                question.answered_event.set()
        return True

    # -------------------------------------------------------------- questions

    def ask(self, request: StdioPeer, question: Question) -> JsonObject | None:
        """Ask the client a question, wait for the answer and return it."""
        key = f"tooli-{next(self._question_numbers)}"
        pending_question = PendingQuestion(request)
        with self.condition:  # so that a cancellation is seen by this check, or finds the question
            if not request.cancelled:
                self._pending_questions[key] = pending_question
        if not request.cancelled:
            params = question.params()
            self.transport.write(
                {"jsonrpc": "2.0", "id": key, "method": question.method, "params": params}
            )
            pending_question.answered_event.wait()
        self._pending_questions.pop(key, None)
        if request.cancelled:
            raise Interrupted("The client cancelled the call.")
        return pending_question.response

    def resolve_question(self, message: JsonObject) -> bool:
        """Deliver the answer to a question; return False if the message answers none."""
        pending_question = self._pending_questions.get(message.get("id", ""))
        if pending_question is None:
            return False
        pending_question.response = message.get("result")
        pending_question.answered_event.set()
        return True


class PendingQuestion:
    """A question that the client has not answered yet."""

    __slots__ = ("answered_event", "request", "response")

    def __init__(self, request: StdioPeer) -> None:
        self.request = request
        self.answered_event = Event()
        self.response: JsonObject | None = None


class StdioPeer(Peer):
    """The client of one call, over the stdio connection."""

    def __init__(
        self,
        pending: PendingCalls,
        request_id: RequestId,
        params: JsonObject,
        capabilities: object,
    ) -> None:
        self.id = request_id
        self.cancelled = False
        self.on_cancel: Callable[[], object] | None = None
        self._pending = pending
        self._meta: JsonObject = params.get("_meta") or {}
        self._capabilities = capabilities

    # -------------------------------------------------------------- running

    def run_and_reply(self, work: Callable[[], JsonObject]) -> None:
        """Run a call and send its answer. A call that was cancelled while it waited is not run."""
        try:
            result = {} if self.cancelled else work()
        except BaseException as failure:
            self._reply_error(failure)
        else:
            self._reply({"result": result})

    async def run_and_reply_async(self, work: Callable[[], Awaitable[JsonObject]]) -> None:
        """Run a call on an event loop and send its answer."""
        try:
            result = await work()
        except BaseException as failure:
            self._reply_error(failure)
        else:
            self._reply({"result": result})

    def _reply_error(self, failure: BaseException) -> None:
        if not isinstance(failure, RpcError):
            failure = RpcError(INTERNAL_ERROR, "Internal server error")
        self._reply({"error": failure.to_dict()})

    def _reply(self, fields: JsonObject) -> None:
        """Send the answer, unless the client has cancelled the call."""
        message = None if self.cancelled else {"jsonrpc": "2.0", "id": self.id, **fields}
        self._pending.reply(self.id, message)

    # -------------------------------------------------------------- messages to the client

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification if the client gave a token for it."""
        token = self._meta.get("progressToken")
        if token is None or type(token) not in (str, int):
            return
        params: JsonObject = {"progressToken": token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._notify("notifications/progress", params)

    def log(self, level: str, data: Any) -> None:
        """Send a log message if its level is at least the minimum level for the client.

        A stateless request contains the minimum level. For handshake versions it is the default
        level here, because the SDK handles `logging/setLevel`. Without the SDK, clients of
        handshake versions get no log messages.
        """
        server = self._pending.server
        min_level = (
            self._meta.get(LOG_LEVEL_KEY)
            if server.stateless
            else DEFAULT_LOG_LEVEL
            if server.has_sdk
            else None
        )
        if min_level not in LOG_LEVELS or level not in LOG_LEVELS:
            return
        if LOG_LEVELS.index(level) < LOG_LEVELS.index(min_level):
            return
        params = {"level": level, "data": data, "logger": server.service.dispatcher.name}
        self._notify("notifications/message", params)

    def _notify(self, method: str, params: JsonObject) -> None:
        if not self.cancelled:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            self._pending.server.transport.write(message)

    def supports(self, method: str) -> bool:
        """True if the client can answer this kind of question while the call waits."""
        return not self._pending.server.stateless and client_supports(self._capabilities, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Ask the client, one question after the other, and return its answers."""
        return {key: self._pending.ask(self, question) for key, question in questions.items()}

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Ask the client from an event loop, without blocking it."""
        import asyncio

        return await asyncio.to_thread(self.ask, questions)
