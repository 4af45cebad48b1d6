"""The documents tell the truth: what they show is what happens, what is generated is current."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from docs.generate import (
    CALLERS,
    ERRORS,
    PLAYED,
    ROOT,
    SAFETY,
    callers_page,
    errors_page,
    output_modes_table,
    safety_page,
    with_output_modes,
)
from docs.option_table import with_option_table
from docs.transcript import play, settled

from tooli.core._hot_tables import FLAGS
from tooli.core.output_modes import OUTPUT_MODES
from tooli.errors import ERROR_CODES, EXIT_CODES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal is needed")

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PLAYED, ids=lambda page: page.name)
def test_every_command_shows_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """`make docs` writes the pages anew."""
    text = page.read_text(encoding="utf-8")
    assert settled(text) == play(text, tmp_path)
    tests = sorted(tmp_path.glob("test_*.py"))
    if tests:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_player_notices_what_is_wrong(tmp_path: Path) -> None:
    page = "```python\n# a.py\nprint(6 * 7)\n```\n\n```console\n$ python a.py\n41\n```\n"
    assert play(page, tmp_path) == page.replace("41", "42")


def test_errors_are_documented() -> None:
    """docs/errors.md comes from the tables; `make docs` writes it."""
    page = ERRORS.read_text(encoding="utf-8")
    assert page == errors_page()
    assert all(f"| {code} |" in page for code in ERROR_CODES)


def test_callers_md_is_current() -> None:
    assert CALLERS.read_text(encoding="utf-8") == callers_page()


def test_safety_md_is_current() -> None:
    assert SAFETY.read_text(encoding="utf-8") == safety_page()


def test_the_readme_has_every_exit_code() -> None:
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in README


def test_the_table_of_options_is_current() -> None:
    """`make docs` writes it."""
    assert with_option_table(README) == README


def test_the_readme_has_every_flag_and_mode() -> None:
    table = README.partition("## Flags on every command")[2].partition("\n## ")[0]
    for flag in FLAGS:
        assert re.search(rf"(?<![\w-]){flag}(?![\w-])", table), flag


def test_the_readme_has_every_mode() -> None:
    """`make docs` writes the tables of output modes."""
    modes = README.partition("## Output modes")[2].partition("\n## ")[0]
    assert all(f"| `{mode}` |" in modes for mode in OUTPUT_MODES)
    for page in (ROOT / "README.md", ROOT / "docs" / "output.md"):
        text = page.read_text(encoding="utf-8")
        assert output_modes_table() in text
        assert with_output_modes(text) == text


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


def test_the_architecture_names_every_package() -> None:
    """ARCHITECTURE.md describes the packages that exist, and no others."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z_/]+)/` \|", page, re.M))
    home = ROOT / "src" / "tooli"
    packages = {path.parent.relative_to(home).as_posix() for path in home.rglob("__init__.py")}
    assert named == packages - {"."}
