"""The document that suits whoever is asking."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.views.portrait import Portrait

READERS = {
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

FORMS = ("skill", "claude-md", "agents-md")


def write(portrait: Portrait, form: str) -> str:
    """A document by the name of its form."""
    if form == "claude-md":
        from tooli.views.claude_md import write_claude_md

        return write_claude_md(portrait)
    if form == "agents-md":
        from tooli.views.agents_md import write_agents_md

        return write_agents_md(portrait)
    from tooli.views.skill import write_skill

    return write_skill(portrait)


def bootstrap(portrait: Portrait, agent: str | None) -> str:
    """What an agent of that name should read first."""
    return write(portrait, READERS.get(agent or "", "skill"))
