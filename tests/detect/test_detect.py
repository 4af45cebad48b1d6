"""Detection of the caller: generic variables, precedence, sanitized values, and the markers.

The tables of markers match the facts in callers.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tooli.detect import CallerCategory, detect_execution_context
from tooli.detect.markers import CI_MARKERS, STRONG_MARKERS

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "callers.json").read_text("utf-8"))
VARIABLE = re.compile(r"^([A-Z][A-Z0-9_]+)(?:=(\S+))?")
SKIPPED_ROWS = {
    "0.86.2 wheel: no child marker; only side effect OR_APP_NAME=Aider / OR_SITE_URL": "no marker",
    "1.5.47: none": "no marker",
    "path /opt/.devin": "a file, which only --deep checks",
    "CLAUDE_CODE_ENTRYPOINT=sdk-py|sdk-cli|cli": "weak on its own",
    "AGENT=1": "does not identify the agent",
}
"""Rows of the facts that have no strong variable, and the reason."""


class TestGenericVariables:
    @pytest.mark.parametrize(
        ("value", "name", "version"),
        [
            ("claude-code_2-1-325_agent", "claude-code", "2.1.325"),
            ("github_copilot_vscode_agent", "copilot-vscode", None),
            ("github_copilot_cloud_agent", "copilot-cloud", None),
            ("crush", "crush", None),
            ("openhands", "openhands", None),
            ("v0", "v0", None),
            ("warp", "warp", None),
            ("pi", "pi", None),
            ("newcomer_3-0_agent", "newcomer", "3.0"),
        ],
    )
    def test_ai_agent_variable_with_name_and_version(
        self, value: str, name: str, version: str | None
    ) -> None:
        context = detect_execution_context({"AI_AGENT": value})
        assert (context.caller_id, context.caller_version) == (name, version)

    @pytest.mark.parametrize("name", ["amp", "goose", "crush"])
    def test_agent_variable_with_name(self, name: str) -> None:
        assert detect_execution_context({"AGENT": name}).caller_id == name

    @pytest.mark.parametrize("value", ["1", "true", "True", "yes", "1_agent"])
    def test_ai_agent_variable_without_name(self, value: str) -> None:
        context = detect_execution_context({"AI_AGENT": value})
        assert context.is_agent
        assert (context.agent_name, context.caller_id) == (None, None)

    def test_agent_variable_without_name(self) -> None:
        context = detect_execution_context({"AGENT": "1"})
        assert context.is_agent
        assert (context.agent_name, context.caller_id) == (None, None)
        assert context.confidence < 0.8

    @pytest.mark.parametrize("value", ["", "0", "false", "/tmp/ssh-1/agent.9", "a b", "x" * 60])
    def test_agent_variable_of_other_programs_identifies_no_agent(self, value: str) -> None:
        assert not detect_execution_context({"AGENT": value}).is_agent


class TestPrecedence:
    def test_tooli_caller_wins(self) -> None:
        env = {"TOOLI_CALLER": "my-agent", "CLAUDECODE": "1", "CI": "true"}
        env |= {"TOOLI_CALLER_VERSION": "9", "TOOLI_SESSION_ID": "s", "CODEX_VERSION": "1"}
        context = detect_execution_context(env)
        assert (context.caller_id, context.confidence, context.is_agent) == ("my-agent", 1.0, True)
        assert (context.caller_version, context.session_id) == ("9", "s")
        assert context.identified_via_convention

    @pytest.mark.parametrize(
        ("value", "category"),
        [("human", "human"), ("github-actions", "ci_cd"), ("ci", "ci_cd"), ("docker", "container")],
    )
    def test_tooli_caller_categories(self, value: str, category: str) -> None:
        context = detect_execution_context({"TOOLI_CALLER": value, "CLAUDECODE": "1"})
        assert (context.category, context.is_agent, context.caller_id) == (category, False, value)

    @pytest.mark.parametrize(
        ("env", "first", "other"),
        [
            ({"CLAUDECODE": "1", "AMP_CURRENT_THREAD_ID": "t"}, "amp", "claude-code"),
            ({"CLAUDECODE": "1", "AGENT": "amp"}, "amp", "claude-code"),
            ({"OPENCODE": "1", "KILO": "1"}, "kilo", "opencode"),
            ({"CLAUDECODE": "1", "AI_AGENT": "newcomer"}, "claude-code", "newcomer"),
        ],
    )
    def test_agent_that_sets_other_markers_wins(
        self, env: dict[str, str], first: str, other: str
    ) -> None:
        names = [candidate.name for candidate in detect_execution_context(env).candidates]
        assert names[:2] == [first, other]

    def test_agent_wins_over_ci_and_container(self) -> None:
        env = {"CLAUDECODE": "1", "CI": "true", "GITHUB_ACTIONS": "true"}
        context = detect_execution_context({**env, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
        assert (context.category, context.caller_id) == ("ai_agent", "claude-code")
        assert (context.is_ci, context.ci_name, context.container) == (
            True,
            "github-actions",
            "kubernetes",
        )
        kinds = [(candidate.name, candidate.category) for candidate in context.candidates]
        assert kinds[:3] == [
            ("claude-code", "ai_agent"),
            ("github-actions", "ci_cd"),
            ("kubernetes", "container"),
        ]

    def test_mistral_vibe_wins_over_ci(self) -> None:
        env = {"CI": "true", "NONINTERACTIVE": "1", "NO_TTY": "1", "TERM": "dumb"}
        context = detect_execution_context(env)
        assert (context.category, context.caller_id) == ("ai_agent", "mistral-vibe")
        del env["NO_TTY"]
        assert detect_execution_context(env).category == "ci_cd"

    def test_person_in_opencode_terminal_is_not_an_agent(self) -> None:
        env = {"OPENCODE": "1", "AGENT": "1", "OPENCODE_TERMINAL": "1"}
        assert not detect_execution_context(env).is_agent

    @pytest.mark.parametrize(("name", "variable"), CI_MARKERS)
    def test_ci_variable_identifies_the_ci_system(self, name: str, variable: str) -> None:
        context = detect_execution_context({variable: "true"})
        assert (context.category, context.ci_name, context.is_agent) == ("ci_cd", name, False)

    @pytest.mark.parametrize("value", ["", "0", "false", "False"])
    def test_false_ci_variable_is_not_ci(self, value: str) -> None:
        assert not detect_execution_context({"CI": value}).is_ci

    def test_container_variable_identifies_the_container(self) -> None:
        context = detect_execution_context({"container": "podman"})
        assert (context.category, context.container) == ("container", "podman")

    def test_terminal_wins_over_container(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tooli.detect._is_terminal", lambda stream: True)
        context = detect_execution_context({"container": "podman"})
        assert (context.category, context.container) == ("human", "podman")

    def test_python_call_is_python_api_unless_an_agent_calls(self) -> None:
        assert detect_execution_context({}, in_process=True).category == CallerCategory.PYTHON_API
        assert detect_execution_context({"CLAUDECODE": "1"}, in_process=True).is_agent


class TestValues:
    def test_values_are_shortened_and_printable(self) -> None:
        env = {"TOOLI_CALLER": "a\x1b[31mb\n" + "x" * 5000, "TOOLI_SESSION_ID": "s\x00\t"}
        context = detect_execution_context(env)
        assert context.caller_id is not None
        assert context.caller_id.isprintable()
        assert len(context.caller_id) <= 200
        assert context.session_id == "s"
        assert all(signal.isprintable() for signal in context.signals)

    def test_values_of_only_control_characters_are_empty(self) -> None:
        context = detect_execution_context({"TOOLI_CALLER": "\x1b\n", "AI_AGENT": "\x07"})
        assert not context.is_agent
        assert not context.identified_via_convention


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


@pytest.mark.parametrize(("agent", "env"), rows("combined"))
def test_combined_marker_identifies_agent(agent: str, env: dict[str, str]) -> None:
    context = detect_execution_context(env)
    assert (context.category, context.caller_id) == ("ai_agent", agent)
    assert 0.8 <= context.confidence < 0.9
    for name in env:
        others = {other: value for other, value in env.items() if other != name}
        assert not detect_execution_context(others).is_agent
    assert detect_execution_context({**env, "CI": "true"}).category == "ci_cd"


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


def test_facts_have_a_minimum_number_of_rows() -> None:
    assert len(rows("measured")) >= 18
    assert len(rows("sourced")) >= 35
    assert len(rows("weak")) >= 25


def test_every_strong_marker_is_in_facts() -> None:
    known = {agent["id"] for agent in FACTS["agents"]}
    assert {name for name, _, _ in STRONG_MARKERS} <= known
