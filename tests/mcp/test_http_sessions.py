"""The sessions of MCP over HTTP: their owners and their number."""

from __future__ import annotations

import pytest

from tooli.mcp import http_sessions
from tooli.mcp.http_sessions import HttpSessions, SessionCaller


def make_caller(*scopes: str, principal: str | None = "ali") -> SessionCaller:
    return SessionCaller({"tooli.principal": principal, "tooli.scopes": frozenset(scopes)})


def from_address(address: str) -> SessionCaller:
    return SessionCaller({"client": (address, 1)})


def test_session_belongs_to_the_principal() -> None:
    sessions = HttpSessions()
    sessions.add("s", make_caller())
    assert sessions.find("s", make_caller()) is not None
    assert sessions.find("s", make_caller(principal="eve")) is None
    assert sessions.find("s", make_caller(principal=None)) is None
    assert sessions.find("other", make_caller()) is None


def test_fewer_scopes_cannot_use_a_session() -> None:
    sessions = HttpSessions()
    sessions.add("s", make_caller("read"))
    assert sessions.find("s", make_caller()) is None
    assert sessions.find("s", make_caller("read", "write")) is not None
    assert sessions.find("s", make_caller("read")) is None  # it was used with more scopes
    all_scopes = SessionCaller({"tooli.principal": "ali", "tooli.scopes": None})
    assert sessions.find("s", all_scopes) is not None
    assert sessions.find("s", make_caller("read", "write")) is None


def test_caller_without_a_principal_is_counted_by_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS_PER_CALLER", 1)
    sessions = HttpSessions()
    sessions.add("s", from_address("2001:db8::1"))
    assert not sessions.has_room(from_address("2001:db8::2"))
    assert sessions.has_room(from_address("2001:db8:0:1::1"))
    sessions.close_request("s")
    assert sessions.has_room(from_address("2001:db8::2"))
    sessions.remove("s")
    sessions.close_request("s")
    sessions.remove("s")


def test_caller_with_most_sessions_loses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS", 3)
    monkeypatch.setattr(http_sessions, "PROTECTED_SESSIONS", 1)
    sessions = HttpSessions()
    for name, address in (("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.2")):
        assert sessions.add(name, from_address(address)) == []
    assert not sessions.has_room(from_address("192.0.2.3"))
    for name in ("a", "b", "c"):
        sessions.close_request(name)
    assert sessions.has_room(from_address("192.0.2.3"))
    assert [name for name, _ in sessions.add("d", from_address("192.0.2.3"))] == ["b"]


def test_few_sessions_of_a_caller_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS", 5)
    sessions = HttpSessions()
    for i, address in enumerate(("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")):
        sessions.add(str(i), from_address(address))
        sessions.close_request(str(i))
    assert not sessions.has_room(from_address("192.0.2.4"))
    assert sessions.add("new", from_address("192.0.2.4")) == []
    sessions.remove("new")
    monkeypatch.setattr(http_sessions, "IDLE_SECONDS", -1.0)  # every idle session is old
    assert sessions.has_room(from_address("192.0.2.4"))
    assert [name for name, _ in sessions.add("new", from_address("192.0.2.4"))] == ["0"]


def test_busy_sessions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS_PER_CALLER", 1)
    sessions = HttpSessions()
    assert sessions.add("a", make_caller()) == sessions.add("b", make_caller()) == []
    assert sessions.find("a", make_caller()) is not None
