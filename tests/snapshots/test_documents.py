"""Documents of file-tools, compared with reviewed files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from examples.file_tools.app import app

from tooli.describe.agent_documents import (
    build_discovery,
    build_manifest,
    build_skill_files,
    render_document,
    render_llms_full,
    render_llms_txt,
)
from tooli.describe.man import build_man_pages
from tooli.describe.sections import AppInfo, collect_app_info
from tooli.export.permissions import render_rules
from tooli.testing.assertions import format_json

HERE = Path(__file__).parent / "documents"
DOCUMENTS: dict[str, Callable[[AppInfo], dict[str, str]]] = {
    "skill": build_skill_files,
    "agents-md": lambda app_info: {"AGENTS.md": render_document(app_info, "agents-md")},
    "claude-md": lambda app_info: {"CLAUDE.md": render_document(app_info, "claude-md")},
    "llms": lambda app_info: {
        "llms.txt": render_llms_txt(app_info),
        "llms-full.txt": render_llms_full(app_info),
    },
    "man": build_man_pages,
    "manifest": lambda app_info: {
        "manifest.json": format_json(build_manifest(app_info)),
        "discovery.json": format_json(build_discovery(app_info)),
    },
    **{
        f"permissions-{host}": lambda app_info, host=host: render_rules(app_info, host)
        for host in ("claude-code", "codex", "cursor", "gemini")
    },
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_document_matches_its_snapshot(document: str) -> None:
    folder = HERE / document
    found = DOCUMENTS[document](collect_app_info(app))
    if os.environ.get("TOOLI_UPDATE_SNAPSHOTS", "") not in ("", "0"):
        for name, text in found.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(path.relative_to(folder).as_posix() for path in kept) == sorted(found)
    for name, text in found.items():
        assert (folder / name).read_text(encoding="utf-8") == text
    assert DOCUMENTS[document](collect_app_info(app)) == found, "not deterministic"
