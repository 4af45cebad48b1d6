"""Recorded uses become a short declaration; test_monitored_runner.py runs the whole command."""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.builtins.capabilities_command import (
    RECORD_VARIABLE,
    minimal_capabilities,
    record_usage,
)
from tooli.errors import StateError


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


# ------------------------------------------------------------------ a program that forges records

VALID = {"app": "app", "command": "look", "uses": [["fs:read", "/usr/lib/tooli-none"]]}


class TestForgedRecords:
    def record(self, code: str) -> dict[str, Any]:
        app = Tooli("app")
        app.command("look")(lambda: None)
        app.command("other")(lambda: None)
        program = f"import json, os; path = os.environ[{RECORD_VARIABLE!r}]\n{code}"
        tests = [sys.executable, "-c", program]
        return record_usage(app, "app.py:app", tests, examples=False, include_all=False, roots=[])

    def record_lines(self, *lines: object) -> dict[str, Any]:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        return self.record(f"open(path, 'w').write({chr(10).join(texts)!r})")

    def test_report_is_a_suggestion(self) -> None:
        report = self.record_lines(VALID)
        assert report["commands"][0]["paste"] == 'capabilities=["fs:read:/usr/lib"]'
        assert "suggestion" in report["review"]
        assert "invalid_lines" not in report

    @pytest.mark.parametrize(
        "line",
        [
            "{",
            "[" * 100_000,
            [],
            {"app": "app"},
            {**VALID, "app": ["app"]},
            {**VALID, "command": {}},
            {**VALID, "uses": "fs:read"},
            {**VALID, "uses": [["fs:read"]]},
            {**VALID, "uses": [["fs:read", "/usr", "E2003"]]},
            {**VALID, "uses": [["fs:read", 1]]},
            {**VALID, "uses": [["fs:read", "usr"]]},
            {**VALID, "uses": [["fs:read:/", "/usr"]]},
            {**VALID, "uses": [["none", ""]]},
            {**VALID, "uses": [['"], auth=["', "/usr"]]},
        ],
        ids=range(14),
    )
    def test_invalid_line(self, line: object) -> None:
        report = self.record_lines(VALID, line)
        assert report["invalid_lines"] == 1
        assert [row["used"] for row in report["commands"]] == [["fs:read:/usr/lib"]]

    def test_other_app_and_unknown_command(self) -> None:
        other = [{**VALID, "app": "shop"}, {**VALID, "command": "unknown"}]
        assert len(self.record_lines(VALID, *other)["commands"]) == 1

    def test_path_with_quotes_stays_one_string(self) -> None:
        use = ["fs:write", '/usr/"], auth=[]\n#/file']
        (row,) = self.record_lines({**VALID, "uses": [use]})["commands"]
        (keyword,) = ast.parse(f"f({row['paste']})", mode="eval").body.keywords  # type: ignore[attr-defined]
        assert ast.literal_eval(keyword.value) == ['fs:write:/usr/"], auth=[]\n#']

    @pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
    @pytest.mark.parametrize(
        "code",
        [
            "os.symlink(__import__('sys').executable, path)",
            "os.mkfifo(path)",
            "os.mkdir(path)",
            "open(path, 'w').truncate(1 << 40)",
        ],
        ids=["link", "pipe", "folder", "size"],
    )
    def test_replaced_record(self, code: str) -> None:
        with pytest.raises(StateError, match="replaced the record"):
            self.record(code)
