"""Lines of the SDK: a client cannot fill the log."""

from __future__ import annotations

import logging

import pytest

from tooli.mcp import log_limits
from tooli.mcp.log_limits import MAX_LINES, LogLimit, limit_sdk_logs


def make_record(line: int = 1) -> logging.LogRecord:
    return logging.LogRecord("mcp.x", logging.WARNING, "x.py", line, "dropped %r", ("a",), None)


def test_lines_of_a_statement_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(log_limits, "monotonic", lambda: clock[0])
    limit = LogLimit()
    assert [limit.filter(make_record()) for _ in range(50)].count(True) == MAX_LINES
    assert limit.filter(make_record(line=2))
    clock[0] += 60
    record = make_record()
    assert limit.filter(record)
    assert record.getMessage() == "dropped 'a' (and 40 more lines were not logged)"
    record = make_record()
    assert limit.filter(record)
    assert record.getMessage() == "dropped 'a'"


def test_limit_applies_to_each_logger_once() -> None:
    logger = logging.getLogger("mcp.server.runner")
    limit_sdk_logs()
    limit_sdk_logs()
    assert logger.filters.count(log_limits._limit) == 1
    assert log_limits._limit not in logging.getLogger("other").filters
