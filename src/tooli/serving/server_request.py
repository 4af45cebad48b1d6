"""ServerRequest: one request of a client, as its call, its answer and the logs see it.

    request ─▶ ServerRequest ─▶ Call.request ─┬▶ check_error: log and mask unexpected errors
                                              ├▶ meta.request_id of the answer
                                              └▶ log_access: one line in the access log

An HTTP request has the id of its header `X-Request-ID`, or a random one. A request over stdio has
the id of the connection and its JSON-RPC id.
"""

from __future__ import annotations

import os
from time import perf_counter

from tooli.core import find_loaded
from tooli.errors import ToolError
from tooli.pipeline.failure import is_unexpected

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

    from tooli.core.call import Call, Outcome

CANCELLED, DISCONNECTED = "cancelled", "disconnected"
"""What the access log has in place of a code if a call was stopped before it had an outcome."""

MAX_REQUEST_ID_CHARS = 128
"""Maximum length of an id that a client sends."""

_ID_CHARACTERS = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~:/+=@"
)
_TRACE_CHARACTERS = frozenset(b"0123456789abcdef-")


class ServerRequest:
    """One request: its id, what the client sent with it, and how its call has ended."""

    __slots__ = (
        *("address", "call", "code", "exposes_errors", "id", "is_id_shown", "method", "path"),
        *("principal", "rpc_id", "session", "session_data", "started", "status", "surface"),
        *("trace",),
    )

    def __init__(self, surface: str, request_id: str, *, exposes_errors: bool = False) -> None:
        self.surface = surface  # the interface: "http" or "mcp"
        self.id = request_id
        self.is_id_shown = False  # True: the answer contains the id
        self.exposes_errors = exposes_errors  # True: the client gets the texts of exceptions
        self.trace: str | None = None  # the header `traceparent`
        self.method: str | None = None  # the HTTP method, or the method of MCP
        self.path: str | None = None  # of an HTTP request
        self.address: str | None = None
        self.principal: str | None = None
        self.session: str | None = None
        # The values of `ctx.state`; None: they are kept for no session.
        self.session_data: MutableMapping[str, Any] | None = None
        self.rpc_id: str | int | None = None
        self.status: int | None = None  # of the HTTP response
        self.call: Call | None = None  # the call that has ended, if there was one
        self.code: str | None = None  # "ok" or the code of the error
        self.started = perf_counter()

    def read_headers(self, headers: Mapping[bytes, bytes]) -> None:
        """Take over the request id and the trace that a client sends in the headers."""
        self.trace = read_trace(headers.get(b"traceparent"))
        request_id = read_request_id(headers.get(b"x-request-id"))
        if request_id is not None:
            self.id, self.is_id_shown = request_id, True

    def check_error(self, error: ToolError, call: Call) -> ToolError:
        """Return the error for the client. An unexpected error is logged, and masked by default."""
        if error.http_status >= 500:
            self.is_id_shown = True
        if not is_unexpected(error):
            return error
        self.is_id_shown = True
        from tooli.serving.error_log import log_error, mask_error

        if not vars(error).get("is_reported"):
            vars(error)["is_reported"] = True
            try:
                log_error(error, call)
            except Exception:  # a handler of the app has failed, which must not change the answer
                pass
        return error if self.exposes_errors else mask_error(error, call)

    def end_call(self, outcome: Outcome, call: Call) -> None:
        """Record how the call of the request has ended, for the access log."""
        self.call = call
        error: ToolError | None = getattr(outcome, "error", None)
        self.code = "ok" if error is None else error.code
        flush = getattr(self.session_data, "flush", None)
        if flush is not None:  # the session is in a store
            try:
                flush()
            except ToolError as failure:
                call.warnings.append(f"Changes of ctx.state were not stored: {failure.message}")


def new_request_id() -> str:
    """Return a random id."""
    return os.urandom(8).hex()


def read_request_id(value: bytes | None) -> str | None:
    """Return the id that a client sends; None if it is missing, too long, or not a plain one."""
    if value is None or not 0 < len(value) <= MAX_REQUEST_ID_CHARS:
        return None
    return value.decode("ascii") if _ID_CHARACTERS.issuperset(value) else None


def request_id_of(rpc_id: str | int, connection: str) -> str:
    """Return the id of a JSON-RPC request: the connection and the id that the client chose."""
    chosen = read_request_id(str(rpc_id).encode(errors="replace"))
    return f"{connection}-{chosen or new_request_id()}"


def read_trace(value: bytes | None) -> str | None:
    """Return the header `traceparent` (W3C Trace Context); None if it is missing or invalid."""
    if value is None or not 55 <= len(value) <= 128:
        return None
    return value.decode("ascii") if _TRACE_CHARACTERS.issuperset(value) else None


def log_access(request: ServerRequest) -> None:
    """Write the line of a request to the logger `tooli.access`, if it is enabled.

    `logging` is not imported for it: without `logging`, nobody has configured the logger.
    """
    get_logger = find_loaded("logging", "getLogger")
    if get_logger is not None:
        logger = get_logger("tooli.access")
        if logger.isEnabledFor(20):
            from tooli.serving.access_log import write_access_line

            write_access_line(logger, request)
