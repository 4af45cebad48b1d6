"""The document that suits whoever is asking."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.describe.app_info import AppInfo

FORMAT_BY_AGENT = {
    "claude-code": "claude-md",
    **dict.fromkeys(
        (
            *("codex", "copilot-cli", "copilot-vscode", "cursor", "gemini-cli", "opencode"),
            *("qwen-code", "kilo", "amp", "goose", "crush", "auggie", "pi", "cline", "roo"),
        ),
        "agents-md",
    ),
}
"""The form that each agent is used to; anybody else gets the skill."""

DOCUMENT_FORMATS = ("skill", "claude-md", "agents-md")


def render_document(app_info: AppInfo, document_format: str) -> str:
    """A document by the name of its form."""
    if document_format == "claude-md":
        from tooli.describe.claude_md import render_claude_md

        return render_claude_md(app_info)
    if document_format == "agents-md":
        from tooli.describe.agents_md import render_agents_md

        return render_agents_md(app_info)
    from tooli.describe.skill import render_skill_md

    return render_skill_md(app_info)


def render_bootstrap(app_info: AppInfo, agent: str | None) -> str:
    """What an agent of that name should read first."""
    return render_document(app_info, FORMAT_BY_AGENT.get(agent or "", "skill"))
