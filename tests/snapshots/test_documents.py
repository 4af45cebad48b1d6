"""The documents of file-tools, as files that people have read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from examples.file_tools.app import app

from tooli.testing.parity import pretty
from tooli.views.agents_md import write_agents_md
from tooli.views.claude_md import write_claude_md
from tooli.views.export.permissions import rules
from tooli.views.llms_txt import llms_full, llms_txt
from tooli.views.man import man_pages
from tooli.views.manifest import discovery, manifest
from tooli.views.portrait import Portrait, portray
from tooli.views.skill import skill_files

HERE = Path(__file__).parent / "documents"
DOCUMENTS: dict[str, Callable[[Portrait], dict[str, str]]] = {
    "skill": skill_files,
    "agents-md": lambda portrait: {"AGENTS.md": write_agents_md(portrait)},
    "claude-md": lambda portrait: {"CLAUDE.md": write_claude_md(portrait)},
    "llms": lambda portrait: {
        "llms.txt": llms_txt(portrait),
        "llms-full.txt": llms_full(portrait),
    },
    "man": man_pages,
    "manifest": lambda portrait: {
        "manifest.json": pretty(manifest(portrait)),
        "discovery.json": pretty(discovery(portrait)),
    },
    **{
        f"permissions-{host}": lambda portrait, host=host: rules(portrait, host)
        for host in ("claude-code", "codex", "cursor", "gemini")
    },
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_document(document: str) -> None:
    folder = HERE / document
    found = DOCUMENTS[document](portray(app))
    if os.environ.get("TOOLI_UPDATE_SNAPSHOTS", "") not in ("", "0"):
        for name, text in found.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    kept = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(path.relative_to(folder).as_posix() for path in kept) == sorted(found)
    for name, text in found.items():
        assert (folder / name).read_text(encoding="utf-8") == text
    assert DOCUMENTS[document](portray(app)) == found, "the same again, byte for byte"
