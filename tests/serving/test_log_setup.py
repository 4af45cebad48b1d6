"""The logs of a server: text or JSON on stderr, unless the app has configured handlers."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tooli.serving.error_log import log_exception
from tooli.serving.log_setup import (
    JsonFormatter,
    StderrHandler,
    TextFormatter,
    configure_logging,
    log_as_json,
)
from tooli.serving.server_request import ServerRequest, log_access

NAMES = ("", "tooli", "tooli.access", "tooli.error", "tooli.server", "uvicorn", "uvicorn.error")


@pytest.fixture(autouse=True)
def restore_loggers() -> Iterator[None]:
    """Restore all loggers after the test."""
    loggers = [logging.getLogger(name) for name in NAMES]
    saved = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, saved, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def configure(**options: Any) -> None:
    """Configure the logs of a process without handlers; pytest has added some."""
    for name in NAMES:
        logging.getLogger(name).handlers = []
    configure_logging(**options)


def write_all() -> None:
    request = ServerRequest("http", "abc")
    request.method, request.path, request.status, request.code = "GET", "/x\ny", 404, "E1404"
    log_access(request)
    try:
        raise ValueError("bad\nforged")
    except ValueError as exc:
        log_exception(exc, request, "A request")


def test_text_has_one_line_for_each_record(capsys: pytest.CaptureFixture[str]) -> None:
    configure(access_log=True)
    write_all()
    lines = capsys.readouterr().err.splitlines()
    fields = [line.split(" ", 2) for line in lines if line[0] != " "]
    assert [name for _, name, _ in fields] == ["tooli.access", "tooli.error"]
    assert fields[0][2].startswith(r'interface=http method=GET path="/x\\ny" status=404 code=E1404')
    assert fields[0][0].endswith("Z") and len(fields[0][0]) == 24
    assert lines[-1] == "    forged"


def test_json_has_one_object_for_each_record(capsys: pytest.CaptureFixture[str]) -> None:
    configure(access_log=True, log_format="json")
    write_all()
    assert log_as_json("served")
    access, error, server = map(json.loads, capsys.readouterr().err.splitlines())
    assert (access["logger"], access["status"], access["request_id"]) == (
        "tooli.access",
        404,
        "abc",
    )
    assert "message" not in access and access["ms"] >= 0
    assert error["message"] == "A request failed: ValueError"
    assert error["traceback"].endswith("ValueError: bad\nforged")
    assert (server["message"], server["level"]) == ("served", "info")


def test_access_log_can_be_off(capsys: pytest.CaptureFixture[str]) -> None:
    configure(access_log=False)
    write_all()
    err = capsys.readouterr().err
    assert "tooli.access" not in err and "tooli.error" in err
    assert not log_as_json("served")


class ListHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


@pytest.mark.parametrize("name", ["", "tooli"])
def test_handlers_of_the_app_are_kept(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    handler = ListHandler()
    configure(access_log=False)
    for logger in ("", "tooli"):
        logging.getLogger(logger).handlers = [handler] if logger == name else []
    logging.getLogger("tooli").propagate = True
    configure_logging(access_log=True)
    write_all()
    assert len(handler.messages) == 2
    assert capsys.readouterr().err == ""


def test_log_format_replaces_the_handlers_of_the_app(capsys: pytest.CaptureFixture[str]) -> None:
    handler = ListHandler()
    logging.getLogger("").addHandler(handler)
    configure_logging(access_log=True, log_format="text")
    write_all()
    assert handler.messages == []
    assert "tooli.access" in capsys.readouterr().err


def test_json_applies_to_the_records_of_other_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    configure(access_log=False, log_format="json")
    try:
        raise KeyError("x\x1b")
    except KeyError:
        logging.getLogger("other").exception("it failed", extra={"order": 7, "blob": object()})
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["logger"], record["message"], record["order"]) == ("other", "it failed", 7)
    assert "KeyError" in record["traceback"] and "\x1b" not in record["traceback"]
    assert "blob" not in record


def test_text_of_other_libraries_has_the_traceback() -> None:
    try:
        raise KeyError("x")
    except KeyError:
        record = logging.getLogger("other").makeRecord(
            "other", logging.ERROR, "f", 1, "it\nfailed", (), sys.exc_info()
        )
    first, *rest = TextFormatter().format(record).split("\n")
    assert first.endswith(r"other it\nfailed")
    assert rest[-1] == "    KeyError: 'x'"


def test_delete_character_is_escaped_in_json() -> None:
    record = logging.makeLogRecord({"name": "other", "msg": "a\x7fb"})
    assert "\x7f" not in JsonFormatter().format(record)


def test_closed_stderr_does_not_fail_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, text: str) -> None:
            raise ValueError("I/O operation on closed file")

    broken: Any = Closed()
    monkeypatch.setattr(sys, "stderr", broken)
    handler = StderrHandler()
    handler.emit(logging.makeLogRecord({"msg": "x"}))
