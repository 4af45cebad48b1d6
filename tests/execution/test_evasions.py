"""Evasion attempts succeed without enforcement, and at each level no more than docs/evasions.md
says.
"""

from __future__ import annotations

import re
import sys
from functools import cache

import pytest
from docs.evading import PAGE, levels, word_for
from docs.evading import measure as run_attempts
from tests.execution import evasions

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the ground is Linux's"),
    pytest.mark.xdist_group("evasions"),
]

measure = cache(run_attempts)
"""Results of all attempts at a level; test_isolation_evasions.py uses them in the same process."""

BAD = ("**succeeded**", "not seen")


def told() -> dict[str, dict[str, str]]:
    """Return what the page says of each attempt, by level."""
    rows: dict[str, dict[str, str]] = {}
    names: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[:2] == ["attempt", "how"]:
            names = cells[2:]
        elif names and re.match(r"\| `\w+` \|", line):
            found = dict(zip(names, cells[-len(names) :], strict=True))
            rows[cells[0].strip("`")] = {name: word.strip() for name, word in found.items()}
    return rows


def test_the_page_has_every_attempt_and_every_level() -> None:
    page = told()
    assert set(page) == {one.name for one in evasions.ATTEMPTS}
    assert all(list(row) == levels() for row in page.values())
    assert len(page) >= 100


def test_each_is_real() -> None:
    free = measure("free")
    assert [name for name, found in free.items() if not found["succeeded"]] == []


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_no_level_is_worse_than_its_page(level: str) -> None:
    page, found = told(), measure(level)
    worse = [
        name
        for name, one in found.items()
        if word_for(level, one) in BAD and page[name][level] not in BAD
    ]
    assert worse == []
    assert {one["enforcement"] for one in found.values()} == {"audit"}


def test_isolated_keeps_contents_and_files_whatever_is_tried() -> None:
    page, kinds = told(), {one.name: one.kind for one in evasions.ATTEMPTS}
    through = {name for name, row in page.items() if row["isolated"] != "stopped"}
    through.discard("other_interpreter")  # in the same process, with the same restrictions
    assert {kinds[name] for name in through} <= {"metadata", "env"}


def test_strict_keeps_what_may_be_promised() -> None:
    """Files, processes and the network through the usual functions of the standard library."""
    usual = {
        *("open_by_name", "io_open", "os_open", "pathlib_read", "dots", "old_link", "new_link"),
        *("hard_link", "shutil_copy", "zip_file", "sqlite_connect", "list_folder", "scan_folder"),
        *("write_file", "append_file", "create_file", "make_folder", "rename_outward"),
        *("remove_file", "remove_tree", "change_mode", "change_times", "connect", "send_datagram"),
        *("http_request", "listen", "resolve_name", "subprocess_run", "system", "posix_spawn"),
        *("fork", "multiprocessing_fork", "asyncio_subprocess", "in_thread", "in_pool"),
        *("caught_and_repeated", "write_after_swallowing", "in_empty_context"),
    }
    page = told()
    assert {name for name in usual if page[name]["strict"] != "stopped"} == set()
