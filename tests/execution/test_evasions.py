"""Evasion attempts succeed without enforcement, and at each level no more than docs/evasions.md
says.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from docs.evasion_table import PAGE, levels, word_for
from docs.evasion_table import measure as run_attempts
from tests.execution import evasions
from tests.security.caller_attempts import SUCCEEDS, CallerAttempt, caller_attempts

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "sandbox")]
sandbox_evasions = importlib.import_module("sandbox_evasions")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attempts need Linux")

measure = cache(run_attempts)
"""Results of all attempts at a level; test_isolation_evasions.py uses them in the same process."""

FREE_WORDS = ("succeeded", "failed")
CALLER_WORDS = ("stopped", "**succeeded**")
UNDETECTED = ("**succeeded**", "not reported")


def read_page() -> dict[str, dict[str, str]]:
    """Return the documented result of each attempt, by level."""
    rows: dict[str, dict[str, str]] = {}
    names: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("## "):
            names = []
        if cells[:2] == ["attempt", "how"]:
            names = cells[2:]
        elif names and re.match(r"\| `\w+` \|", line):
            found = dict(zip(names, cells[-len(names) :], strict=True))
            rows[cells[0].strip("`")] = {name: word.strip() for name, word in found.items()}
    return rows


def test_documentation_lists_every_attempt_and_level() -> None:
    page = read_page()
    assert set(page) == {one.name for one in evasions.ATTEMPTS}
    assert all(list(row) == levels() for row in page.values())
    assert len(page) >= 100


def test_documentation_lists_the_other_attempts() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    in_sandbox = [row[0].strip("`") for row in rows if len(row) == 5 and row[3] in FREE_WORDS]
    assert in_sandbox == [one.name for one in sandbox_evasions.ATTEMPTS]
    on_caller = {row[0]: row[2] for row in rows if len(row) == 3 and row[2] in CALLER_WORDS}
    assert on_caller == {
        one.about: "**succeeded**" if one.test in SUCCEEDS else "stopped"
        for one in caller_attempts()
    }


@pytest.mark.parametrize("attempt", caller_attempts(), ids=lambda one: one.test.partition("::")[2])
def test_attempt_on_the_caller_is_a_test(attempt: CallerAttempt) -> None:
    file, *names = attempt.test.split("::")
    body = ast.parse((Path(__file__).parents[1] / file).read_text(encoding="utf-8")).body
    for name in names:
        found = [node for node in body if getattr(node, "name", None) == name]
        assert len(found) == 1, name
        body = getattr(found[0], "body", [])


def test_every_attempt_succeeds_without_enforcement() -> None:
    free = measure("free")
    assert [name for name, found in free.items() if not found["succeeded"]] == []


@pytest.mark.parametrize("level", ["standard", "strict"])
def test_evasions_documented_as_detected_are_detected(level: str) -> None:
    page, found = read_page(), measure(level)
    worse = [
        name
        for name, one in found.items()
        if word_for(level, one) in UNDETECTED and page[name][level] not in UNDETECTED
    ]
    assert worse == []
    assert {one["enforcement"] for one in found.values()} == {"audit"}


def test_level_isolated_protects_the_content_of_files() -> None:
    page, kinds = read_page(), {one.name: one.kind for one in evasions.ATTEMPTS}
    through = {name for name, row in page.items() if row["isolated"] != "stopped"}
    through.discard("other_interpreter")  # in the same process, with the same restrictions
    assert {kinds[name] for name in through} <= {"metadata", "env"}


def test_level_strict_stops_usual_functions() -> None:
    """Files, processes and the network through the usual functions of the standard library."""
    usual = {
        *(
            "open_by_name",
            "io_open",
            "os_open",
            "pathlib_read",
            "parent_segments",
            "existing_link",
            "new_link",
        ),
        *("hard_link", "shutil_copy", "zip_file", "sqlite_connect", "list_folder", "scan_folder"),
        *("write_file", "append_file", "create_file", "make_folder", "rename_outward"),
        *("remove_file", "remove_tree", "change_mode", "change_times", "connect", "send_datagram"),
        *("http_request", "listen", "resolve_name", "subprocess_run", "system", "posix_spawn"),
        *("fork", "multiprocessing_fork", "asyncio_subprocess", "in_thread", "in_executor"),
        *("catch_and_retry", "catch_and_write", "in_empty_context"),
    }
    page = read_page()
    assert {name for name in usual if page[name]["strict"] != "stopped"} == set()
