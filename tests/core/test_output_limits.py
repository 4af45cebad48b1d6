"""The limits of agents for the output of a command."""

from __future__ import annotations

import pytest

from tooli.core.output_limits import OUTPUT_LIMITS, find_output_limit
from tooli.detect.markers import STRONG_MARKERS


def test_every_agent_with_a_limit_is_detected() -> None:
    assert OUTPUT_LIMITS.keys() <= {name for name, _, _ in STRONG_MARKERS}


def test_every_limit_is_complete() -> None:
    for name, limit in OUTPUT_LIMITS.items():
        assert limit.agent == name
        assert limit.amount >= 10_000
        assert limit.unit in ("bytes", "characters")
        assert limit.version
        assert limit.beyond


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("qwen-code-mcp-client", "qwen-code"),
        ("opencode", "opencode"),
        ("mcp", None),
        (None, None),
    ],
)
def test_limit_of_a_client(name: str | None, agent: str | None) -> None:
    limit = find_output_limit(name)
    assert (None if limit is None else limit.agent) == agent
