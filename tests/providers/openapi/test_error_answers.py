"""Error answers become the errors of tooli, with the fields and words of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.openapi.api_server import parameter
from tests.providers.openapi.test_answers import FakeAnswer
from tests.providers.openapi.test_operations import body, single

from tooli.errors import (
    AuthError,
    ConflictError,
    DependencyError,
    InputError,
    NotFoundError,
    StateError,
    TemporaryError,
    ToolError,
)
from tooli.providers.openapi import error_answers as module
from tooli.providers.openapi.error_answers import read_error, read_retry_after

PERSON = {"type": "object", "properties": {"user name": {"type": "string"}, "age": {}}}
OPERATION = single(
    "/{id}", "post", parameters=[parameter("id", "path"), parameter("$top")], **body(PERSON)
)


def error(
    status: int, value: Any = None, *, operation: Any = OPERATION, **headers: str
) -> ToolError:
    data = (
        value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
    )
    answer: Any = FakeAnswer(
        data, headers.pop("content_type", "application/json"), status, **headers
    )
    answer.reason = "Re\x1b[1mason"
    return read_error(answer, operation, ["token"])


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        *((400, InputError, True), (401, AuthError, False), (402, StateError, False)),
        *((403, AuthError, False), (404, NotFoundError, False), (405, InputError, True)),
        *((409, ConflictError, False), (410, NotFoundError, False), (412, ConflictError, False)),
        *((418, InputError, True), (422, InputError, True), (429, TemporaryError, True)),
        *((500, TemporaryError, True), (501, DependencyError, False), (503, TemporaryError, True)),
        (304, DependencyError, False),
    ],
)
def test_statuses(status: int, kind: type[ToolError], retryable: bool) -> None:
    found = error(status)
    assert type(found) is kind
    assert found.message == f"POST /{{id}} answered {status} Reason."
    assert found.details is not None
    assert found.details["status"] == status
    assert "secret" not in str(found.to_dict())
    assert found.is_retryable is retryable


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"message": "Bad \x1b[31mred"}, "Bad red"),
        ({"type": "about:blank", "title": "Invalid", "detail": "Too short"}, "Too short"),
        ({"error": {"message": "No such token"}}, "No such token"),
        ({"error": "invalid_grant", "error_description": "Expired"}, "Expired"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one; two"),
        (["a", "b"], "a; b"),
        ("text", "text"),
        (b"plain text", "plain text"),
        ({"x": 1}, ""),
    ],
)
def test_messages(value: Any, message: str) -> None:
    assert error(400, value).message.partition(" Reason")[2].lstrip(": .") == message


def test_pages_and_large_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    page = error(500, b"<html>secret page</html>", content_type="text/html")
    assert "page" not in page.message
    assert "body" not in (page.details or {})
    large = error(400, {"message": "m", "data": "x" * 9_000})
    assert len(str((large.details or {})["body"])) < 2_100
    listed = error(400, {"message": "m", "data": [{"a\x1b[1m": "\x1b[1mb"}, 1]})
    assert (listed.details or {})["body"] == {"message": "m", "data": [{"a": "b"}, 1]}
    assert len(str((error(400, b"y" * 9_000).details or {})["body"])) < 2_100
    monkeypatch.setattr(module, "MAX_ERROR_BYTES", 10)
    assert "body" not in (error(500, {"message": "too long to read"}).details or {})


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"detail": [{"loc": ["body", "user name", 0], "msg": "bad"}]}, "user_name.0"),
        ({"errors": [{"field": "age", "message": "bad"}]}, "age"),
        ({"errors": {"age": ["bad"]}}, "age"),
        ({"errors": [{"source": {"pointer": "/data/age"}, "title": "bad"}]}, "age"),
        ({"error": {"param": "user name[first]", "message": "bad"}}, "user_name.first"),
        ({"error": {"errors": [{"path": "$top", "message": "bad"}]}}, "top"),
        ({"param": "id", "message": "bad"}, "id"),
        ({"errors": [{"field": "unknown", "message": "bad"}]}, None),
        ({"errors": ["bad"]}, None),
        ({"errors": [{}]}, None),
    ],
)
def test_fields(value: Any, field: str | None) -> None:
    found = error(422, value)
    assert found.field == field
    problems: Any = (found.details or {}).get("errors", [])
    assert all(problem.get("field") == field for problem in problems)


def test_unauthorized() -> None:
    found = error(401)
    assert found.suggestion is not None
    assert found.suggestion.action == "ask_human"
    assert "token" in found.suggestion.fix


def test_retry_after() -> None:
    found = error(429, Retry_After="7")
    assert found.code == "E4029"
    assert (found.details or {})["retry_after"] == 7
    assert found.suggestion is not None
    assert found.suggestion.fix == "Call again in 7 s."
    later = error(503, Retry_After="Fri, 31 Dec 2100 23:59:59 GMT")
    assert (later.details or {})["retry_after"] == 10**7
    assert later.suggestion is not None
    assert "had an effect" in later.suggestion.fix
    read_only = error(503, operation=single())
    assert read_only.suggestion is not None
    assert read_only.suggestion.fix == "Call again later."
    for text in (None, "", "soon", "-1", "²"):
        assert read_retry_after(text) is None
    assert read_retry_after("Fri, 31 Dec 1999 23:59:59 GMT") == 0


# ------------------------------------------------------------------ envelopes of tooli

TOOLI = single(**{"x-tooli-command": "app run"})


def test_errors_about_the_token_are_no_errors_of_the_caller() -> None:
    failure = {"code": "E2001", "message": "x", "details": {"missing_scopes": ["admin"]}}
    found = error(403, {"ok": False, "error": failure}, operation=TOOLI)
    assert isinstance(found, AuthError)
    assert (found.code, found.details) == ("E2000", {"remote_code": "E2001"})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *(("E1003", InputError), ("E2005", AuthError), ("E3010", NotFoundError)),
        *(("E3020", ConflictError), ("E3041", StateError), ("E4040", DependencyError)),
        *(("E4075", TemporaryError), ("E5000", ToolError)),
    ],
)
def test_errors_of_tooli_stay_what_they_are(code: str, kind: type[ToolError]) -> None:
    envelope = {
        "ok": False,
        "error": {
            "code": code,
            "message": "Wrong\x1b[1m.",
            "field": "a",
            "suggestion": {"action": "ask_human", "fix": "Ask.", "argv": ["other", "app"]},
            "is_retryable": True,
            "details": {"x": "y\x1b[1m"},
        },
    }
    found = error(422, envelope, operation=TOOLI)
    assert isinstance(found, kind)
    assert (found.code, found.message, found.field) == (code, "Wrong.", "a")
    assert (found.is_retryable, found.details) == (True, {"x": "y"})
    assert found.suggestion is not None
    assert found.suggestion.to_dict() == {
        "action": "ask_human",
        "fix": "Ask.",
        "applicability": "maybe_incorrect",
    }


@pytest.mark.parametrize("value", [{"ok": False, "error": {"code": "X1"}}, {"ok": True}, [], None])
def test_other_answers_of_tooli(value: Any) -> None:
    assert isinstance(error(500, value, operation=TOOLI), TemporaryError)
    short = {"ok": False, "error": {"code": "E5000", "message": "m"}}
    assert error(500, short, operation=TOOLI).suggestion is None
