"""ServerRequest: ids from clients, unexpected errors, and the line in the access log."""

from __future__ import annotations

import logging
import sys

import pytest

from tooli.core.call import Call, Caller, Failed, Ok
from tooli.core.tool import Tool
from tooli.errors import DependencyError, InternalError, NotFoundError, ToolError
from tooli.pipeline.failure import as_tool_error
from tooli.serving import server_request
from tooli.serving.server_request import (
    MAX_REQUEST_ID_CHARS,
    ServerRequest,
    log_access,
    new_request_id,
    read_request_id,
    read_trace,
    request_id_of,
)

TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def make_call(request: ServerRequest) -> Call:
    tool = Tool("app", ("find",), "app.find", (), lambda: None, (), frozenset())
    return Call(tool, {}, Caller("http"), [], request=request)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"abc-1", "abc-1"),
        (b"6f0c:01/x=y+z@host~1._", "6f0c:01/x=y+z@host~1._"),
        (b"a" * MAX_REQUEST_ID_CHARS, "a" * MAX_REQUEST_ID_CHARS),
        (b"a" * (MAX_REQUEST_ID_CHARS + 1), None),
        (b"", None),
        (None, None),
        (b"a b", None),
        (b"a\r\nx: y", None),
        (b"a, b", None),
        ("ä".encode(), None),
    ],
)
def test_id_of_a_client_is_plain_and_short(value: bytes | None, expected: str | None) -> None:
    assert read_request_id(value) == expected


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [(TRACE, True), (None, False), (b"00-1", False), (TRACE + b"\n", False), (b"0" * 200, False)],
)
def test_trace_is_validated(value: bytes | None, is_valid: bool) -> None:
    assert (read_trace(value) is not None) is is_valid


def test_random_ids_differ() -> None:
    assert len({new_request_id() for _ in range(100)}) == 100


def test_id_of_a_json_rpc_request_contains_the_connection() -> None:
    assert request_id_of(7, "c0ffee00") == "c0ffee00-7"
    assert request_id_of("x-1", "c0ffee00") == "c0ffee00-x-1"
    generated = request_id_of("a\nb", "c0ffee00")
    assert generated.startswith("c0ffee00-") and "\n" not in generated


def test_headers_set_the_id_and_the_trace() -> None:
    request = ServerRequest("http", "own")
    request.read_headers({b"x-request-id": b"given", b"traceparent": TRACE})
    assert (request.id, request.is_id_shown, request.trace) == ("given", True, TRACE.decode())
    request = ServerRequest("http", "own")
    request.read_headers({})
    assert (request.id, request.is_id_shown, request.trace) == ("own", False, None)


def test_unexpected_error_is_masked_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    request = ServerRequest("http", "abc")
    error = as_tool_error(ValueError("hunter2"))
    masked = request.check_error(error, make_call(request))
    assert "hunter2" not in str(masked.to_dict())
    assert masked.code == "E5000" and masked.__cause__ is None and masked.__context__ is None
    assert masked.suggestion is not None and "abc" in masked.suggestion.fix
    assert request.is_id_shown
    assert request.check_error(masked, make_call(request)) is masked
    assert request.check_error(error, make_call(request)).message == masked.message
    assert [record.name for record in caplog.records] == ["tooli.error"]


def test_exposed_error_is_logged_and_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    request = ServerRequest("http", "abc", exposes_errors=True)
    error = as_tool_error(ValueError("hunter2"))
    assert request.check_error(error, make_call(request)) is error
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("error", "shows_id"),
    [(NotFoundError("no x"), False), (DependencyError("down"), True), (InternalError("x"), True)],
)
def test_error_of_the_author_is_not_masked(
    error: ToolError, shows_id: bool, caplog: pytest.LogCaptureFixture
) -> None:
    request = ServerRequest("http", "abc")
    assert request.check_error(error, make_call(request)) is error
    assert request.is_id_shown is shows_id
    assert caplog.records == []


def test_end_of_a_call_is_recorded() -> None:
    request = ServerRequest("http", "abc")
    call = make_call(request)
    request.end_call(Ok(1), call)
    assert (request.call, request.code) == (call, "ok")
    request.end_call(Failed(NotFoundError("no x")), call)
    assert request.code == "E3010"


def test_access_is_logged_if_the_logger_is_enabled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_access(ServerRequest("http", "abc"))
    assert caplog.records == []
    caplog.set_level(logging.INFO, "tooli.access")
    log_access(ServerRequest("http", "abc"))
    assert len(caplog.records) == 1
    monkeypatch.delitem(sys.modules, "logging")
    log_access(ServerRequest("http", "abc"))
    assert len(caplog.records) == 1
    assert server_request.CANCELLED == "cancelled"
