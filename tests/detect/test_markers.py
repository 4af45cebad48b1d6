"""The tables of markers match the facts in callers.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tooli.core._hot_tables import CALLER_VARIABLES
from tooli.detect import detect_execution_context
from tooli.detect.markers import STRONG_MARKERS, all_variables, strong_variables

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "callers.json").read_text("utf-8"))
VARIABLE = re.compile(r"^([A-Z][A-Z0-9_]+)(?:=(\S+))?")
SKIPPED_ROWS = {
    "CLI 3.0.65: no marker (only CLINE_CONNECTOR_CLI_LAUNCH)": "no marker",
    "0.86.2 wheel: no child marker; only side effect OR_APP_NAME=Aider / OR_SITE_URL": "no marker",
    "2.1.0: none (TERM=dumb NO_COLOR=1)": "no marker",
    "1.5.47: none": "no marker",
    "path /opt/.devin": "a file, which only --deep checks",
    "CLAUDE_CODE_ENTRYPOINT=sdk-py|sdk-cli|cli": "weak on its own",
    "AGENT=1": "does not identify the agent",
}
"""Rows of the facts that have no strong variable, and the reason."""


def rows(tier: str) -> list[Any]:
    found = []
    for agent in FACTS["agents"]:
        for text in agent.get(tier, ()):
            if text in SKIPPED_ROWS:
                continue
            found.append(pytest.param(agent["id"], environment(text), id=f"{agent['id']}: {text}"))
    return found


def expand_shorthands(text: str) -> str:
    """Expand the shorthands of the facts to a name and a value."""
    return text.replace("EDITOR~devin", "EDITOR=/opt/devin/ed").replace("AIDER_*", "AIDER_MODEL")


def environment(text: str) -> dict[str, str]:
    """Return the variables of a row of the facts."""
    if text == "PATH has .pi/agent/bin":
        return {"PATH": "/home/ada/.pi/agent/bin:/usr/bin"}
    if " contains " in text:
        name, _, part = text.partition(" contains ")
        return {name: f"a {part} b"}
    found = {}
    for part in re.split(r" \+ | and ", expand_shorthands(text)):
        matched = VARIABLE.match(part)
        assert matched is not None, text
        found[matched[1]] = (matched[2] or "x").partition("|")[0]
    return found


@pytest.mark.parametrize(("agent", "env"), [*rows("measured"), *rows("sourced")])
def test_strong_marker_identifies_agent(agent: str, env: dict[str, str]) -> None:
    context = detect_execution_context(env)
    assert (context.category, context.caller_id) == ("ai_agent", agent)
    assert context.is_agent
    assert context.confidence >= 0.9
    assert context.signals
    assert not context.identified_via_convention


@pytest.mark.parametrize(("agent", "env"), rows("weak"))
def test_weak_signal_identifies_no_agent(agent: str, env: dict[str, str]) -> None:
    context = detect_execution_context(env)
    assert not context.is_agent
    assert context.category != "ai_agent"
    assert context.caller_id is None
    two_needed = {"GIT_PAGER", "TERM_PROGRAM", "HOME", "PAGER"} & set(env)
    assert two_needed or agent in [candidate.name for candidate in context.candidates]


def test_all_weak_signals_identify_no_agent() -> None:
    env: dict[str, str] = {}
    for parameter in rows("weak"):
        env |= parameter.values[1]
    context = detect_execution_context(env)
    assert not context.is_agent
    assert len([candidate for candidate in context.candidates if not candidate.decides]) >= 12
    assert (
        max(candidate.confidence for candidate in context.candidates if not candidate.decides)
        <= 0.5
    )


def test_facts_are_complete() -> None:
    assert len(rows("measured")) >= 18
    assert len(rows("sourced")) >= 35
    assert len(rows("weak")) >= 25


def test_every_strong_marker_is_in_facts() -> None:
    known = {agent["id"] for agent in FACTS["agents"]}
    assert {name for name, _, _ in STRONG_MARKERS} <= known


class TestVariables:
    def test_generated_table_is_current(self) -> None:
        assert CALLER_VARIABLES == strong_variables()

    def test_all_variables_include_strong_ones(self) -> None:
        assert CALLER_VARIABLES <= all_variables()
        assert not all_variables() & {"HOME", "PATH", "USER", "TERM_PROGRAM"}
