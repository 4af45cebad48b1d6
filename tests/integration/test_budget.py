"""Large results in real processes: pages, size limits and the command line for the next page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import (
    APPS,
    PROCESS_TIMEOUT,
    ProcessResult,
    environment,
    read_envelope,
    run,
)

LARGE = APPS / "large.py"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(TOOLI_STATE_DIR=str(tmp_path / "state"))


def run_command_line(argv: list[str], env: dict[str, str]) -> ProcessResult:
    """Run a command line, with this interpreter as `python`."""
    argv = [sys.executable if word == "python" else word for word in argv]
    done = subprocess.run(argv, capture_output=True, env=env, timeout=PROCESS_TIMEOUT)
    return ProcessResult(done.returncode, done.stdout, done.stderr)


def follow_pages(env: dict[str, str], *argv: str) -> list[dict[str, Any]]:
    """Run a command and all next steps; return the envelopes with their sizes."""
    done = run(LARGE, *argv, env=env)
    answers = []
    while True:
        assert done.code == 0, done
        answer = read_envelope(done.out)
        answers.append({**answer, "size": len(done.out)})
        steps = answer["meta"].get("next")
        if not steps:
            return answers
        assert len(answers) < 60
        done = run_command_line(steps[0]["argv"], env)


@pytest.mark.parametrize(
    "argv",
    [
        ("rows", "40", "--json", "--max-bytes", "1200"),
        ("--max-tokens=500", "rows", "40", "--json", "--word", "-- ü'\" $x"),
        ("rows", "--json", "--limit", "15", "--", "40"),
        ("rows", "40", "--limit", "17", "--filter", "n >= 0 and text contains 'x'"),
        ("-o", "json", "stream", "40", "--limit=20"),
        ("astream", "40", "--limit", "20", "--json"),
    ],
)
def test_next_command_line_returns_the_next_page(
    env: dict[str, str], argv: tuple[str, ...]
) -> None:
    answers = follow_pages(env, *argv)
    assert len(answers) > 1
    assert [row["n"] for answer in answers for row in answer["result"]] == list(range(40))
    if "--max-bytes" in argv:
        assert all(answer["size"] <= 1200 for answer in answers)


@pytest.mark.parametrize("tool", ["stream", "astream"])
@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--plain", "--text"])
def test_limit_closes_a_stream(env: dict[str, str], tool: str, mode: str) -> None:
    done = run(LARGE, tool, "1000000", "--limit", "10", mode, env=env)
    assert done.code == 0
    assert done.err.startswith(b"closed\n")
    if mode == "--json":
        assert len(read_envelope(done.out)["result"]) == 10
    else:
        assert done.out.count(b"\n") == 10
        assert b"For the rest: python " in done.err


def test_limit_reads_no_further_item(env: dict[str, str]) -> None:
    for mode in ("--json", "--jsonl"):
        done = run(LARGE, "stream", "1000000", "--loud", "--limit", "10", mode, env=env)
        assert done.err.count(b"created ") == 10


def test_invalid_cursors_are_rejected(env: dict[str, str]) -> None:
    page = read_envelope(run(LARGE, "rows", "9", "--limit", "2", env=env).out)["meta"]["page"]
    cursor = page["next_cursor"]
    changed_cursor = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    done = run(LARGE, "rows", "9", "--limit", "2", "--cursor", changed_cursor, env=env)
    assert done.code == 2
    assert read_envelope(done.out)["error"]["code"] == "E1042"
    done = run(LARGE, "rows", "8", "--limit", "2", "--cursor", cursor, env=env)
    assert read_envelope(done.out)["error"]["code"] == "E1042"
    other = {**env, "TOOLI_STATE_DIR": env["TOOLI_STATE_DIR"] + "2"}
    done = run(LARGE, "rows", "9", "--limit", "2", "--cursor", cursor, env=other)
    assert read_envelope(done.out)["error"]["code"] == "E1042"


def test_paging_works_without_a_writable_folder(env: dict[str, str], tmp_path: Path) -> None:
    """Paging works in a sandbox without a state folder."""
    file = tmp_path / "file"
    file.write_text("")
    unwritable = {**env, "TOOLI_STATE_DIR": str(file / "x"), "TMPDIR": str(tmp_path / "none")}
    answers = follow_pages(unwritable, "rows", "30", "--max-bytes", "1000", "--json")
    assert [row["n"] for answer in answers for row in answer["result"]] == list(range(30))


def test_full_result_is_saved(env: dict[str, str]) -> None:
    done = run(LARGE, "rows", "2000", "--json", env={**env, "CODEX_SANDBOX": "seatbelt"})
    assert len(done.out) <= 10240
    truncated = read_envelope(done.out)["meta"]["truncated"]
    assert os.stat(truncated["full"]).st_mode & 0o777 == 0o600
    with open(truncated["full"], "rb") as file:
        assert file.read().count(b'"n":') == 2000


@pytest.mark.parametrize("marker", ["CODEX_THREAD_ID", "CLAUDECODE"])
def test_pages_respect_the_size_limit_of_an_agent(env: dict[str, str], marker: str) -> None:
    count = 1500 if marker == "CODEX_THREAD_ID" else 4000
    answers = follow_pages({**env, marker: "1"}, "rows", str(count), "--json")
    assert len(answers) > 1
    assert [row["n"] for answer in answers for row in answer["result"]] == list(range(count))
    limit = 10240 if marker == "CODEX_THREAD_ID" else 75000
    assert all(answer["size"] <= limit for answer in answers)
    assert not any("warnings" in answer["meta"] for answer in answers)


def test_text_mode_reports_the_next_page(env: dict[str, str]) -> None:
    done = run(LARGE, "rows", "9", "--limit", "2", "--text", env=env)
    assert done.out.count(b"xxx") and done.out.count(b"\n") == 4
    assert b"One page of 2 records, 9 in all. For the rest: python " in done.err
    quiet = run(LARGE, "rows", "9", "--limit", "2", "--text", "-q", env=env)
    assert quiet.err == b""


def test_framework_option_with_a_name_conflict_gets_a_prefix(env: dict[str, str]) -> None:
    done = read_envelope(run(LARGE, "limited", "--limit", "5", "--tooli-limit", "3", env=env).out)
    assert done["result"] == [0, 1, 2]
    rest = read_envelope(run_command_line(done["meta"]["next"][0]["argv"], env).out)
    assert rest["result"] == [3, 4]


def test_printed_text_above_the_size_limit_is_truncated(env: dict[str, str]) -> None:
    done = run(LARGE, "talk", "--json", "--max-bytes", "2000", env=env)
    assert len(done.out) <= 2000
    answer = read_envelope(done.out)
    assert answer["result"].startswith("line 0\n")
    with open(answer["meta"]["truncated"]["full"]) as file:
        assert "line 999" in file.read()
    full = run_command_line(answer["meta"]["next"][0]["argv"], env)
    assert "line 999" in read_envelope(full.out)["result"]
