"""ServerCall: one `tools/call` request, from its start to its result.

The thread of the call takes the events of the request one by one: progress and log messages go to
the caller, questions are answered, the result ends the call. If the caller uses a stateless version
of MCP, a question ends this call with InputRequired, and it runs again with the answers. The
request to the server goes on: the provider keeps the ServerCall, and the next run continues it.
"""

from __future__ import annotations

from os import urandom
from threading import Event
from typing import Any

from tooli.core.peer import InputRequired
from tooli.errors import DependencyError, Interrupted
from tooli.pipeline.reports import is_uri
from tooli.providers.mcp_client.call_results import (
    read_error,
    read_links,
    read_result,
    rpc_error,
)
from tooli.providers.mcp_client.caller_questions import (
    answer_question,
    build_question,
    can_answer,
    decline,
    unanswered_error,
)
from tooli.providers.mcp_client.server_session import REFUSED, RpcFailure
from tooli.schema.described import clean_text
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.pipeline.context import Context
    from tooli.providers.mcp_client.server_session import PendingRequest, ServerSession

MAX_ROUNDS = 20
"""Maximum number of rounds of questions of one call, in the stateless version."""
MAX_QUESTIONS = 50
_PAUSE_SECONDS = 0.1
MAX_LOG_CHARS = 4_000
MAX_LINKS = 100
_STOPPED_TEXT = "The call was stopped before the server has answered."


class ServerCall:
    """A call of a tool of a server."""

    def __init__(
        self,
        session: ServerSession,
        tool_name: str,
        arguments: JsonObject,
        has_output_schema: bool,
        headers: Mapping[str, str],
    ) -> None:
        self.session = session
        self.expires = 0.0  # when a paused call is given up
        self._name = tool_name
        self._params: JsonObject = {"name": tool_name, "arguments": arguments}
        self._has_output_schema = has_output_schema
        self._headers = headers
        self._request: PendingRequest | None = None
        self._token = urandom(8).hex()
        self._questions = 0
        self._rounds = 0
        self._open: list[tuple[str, str, JsonObject]] = []  # questions that are not answered yet
        self._answers: JsonObject = {}
        self._required: JsonObject | None = None  # the result that asked the open questions
        self._declined: set[str] = set()
        self._is_paused = False
        self._stopped = Event()

    def run(self, ctx: Context) -> Any:
        """Return the value of the result, or raise the error of the call.

        Raises InputRequired if the caller has to answer first; then run it again.
        """
        self._is_paused = False
        ctx.on_stop(self.stop)
        try:
            if self._request is None:
                self._start({})
            while True:
                self._answer_open_questions(ctx)
                result = self._next_result(ctx)
                if result is not None:
                    return self._finish(result, ctx)
        except InputRequired:
            self._is_paused = True
            raise
        except RpcFailure as failure:
            error: Any = rpc_error(failure, self.session.source, self._name)
            raise (self._unanswered({"error": failure.message}) or error) from None
        except BaseException:
            self.cancel()
            raise
        finally:
            if not self._is_paused:
                self._end_request()

    def stop(self) -> None:
        """End the call: its time is over, or the caller does not wait any more."""
        if not self._is_paused:
            self._stopped.set()
            if self._request is not None:
                self._request.put("stop")

    def cancel(self) -> None:
        """Tell the server that nobody waits for the result."""
        if self._request is not None:
            self.session.cancel(self._request)
            self._end_request()

    @property
    def open_question(self) -> str | None:
        """The key of the question that the caller has to answer first."""
        return self._open[0][0] if self._open else None

    @property
    def was_sent(self) -> bool:
        """True if the server may have received the call."""
        return self._request is not None and self._request.is_sent

    def _start(self, more: JsonObject) -> None:
        if self._stopped.is_set():
            raise Interrupted(_STOPPED_TEXT)
        self._end_request()
        self._request = self.session.start(
            "tools/call", {**self._params, **more}, is_call=True, headers=self._headers
        )
        if self._stopped.is_set():  # while the request was sent
            self._request.put("stop")

    def _end_request(self) -> None:
        if self._request is not None:
            self.session.finish(self._request)

    # -------------------------------------------------------------- events

    def _next_result(self, ctx: Context) -> JsonObject | None:
        """Return the result when it arrives; None if there is a question before."""
        assert self._request is not None
        while True:
            kind, value = self._request.events.get()
            if kind == "result":
                return self._read_required(value)
            if kind == "failure":
                raise value
            if kind == "question":
                self._add_question(value)
                return None
            if kind == "stop":
                raise Interrupted(_STOPPED_TEXT)
            if kind == "progress":
                _report(ctx, value)
            elif kind == "log":
                _log(ctx, value)

    def _add_question(self, message: JsonObject) -> None:
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            self.session.refuse(message, REFUSED, "The call has asked too many questions.")
            raise DependencyError(f"{self.session.source} asks too many questions.")
        self._open.append((f"mcp-{self._token}-{self._questions}", "", message))

    def _read_required(self, result: JsonObject) -> JsonObject | None:
        """Return a complete result; None if the server has asked questions with it."""
        if not self.session.is_stateless or result.get("resultType") != "input_required":
            return result
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise DependencyError(f"{self.session.source} asks too many questions.")
        requests = result.get("inputRequests")
        self._answers, self._required = {}, result
        for key, request in requests.items() if is_object(requests) else ():
            self._questions += 1
            if is_object(request) and self._questions <= MAX_QUESTIONS:
                self._open.append((f"mcp-{self._token}-{self._questions}", key, request))
        if not self._open:  # the server only wants to be asked again
            self._stopped.wait(_PAUSE_SECONDS)
        return None

    # -------------------------------------------------------------- questions

    def _answer_open_questions(self, ctx: Context) -> None:
        while self._open:
            key, name, request = self._open[0]
            params = request.get("params")
            method = str(request.get("method"))
            question = build_question(
                method, params if is_object(params) else {}, self.session.source
            )
            answer: JsonObject | None = None
            if can_answer(ctx, question):
                answer = answer_question(ctx, key, question)
            else:
                self._declined.add(method)
                answer = decline(question)
            del self._open[0]
            if self._required is not None:
                if answer is None:
                    raise unanswered_error(self.session.source, self._declined, None)
                self._answers[name] = answer
            elif answer is None:
                self.session.refuse(request, REFUSED, "The caller does not support sampling.")
            else:
                self.session.reply(request, answer)
        if self._required is not None:
            required, self._required = self._required, None
            more: JsonObject = {}
            if self._answers:
                more["inputResponses"] = self._answers
            if isinstance(required.get("requestState"), str):
                more["requestState"] = required["requestState"]
            self._start(more)

    def _unanswered(self, outcome: object) -> Exception | None:
        if not self._declined:
            return None
        return unanswered_error(self.session.source, self._declined, outcome)

    def _finish(self, result: JsonObject, ctx: Context) -> Any:
        if result.get("isError") is True:
            error = read_error(result, self.session.source)
            raise self._unanswered(error.message) or error
        value = read_result(result, self._has_output_schema, ctx.warn)
        for link in read_links(result)[:MAX_LINKS]:
            _pass_link(ctx, link)
        unanswered = self._unanswered(value)
        if unanswered is not None:
            raise unanswered
        return value


def _report(ctx: Context, params: JsonObject) -> None:
    """Pass the progress of the server on to the caller."""
    done, total, message = params.get("progress"), params.get("total"), params.get("message")
    if isinstance(done, (int, float)):
        text = clean_text(message, 1_000) if isinstance(message, str) else None
        ctx.report(done, total if isinstance(total, (int, float)) else None, text)


def _pass_link(ctx: Context, link: JsonObject) -> None:
    """Report a resource that the server has made as an artifact."""
    uri, mime_type = clean_text(link["uri"], 2_000), link.get("mimeType")
    if is_uri(uri):  # never a path of this machine
        kind = clean_text(mime_type, 200) if isinstance(mime_type, str) else None
        ctx.artifact(clean_text(link["name"], 200), uri, mime_type=kind)


_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def _log(ctx: Context, params: JsonObject) -> None:
    """Pass a log message of the server on to the caller."""
    level, data = params.get("level"), params.get("data")
    text = data if isinstance(data, str) else repr(data)
    ctx.log(
        clean_text(text, MAX_LOG_CHARS),
        level=str(level) if level in _LEVELS else "info",
    )
