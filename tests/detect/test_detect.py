"""Detection of the caller: generic variables, precedence and sanitized values."""

from __future__ import annotations

import pytest

from tooli.detect import CallerCategory, detect_execution_context
from tooli.detect.markers import CI_MARKERS


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
    def test_ai_agent(self, value: str, name: str, version: str | None) -> None:
        context = detect_execution_context({"AI_AGENT": value})
        assert (context.caller_id, context.caller_version) == (name, version)

    @pytest.mark.parametrize("name", ["amp", "goose", "crush"])
    def test_agent_variable_with_name(self, name: str) -> None:
        assert detect_execution_context({"AGENT": name}).caller_id == name

    def test_agent_variable_without_name(self) -> None:
        context = detect_execution_context({"AGENT": "1"})
        assert context.is_agent
        assert (context.agent_name, context.caller_id) == (None, None)
        assert context.confidence < 0.8

    @pytest.mark.parametrize("value", ["", "0", "false", "/tmp/ssh-1/agent.9", "a b", "x" * 60])
    def test_agent_variable_of_other_programs(self, value: str) -> None:
        assert not detect_execution_context({"AGENT": value}).is_agent


class TestOrder:
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

    def test_agent_in_ci_in_container(self) -> None:
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

    def test_person_in_opencode_terminal(self) -> None:
        env = {"OPENCODE": "1", "AGENT": "1", "OPENCODE_TERMINAL": "1"}
        assert not detect_execution_context(env).is_agent

    @pytest.mark.parametrize(("name", "variable"), CI_MARKERS)
    def test_ci(self, name: str, variable: str) -> None:
        context = detect_execution_context({variable: "true"})
        assert (context.category, context.ci_name, context.is_agent) == ("ci_cd", name, False)

    @pytest.mark.parametrize("value", ["", "0", "false", "False"])
    def test_false_ci_variable(self, value: str) -> None:
        assert not detect_execution_context({"CI": value}).is_ci

    def test_container(self) -> None:
        context = detect_execution_context({"container": "podman"})
        assert (context.category, context.container) == ("container", "podman")

    def test_person_in_container(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tooli.detect._is_terminal", lambda stream: True)
        context = detect_execution_context({"container": "podman"})
        assert (context.category, context.container) == ("human", "podman")

    def test_python_call(self) -> None:
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
