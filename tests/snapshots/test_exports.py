"""Exports of file-tools, every target in both modes, compared with reviewed files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from examples.file_tools.app import app

from tooli.describe.sections import collect_app_info
from tooli.export import CALLERS, export
from tooli.export.export_spec import ExportSpec

HERE = Path(__file__).parent / "exports"


@pytest.mark.parametrize("mode", ["subprocess", "import"])
@pytest.mark.parametrize("target", CALLERS)
def test_export_matches_its_snapshot(target: str, mode: str) -> None:
    folder = HERE / f"{target}-{mode}"
    found = export(ExportSpec(collect_app_info(app), target, mode))
    if os.environ.get("TOOLI_UPDATE_SNAPSHOTS", "") not in ("", "0"):
        for name, text in found.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    kept = [path for path in folder.rglob("*") if path.suffix in (".py", ".yaml")]
    assert sorted(path.relative_to(folder).as_posix() for path in kept) == list(found)
    for name, text in found.items():
        assert (folder / name).read_text(encoding="utf-8") == text
