"""The generated tables of the hot path are current, and import nothing."""

from __future__ import annotations

import subprocess
import sys

from docs.generate import HOT_TABLES
from docs.hot_tables import hot_tables_source

from tooli.config import config_files
from tooli.core import _hot_tables


def test_module_is_current() -> None:
    """`make docs` writes it."""
    assert HOT_TABLES.read_text(encoding="utf-8") == hot_tables_source()


def test_module_imports_no_module_of_tooli() -> None:
    code = (
        "import sys, tooli.core._hot_tables; print(*[m for m in sys.modules if m[:5] == 'tooli'])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["tooli", "tooli.core", "tooli.core._hot_tables"]


def test_system_config_path_matches_config_files() -> None:
    assert _hot_tables.SYSTEM_CONFIG_PATH == config_files.SYSTEM_CONFIG_PATH
