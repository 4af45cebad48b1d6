"""Every built-in error code is in the table, and every code of the table is used."""

from __future__ import annotations

import pathlib
import re
from functools import cache

import tooli
from tooli.errors import ERROR_CODES

SOURCE = pathlib.Path(tooli.__file__).parent


@cache
def used_codes() -> dict[str, set[str]]:
    """Return the codes in the source, with the files that contain them."""
    found: dict[str, set[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if file.name == "errors.py":
            head, _, rest = text.partition("CODES: dict")
            text = head.partition('"""')[2].partition('"""')[2] + rest.partition("\n}\n")[2]
        for code in re.findall(r"""["'](E[1-5]\d{3})["']""", text):
            found.setdefault(code, set()).add(str(file.relative_to(SOURCE)))
    return found


def test_used_codes_are_in_the_table() -> None:
    unknown = {code: files for code, files in used_codes().items() if code not in ERROR_CODES}
    assert not unknown


def test_codes_in_the_table_are_used() -> None:
    assert set(ERROR_CODES) <= set(used_codes())


def test_used_codes_are_found() -> None:
    assert {"E1001", "E1010", "E3010"} <= set(used_codes())
