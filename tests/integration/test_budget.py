"""Large answers, from outside: real processes, real pipes, the line that an answer says to run."""

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


def again(argv: list[str], env: dict[str, str]) -> ProcessResult:
    """Run a command line as it is written, with this interpreter as `python`."""
    words = [sys.executable if word == "python" else word for word in argv]
    done = subprocess.run(words, capture_output=True, env=env, timeout=PROCESS_TIMEOUT)
    return ProcessResult(done.returncode, done.stdout, done.stderr)


def follow(env: dict[str, str], *words: str) -> list[dict[str, Any]]:
    done = run(LARGE, *words, env=env)
    answers = []
    while True:
        assert done.code == 0, done
        answer = read_envelope(done.out)
        answers.append({**answer, "size": len(done.out)})
        steps = answer["meta"].get("next")
        if not steps:
            return answers
        assert len(answers) < 60
        done = again(steps[0]["argv"], env)


@pytest.mark.parametrize(
    "words",
    [
        ("rows", "40", "--json", "--max-bytes", "1200"),
        ("--max-tokens=500", "rows", "40", "--json", "--word", "-- ü'\" $x"),
        ("rows", "--json", "--limit", "15", "--", "40"),
        ("rows", "40", "--limit", "17", "--filter", "n >= 0 and text contains 'x'"),
        ("-o", "json", "stream", "40", "--limit=20"),
        ("astream", "40", "--limit", "20", "--json"),
    ],
)
def test_the_line_that_is_shown_gives_the_rest(env: dict[str, str], words: tuple[str, ...]) -> None:
    answers = follow(env, *words)
    assert len(answers) > 1
    assert [row["n"] for answer in answers for row in answer["result"]] == list(range(40))
    if "--max-bytes" in words:
        assert all(answer["size"] <= 1200 for answer in answers)


@pytest.mark.parametrize("tool", ["stream", "astream"])
@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--plain", "--text"])
def test_ten_of_a_million(env: dict[str, str], tool: str, mode: str) -> None:
    done = run(LARGE, tool, "1000000", "--limit", "10", mode, env=env)
    assert done.code == 0
    assert done.err.startswith(b"closed\n")
    if mode == "--json":
        assert len(read_envelope(done.out)["result"]) == 10
    else:
        assert done.out.count(b"\n") == 10
        assert b"For the rest: python " in done.err


def test_an_eleventh_is_never_made(env: dict[str, str]) -> None:
    for mode in ("--json", "--jsonl"):
        done = run(LARGE, "stream", "1000000", "--loud", "--limit", "10", mode, env=env)
        assert done.err.count(b"made ") == 10


def test_a_cursor_that_was_changed(env: dict[str, str]) -> None:
    page = read_envelope(run(LARGE, "rows", "9", "--limit", "2", env=env).out)["meta"]["page"]
    cursor = page["next_cursor"]
    wrong = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    done = run(LARGE, "rows", "9", "--limit", "2", "--cursor", wrong, env=env)
    assert done.code == 2
    assert read_envelope(done.out)["error"]["code"] == "E1042"
    done = run(LARGE, "rows", "8", "--limit", "2", "--cursor", cursor, env=env)
    assert read_envelope(done.out)["error"]["code"] == "E1042"
    other = {**env, "TOOLI_STATE_DIR": env["TOOLI_STATE_DIR"] + "2"}
    done = run(LARGE, "rows", "9", "--limit", "2", "--cursor", cursor, env=other)
    assert read_envelope(done.out)["error"]["code"] == "E1042"


def test_nothing_can_be_kept(env: dict[str, str], tmp_path: Path) -> None:
    """As in a sandbox: pages go on all the same."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    closed = {**env, "TOOLI_STATE_DIR": str(blocked / "x"), "TMPDIR": str(tmp_path / "none")}
    answers = follow(closed, "rows", "30", "--max-bytes", "1000", "--json")
    assert [row["n"] for answer in answers for row in answer["result"]] == list(range(30))


def test_the_whole_is_kept_for_its_user(env: dict[str, str]) -> None:
    done = run(LARGE, "rows", "2000", "--json", env={**env, "CODEX_SANDBOX": "seatbelt"})
    assert len(done.out) <= 10240
    truncated = read_envelope(done.out)["meta"]["truncated"]
    assert os.stat(truncated["full"]).st_mode & 0o777 == 0o600
    with open(truncated["full"], "rb") as file:
        assert file.read().count(b'"n":') == 2000


@pytest.mark.parametrize("marker", ["CODEX_THREAD_ID", "CLAUDECODE"])
def test_a_callers_own_budget_leads_on_as_well(env: dict[str, str], marker: str) -> None:
    count = 1500 if marker == "CODEX_THREAD_ID" else 4000
    answers = follow({**env, marker: "1"}, "rows", str(count), "--json")
    assert len(answers) > 1
    assert [row["n"] for answer in answers for row in answer["result"]] == list(range(count))
    most = 10240 if marker == "CODEX_THREAD_ID" else 75000
    assert all(answer["size"] <= most for answer in answers)
    assert not any("warnings" in answer["meta"] for answer in answers)


def test_people_get_tables_with_a_word_about_the_rest(env: dict[str, str]) -> None:
    done = run(LARGE, "rows", "9", "--limit", "2", "--text", env=env)
    assert done.out.count(b"xxx") and done.out.count(b"\n") == 4
    assert b"One page of 2 records, 9 in all. For the rest: python " in done.err
    quiet = run(LARGE, "rows", "9", "--limit", "2", "--text", "-q", env=env)
    assert quiet.err == b""


def test_a_parameter_of_the_same_name_wins(env: dict[str, str]) -> None:
    done = read_envelope(run(LARGE, "limited", "--limit", "5", "--tooli-limit", "3", env=env).out)
    assert done["result"] == [0, 1, 2]
    again_ = read_envelope(again(done["meta"]["next"][0]["argv"], env).out)
    assert again_["result"] == [3, 4]


def test_what_is_printed_is_within_the_budget_too(env: dict[str, str]) -> None:
    done = run(LARGE, "talk", "--json", "--max-bytes", "2000", env=env)
    assert len(done.out) <= 2000
    answer = read_envelope(done.out)
    assert answer["result"].startswith("line 0\n")
    with open(answer["meta"]["truncated"]["full"]) as file:
        assert "line 999" in file.read()
    whole = again(answer["meta"]["next"][0]["argv"], env)
    assert "line 999" in read_envelope(whole.out)["result"]
