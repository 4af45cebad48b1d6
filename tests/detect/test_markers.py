"""Every marker that is known, one by one: the facts are data, the table is held to them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tooli.core._hot_tables import CALLER_VARIABLES
from tooli.detect import CallerCategory, detect_execution_context
from tooli.detect.markers import CI_MARKERS, STRONG_MARKERS, all_variables, strong_variables

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
"""Rows of the facts that name no variable which decides by itself, and why."""


def rows(tier: str) -> list[Any]:
    found = []
    for agent in FACTS["agents"]:
        for text in agent.get(tier, ()):
            if text in ELSEWHERE:
                continue
            found.append(pytest.param(agent["id"], environment(text), id=f"{agent['id']}: {text}"))
    return found


def written_out(text: str) -> str:
    """The facts' shorthands, with a name and a value of the kind."""
    return text.replace("EDITOR~devin", "EDITOR=/opt/devin/ed").replace("AIDER_*", "AIDER_MODEL")


def environment(text: str) -> dict[str, str]:
    """The variables that a row of the facts is about."""
    if text == "PATH has .pi/agent/bin":
        return {"PATH": "/home/ada/.pi/agent/bin:/usr/bin"}
    if " contains " in text:
        name, _, part = text.partition(" contains ")
        return {name: f"a {part} b"}
    found = {}
    for part in re.split(r" \+ | and ", written_out(text)):
        matched = VARIABLE.match(part)
        assert matched is not None, text
        found[matched[1]] = (matched[2] or "x").partition("|")[0]
    return found


@pytest.mark.parametrize(("agent", "env"), [*rows("measured"), *rows("sourced")])
def test_a_strong_marker_names_its_agent(agent: str, env: dict[str, str]) -> None:
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


def test_all_weak_signals_together_make_none_either() -> None:
    env: dict[str, str] = {}
    for parameter in rows("weak"):
        env |= parameter.values[1]
    seen = detect_execution_context(env)
    assert not seen.is_agent
    assert len([one for one in seen.candidates if not one.decides]) >= 12
    assert max(one.confidence for one in seen.candidates if not one.decides) <= 0.5


def test_the_facts_were_read() -> None:
    assert len(rows("measured")) >= 18
    assert len(rows("sourced")) >= 35
    assert len(rows("weak")) >= 25


def test_every_row_of_the_table_is_in_the_facts() -> None:
    known = {agent["id"] for agent in FACTS["agents"]}
    assert {name for name, _, _ in STRONG_MARKERS} <= known


class TestGenericVariables:
    @pytest.mark.parametrize(
        ("said", "name", "version"),
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
    def test_ai_agent(self, said: str, name: str, version: str | None) -> None:
        seen = detect_execution_context({"AI_AGENT": said})
        assert (seen.caller_id, seen.caller_version) == (name, version)

    @pytest.mark.parametrize("name", ["amp", "goose", "crush"])
    def test_agent_with_a_name(self, name: str) -> None:
        assert detect_execution_context({"AGENT": name}).caller_id == name

    def test_agent_without_a_name(self) -> None:
        seen = detect_execution_context({"AGENT": "1"})
        assert seen.is_agent
        assert (seen.agent_name, seen.caller_id) == (None, None)
        assert seen.confidence < 0.8

    @pytest.mark.parametrize("said", ["", "0", "false", "/tmp/ssh-1/agent.9", "a b", "x" * 60])
    def test_agent_of_somebody_else(self, said: str) -> None:
        assert not detect_execution_context({"AGENT": said}).is_agent


class TestOrder:
    def test_tooli_caller_is_certain_whatever_else_there_is(self) -> None:
        env = {"TOOLI_CALLER": "my-agent", "CLAUDECODE": "1", "CI": "true"}
        env |= {"TOOLI_CALLER_VERSION": "9", "TOOLI_SESSION_ID": "s", "CODEX_VERSION": "1"}
        seen = detect_execution_context(env)
        assert (seen.caller_id, seen.confidence, seen.is_agent) == ("my-agent", 1.0, True)
        assert (seen.caller_version, seen.session_id) == ("9", "s")
        assert seen.identified_via_convention

    @pytest.mark.parametrize(
        ("said", "category"),
        [("human", "human"), ("github-actions", "ci_cd"), ("ci", "ci_cd"), ("docker", "container")],
    )
    def test_tooli_caller_may_be_no_agent(self, said: str, category: str) -> None:
        seen = detect_execution_context({"TOOLI_CALLER": said, "CLAUDECODE": "1"})
        assert (seen.category, seen.is_agent, seen.caller_id) == (category, False, said)

    @pytest.mark.parametrize(
        ("env", "first", "other"),
        [
            ({"CLAUDECODE": "1", "AMP_CURRENT_THREAD_ID": "t"}, "amp", "claude-code"),
            ({"CLAUDECODE": "1", "AGENT": "amp"}, "amp", "claude-code"),
            ({"OPENCODE": "1", "KILO": "1"}, "kilo", "opencode"),
            ({"CLAUDECODE": "1", "AI_AGENT": "newcomer"}, "claude-code", "newcomer"),
        ],
    )
    def test_who_imitates_others_stands_before_them(
        self, env: dict[str, str], first: str, other: str
    ) -> None:
        names = [one.name for one in detect_execution_context(env).candidates]
        assert names[:2] == [first, other]

    def test_an_agent_in_ci_in_a_container(self) -> None:
        env = {"CLAUDECODE": "1", "CI": "true", "GITHUB_ACTIONS": "true"}
        seen = detect_execution_context({**env, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
        assert (seen.category, seen.caller_id) == ("ai_agent", "claude-code")
        assert (seen.is_ci, seen.ci_name, seen.container) == (True, "github-actions", "kubernetes")
        kinds = [(one.name, one.category) for one in seen.candidates]
        assert kinds[:3] == [
            ("claude-code", "ai_agent"),
            ("github-actions", "ci_cd"),
            ("kubernetes", "container"),
        ]

    def test_a_person_in_opencodes_own_terminal(self) -> None:
        env = {"OPENCODE": "1", "AGENT": "1", "OPENCODE_TERMINAL": "1"}
        assert not detect_execution_context(env).is_agent

    @pytest.mark.parametrize(("name", "variable"), CI_MARKERS)
    def test_ci(self, name: str, variable: str) -> None:
        seen = detect_execution_context({variable: "true"})
        assert (seen.category, seen.ci_name, seen.is_agent) == ("ci_cd", name, False)

    @pytest.mark.parametrize("said", ["", "0", "false", "False"])
    def test_no_ci(self, said: str) -> None:
        assert not detect_execution_context({"CI": said}).is_ci

    def test_a_container_is_where_and_not_who(self) -> None:
        seen = detect_execution_context({"container": "podman"})
        assert (seen.category, seen.container) == ("container", "podman")

    def test_python(self) -> None:
        assert detect_execution_context({}, in_process=True).category == CallerCategory.PYTHON_API
        assert detect_execution_context({"CLAUDECODE": "1"}, in_process=True).is_agent


class TestValues:
    def test_what_the_environment_says_is_bounded_and_printable(self) -> None:
        env = {"TOOLI_CALLER": "a\x1b[31mb\n" + "x" * 5000, "TOOLI_SESSION_ID": "s\x00\t"}
        seen = detect_execution_context(env)
        assert seen.caller_id is not None
        assert seen.caller_id.isprintable()
        assert len(seen.caller_id) <= 200
        assert seen.session_id == "s"
        assert all(signal.isprintable() for signal in seen.signals)

    def test_nothing_but_control_characters_is_nothing(self) -> None:
        seen = detect_execution_context({"TOOLI_CALLER": "\x1b\n", "AI_AGENT": "\x07"})
        assert not seen.is_agent
        assert not seen.identified_via_convention


class TestTheGlance:
    def test_it_knows_every_variable_that_decides(self) -> None:
        assert CALLER_VARIABLES == strong_variables()

    def test_tests_of_users_take_all_of_them_away(self) -> None:
        assert CALLER_VARIABLES <= all_variables()
        assert not all_variables() & {"HOME", "PATH", "USER", "TERM_PROGRAM"}
