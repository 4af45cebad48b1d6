"""Ids of MCP sessions: signed, bound to a principal, readable in every process of a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tooli.core.held_keys import held_keys
from tooli.mcp import session_ids
from tooli.mcp.session_ids import SessionIds, read_client_info

CLIENT = {"name": "python", "version": "2"}


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("TOOLI_SEAL_KEY", raising=False)


@pytest.mark.parametrize("principal", ["ali", None, "ü"])
def test_other_processes_read_the_id(principal: str | None) -> None:
    own, other = SessionIds(), SessionIds()
    issued = own.issue("abc", CLIENT, principal)
    assert issued.isascii()
    read, elsewhere = own.read(issued, principal), other.read(issued, principal)
    assert read is not None and elsewhere is not None
    assert (read.name, read.client, read.is_local) == ("abc", CLIENT, True)
    assert (elsewhere.name, elsewhere.client, elsewhere.is_local) == ("abc", CLIENT, False)


def test_id_belongs_to_its_principal() -> None:
    ids = SessionIds()
    issued = ids.issue("abc", CLIENT, "ali")
    assert ids.read(issued, "eve") is None
    assert ids.read(issued, None) is None
    assert ids.read(ids.issue("abc", CLIENT, None), "eve") is None


@pytest.mark.parametrize(
    "text", ["", "s", "x", "0" * 32, "sAAAA", "s" + "A" * 200, "sä", "s=", " "]
)
def test_invalid_id_is_unknown(text: str) -> None:
    assert SessionIds().read(text, None) is None


def test_changed_id_is_unknown() -> None:
    ids = SessionIds()
    issued = ids.issue("abc", CLIENT, None)
    for i in range(len(issued)):
        changed = issued[:i] + ("A" if issued[i] != "A" else "B") + issued[i + 1 :]
        assert ids.read(changed, None) is None


def test_server_with_another_key_does_not_know_the_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = SessionIds().issue("abc", CLIENT, None)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "other"))
    assert SessionIds().read(issued, None) is None
    monkeypatch.setenv("TOOLI_SEAL_KEY", "k" * 40)
    shared = SessionIds().issue("abc", CLIENT, None)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "third"))
    assert SessionIds().read(shared, None) is not None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"method": "initialize", "params": {"clientInfo": CLIENT}}, CLIENT),
        ({"method": "initialize", "params": {"clientInfo": {"name": 7, "x": "y"}}}, {}),
        ({"method": "initialize", "params": []}, {}),
        ({"method": "initialize"}, {}),
        ({"method": "tools/call", "params": {"name": "initialize"}}, None),
        (["initialize"], None),
    ],
)
def test_client_info_of_initialize(message: object, expected: object) -> None:
    assert read_client_info(json.dumps(message).encode()) == expected


def test_large_body_is_not_parsed() -> None:
    padding = {"method": "initialize", "params": {"clientInfo": CLIENT, "x": "y" * 20_000}}
    assert read_client_info(json.dumps(padding).encode()) is None


@pytest.mark.parametrize(
    "body", [b'"initialize"', b'{"initialize"', b"\xff" + b'"initialize"', b""]
)
def test_other_bodies_have_no_client_info(body: bytes) -> None:
    assert read_client_info(body) is None


def test_long_names_are_cut() -> None:
    info = {"name": "n" * 5000, "version": "v" * 5000}
    body = json.dumps({"method": "initialize", "params": {"clientInfo": info}}).encode()
    read = read_client_info(body)
    assert read is not None
    assert len(SessionIds().issue("abc", read, None)) < 600


def test_key_is_overwritten_in_sandboxed_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_ids, "load_or_create_key", lambda _: None)
    assert SessionIds()._key in held_keys
