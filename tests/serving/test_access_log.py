"""Lines of the access log contain what a request was, and no line break of a client."""

from __future__ import annotations

import logging

import pytest

from tooli.core.call import Call, Caller
from tooli.core.tool import Tool
from tooli.serving.access_log import (
    MAX_VALUE_CHARS,
    format_fields,
    request_fields,
    write_access_line,
)
from tooli.serving.server_request import ServerRequest


def make_request(**caller: str) -> ServerRequest:
    request = ServerRequest("http", "abc")
    tool = Tool("app", ("find",), "app.find", (), lambda: None, (), frozenset())
    request.call = Call(tool, {}, Caller("http", **caller), [], request=request)  # type: ignore[arg-type]
    request.code = "ok"
    return request


def test_fields_describe_the_call() -> None:
    request = make_request(name="claude", version="2", principal="ada", address="1.2.3.4")
    request.method, request.path, request.status = "POST", "/tools/find", 200
    assert request_fields(request) == {
        "interface": "http",
        "client": "1.2.3.4",
        "method": "POST",
        "path": "/tools/find",
        "status": 200,
        "tool": "app.find",
        "code": "ok",
        "request_id": "abc",
        "caller": "claude/2",
        "principal": "ada",
    }


def test_request_without_a_call_has_its_own_principal() -> None:
    request = ServerRequest("http", "abc")
    request.principal, request.session = "ada", "s1"
    assert request_fields(request) == {
        "interface": "http",
        "request_id": "abc",
        "session": "s1",
        "principal": "ada",
    }


@pytest.mark.parametrize("character", ["\n", "\r", "\x1b", "\x7f", "\u2028", "\x85", "\u202e"])
def test_values_of_a_client_add_no_line(character: str) -> None:
    request = make_request(name=f"x{character}2026 tooli.error forged")
    request.path = f"/{character}"
    line = format_fields(request_fields(request))
    assert character not in line
    assert len(line.splitlines()) == 1


def test_long_values_are_cut() -> None:
    assert len(str(request_fields(make_request(name="x" * 9999))["caller"])) == MAX_VALUE_CHARS


@pytest.mark.parametrize(
    ("value", "expected"),
    [("plain", "plain"), ("a b", '"a b"'), ('a"b', '"a\\"b"'), ("a=b", '"a=b"'), ("", '""')],
)
def test_values_with_spaces_or_quotes_are_quoted(value: str, expected: str) -> None:
    assert format_fields({"key": value}) == f"key={expected}"


def test_line_has_the_fields_as_attributes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tooli.access")
    write_access_line(logging.getLogger("tooli.access"), make_request())
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert vars(record)["tool"] == "app.find" and vars(record)["ms"] >= 0
    assert record.getMessage().startswith("interface=http tool=app.find code=ok request_id=abc ms=")
