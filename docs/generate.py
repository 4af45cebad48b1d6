"""Write the generated parts of the documents: run `make docs`, or `python -m docs.generate`.

- `src/tooli/core/_hot_tables.py` and the tables between markers in the documents come from tables
  in the source (docs/hot_tables.py, docs/tables.py).
- The commands in console blocks are run, and the output in the blocks is replaced.
- docs/evasions.md comes from attempts that are made while it is written (Linux only; it takes a
  minute).

Tests check that all of it is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.evasion_table import PAGE as EVASIONS
from docs.evasion_table import evasions_page
from docs.hot_tables import hot_tables_source
from docs.tables import with_tables
from docs.transcript import run_examples

ROOT = Path(__file__).resolve().parent.parent
HOT_TABLES = ROOT / "src" / "tooli" / "core" / "_hot_tables.py"
SKIPPED_PAGE = "isolation.md"  # its output depends on the kernel
EXAMPLE_PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```console" in page.read_text(encoding="utf-8") and page.name != SKIPPED_PAGE
]
"""The documents with commands whose output is generated."""


def main() -> int:
    """Write everything."""
    HOT_TABLES.write_text(hot_tables_source(), encoding="utf-8")
    if sys.platform == "linux":
        EVASIONS.write_text(evasions_page(), encoding="utf-8")
    for page in sorted((ROOT / "docs").glob("*.md")):
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    for page in EXAMPLE_PAGES:
        text = page.read_text(encoding="utf-8")
        with TemporaryDirectory() as folder:
            page.write_text(run_examples(text, Path(folder).resolve()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
