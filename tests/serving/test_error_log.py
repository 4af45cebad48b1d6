"""The error log has redacted tracebacks; masked errors have no text of the exception."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from tooli import SecretInput
from tooli.core.call import Call, Caller
from tooli.core.tool import Tool
from tooli.execution.ipc import RemoteTraceback
from tooli.pipeline.failure import as_tool_error, with_item_count
from tooli.serving.error_log import (
    MASKED_MESSAGE,
    MAX_TRACEBACK_CHARS,
    format_traceback,
    log_error,
    log_exception,
    mask_error,
)
from tooli.serving.server_request import ServerRequest


def make_call(secrets: list[Any] | None = None, **arguments: Any) -> Call:
    tool = Tool("app", ("find",), "app.find", (), lambda: None, (), frozenset())
    request = ServerRequest("http", "abc")
    return Call(tool, arguments, Caller("http"), [], secrets=secrets, request=request)


def raised(exc: BaseException) -> BaseException:
    try:
        raise exc
    except BaseException as caught:
        return caught


def test_record_has_a_traceback_that_other_formatters_show(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_error(as_tool_error(raised(ValueError("bad"))), make_call())
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("tooli.error", "ERROR")
    assert record.exc_info is None  # other handlers would write it without redaction
    text = logging.Formatter("%(levelname)s %(message)s").format(record)
    first, *rest = text.split("\n")
    assert first.startswith("ERROR app.find failed unexpectedly: ValueError interface=http")
    assert "request_id=abc" in first
    assert rest[-1] == "    ValueError: bad"
    assert all(line.startswith("    ") for line in rest)


def test_traceback_contains_no_secret_and_no_control_character() -> None:
    exc = raised(ValueError("key sesame-sesame\n2026 tooli.access forged\x1b[31m\r\ttab"))
    text = format_traceback(exc, make_call([SecretInput("sesame-sesame")]))
    assert "sesame-sesame" not in text
    assert "\x1b" not in text and "\r" not in text and "\t" not in text
    assert "raise exc" in text


def test_long_traceback_is_cut() -> None:
    text = format_traceback(raised(ValueError("x" * 10 * MAX_TRACEBACK_CHARS)))
    assert len(text) < MAX_TRACEBACK_CHARS + 10


def test_traceback_of_a_worker_process_is_shown_once() -> None:
    exc = raised(ValueError("bad"))
    exc.__cause__ = RemoteTraceback("Traceback of the worker\nValueError: bad\n")
    assert format_traceback(exc) == "Traceback of the worker\nValueError: bad"


def test_exception_of_the_server_is_logged_without_a_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_exception(raised(RuntimeError("bug")), None, "A message")
    assert caplog.records[0].getMessage() == "A message failed: RuntimeError"


def test_disabled_logger_gets_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "tooli.error")
    log_exception(raised(RuntimeError("bug")), None, "A message")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("exc", "code", "message"),
    [
        (ValueError("hunter2"), "E5000", MASKED_MESSAGE),
        (ConnectionError("postgres://u:hunter2@h"), "E4040", "an external dependency failed"),
        (TimeoutError("hunter2"), "E4050", "timeout"),
        (FileNotFoundError("hunter2"), "E3010", "not found"),
        (FileNotFoundError(2, "hunter2", "/etc/hunter2"), "E3010", "not found"),
        (PermissionError("hunter2"), "E2030", "denied permission"),
    ],
)
def test_masked_error_keeps_the_code_only(exc: Exception, code: str, message: str) -> None:
    masked = mask_error(as_tool_error(raised(exc)), make_call())
    assert masked.code == code
    assert message in masked.message
    assert "hunter2" not in f"{masked.to_dict()} {masked.args} {masked!r}"


@pytest.mark.parametrize("name", ["/data/x.txt", Path("/data/x.txt")])
def test_masked_error_of_the_system_names_a_file_that_the_caller_named(name: Any) -> None:
    exc = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/data/x.txt")
    named = mask_error(as_tool_error(exc), make_call(path=name))
    assert named.message == f"{os.strerror(errno.ENOENT)}: /data/x.txt"
    other = mask_error(as_tool_error(exc), make_call(path="/data/y.txt"))
    assert other.message == f"{os.strerror(errno.ENOENT)}."


def test_masked_error_of_a_stream_keeps_the_number_of_items() -> None:
    error = as_tool_error(with_item_count(ValueError("hunter2"), 3))
    error.details = {**(error.details or {}), "dsn": "hunter2"}
    assert mask_error(error, make_call()).details == {"items_before_failure": 3}
