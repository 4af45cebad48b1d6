"""Schemas, help and envelopes of file-tools, compared with reviewed files."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.file_tools.app import app

from tooli.testing import (
    Case,
    assert_envelope_snapshot,
    assert_help_snapshot,
    assert_schema_snapshot,
)

HERE = Path(__file__).parent / "file_tools"
CASES = [
    Case("find-files", {"pattern": "*.md"}),
    Case("find-files", {"pattern": "*.rs"}),
    Case("find-files", {"pattern": "*.md", "root": "nowhere", "max_depth": 1000}),
    Case("find-files", {"patern": "*.md"}),
    Case("search", {"text": "hello"}),
    Case("checksum", {"files": ["a.md"]}),
    Case("rename", {"rule": {"patern": "*.md"}}),
    Case("delete", {"files": ["a.md"]}),
    Case("delete", {"files": ["a.md"]}, {"dry_run": True}),
    Case("find-file"),
    Case("checksum", argv=["a.md", "--algorithm", "sha265", "--fast"]),
]


@pytest.mark.parametrize("form", ["json", "mcp", "openai", "anthropic"])
def test_schema_matches_its_snapshot(form: str) -> None:
    assert_schema_snapshot(app, HERE / f"schema-{form}.json", form=form)


def test_help_matches_its_snapshot() -> None:
    assert_help_snapshot(app, HERE / "help.txt")


def test_envelopes_match_their_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("hello\nworld\n")
    (tmp_path / "b.md").write_text("oh, hello\n")
    monkeypatch.chdir(tmp_path)
    assert_envelope_snapshot(app, CASES, HERE / "answers.json")
