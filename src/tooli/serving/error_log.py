"""The error log of a server: unexpected errors, with redacted tracebacks.

    exception ─▶ ServerRequest.check_error ─┬▶ log_error: the traceback, to the logger `tooli.error`
                                            └▶ mask_error: what the client gets

A server imports this module at its first unexpected error. The record has the traceback as text
(`exc_text`), and not as `exc_info`: handlers would write the exception without redaction.
"""

from __future__ import annotations

import logging
import os
from traceback import TracebackException

from tooli.core import find_loaded
from tooli.core.call import RedactionPolicy
from tooli.errors import ERROR_CODES, Suggestion, copy_error
from tooli.pipeline.present import present_text
from tooli.serving.access_log import format_fields, request_fields
from tooli.text.escapes import escape_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import TracebackType

    from tooli.core.call import Call
    from tooli.errors import ToolError
    from tooli.serving.server_request import ServerRequest

MAX_TRACEBACK_CHARS = 20_000
"""Maximum number of characters of a traceback. The middle of a longer one is left out."""

MASKED_MESSAGE = "The command failed unexpectedly."
"""The message that a client gets instead of the text of an exception."""

_OWN_ROOT = __file__[: -len("serving/error_log.py")]
_KEPT_DETAILS = ("items_before_failure", "stage")
_INDENT = "    "


def log_error(error: ToolError, call: Call) -> None:
    """Write an unexpected error of a call to the log, with the traceback of its cause."""
    cause = error.__cause__ or error
    message = f"{call.tool.id} failed unexpectedly: {type(cause).__name__}"
    request = call.request
    if request is not None:
        request.call, request.code = call, error.code
    _write(message, format_traceback(cause, call), request)


def log_exception(exc: BaseException, request: ServerRequest | None, task: str) -> None:
    """Write an exception of the server itself to the log. `task` says what has failed."""
    _write(f"{task} failed: {type(exc).__name__}", format_traceback(exc), request)


def _write(message: str, trace: str, request: ServerRequest | None) -> None:
    fields = {} if request is None else request_fields(request)
    event = message
    if fields:
        message = f"{message} {format_fields(fields)}"
    logger = logging.getLogger("tooli.error")
    if logger.isEnabledFor(logging.ERROR):
        extra = {**fields, "traceback": trace, "event": event}
        name, level = logger.name, logging.ERROR
        record = logger.makeRecord(name, level, __file__, 0, message, (), None, extra=extra)
        # an indented line cannot be mistaken for a line of the log
        record.exc_text = "\n".join([_INDENT + line for line in trace.split("\n")])
        logger.handle(record)


def format_traceback(exc: BaseException, redaction: Call | RedactionPolicy | None = None) -> str:
    """Return the traceback of an exception, redacted like other output, without control characters.

    The frames of tooli around the command are left out.
    """
    remote_class = find_loaded("tooli.execution.ipc", "RemoteTraceback")
    if remote_class is not None and isinstance(exc.__cause__, remote_class):
        text = str(exc.__cause__).strip("\n")  # from the process that has run the function
    else:
        trace = _skip_own_frames(exc.__traceback__)
        report = TracebackException(type(exc), exc, trace, compact=True)
        text = "".join(report.format()).rstrip("\n")
    text = present_text(text, redaction or RedactionPolicy(), shorten_paths=False)
    lines = [escape_text(line.replace("\t", "    ")) for line in text.split("\n")]
    text = "\n".join(lines)
    if len(text) > MAX_TRACEBACK_CHARS:
        half = MAX_TRACEBACK_CHARS // 2
        text = f"{text[:half]}\n[…]\n{text[-half:]}"
    return text


def _skip_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without its first frames that belong to tooli, if others follow."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OWN_ROOT):
        found = found.tb_next
    return found or trace


# ------------------------------------------------------------------ the masked error


def mask_error(error: ToolError, call: Call) -> ToolError:
    """Return an error of the same class without the text of the exception."""
    masked = copy_error(error)
    masked.message = _masked_message(error, call)
    masked.args = (masked.message,)
    kept = {name: value for name, value in (error.details or {}).items() if name in _KEPT_DETAILS}
    masked.details = kept or None
    masked.field = None
    assert call.request is not None
    masked.suggestion = None
    if masked.http_status >= 500:
        fix = f"The server's log contains the cause, with the request id {call.request.id}."
        masked.suggestion = Suggestion("ask_human", fix)
    masked.__cause__ = masked.__context__ = None
    masked.is_translated = False
    return masked.with_traceback(None)


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _masked_message(error: ToolError, call: Call) -> str:
    """Return what the code of the error means; for an error of the system, its standard text."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno is not None:
        text = os.strerror(cause.errno)
        if cause.strerror == text:
            name = cause.filename
            values = call.arguments.values()
            given = [str(value) for value in values if _is_path(value)]
            return f"{text}: {name}" if name in given else f"{text}."
    if error.code == "E5000":
        return MASKED_MESSAGE
    meaning = ERROR_CODES[error.code][0] if error.code in ERROR_CODES else "it failed"
    return f"{MASKED_MESSAGE[:-1]}: {meaning}."
