"""The stdio connection: JSON lines on stdin and stdout, and the calls that are not answered yet.

stdin and stdout are reserved for the protocol. File descriptors 0 and 1 are replaced: tools and
their child processes read an empty stdin, and their output to stdout goes to stderr.

Each pending call gets one answer, or none if the client cancels it. It can send messages while it
runs.
"""

from __future__ import annotations

import json
import os
import select
import sys
from itertools import count
from threading import Condition, Event, Lock
from time import monotonic

from tooli.core import Record
from tooli.core.peer import UNANSWERED_TEXT, Peer
from tooli.errors import Interrupted, StateError, TimeoutExceeded
from tooli.mcp.protocol import (
    DEFAULT_LOG_LEVEL,
    INTERNAL_ERROR,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    RpcError,
    client_supports,
)
from tooli.mcp.tool_results import EncodedJson
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS
from tooli.text.jsonable import is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.peer import Question
    from tooli.core.protocols import JsonObject
    from tooli.mcp.protocol import RequestId
    from tooli.mcp.stdio_server import StdioServer
    from tooli.serving.server_request import ServerRequest

MAX_LINE_BYTES = 64 << 20
"""Maximum size of a line. A longer line is skipped and answered with an error."""

_MAX_JOINED_BYTES = 1 << 16
"""A line of this size is written in parts."""

_LARGE_LINE_BYTES = 1 << 18
"""The first line of this size prepares the process for large messages."""

_ID_SEARCH_BYTES = 1 << 20
"""Number of bytes at each end of an oversized line that are searched for an id."""


class StdioTransport:
    """The connection to the client on stdin and stdout."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._is_prepared = False  # True: for large messages
        self._lock = Lock()
        self._has_sent_progress = False  # since the last answer
        self.is_broken = False  # the client has closed stdout

    @classmethod
    def claim_stdio(cls) -> StdioTransport:
        """Reserve the process's stdin and stdout for the protocol."""
        from tooli.pipeline.stdout_capture import route_stdout

        flush_standard_streams()
        read_fd, write_fd = _duplicate_fd(0), _duplicate_fd(1)
        null_input = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_input, 0)
        os.close(null_input)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr
            null_output = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_output, 1)
            os.close(null_output)
        route_stdout()
        return cls(read_fd, write_fd)

    def lines(self) -> Iterator[bytes | OversizedLine]:
        """Yield every line until the client closes stdin."""
        parts: list[bytes] = []  # parts of the line that is not complete yet
        size = 0
        remainder = b""
        while chunk := remainder or self._read():
            remainder = b""
            if b"\n" in chunk:
                first, *complete_lines = chunk.split(b"\n")
                yield b"".join((*parts, first))
                chunk = complete_lines.pop()
                yield from complete_lines
                parts, size = [], 0
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_LINE_BYTES:
                found, remainder = self._skip_line(b"".join(parts))
                yield found
                parts, size = [], 0
        rest = b"".join(parts)
        if rest:
            yield rest

    def _read(self) -> bytes:
        try:
            return os.read(self._read_fd, 1 << 16)
        except OSError:
            return b""

    def close_input(self) -> None:
        """End the input: `lines` yields no more lines, as if the client had closed stdin."""
        null_input = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_input, self._read_fd)
        os.close(null_input)

    def _skip_line(self, start: bytes) -> tuple[OversizedLine, bytes]:
        """Skip to the end of a line that is too long; return the line and the bytes after it."""
        head, tail = start[:_ID_SEARCH_BYTES], start[-_ID_SEARCH_BYTES:]
        while chunk := self._read():
            line, newline, remainder = chunk.partition(b"\n")
            tail = (tail + line)[-_ID_SEARCH_BYTES:]
            if newline:
                return OversizedLine(head, tail), remainder
        return OversizedLine(head, tail), b""

    def write(self, message: dict[str, Any]) -> None:
        """Send one message.

        The SDKs for TypeScript forget the progress of a call when they receive its answer. If they
        read both at once, they handle the answer first. So an answer that follows a progress
        notification is sent after the client has read the notification.
        """
        method = message.get("method")
        if method == "notifications/progress":
            self._has_sent_progress = True
        elif method is None and self._has_sent_progress:
            self._has_sent_progress = False
            self._wait_until_read()
        self.send(*encode_message(message))

    def _wait_until_read(self) -> None:
        from tooli.mcp.unread_output import wait_until_read

        wait_until_read(self._write_fd)

    def send(self, *parts: bytes) -> None:
        """Send one line, given in parts; safe to call from several threads.

        Large parts are written one by one, because joining them would copy them.
        """
        size = sum(map(len, parts))
        lines = [b"".join(parts) + b"\n"] if size < _MAX_JOINED_BYTES else [*parts, b"\n"]
        if size >= _LARGE_LINE_BYTES and not self._is_prepared:
            from tooli.mcp.large_messages import prepare_for_large_messages

            self._is_prepared = True
            prepare_for_large_messages(self._write_fd)
        with self._lock:
            for line in lines:
                self._write_all(memoryview(line))

    def _write_all(self, view: memoryview) -> None:
        try:
            while view and not self.is_broken:
                try:
                    view = view[os.write(self._write_fd, view) :]
                except BlockingIOError:  # the client has made its pipe non-blocking
                    select.select((), (self._write_fd,), ())
        except OSError:
            self.is_broken = True

    def is_disconnected(self) -> bool:
        """True if the client has closed its end of stdout."""
        if self.is_broken or not hasattr(select, "poll"):  # Windows: only a write detects it
            return self.is_broken
        poller = select.poll()
        poller.register(self._write_fd, 0)
        # a closed pipe reports POLLERR, a closed socket reports POLLHUP
        return any([event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0)])


class OversizedLine(Record):
    """A line that is too long: its start and its end."""

    head: bytes
    tail: bytes


def _duplicate_fd(fd: int) -> int:
    """Return a duplicate of stdin or stdout that child processes do not inherit."""
    try:
        copy = os.dup(fd)
    except OSError:
        name = "stdout" if fd else "stdin"
        raise StateError(f"{name} is closed, but the protocol needs it.") from None
    low_fds: list[int] = []
    while copy < 3:
        low_fds.append(copy)
        copy = os.dup(fd)
    for low_fd in low_fds:
        os.close(low_fd)
    return copy


def flush_standard_streams() -> None:
    """Flush Python's stdout and stderr if they exist."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError, RuntimeError):
            continue  # RuntimeError: a signal handler calls this while a flush is in progress


# ------------------------------------------------------------------ JSON


def encode_message(message: dict[str, Any]) -> Sequence[bytes]:
    """Return the parts of a message as one line of JSON. Its result may contain EncodedJson."""
    result: Any = message.get("result")
    if is_object(result) and isinstance(result.get("structuredContent"), EncodedJson):
        return [*_encode_large_result(message, result)]
    return [to_json(message)]


def to_json(message: dict[str, Any]) -> bytes:
    """Return a message as one line of JSON."""
    try:
        text = _dumps(message)
    except (ValueError, TypeError, RecursionError):
        text = _dumps(to_jsonable(message, []))
    return text.encode("utf-8", "backslashreplace")


def _encode_large_result(message: dict[str, Any], result: dict[str, Any]) -> Iterator[bytes]:
    """Yield the parts of a message whose structured content is JSON already.

    Its block of text is the same JSON.
    """
    document: EncodedJson = result["structuredContent"]
    others = {name: result[name] for name in result if name not in _LARGE_FIELDS}
    head = to_json({**message, "result": others})
    yield head[:-2] + b',"content":[{"type":"text","text":'
    yield from document.quoted()
    yield b'}],"structuredContent":'
    yield document.data
    yield b"}}"


_LARGE_FIELDS = ("content", "structuredContent")


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def from_json(line: bytes) -> Any:
    """Return the value of a JSON line; raises ValueError or RecursionError if it is invalid."""
    return _loads(line.decode("utf-8", "replace"))


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


_loads = json.JSONDecoder(parse_constant=_reject_constant).decode


def find_request_ids(line: bytes | OversizedLine) -> list[int | str]:
    """Return the ids of the requests in an invalid line, because each request needs an answer.

    Searches the object, or the objects of a batch, for `"id": …`. In a long line, only the two
    ends are searched, to limit the time.
    """
    if isinstance(line, bytes) and len(line) > 2 * _ID_SEARCH_BYTES:
        line = OversizedLine(line[:_ID_SEARCH_BYTES], line[-_ID_SEARCH_BYTES:])
    if isinstance(line, OversizedLine):
        return _scan_ids(line.head)[0] or _find_last_id(line.tail)
    known, has_paired_quotes = _scan_ids(line)
    return known if known or has_paired_quotes else _find_last_id(line)


# An unterminated string extends to the end of the text, so that no byte is scanned twice.
_STRING_PATTERN = rb'"[^"\\]*(?:\\.[^"\\]*)*'
_ID_VALUE_PATTERN = rb"\s*:\s*(-?\d{1,4000}(?=[\s,}\]])|" + _STRING_PATTERN + rb'")'


def _scan_ids(text: bytes) -> tuple[list[int | str], bool]:
    """Return the ids at the depth of a request, and whether all quotes are paired."""
    import re

    value = re.compile(_ID_VALUE_PATTERN)
    is_batch = text.lstrip().startswith(b"[")
    depth, id_depth = 0, 2 if is_batch else 1
    found: list[int | str | None] = []
    has_paired_quotes = True
    for token in re.finditer(_STRING_PATTERN + rb'("|\\?\Z)|[\[\]{}]', text):
        symbol = token.group()
        has_paired_quotes = token.group(1) in (None, b'"')
        if symbol in (b"{", b"["):
            depth += 1
        elif symbol in (b"}", b"]"):
            depth -= 1
        elif symbol == b'"id"' and depth == id_depth:
            match = value.match(text, token.end())
            found.append(_parse_id(match.group(1)) if match is not None else None)
    known = [request_id for request_id in found if request_id is not None]
    return list(dict.fromkeys(known)) if is_batch else known[-1:], has_paired_quotes


def _find_last_id(text: bytes) -> list[int | str]:
    """Return the last id at any depth of a text, for texts whose depth cannot be determined."""
    import re

    last_values = re.findall(rb'"id"' + _ID_VALUE_PATTERN, text)[-1:]
    ids = [_parse_id(value) for value in last_values]
    return [request_id for request_id in ids if request_id is not None]


def _parse_id(data: bytes) -> int | str | None:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return None


def alternate_id(request_id: int | str) -> int | str:
    """Return the id as the other type: 7 for "7", and "7" for 7.

    Some clients cancel a request with an id of the other type.
    """
    if isinstance(request_id, int):
        return str(request_id)
    return (
        int(request_id)
        if request_id.isascii() and request_id.isdigit() and len(request_id) < 19
        else request_id
    )


# ------------------------------------------------------------------ pending calls


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
        """Remove a request and send its answer; a message of None sends nothing.

        `request_id` is None for a message that is not an answer.
        """
        # The request is removed first: the client may reuse the id once it has the answer.
        with self.condition:
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
        self._is_closed = False  # the client has closed stdin, so it cannot answer

    @property
    def is_full(self) -> bool:
        """True if the limit of concurrent calls is reached."""
        return len(self.requests) + self._replies_in_progress >= MAX_CONCURRENT_CALLS

    def cancel(self, request_id: RequestId) -> bool:
        """Cancel a call at the client's request; return False if there is no such call."""
        with self.condition:
            request = self.requests.get(request_id) or self.requests.get(alternate_id(request_id))
            if request is None:
                return False
            request.cancelled = True
        if request.on_cancel is not None:
            request.on_cancel()
        self.release_questions(request)
        return True

    # -------------------------------------------------------------- questions

    def ask(self, request: StdioPeer, question: Question) -> JsonObject | None:
        """Ask the client a question, wait for the answer and return it."""
        key = f"tooli-{next(self._question_numbers)}"
        pending_question = PendingQuestion(request)
        # `cancel` runs in another thread. If it is not noticed here, it finds the question.
        with self.condition:
            is_open = not (request.cancelled or request.has_replied or self._is_closed)
            is_due = is_open and request.remaining_time() == 0
            if is_open and not is_due:
                self._pending_questions[key] = pending_question
        if is_open and not is_due:
            params = question.params()
            self.transport.write(
                {"jsonrpc": "2.0", "id": key, "method": question.method, "params": params}
            )
            is_due = not pending_question.answered_event.wait(request.remaining_time())
        self._pending_questions.pop(key, None)
        if request.cancelled:
            raise Interrupted("The client cancelled the call.")
        if is_due:
            raise TimeoutExceeded(UNANSWERED_TEXT)
        if not pending_question.is_answered:
            raise Interrupted("The client did not answer before the call or the connection ended.")
        return pending_question.response

    def release_questions(self, request: StdioPeer | None = None) -> None:
        """Stop waiting for the answers to the questions of a call, or of all calls."""
        with self.condition:
            questions = list(self._pending_questions.values())
        for question in questions:
            if request is None or question.request is request:
                question.answered_event.set()

    def close(self) -> None:
        """Stop waiting for answers, because the client has closed stdin."""
        with self.condition:
            self._is_closed = True
        self.release_questions()

    def resolve_question(self, message: JsonObject) -> bool:
        """Deliver the answer to a question; return False if the message answers none."""
        pending_question = self._pending_questions.get(message.get("id", ""))
        if pending_question is None:
            return False
        pending_question.response, pending_question.is_answered = message.get("result"), True
        pending_question.answered_event.set()
        return True


def internal_error(failure: BaseException, request: ServerRequest | None) -> RpcError:
    """Log an unexpected exception of the server; return the error that the client gets."""
    from tooli.serving.error_log import log_exception  # imports logging

    log_exception(failure, request, (request and request.method) or "A message")
    data: JsonObject | None = None if request is None else {"request_id": request.id}
    return RpcError(INTERNAL_ERROR, "Internal server error", data)


class PendingQuestion:
    """A question that the client has not answered yet."""

    __slots__ = ("answered_event", "is_answered", "request", "response")

    def __init__(self, request: StdioPeer) -> None:
        self.request = request
        self.answered_event = Event()  # also set when the answer is not needed any more
        self.is_answered = False
        self.response: JsonObject | None = None


class StdioPeer(Peer):
    """The client of one call, over the stdio connection."""

    def __init__(
        self,
        pending: PendingCalls,
        request_id: RequestId,
        params: JsonObject,
        capabilities: object,
        request: ServerRequest | None = None,
    ) -> None:
        self.id = request_id
        self._request = request
        self.cancelled = self.has_replied = False
        self.on_cancel: Callable[[], object] | None = None
        self._pending = pending
        self._meta: JsonObject = params.get("_meta") or {}
        self._capabilities = capabilities

    # -------------------------------------------------------------- running

    def run_and_reply(self, work: Callable[[], JsonObject]) -> None:
        """Run a call and send its answer. A call that is already cancelled is not run."""
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
            failure = internal_error(failure, self._request)
        self._reply({"error": failure.to_dict()})

    def _reply(self, fields: JsonObject) -> None:
        """Send the answer, unless the client has cancelled the call."""
        self.has_replied = True  # a thread that the call left behind asks no questions
        self._pending.release_questions(self)
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

        In stateless versions, the request contains the minimum level; without one, nothing is
        sent. In handshake versions, it is the default level: `logging/setLevel` passes the
        connection to the SDK. Without the SDK, these clients get no log messages.
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
