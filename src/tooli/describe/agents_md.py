"""AGENTS.md: an app's commands, for agents that read one file about a project."""

from __future__ import annotations

from tooli.describe import sections
from tooli.describe.markdown import bullets, join_blocks, single_line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.describe.app_info import AppInfo

_MAX_TOKENS = 4_000  # tokens, estimated
_DETAIL_BUDGETS = [
    (detail, _MAX_TOKENS)
    for detail in (sections.FULL, sections.SHORT, sections.LINES, sections.NAMES, sections.GROUPS)
]


def render_agents_md(app_info: AppInfo) -> str:
    """The whole file."""
    return join_blocks("# AGENTS.md", render_agents_md_block(app_info))


def render_agents_md_block(app_info: AppInfo) -> str:
    """The app's part of such a file, where others write to it as well."""
    return sections.render_within_budget(
        lambda detail: _render_block(app_info, detail), *_DETAIL_BUDGETS
    )


def _render_block(app_info: AppInfo, detail: int) -> str:
    workflow = list(sections.workflow_section(app_info)) if detail < sections.NAMES else []
    return join_blocks(
        f"## {single_line(app_info.name)}",
        app_info.description,
        "### Commands",
        sections.command_sections(app_info, detail, level=3),
        ["### Together", *workflow] if workflow else [],
        "### Answers",
        sections.response_section(app_info),
        sections.exit_code_line(),
        "### Rules",
        bullets(
            [
                "Always pass `--json`, and read `ok` before `result`.",
                *sections.safety_rules(app_info),
            ]
        ),
        sections.author_sections(app_info, 3),
    )
