"""Documents that are too large for the agent that reads them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tooli.core.output_limits import OUTPUT_LIMITS

Answer = Callable[..., tuple[int, str, str]]


def test_large_document_is_truncated_for_an_agent(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole, _ = answer("count-up", "5000", "--json")
    assert len(json.loads(whole)["result"]) == 5000
    monkeypatch.setenv("CODEX_SANDBOX", "seatbelt")
    _, out, _ = answer("count-up", "5000", "--json")
    document = json.loads(out)
    assert len(out) <= OUTPUT_LIMITS["codex"].amount
    assert document["meta"]["truncated"]["total"] == 5000
    assert 0 < len(document["result"]) < 5000


def test_small_document_is_not_truncated(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_SANDBOX", "seatbelt")
    _, out, _ = answer("names", "a", "b", "--json")
    assert json.loads(out)["result"] == ["a", "b"]


@pytest.mark.parametrize(
    ("marker", "limit"),
    [
        ("CLAUDECODE", 30_000),
        ("CODEX_CI", 10_000),
        ("COPILOT_CLI", 20_400),
        ("GEMINI_CLI", 39_900),
        ("OPENCODE", 51_200),
        ("QWEN_CODE", 28_000),
    ],
)
def test_document_is_changed_only_above_the_limit(
    marker: str, limit: int, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, short, _ = answer("names", "x", "--json")
    fitting = "x" * (limit - len(short) + 1 - len(json.dumps({"caller_id": "github-copilot"})))
    for text in (fitting, "x" * limit):
        monkeypatch.delenv(marker, raising=False)
        _, whole, _ = answer("names", text, "--json")
        monkeypatch.setenv(marker, "1")
        _, out, _ = answer("names", text, "--json")
        meta = json.loads(out)["meta"]
        assert ("truncated" in meta) is (text is not fitting)
        assert len(out) <= limit
        if text is fitting:
            del meta["caller_id"]
            assert json.loads(out)["result"] == json.loads(whole)["result"]


def test_characters_are_counted_for_an_agent_that_counts_them(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_CLI", "1")
    _, out, _ = answer("names", "ü" * 30_000, "--json")
    assert "truncated" not in json.loads(out)["meta"]
    _, out, _ = answer("names", "😀" * 30_000, "--json")  # two units of UTF-16 each
    assert json.loads(out)["meta"]["truncated"]["by"] == "caller"


@pytest.mark.parametrize("marker", ["OPENCODE", "PI_CODING_AGENT"])
def test_records_have_lines_of_their_own_where_long_lines_are_dropped(
    marker: str, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(marker, "true" if marker == "PI_CODING_AGENT" else "1")
    _, out, _ = answer("count-up", "20000", "--json", "--max-bytes", "0")
    assert json.loads(out)["result"] == list(range(20_000))
    assert max(map(len, out.splitlines())) < 300
    _, out, _ = answer("count-up", "2000", "--json", "--max-bytes", "0")
    assert out.count("\n") == 1
