"""Recorded uses become a short declaration; test_monitored_runner.py runs the whole command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.builtins.capabilities_command import minimal_capabilities, record_usage


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The current folder, with two nested folders."""
    (tmp_path / "data" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return os.path.realpath(tmp_path)


def test_files_become_folders(folder: str) -> None:
    uses = [("fs:read", f"{folder}/data/a.txt"), ("fs:read", f"{folder}/data/b.txt")]
    assert minimal_capabilities(uses, []) == {"fs:read:./data"}


def test_nested_folders_become_one(folder: str) -> None:
    uses = [("fs:read", f"{folder}/data/deep/a.txt"), ("fs:read", f"{folder}/data/b.txt")]
    assert minimal_capabilities(uses, []) == {"fs:read:./data"}


def test_kinds_of_access_stay_separate(folder: str) -> None:
    uses = [("fs:read", f"{folder}/data/a.txt"), ("fs:write", f"{folder}/data/deep/b.txt")]
    assert minimal_capabilities(uses, []) == {"fs:read:./data", "fs:write:./data/deep"}


def test_root_replaces_folders_below_it(folder: str) -> None:
    uses = [("fs:read", f"{folder}/data/deep/a.txt"), ("net:read", "example.com")]
    assert minimal_capabilities(uses, [f"{folder}/data"]) == {"fs:read:./data", "net:read"}


def test_temporary_files_become_the_temporary_folder(
    folder: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = os.path.realpath(tmp_path_factory.mktemp("temporary"))
    monkeypatch.setattr("tooli.builtins.capabilities_command.gettempdir", lambda: temporary)
    uses = [("fs:write", f"{temporary}/x1/a"), ("fs:write", f"{temporary}/x2/b")]
    assert minimal_capabilities(uses, []) == {f"fs:write:{temporary}"}


@pytest.mark.parametrize(
    "guard",
    [{"requires_approval": True}, {"human_in_the_loop": True}, {"danger_level": "critical"}],
    ids=lambda guard: next(iter(guard)),
)
def test_examples_that_need_approval_are_skipped(guard: dict[str, Any]) -> None:
    """Running them would only create requests for approval."""
    app = Tooli("app")
    app.command("launch", annotations=ReadOnly, examples=[{"args": []}], **guard)(lambda: None)
    app.command("other")(lambda: None)
    report = record_usage(app, "app.py:app", [], examples=True, include_all=True, roots=[])
    assert report["not_run"] == [
        {"command": "launch", "why": "the command needs approval"},
        {"command": "other", "why": "the command has no examples"},
    ]
    assert "failed" not in report
