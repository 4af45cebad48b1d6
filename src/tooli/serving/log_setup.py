"""Configure the logs of a server process: `--access-log` and `--log-format`.

    tooli.access   one line for each call or HTTP request     INFO
    tooli.error    unexpected errors, with their tracebacks   ERROR
    tooli.server   start, stop, workers                       INFO
    uvicorn        what uvicorn reports                       WARNING

An app that configures handlers for these loggers, or for the root logger, keeps them: then no
handler is added, unless `--log-format` is given. `app.asgi()` configures nothing.
"""

from __future__ import annotations

import logging
from json import dumps
from time import gmtime, strftime

from tooli.serving.stderr_writer import write_line
from tooli.text.escapes import escape_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject

_STANDARD_ATTRIBUTES = frozenset(
    (*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "event", "traceback")
)
_INDENT = "    "


def configure_logging(*, access_log: bool, log_format: str | None = None) -> None:
    """Send the logs of this process to stderr, as text or as JSON, one record a line."""
    logger = logging.getLogger("tooli")
    if log_format is not None or not logger.hasHandlers():
        handler = StderrHandler()
        handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
        root = logging.getLogger()
        if log_format is not None and not root.handlers:
            root.addHandler(handler)
        for name in ("tooli", "uvicorn"):
            logging.getLogger(name).handlers = [handler]
            logging.getLogger(name).propagate = False
    for name, level in (
        ("tooli.access", logging.INFO if access_log else logging.WARNING),
        ("tooli.server", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("uvicorn.error", logging.ERROR),
    ):
        if logging.getLogger(name).level == logging.NOTSET or name == "tooli.access":
            logging.getLogger(name).setLevel(level)


def log_as_json(message: str) -> bool:
    """Write a message to `tooli.server` if its records are written as JSON; return whether."""
    logger = logging.getLogger("tooli.server")
    handlers = logging.getLogger("tooli").handlers
    is_json = any([isinstance(handler.formatter, JsonFormatter) for handler in handlers])
    if is_json:
        logger.info(message)
    return is_json


class StderrHandler(logging.Handler):
    """A handler that writes to the current `sys.stderr`, which may be replaced. It never waits."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        write_line(self.format(record))


class TextFormatter(logging.Formatter):
    """Formats a record as a line of text: time, logger, message. A traceback is indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        line = f"{_format_time(record)} {record.name} {escape_text(record.getMessage())}"
        trace = _read_traceback(self, record)
        if not trace:
            return line
        return "\n".join([line, *[_INDENT + part for part in trace.split("\n")]])


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line, with its additional attributes."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON of a record."""
        fields: JsonObject = {
            "time": _format_time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        message: str = getattr(record, "event", None) or record.getMessage()
        if record.name != "tooli.access":
            fields["message"] = message
        for name, value in vars(record).items():
            if name not in _STANDARD_ATTRIBUTES and isinstance(value, (str, int, float)):
                fields[name] = value
        trace = _read_traceback(self, record)
        if trace:
            fields["traceback"] = trace
        return dumps(fields, separators=(",", ":")).replace("\x7f", "\\u007f")


def _format_time(record: logging.LogRecord) -> str:
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(record.created))}.{int(record.msecs):03d}Z"


def _read_traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the traceback of a record, without control characters; empty if it has none."""
    text: str = getattr(record, "traceback", "")
    if not text and record.exc_info:
        lines = formatter.formatException(record.exc_info).split("\n")
        text = "\n".join([escape_text(line.replace("\t", _INDENT)) for line in lines])
    return text
