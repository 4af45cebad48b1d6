"""Audit events and the actions that they mean."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tooli.execution.monitor import audit_events
from tooli.execution.monitor.audit_events import EVENTS


def actions(event: str, *args: Any) -> list[tuple[str, Any]]:
    """Return the actions of an event."""
    return list(EVENTS[event](args))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("f", "r", os.O_RDONLY), [("read", "f")]),
        (("f", "w", os.O_WRONLY | os.O_CREAT), [("write", "f")]),
        (("f", "x", os.O_WRONLY | os.O_CREAT | os.O_EXCL), [("make", "f")]),
        (("f", None, os.O_RDWR), [("write", "f")]),
        (("f", "a", 0), [("write", "f")]),
        ((3, "r", os.O_RDONLY), []),
    ],
)
def test_open(args: tuple[Any, ...], expected: list[Any]) -> None:
    assert actions("open", *args) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (":memory:", []),
        ("", []),
        ("a.db", ["read", "write"]),
        (b"a.db", ["read", "write"]),
        ("file:a.db", ["read", "write"]),
        ("file:a.db?mode=ro", ["read"]),
        ("file:a.db?mode=ro&mode=rw", ["read", "write"]),
        ("file:?mode=memory", []),
        ("file:a.db?mode=memory#part", []),
        ("file:///tmp/a.db", ["read", "write"]),
        ("file://localhost/tmp/a%20b.db?m%6fde=ro", ["read"]),
        ("file:a%zz.db", ["read", "write"]),
        (3, []),
    ],
)
def test_sqlite(name: Any, expected: list[str]) -> None:
    assert [action for action, _ in actions("sqlite3.connect", name)] == expected


def test_sqlite_uri_names_are_decoded() -> None:
    found = actions("sqlite3.connect", "file://localhost/tmp/a%20b.db?mode=ro")
    assert found == [("read", "/tmp/a b.db")]


def test_sqlite_file_whose_name_is_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file:a.db").write_text("")
    found = actions("sqlite3.connect", "file:a.db?mode=ro")
    assert found == [("read", "a.db")]
    found = actions("sqlite3.connect", "file:a.db")
    assert found[:2] == [("read", "file:a.db"), ("write", "file:a.db")]
    assert sqlite3.sqlite_version


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (("localhost", 80), [("net", "localhost:80")]),
        (("::1", 80, 0, 0), [("net", "::1:80")]),
        (None, []),
        (b"/tmp/s", [("net", "/tmp/s")]),
        (7, [("net", "7")]),
    ],
)
def test_connect(address: Any, expected: list[Any]) -> None:
    assert actions("socket.connect", None, address) == expected


@pytest.mark.parametrize(
    ("address", "places"),
    [("/tmp/s", True), (b"/tmp/s", True), ("\0abstract", False), ("", False), (("", 0), False)],
)
def test_bind(address: Any, places: bool) -> None:
    assert ("place" in [action for action, _ in actions("socket.bind", None, address)]) is places


@pytest.mark.parametrize(
    ("args", "target"),
    [
        (("prog", ["prog"], None), "prog"),
        ((None, ["prog", "x"]), "prog"),
        ((None, []), "a copy of the process"),
        ((), "a copy of the process"),
    ],
)
def test_spawn(args: tuple[Any, ...], target: str) -> None:
    assert list(audit_events._spawn_actions(args)) == [("spawn", target)]
