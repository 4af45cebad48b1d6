"""The environment variables that agents, CI systems and containers set.

A marker is a condition on the environment. Its forms:

    CODEX_THREAD_ID       the variable is set
    GEMINI_CLI=1          the variable has this value; `0|1` allows several values
    PATH~.pi/agent/bin    the variable contains this text
    !CI                   the variable is not set
    A & B                 both markers match
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MEASURED_CONFIDENCE, SOURCED_CONFIDENCE, COMBINED_CONFIDENCE = 0.95, 0.9, 0.8
"""Confidence of a strong marker: observed in the real program; documented by its vendor, or found
in its published code; a combination of common variables that only this agent is known to set."""

STRONG_MARKERS: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    # The first matching row decides. Agents that also set variables of other agents come first.
    ("amp", SOURCED_CONFIDENCE, ("AGENT=amp", "AMP_CURRENT_THREAD_ID", "AGENT_THREAD_ID")),
    ("kilo", SOURCED_CONFIDENCE, ("KILO=1", "KILO_PID", "KILOCODE_FEATURE=cli")),
    ("goose", MEASURED_CONFIDENCE, ("AGENT_SESSION_ID",)),  # of its shell tool, version 1.52.0
    ("goose", SOURCED_CONFIDENCE, ("AGENT=goose", "GOOSE_TERMINAL=1")),
    ("crush", SOURCED_CONFIDENCE, ("CRUSH=1", "AGENT=crush", "AI_AGENT=crush")),
    ("claude-code", MEASURED_CONFIDENCE, ("CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1")),
    (
        "claude-code",
        MEASURED_CONFIDENCE,
        ("CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SESSION_ATTENDED=0|1"),
    ),
    ("claude-code", MEASURED_CONFIDENCE, ("CLAUDE_PID",)),
    ("claude-code", SOURCED_CONFIDENCE, ("CLAUDE_CODE_IS_COWORK",)),
    ("codex", MEASURED_CONFIDENCE, ("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_CI=1")),
    ("codex", MEASURED_CONFIDENCE, ("CODEX_VERSION", "CODEX_TOOL_CALL_ID")),
    ("codex", SOURCED_CONFIDENCE, ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED=1")),
    ("gemini-cli", MEASURED_CONFIDENCE, ("GEMINI_CLI=1",)),
    ("qwen-code", MEASURED_CONFIDENCE, ("QWEN_CODE=1",)),
    ("copilot-cli", MEASURED_CONFIDENCE, ("COPILOT_CLI=1", "COPILOT_AGENT_SESSION_ID")),
    ("copilot-cli", MEASURED_CONFIDENCE, ("COPILOT_CLI_BINARY_VERSION",)),
    ("copilot-vscode", SOURCED_CONFIDENCE, ("COPILOT_AGENT=1",)),
    ("opencode", MEASURED_CONFIDENCE, ("OPENCODE=1", "OPENCODE_PID")),
    ("pi", MEASURED_CONFIDENCE, ("PI_CODING_AGENT=true", "PATH~.pi/agent/bin")),
    ("cursor", SOURCED_CONFIDENCE, ("CURSOR_AGENT=1", "CURSOR_EXTENSION_HOST_ROLE=agent-exec")),
    ("auggie", SOURCED_CONFIDENCE, ("AUGMENT_AGENT=1",)),
    # The launcher of the npm package `cline` 3.0.65 sets CLINE_WRAPPER_PATH, and the shell tool
    # passes the whole environment on. The extension for VS Code sets CLINE_ACTIVE.
    ("cline", MEASURED_CONFIDENCE, ("CLINE_WRAPPER_PATH",)),
    ("cline", SOURCED_CONFIDENCE, ("CLINE_ACTIVE=true",)),
    # The terminal tool of `openhands-sdk` 1.58.2 is a terminal in tmux. It sets AI_AGENT. Version
    # 1.0.0 does not, but both export the command that prints the prompt.
    (
        "openhands",
        MEASURED_CONFIDENCE,
        ("AI_AGENT=openhands", "PROMPT_COMMAND~###PS1JSON###"),
    ),
    # `mistral-vibe` 3.0.3 adds these to the environment of its shell, with CI among them.
    ("mistral-vibe", MEASURED_CONFIDENCE, ("NO_TTY=1 & NONINTERACTIVE=1 & CI=true",)),
    # `@moonshot-ai/kimi-code` 2.1.0 sets nothing but these three. CI systems set them as well.
    ("kimi-code", COMBINED_CONFIDENCE, ("GIT_TERMINAL_PROMPT=0 & NO_COLOR=1 & TERM=dumb & !CI",)),
    ("roo", SOURCED_CONFIDENCE, ("ROO_ACTIVE", "ROO_CLI_RUNTIME")),
    ("windsurf", SOURCED_CONFIDENCE, ("WINDSURF_CASCADE_TERMINAL",)),
    ("antigravity", SOURCED_CONFIDENCE, ("ANTIGRAVITY_AGENT",)),
    ("trae", SOURCED_CONFIDENCE, ("TRAE_AI_SHELL_ID",)),
    ("junie", SOURCED_CONFIDENCE, ("JUNIE_DATA", "JUNIE_SHIM_PATH")),
    ("kiro", SOURCED_CONFIDENCE, ("AGENT_DISPLAY_OUT", "AGENT_CONTEXT_OUT")),
    ("grok", SOURCED_CONFIDENCE, ("GROK_SESSION_ID", "GROK_AGENT=1")),
    ("openclaw", SOURCED_CONFIDENCE, ("OPENCLAW_SHELL", "OPENCLAW_CLI")),
    ("iflow", SOURCED_CONFIDENCE, ("IFLOW_CLI",)),
    ("amazon-q", SOURCED_CONFIDENCE, ("AWS_EXECUTION_ENV~AmazonQ-For-CLI",)),
    ("warp", SOURCED_CONFIDENCE, ("OZ_RUN_ID",)),
)

WEAK_MARKERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # These also occur in the shells of people. They are listed as candidates and never decide.
    ("claude-code", ("ANTHROPIC_API_KEY", "CLAUDE_CODE", "CLAUDE_CODE_ENTRYPOINT")),
    ("codex", ("CODEX_HOME",)),
    ("gemini-cli", ("GEMINI_API_KEY",)),
    ("copilot-cli", ("COPILOT_MODEL", "COPILOT_ALLOW_ALL", "COPILOT_GITHUB_TOKEN", "CODESPACES")),
    ("copilot-vscode", ("TERM_PROGRAM=vscode", "GIT_PAGER=cat")),
    ("opencode", ("OPENCODE_CLIENT",)),
    ("cursor", ("CURSOR_TRACE_ID", "CURSOR_CLI")),
    ("goose", ("GOOSE_PROVIDER", "GOOSE_MODEL")),
    ("cline", ("CLINE_API_KEY", "CLINE_CONNECTOR_CLI_LAUNCH")),
    ("windsurf", ("CODEIUM_EDITOR_APP_ROOT", "WINDSURF_CASCADE_TERMINAL_KIND")),
    ("kiro", ("TERM_PROGRAM=kiro",)),
    ("warp", ("TERM_PROGRAM=WarpTerminal",)),
    ("zed", ("ZED_TERM", "TERM_PROGRAM=zed & PAGER=cat")),
    ("devin", ("EDITOR~devin",)),
    ("jules", ("HOME=/home/jules & USER=swebot",)),
    ("replit", ("REPL_ID", "REPLIT_MODE=assistant")),
    ("aider", ("AIDER_MODEL", "AIDER_CHAT_HISTORY_FILE", "OR_APP_NAME=Aider")),
)

HUMAN_TERMINAL_VARIABLES: dict[str, str] = {"opencode": "OPENCODE_TERMINAL"}
"""Variable that an agent sets in a terminal for a person. It cancels the agent's markers."""

CI_MARKERS: tuple[tuple[str, str], ...] = (
    ("github-actions", "GITHUB_ACTIONS"),
    ("gitlab-ci", "GITLAB_CI"),
    ("circleci", "CIRCLECI"),
    ("jenkins", "JENKINS_URL"),
    ("azure-pipelines", "TF_BUILD"),
    ("buildkite", "BUILDKITE"),
    ("teamcity", "TEAMCITY_VERSION"),
    ("travis-ci", "TRAVIS"),
    ("bitbucket-pipelines", "BITBUCKET_BUILD_NUMBER"),
    ("aws-codebuild", "CODEBUILD_BUILD_ID"),
    ("appveyor", "APPVEYOR"),
    ("drone", "DRONE"),
    ("cirrus-ci", "CIRRUS_CI"),
    ("semaphore", "SEMAPHORE"),
    ("bitrise", "BITRISE_IO"),
    ("netlify", "NETLIFY"),
    ("ci", "CI"),
)
"""CI systems and the variable that each of them sets. The last row matches any CI system."""

CONTAINER_MARKERS: tuple[tuple[str, str], ...] = (
    ("kubernetes", "KUBERNETES_SERVICE_HOST"),
    ("podman", "container=podman"),
    ("docker", "container=docker"),
    ("oci", "container=oci"),
    ("lxc", "container=lxc"),
    ("systemd-nspawn", "container=systemd-nspawn"),
)

VERSION_VARIABLES: dict[str, tuple[str, ...]] = {
    "codex": ("CODEX_VERSION",),
    "copilot-cli": ("COPILOT_CLI_BINARY_VERSION",),
}
SESSION_VARIABLES: dict[str, tuple[str, ...]] = {
    "claude-code": ("CLAUDE_CODE_SESSION_ID",),
    "codex": ("CODEX_SESSION_ID", "CODEX_THREAD_ID"),
    "copilot-cli": ("COPILOT_AGENT_SESSION_ID",),
    "amp": ("AMP_CURRENT_THREAD_ID", "AGENT_THREAD_ID"),
    "goose": ("AGENT_SESSION_ID",),
    "grok": ("GROK_SESSION_ID",),
}
"""Variables with the version and the session of an agent."""

AGENT_ALIASES: dict[str, str] = {
    "github_copilot_vscode": "copilot-vscode",
    "github_copilot_cloud": "copilot-cloud",
}
"""Names in `AI_AGENT` that differ from the names in these tables."""

DISPLAY_NAMES: dict[str, str] = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini-cli": "Gemini CLI",
    "qwen-code": "Qwen Code",
    "copilot-cli": "GitHub Copilot CLI",
    "copilot-vscode": "GitHub Copilot in VS Code",
    "copilot-cloud": "GitHub Copilot coding agent",
    "opencode": "OpenCode",
    "kilo": "Kilo Code",
    "roo": "Roo Code",
    "openhands": "OpenHands",
    "openclaw": "OpenClaw",
    "iflow": "iFlow",
    "amazon-q": "Amazon Q",
    "langchain": "LangChain",
    "kimi-code": "Kimi Code",
    "mistral-vibe": "Mistral Vibe",
    "v0": "v0",
}
"""Names as the vendors write them. `display_name` applies str.title() to other names."""

NON_AGENT_CALLERS: dict[str, str] = {
    **dict.fromkeys(("human", "person", "terminal", "shell"), "human"),
    **dict.fromkeys([name for name, _ in CI_MARKERS], "ci_cd"),
    **dict.fromkeys(("ci_cd", "cron"), "ci_cd"),
    **dict.fromkeys([name for name, _ in CONTAINER_MARKERS], "container"),
    "container": "container",
    **dict.fromkeys(("unknown_automation", "script"), "unknown_automation"),
    **dict.fromkeys(("python_api", "python"), "python_api"),
}
"""Values of `TOOLI_CALLER` that are not agents. Any other value is an agent."""

FALSE_VALUES = frozenset(("", "0", "false", "no", "off", "none"))


def is_set(env: Mapping[str, str], name: str) -> bool:
    """True if a variable is set and its value does not mean false, such as "0" or "off"."""
    return env.get(name, "").lower() not in FALSE_VALUES


def matches(env: Mapping[str, str], marker: str) -> bool:
    """True if an environment matches a marker."""
    if "&" in marker:
        return all([matches(env, part.strip()) for part in marker.split("&")])
    if marker[0] == "!":
        return not is_set(env, marker[1:])
    name, equals, value = marker.partition("=")
    if equals:
        actual = env.get(name)
        return actual is not None and actual in value.split("|")
    name, contains, text = marker.partition("~")
    return text in env.get(name, "") if contains else is_set(env, name)


def marker_variables(marker: str) -> Iterator[str]:
    """Yield the variables of a marker."""
    for part in marker.split("&"):
        yield part.strip(" !").partition("=")[0].partition("~")[0]


def strong_variables() -> frozenset[str]:
    """Return the variables that identify an agent or a CI system, except PATH.

    The command line skips detection if none of them is set and PATH has no folder of an agent. Of a
    combination, the first variable is enough: it is the least common one.
    """
    markers = [marker for _, _, row in STRONG_MARKERS for marker in row]
    markers += [marker for _, marker in CI_MARKERS]
    named = {next(marker_variables(marker)) for marker in markers}
    return frozenset(named | {"TOOLI_CALLER", "AI_AGENT", "AGENT"}) - {"PATH"}


def all_variables() -> frozenset[str]:
    """Return the variables of all markers, without common ones such as HOME."""
    rows = (*[row for _, row in WEAK_MARKERS], [marker for _, marker in CONTAINER_MARKERS])
    weak_variables = {name for row in rows for marker in row for name in marker_variables(marker)}
    weak_variables.update(HUMAN_TERMINAL_VARIABLES.values())
    return (strong_variables() | weak_variables) - {
        "HOME",
        "USER",
        "EDITOR",
        "PAGER",
        "TERM_PROGRAM",
    }
