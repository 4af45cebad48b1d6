"""Who is calling, from the environment alone: a table, not ifs.

What it finds shapes output and wording, never permission.
"""

from __future__ import annotations

import os
import sys

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar


class CallerCategory(str):
    """What kind of caller it is."""

    __slots__ = ()

    HUMAN: ClassVar[CallerCategory]
    AI_AGENT: ClassVar[CallerCategory]
    CI_CD: ClassVar[CallerCategory]
    CONTAINER: ClassVar[CallerCategory]
    UNKNOWN_AUTOMATION: ClassVar[CallerCategory]
    PYTHON_API: ClassVar[CallerCategory]

    @property
    def value(self) -> str:
        """The word itself."""
        return str(self)


for _word in ("human", "ai_agent", "ci_cd", "container", "unknown_automation", "python_api"):
    setattr(CallerCategory, _word.upper(), CallerCategory(_word))

# agent: variables that only it sets ("=" asks for that value). The first row that matches wins,
# so agents that imitate others come before them.
MARKERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("amp", ("AMP_CURRENT_THREAD_ID", "AGENT=amp")),
    ("kilo", ("KILO=1", "KILO_PID", "KILOCODE_FEATURE=cli")),
    ("crush", ("CRUSH=1", "AGENT=crush")),
    ("goose", ("GOOSE_TERMINAL=1", "AGENT=goose")),
    ("claude-code", ("CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_SESSION_ID")),
    ("codex", ("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_CI=1", "CODEX_TOOL_CALL_ID")),
    ("codex", ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED=1")),
    ("gemini-cli", ("GEMINI_CLI=1",)),
    ("qwen-code", ("QWEN_CODE=1",)),
    ("copilot-cli", ("COPILOT_CLI=1", "COPILOT_AGENT_SESSION_ID")),
    ("copilot-vscode", ("COPILOT_AGENT=1",)),
    ("opencode", ("OPENCODE=1", "OPENCODE_PID")),
    ("pi", ("PI_CODING_AGENT=true",)),
    ("cursor", ("CURSOR_AGENT=1", "CURSOR_EXTENSION_HOST_ROLE=agent-exec")),
    ("auggie", ("AUGMENT_AGENT=1",)),
    ("cline", ("CLINE_ACTIVE=true",)),
    ("roo", ("ROO_ACTIVE", "ROO_CLI_RUNTIME")),
    ("windsurf", ("WINDSURF_CASCADE_TERMINAL",)),
    ("antigravity", ("ANTIGRAVITY_AGENT",)),
    ("trae", ("TRAE_AI_SHELL_ID",)),
    ("junie", ("JUNIE_DATA", "JUNIE_SHIM_PATH")),
    ("kiro", ("AGENT_DISPLAY_OUT", "AGENT_CONTEXT_OUT")),
    ("grok", ("GROK_SESSION_ID", "GROK_AGENT=1")),
    ("openclaw", ("OPENCLAW_SHELL", "OPENCLAW_CLI")),
    ("iflow", ("IFLOW_CLI",)),
    ("warp", ("OZ_RUN_ID",)),
)
NOT_IF = {"opencode": "OPENCODE_TERMINAL"}
CI = (
    *("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "JENKINS_URL", "TF_BUILD"),
    "TEAMCITY_VERSION",
)


class ExecutionContext(Record):
    """Who seems to be calling, how sure that is, and what it was seen by."""

    category: CallerCategory
    agent_name: str | None = None
    confidence: float = 0.0
    is_agent: bool = False
    is_ci: bool = False
    is_interactive: bool = False
    identified_via_convention: bool = False
    caller_id: str | None = None
    caller_version: str | None = None
    session_id: str | None = None
    platform: str = sys.platform
    signals: tuple[str, ...] = ()


def detect_execution_context(env: Mapping[str, str] | None = None) -> ExecutionContext:
    """The caller of this process; reads the environment and asks whether stdout is a terminal."""
    space = os.environ if env is None else env
    said = space.get
    ci = tuple(name for name in CI if said(name, "") not in ("", "0", "false"))
    interactive = _is_terminal()
    name, confidence, signals = _agent(space)
    convention = said("TOOLI_CALLER") or None
    if name is not None:
        category = CallerCategory.AI_AGENT
    elif ci:
        category, confidence = CallerCategory.CI_CD, 0.9
    elif interactive:
        category, confidence = CallerCategory.HUMAN, 0.8
    else:
        category, confidence = CallerCategory.UNKNOWN_AUTOMATION, 0.5
    return ExecutionContext(
        category=category,
        agent_name=name,
        confidence=confidence,
        is_agent=name is not None,
        is_ci=bool(ci),
        is_interactive=interactive,
        identified_via_convention=convention is not None,
        caller_id=convention,
        caller_version=said("TOOLI_CALLER_VERSION") or None,
        session_id=said("TOOLI_SESSION_ID") or None,
        signals=(*signals, *ci),
    )


def _agent(env: Mapping[str, str]) -> tuple[str | None, float, tuple[str, ...]]:
    said = env.get
    caller = said("TOOLI_CALLER")
    if caller:
        return caller, 1.0, ("TOOLI_CALLER",)
    for name, markers in MARKERS:
        if NOT_IF.get(name, "") in env:
            continue
        for marker in markers:
            variable, equals, value = marker.partition("=")
            if said(variable) == value if equals else said(variable):
                return name, 0.95, (variable,)
    named = said("AI_AGENT")
    if named:
        return named.partition("_")[0], 0.9, ("AI_AGENT",)
    named = said("AGENT")
    if named:
        return "agent" if named == "1" else named, 0.8, ("AGENT",)
    return None, 0.0, ()


def _is_terminal() -> bool:
    try:
        return sys.stdout is not None and sys.stdout.isatty()
    except ValueError:
        return False
