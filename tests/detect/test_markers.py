"""The tables of markers agree with the recorded facts about agents."""

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
ELSEWHERE = {
    "CLI 3.0.65: no marker (only CLINE_CONNECTOR_CLI_LAUNCH)": "it says that there is none",
    "0.86.2 wheel: no child marker; only side effect OR_APP_NAME=Aider / OR_SITE_URL": "the same",
    "2.1.0: none (TERM=dumb NO_COLOR=1)": "the same",
    "1.5.47: none": "the same",
    "path /opt/.devin": "a file: only with --deep",
    "CLAUDE_CODE_ENTRYPOINT=sdk-py|sdk-cli|cli": "weak alone, says the same table",
    "AGENT=1": "an agent, but not which",
}
"""Rows of the facts without a variable that decides alone, and the reason."""


def rows(tier: str) -> list[Any]:
    found = []
    for agent in FACTS["agents"]:
        for text in agent.get(tier, ()):
            if text in ELSEWHERE:
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
def test_a_strong_marker_identifies_its_agent(agent: str, env: dict[str, str]) -> None:
    seen = detect_execution_context(env)
    assert (seen.category, seen.caller_id) == ("ai_agent", agent)
    assert seen.is_agent
    assert seen.confidence >= 0.9
    assert seen.signals
    assert not seen.identified_via_convention


@pytest.mark.parametrize(("agent", "env"), rows("weak"))
def test_a_weak_signal_alone_never_makes_an_agent(agent: str, env: dict[str, str]) -> None:
    seen = detect_execution_context(env)
    assert not seen.is_agent
    assert seen.category != "ai_agent"
    assert seen.caller_id is None
    two_needed = {"GIT_PAGER", "TERM_PROGRAM", "HOME", "PAGER"} & set(env)
    assert two_needed or agent in [one.name for one in seen.candidates]


def test_all_weak_signals_together_make_no_agent() -> None:
    env: dict[str, str] = {}
    for parameter in rows("weak"):
        env |= parameter.values[1]
    seen = detect_execution_context(env)
    assert not seen.is_agent
    assert len([one for one in seen.candidates if not one.decides]) >= 12
    assert max(one.confidence for one in seen.candidates if not one.decides) <= 0.5


def test_the_facts_are_complete() -> None:
    assert len(rows("measured")) >= 18
    assert len(rows("sourced")) >= 35
    assert len(rows("weak")) >= 25


def test_every_row_of_the_table_is_in_the_facts() -> None:
    known = {agent["id"] for agent in FACTS["agents"]}
    assert {name for name, _, _ in STRONG_MARKERS} <= known


class TestVariables:
    def test_the_generated_table_has_every_deciding_variable(self) -> None:
        assert CALLER_VARIABLES == strong_variables()

    def test_all_variables_include_the_deciding_ones(self) -> None:
        assert CALLER_VARIABLES <= all_variables()
        assert not all_variables() & {"HOME", "PATH", "USER", "TERM_PROGRAM"}
