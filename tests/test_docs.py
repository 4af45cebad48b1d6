"""The documents are current: generated parts, examples with their output, links, coverage."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.generate import EXAMPLE_PAGES, ROOT
from docs.tables import TABLES, field_docstrings, with_tables
from docs.transcript import normalize, run_examples
from tests.integration.real_apps.differences import DIFFERENCES
from tests.lanes.typer_suite.suite_paths import VERSIONS

from tooli.core import TYPER_COMMAND_KEYWORDS
from tooli.core._hot_tables import FLAGS
from tooli.core.definitions import COMMAND_KEYWORDS
from tooli.core.output_modes import OUTPUT_MODES
from tooli.describe.openapi_shared import META_FIELDS
from tooli.errors import ERROR_CODES, EXIT_CODES
from tooli.storage.approval_store import APPROVAL_TTL_SECONDS, MAX_PENDING_REQUESTS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal is needed")

DOCS = ROOT / "docs"
GUIDES = sorted(page for page in DOCS.glob("*.md") if page.name != "README.md")
SOURCE = ROOT / "src" / "tooli"


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", EXAMPLE_PAGES, ids=lambda page: page.name)
def test_examples_show_the_real_output(page: Path, tmp_path: Path) -> None:
    """`make docs` updates the output."""
    text = page.read_text(encoding="utf-8")
    assert normalize(text) == run_examples(text, tmp_path)
    tests = sorted(tmp_path.glob("test_*.py"))
    if tests:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_wrong_output_is_replaced(tmp_path: Path) -> None:
    page = "```python\n# a.py\nprint(6 * 7)\n```\n\n```console\n$ python a.py\n41\n```\n"
    assert run_examples(page, tmp_path) == page.replace("41", "42")


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_generated_tables_are_current(page: Path) -> None:
    """`make docs` updates them."""
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text


def test_outdated_table_is_replaced() -> None:
    page = "a\n<!-- generated: exit codes -->\nold\n<!-- end of generated part -->\nb\n"
    assert with_tables(page) == page.replace("old\n", f"\n{TABLES['exit codes']()}\n\n")
    empty = page.replace("old\n", "")
    assert with_tables(empty) == with_tables(page)


def test_every_table_is_used() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in GUIDES)
    assert all(f"<!-- generated: {name} -->" in text for name in TABLES)


def test_index_lists_every_guide() -> None:
    index = read("README.md")
    assert all(f"- [{page.name}]({page.name}): " in index for page in GUIDES)
    assert "(docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_errors_md_lists_every_code() -> None:
    page = read("errors.md")
    assert all(f"| {code} |" in page for code in ERROR_CODES)
    assert all(f"| {code} | {meaning} |" in page for code, meaning in EXIT_CODES.items())


def test_safety_md_states_the_limits_of_approvals() -> None:
    page = " ".join(read("safety.md").split())
    minutes = APPROVAL_TTL_SECONDS // 60
    assert f"**one run** of the call, within {minutes} minutes" in page
    assert f"A request expires after {minutes} minutes" in page
    assert f"At most {MAX_PENDING_REQUESTS} requests can be pending" in page


def test_every_flag_and_output_mode_is_listed() -> None:
    page = read("reference.md")
    flags = page.partition("## Framework options")[2].partition("\n## ")[0]
    for flag in FLAGS:
        assert re.search(rf"(?<![\w-]){flag}(?![\w-])", flags), flag
    modes = read("output.md")
    assert all(f"| `{mode}` |" in modes for mode in OUTPUT_MODES)


def test_every_command_keyword_is_described() -> None:
    """Typer documents its own keywords."""
    described = set(field_docstrings("CommandOptions"))
    assert described == COMMAND_KEYWORDS - TYPER_COMMAND_KEYWORDS | {"deprecated"}


def test_every_meta_field_is_described() -> None:
    """`META_FIELDS` has each key that the source writes to the `meta` of a call."""
    written: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                if path.name == "present.py" or ast.unparse(node.value).endswith(
                    ("call.meta", "outer.meta")
                ):
                    if ast.unparse(node.value).endswith("meta"):
                        written.add(str(node.slice.value))
    assert written - META_FIELDS.keys() == set()
    assert META_FIELDS.keys() - written <= {"tool", "page", "truncated"}


def test_links_lead_to_files() -> None:
    for page in (*ROOT.glob("*.md"), *DOCS.glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), target


def test_architecture_lists_every_package() -> None:
    """ARCHITECTURE.md describes the packages that exist, and no others."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z_/]+)/` \|", page, re.M))
    packages = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")}
    assert listed == packages - {"."}


def test_typer_md_lists_every_intended_difference_of_real_apps() -> None:
    """The suite of real applications accepts only the differences that the guide lists."""
    text = (ROOT / "docs" / "typer.md").read_text(encoding="utf-8")
    section = text.partition("### Apps that return nothing\n")[2].partition("\n### ")[0]
    listed = [
        " ".join(item.split()) for item in re.findall(r"^- (.+?)$(?!\n  )", section, re.M | re.S)
    ]
    assert listed == [f"{found.what} {found.reason}" for found in DIFFERENCES]


def test_typer_md_lists_every_tested_version() -> None:
    text = (ROOT / "docs" / "typer.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d[\d.]+) \|", text.partition("## Versions")[2], re.M) == [*VERSIONS]
