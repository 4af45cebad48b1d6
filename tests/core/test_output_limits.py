"""The limits of agents for the output of a command."""

from __future__ import annotations

import pytest

from tooli.core.output_limits import (
    OUTPUT_LIMITS,
    SERVER_OUTPUT_LIMITS,
    find_output_limit,
    find_server_limit,
)
from tooli.detect.markers import STRONG_MARKERS


def test_every_agent_with_a_limit_is_detected() -> None:
    assert OUTPUT_LIMITS.keys() <= {name for name, _, _ in STRONG_MARKERS}


def test_every_limit_is_complete() -> None:
    for name, limit in (*OUTPUT_LIMITS.items(), *SERVER_OUTPUT_LIMITS.items()):
        assert limit.agent == name
        assert limit.amount >= 5_000
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
        ("@cline/core", "cline"),
        ("goose-cli", "goose"),
        ("qwen-cli-mcp-client-shop", "qwen-code"),
        ("codex-mcp-clients", None),
        ("opencode", "opencode"),
        ("mcp", None),
        (None, None),
    ],
)
def test_limit_of_a_client(name: str | None, agent: str | None) -> None:
    limit = find_server_limit(name)
    assert (None if limit is None else limit.agent) == agent


def test_limit_of_a_command_line() -> None:
    assert find_output_limit("codex") is OUTPUT_LIMITS["codex"]
    assert find_output_limit("codex-mcp-client") is find_output_limit(None) is None


def test_tool_can_raise_the_limit_of_claude_code_only() -> None:
    limits = [find_server_limit("claude-code", chars) for chars in (None, 400_000)]
    assert [(limit.amount, limit.unit) for limit in limits if limit is not None] == [
        (50_000, "characters"),
        (400_000, "characters"),
    ]
    assert find_server_limit("opencode", 400_000) is OUTPUT_LIMITS["opencode"]
    assert find_server_limit("@cline/core", 400_000) is SERVER_OUTPUT_LIMITS["cline"]
