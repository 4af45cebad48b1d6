"""Calls in flight: who asked for them, what is said meanwhile, and that each lands once."""

from __future__ import annotations

from itertools import count
from threading import Condition, Event

from tooli.core.peer import Peer
from tooli.mcp.input_requests import client_supports
from tooli.mcp.protocol import (
    DEFAULT_LOG_LEVEL,
    INTERNAL_ERROR,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    RpcError,
)
from tooli.mcp.stdio_transport import alternate_id
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from tooli.core.peer import Question
    from tooli.mcp.stdio_server import StdioServer


class PendingRequests:
    """The calls of one client that are not answered yet, and the questions put to it."""

    def __init__(self, server: StdioServer) -> None:
        self.server = server
        self._requests: dict[int | str, PendingRequest] = {}
        self._replies_in_progress = 0  # calls that have ended, and whose answers are not out yet
        self._condition = Condition()  # never held while anything is written: clients may not read
        self._pending_questions: dict[str, PendingQuestion] = {}
        self._question_numbers = count(1)

    def __contains__(self, request_id: int | str) -> bool:
        return request_id in self._requests

    @property
    def is_busy(self) -> bool:
        """Whether a call is still in flight, or its answer on the way."""
        return bool(self._requests or self._replies_in_progress)

    @property
    def is_full(self) -> bool:
        """Whether as many calls are in flight as there may be."""
        return len(self._requests) + self._replies_in_progress >= MAX_CONCURRENT_CALLS

    def add(self, request: PendingRequest) -> None:
        """A call has begun."""
        self._requests[request.id] = request

    def finish(self, request: PendingRequest, message: dict[str, Any]) -> None:
        """A call has ended; whoever cancelled it hears nothing more."""
        with self._condition:  # the id is free again as soon as the client can know it
            self._requests.pop(request.id, None)
            self._replies_in_progress += 1
        try:
            if not request.cancelled:
                self.server.transport.write(message)
        finally:
            with self._condition:
                self._replies_in_progress -= 1
                self._condition.notify_all()

    def cancel(self, request_id: Any) -> bool:
        """The client does not want an answer any more; False where it is no call of ours."""
        if type(request_id) not in (int, str):
            return False
        with self._condition:
            request = self._requests.get(request_id) or self._requests.get(alternate_id(request_id))
            if request is None:
                return False
            request.cancelled = True
        if request.on_cancel is not None:
            request.on_cancel()
        for question in list(self._pending_questions.values()):
            if question.request is request:
                question.answered_event.set()
        return True

    def wait(self, timeout: float) -> None:
        """Let the calls end, as long as somebody is there to read their answers."""
        from time import monotonic

        deadline = monotonic() + timeout
        with self._condition:
            while (
                self.is_busy
                and monotonic() < deadline
                and not self.server.transport.is_disconnected()
            ):
                self._condition.wait(0.1)

    # -------------------------------------------------------------- questions

    def ask(self, request: PendingRequest, question: Question) -> Any:
        """The client's answer to a question of a call, which waits for it."""
        key = f"tooli-{next(self._question_numbers)}"
        pending_question = self._pending_questions[key] = PendingQuestion(request)
        params = question.params()
        self.server.transport.write(
            {"jsonrpc": "2.0", "id": key, "method": question.method, "params": params}
        )
        pending_question.answered_event.wait()
        self._pending_questions.pop(key, None)
        return pending_question.response

    def resolve_question(self, message: dict[str, Any]) -> bool:
        """Whether a response was to a question of ours."""
        pending_question = self._pending_questions.get(message.get("id", ""))
        if pending_question is None:
            return False
        pending_question.response = message.get("result")
        pending_question.answered_event.set()
        return True


class PendingQuestion:
    """A question that waits for its answer."""

    __slots__ = ("answered_event", "request", "response")

    def __init__(self, request: PendingRequest) -> None:
        self.request = request
        self.answered_event = Event()
        self.response: Any = None


class PendingRequest(Peer):
    """One call, and the client that waits for it."""

    def __init__(
        self,
        pending: PendingRequests,
        request_id: int | str,
        params: dict[str, Any],
        capabilities: Any,
    ) -> None:
        self.id = request_id
        self.cancelled = False
        self.on_cancel: Callable[[], Any] | None = None
        self._pending = pending
        self._meta: Any = params.get("_meta") or {}
        self._capabilities = capabilities

    # -------------------------------------------------------------- landing

    def run_and_reply(self, work: Callable[[], dict[str, Any]]) -> None:
        """Do the work, and answer; a call that was cancelled while it waited is not begun."""
        try:
            message = self._result_message(work() if not self.cancelled else {})
        except BaseException as failure:
            message = self._error_message(failure)
        self._pending.finish(self, message)

    async def run_and_reply_async(self, work: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """The same on an event loop."""
        try:
            message = self._result_message(await work())
        except BaseException as failure:
            message = self._error_message(failure)
        self._pending.finish(self, message)

    def _result_message(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def _error_message(self, failure: BaseException) -> dict[str, Any]:
        if not isinstance(failure, RpcError):
            failure = RpcError(INTERNAL_ERROR, "Internal server error")
        return {"jsonrpc": "2.0", "id": self.id, "error": failure.to_dict()}

    # -------------------------------------------------------------- meanwhile

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call has come, if the client gave a token for it."""
        token = self._meta.get("progressToken")
        if token is None or type(token) not in (str, int):
            return
        params: dict[str, Any] = {"progressToken": token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._notify("notifications/progress", params)

    def log(self, level: str, data: Any) -> None:
        """Tell what is going on: as loud as was asked for, in the old era as is usual.

        A client of the old era that asks for more or less asks the SDK.
        """
        server = self._pending.server
        min_level = (
            self._meta.get(LOG_LEVEL_KEY)
            if server.modern
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

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        if not self.cancelled:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            self._pending.server.transport.write(message)

    def supports(self, method: str) -> bool:
        """Whether the client can answer such a question while the call waits."""
        return not self._pending.server.modern and client_supports(self._capabilities, method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The client's answers, one after the other."""
        return {key: self._pending.ask(self, one) for key, one in questions.items()}

    async def ask_async(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The same on an event loop, which goes on meanwhile."""
        import asyncio

        return await asyncio.to_thread(self.ask, questions)
