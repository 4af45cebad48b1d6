"""Every built-in error code is in the table, and every code of the table is used."""

from __future__ import annotations

import pathlib
import re

import tooli
from tooli.errors import ERROR_CODES

SOURCE = pathlib.Path(tooli.__file__).parent


def used() -> dict[str, set[str]]:
    """Each code that the source writes down, and the files that do."""
    found: dict[str, set[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if file.name == "errors.py":
            head, _, rest = text.partition("CODES: dict")
            text = head.partition('"""')[2].partition('"""')[2] + rest.partition("\n}\n")[2]
        for code in re.findall(r"""["'](E[1-5]\d{3})["']""", text):
            found.setdefault(code, set()).add(str(file.relative_to(SOURCE)))
    return found


def test_every_code_that_is_used_is_in_the_table() -> None:
    strangers = {code: files for code, files in used().items() if code not in ERROR_CODES}
    assert not strangers


def test_every_code_of_the_table_is_used() -> None:
    assert set(ERROR_CODES) <= set(used())


def test_the_search_finds_something() -> None:
    assert {"E1001", "E1010", "E3010"} <= set(used())
