"""The table of output modes: everything that lists modes derives from it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tooli
from tooli.config.setting_definitions import SETTINGS
from tooli.core._hot_tables import FLAGS
from tooli.core.options import help_rows
from tooli.core.output_modes import FLAG_MODES, MODE_TABLE, OUTPUT_MODES, find_mode

HOT_MODES = {"auto", "json"}
"""Modes that the command line may name, so that an ordinary call does not load the table."""


@pytest.mark.parametrize("mode", MODE_TABLE, ids=lambda mode: mode.name)
def test_mode_has_a_summary_and_a_renderer(mode: tooli.core.output_modes.OutputMode) -> None:
    assert find_mode(mode.name) is mode
    assert mode.summary
    if mode.kind == "auto":
        assert not mode.renderer
    else:
        assert mode.kind in ("document", "lines", "text")
        assert callable(mode.load_renderer())
    assert mode.reports_errors or not mode.is_document


def test_lists_of_modes_derive_from_the_table() -> None:
    assert SETTINGS["output"].choices == OUTPUT_MODES
    assert all(FLAGS[f"--{name}"] == ("output", 0, name) for name in FLAG_MODES)
    help_text = dict(help_rows())["Output"]
    assert all(name in help_text for name in OUTPUT_MODES[1:])


def test_default_output_is_checked() -> None:
    for name in OUTPUT_MODES:
        tooli.Tooli("app", default_output=name)
    with pytest.raises(tooli.DefinitionError, match=", ".join(OUTPUT_MODES)):
        tooli.Tooli("app", default_output="xml")


def test_cli_does_not_compare_names_of_modes() -> None:
    """Code uses the properties of a mode. Only modes of the hot path are compared by name."""
    names = set(OUTPUT_MODES) - HOT_MODES
    found: list[str] = []
    for path in (Path(tooli.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Compare) or "mode" not in ast.unparse(node.left):
                continue
            literals = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
            found += [f"{path.name}:{node.lineno}" for value in literals if value in names]
    assert not found
