"""Lists of tools on disk: when they are used, and what breaks them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tooli.providers.mcp_client import tool_list_cache
from tooli.providers.mcp_client.tool_list_cache import ToolList, ToolListCache

LIST = ToolList([{"name": "é\ud800"}], "2025-11-25", {"name": "s"})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state" / "mcp-tools"


def stored_file(state: Path) -> Path:
    (path,) = state.iterdir()
    return path


def test_round_trip(state: Path) -> None:
    cache = ToolListCache(["a"], ())
    assert cache.load() is None
    cache.save(LIST)
    assert cache.load() == LIST
    assert ToolListCache(["b"], ()).load() is None
    assert stored_file(state).stat().st_mode & 0o077 == 0
    cache.forget()
    assert cache.load() is None


def test_changed_files(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("1")
    cache = ToolListCache(["a"], [str(script), str(tmp_path / "missing")])
    cache.save(LIST)
    assert cache.load() == LIST
    script.write_text("22")
    assert cache.load() is None


def test_old_list(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ToolListCache(["a"], ())
    cache.save(LIST)
    now = tool_list_cache.time()
    monkeypatch.setattr(tool_list_cache, "time", lambda: now + tool_list_cache.MAX_AGE_SECONDS + 1)
    assert cache.load() is None
    monkeypatch.setattr(tool_list_cache, "time", lambda: now - 3600)  # made in the future
    assert cache.load() is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1"},
        {"version": None},
        {"tools": {}},
        {"tools": [1]},
        {"made": "x"},
        {"files": [["x", 1, 2, 3]]},
    ],
)
def test_invalid_list(state: Path, change: dict[str, Any]) -> None:
    cache = ToolListCache(["a"], ())
    cache.save(LIST)
    path = stored_file(state)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert cache.load() is None


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "\0"])
def test_broken_file(state: Path, text: str) -> None:
    cache = ToolListCache(["a"], ())
    cache.save(LIST)
    stored_file(state).write_text(text)
    assert cache.load() is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes")
def test_folder_of_others_is_not_used(state: Path) -> None:
    cache = ToolListCache(["a"], ())
    cache.save(LIST)
    os.chmod(state, 0o777)
    assert cache.load() is None
    cache.save(LIST.replace(version="2025-06-18"))
    os.chmod(state, 0o700)
    assert cache.load() == LIST


def test_state_folder_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", "relative")
    cache = ToolListCache(["a"], ())
    cache.save(LIST)
    cache.forget()
    assert cache.load() is None


def test_list_that_is_too_large(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    monkeypatch.setattr(tool_list_cache, "MAX_LIST_BYTES", 10)
    ToolListCache(["a"], ()).save(LIST)
    assert list(state.iterdir()) == []
