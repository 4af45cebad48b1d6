"""CLAUDE.md: the little that Claude Code should have in mind all the time."""

from __future__ import annotations

from tooli.describe import sections
from tooli.describe.markdown import bullets, code, fence, join_blocks, single_line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.describe.app_info import AppInfo

_MAX_TOKENS = 1_000  # tokens, estimated
_DETAIL_BUDGETS = [
    (detail, _MAX_TOKENS) for detail in (sections.LINES, sections.NAMES, sections.GROUPS)
]


def render_claude_md(app_info: AppInfo) -> str:
    """The whole file."""
    return join_blocks("# CLAUDE.md", render_claude_md_block(app_info))


def render_claude_md_block(app_info: AppInfo, *, refer_to_agents_md: bool = False) -> str:
    """The app's part of such a file; `thin` where AGENTS.md beside it says the rest."""
    if refer_to_agents_md:
        return join_blocks(
            "@AGENTS.md", f"## {single_line(app_info.name)}", _invocation_section(app_info)
        )
    return sections.render_within_budget(
        lambda detail: _render_block(app_info, detail), *_DETAIL_BUDGETS
    )


def _render_block(app_info: AppInfo, detail: int) -> str:
    return join_blocks(
        f"## {single_line(app_info.name)}",
        app_info.description,
        "### Commands",
        sections.command_sections(app_info, detail, level=3),
        _invocation_section(app_info),
        sections.author_sections(app_info, 3),
    )


def _invocation_section(app_info: AppInfo) -> list[str]:
    line = sections.example_call(app_info)
    rules = [
        'The answer is `{"ok":…,"result":…}`, or `{"ok":false,"error":{…}}` with '
        "`error.suggestion.argv`: a command line that would work.",
        f"More about a command: {code(f'{app_info.name} COMMAND --help-agent')}.",
        "Claude Code is recognised by itself; a script that it starts says "
        "`TOOLI_CALLER=claude-code`.",
        *sections.safety_rules(app_info),
    ]
    return ["### Agent invocation", fence([line], "bash"), bullets(rules)]
