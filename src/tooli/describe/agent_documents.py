"""Render AGENTS.md, CLAUDE.md and llms.txt of an app, and the document that an agent prefers.

llms.txt follows llmstxt.org: a title, one quoted line, one paragraph, then lists of links to the
pages of the commands.
"""

from __future__ import annotations

from tooli.describe import sections, tool_facts
from tooli.describe.markdown import bullets, code, fence, join_blocks, link, sentence, single_line
from tooli.describe.skill import reference_sections, render_reference_page, render_skill_md

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

FULL_FILE_NAME = "llms-full.txt"
_MAX_AGENTS_MD_TOKENS = 4_000  # estimated
_MAX_CLAUDE_MD_TOKENS = 1_000  # estimated

_FORMAT_BY_AGENT = {
    "claude-code": "claude-md",
    **dict.fromkeys(
        (
            *("codex", "copilot-cli", "copilot-vscode", "cursor", "gemini-cli", "opencode"),
            *("qwen-code", "kilo", "amp", "goose", "crush", "auggie", "pi", "cline", "roo"),
        ),
        "agents-md",
    ),
}
"""The document that each agent prefers. Other agents get the skill."""


def render_document(app_info: AppInfo, document_format: str) -> str:
    """Return a document by format: skill, claude-md or agents-md."""
    if document_format == "claude-md":
        return render_claude_md(app_info)
    if document_format == "agents-md":
        return render_agents_md(app_info)
    return render_skill_md(app_info)


def render_bootstrap(app_info: AppInfo, agent: str | None) -> str:
    """Return the document that an agent of that name prefers."""
    return render_document(app_info, _FORMAT_BY_AGENT.get(agent or "", "skill"))


# ------------------------------------------------------------------ AGENTS.md


def render_agents_md(app_info: AppInfo) -> str:
    """Return AGENTS.md."""
    return join_blocks("# AGENTS.md", render_agents_md_block(app_info))


def render_agents_md_block(app_info: AppInfo) -> str:
    """Return the app's section of an AGENTS.md that may have other content."""
    return sections.render_within_budget(
        lambda detail: _render_agents_md(app_info, detail),
        *[(detail, _MAX_AGENTS_MD_TOKENS) for detail in range(sections.GROUPS + 1)],
    )


def _render_agents_md(app_info: AppInfo, detail: int) -> str:
    workflow = list(sections.workflow_section(app_info)) if detail < sections.NAMES else []
    return join_blocks(
        f"## {single_line(app_info.name)}",
        app_info.description,
        "### Commands",
        sections.command_sections(app_info, detail, level=3),
        ["### Workflows", *workflow] if workflow else [],
        "### Output",
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


# ------------------------------------------------------------------ CLAUDE.md


def render_claude_md(app_info: AppInfo) -> str:
    """Return CLAUDE.md. It is short, because Claude Code always keeps it in its context."""
    return join_blocks("# CLAUDE.md", render_claude_md_block(app_info))


def render_claude_md_block(app_info: AppInfo, *, refer_to_agents_md: bool = False) -> str:
    """Return the app's section of a CLAUDE.md.

    With `refer_to_agents_md` it is short and imports AGENTS.md.
    """
    if refer_to_agents_md:
        return join_blocks(
            "@AGENTS.md", f"## {single_line(app_info.name)}", _invocation_section(app_info)
        )
    return sections.render_within_budget(
        lambda detail: _render_claude_md(app_info, detail),
        *[(detail, _MAX_CLAUDE_MD_TOKENS) for detail in range(sections.LINES, sections.GROUPS + 1)],
    )


def _render_claude_md(app_info: AppInfo, detail: int) -> str:
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
        'The output is `{"ok":…,"result":…}`, or `{"ok":false,"error":{…}}` with '
        "`error.suggestion.argv`: a command line that works.",
        f"More about a command: {code(f'{app_info.name} COMMAND --help-agent')}.",
        "Claude Code is detected; a script that it starts sets `TOOLI_CALLER=claude-code`.",
        *sections.safety_rules(app_info),
    ]
    return ["### Agent invocation", fence([line], "bash"), bullets(rules)]


# ------------------------------------------------------------------ llms.txt


def render_llms_txt(app_info: AppInfo) -> str:
    """Return llms.txt: what the app is, how to call it, and links to the commands."""
    return join_blocks(
        f"# {single_line(app_info.name)}",
        f"> {_summary_line(app_info)}",
        _usage_paragraph(app_info),
        _command_groups(app_info),
        "## Optional",
        bullets([f"{link(FULL_FILE_NAME, FULL_FILE_NAME)}: Everything in one file"]),
    )


def render_llms_full(app_info: AppInfo) -> str:
    """Return llms-full.txt: the app and every command's page."""
    return join_blocks(
        f"# {single_line(app_info.name)}",
        f"> {_summary_line(app_info)}",
        _usage_paragraph(app_info),
        _long_description(app_info),
        [block for tool in app_info.tools for block in _command_reference(app_info, tool)],
        "## Output",
        sections.response_section(app_info),
        sections.exit_code_line(),
        bullets(sections.safety_rules(app_info)),
        sections.author_sections(app_info),
    )


def build_llms_files(app_info: AppInfo) -> dict[str, str]:
    """Return both files and the pages that llms.txt links to, by path."""
    pages = {
        sections.reference_path(tool): render_reference_page(app_info, tool)
        for tool in app_info.tools
    }
    return {
        "llms.txt": render_llms_txt(app_info),
        FULL_FILE_NAME: render_llms_full(app_info),
        **pages,
    }


def _summary_line(app_info: AppInfo) -> str:
    """Return the first paragraph of the description on one line."""
    summary = app_info.description.partition("\n\n")[0]
    return sentence(summary) or f"The commands of {app_info.name}."


def _long_description(app_info: AppInfo) -> str:
    return app_info.description.partition("\n\n")[2]


def _usage_paragraph(app_info: AppInfo) -> str:
    """Return a paragraph about how to call the commands."""
    root_tools = [tool for tool in app_info.tools if not tool.cli_path]
    call = single_line(f"{app_info.name}{'' if root_tools else ' COMMAND'} … --json")
    version = f" (version {single_line(app_info.version)})" if app_info.version else ""
    return (
        f"{single_line(app_info.name)}{version} is a command line program. Call it as "
        f'{code(call)}: stdout is one JSON document, `{{"ok":true,"result":…}}` or '
        '`{"ok":false,"error":{…}}`, whose `error.suggestion` says what to do. '
        f"{code('--help-agent')} shows more about a command, `--schema` its schema."
    )


def _command_groups(app_info: AppInfo) -> Iterator[str]:
    """Yield the commands, each group under its own heading."""
    groups: dict[str, list[Tool]] = {}
    for tool in app_info.tools:
        groups.setdefault(" ".join(tool.cli_path[:-1]), []).append(tool)
    for group, tools in groups.items():
        yield f"## Commands: {single_line(group)}" if group else "## Commands"
        yield bullets([_command_link(tool) for tool in tools])


def _command_link(tool: Tool) -> str:
    title = tool_facts.command_title(tool).replace("[", "(").replace("]", ")")
    labels = [label for label in tool.behavior.labels() if label in ("read-only", "destructive")]
    annotations = f"({', '.join(labels)})" if labels else ""
    about = " ".join(filter(None, (single_line(tool.doc.summary), annotations)))
    target = link(title, sections.reference_path(tool))
    return f"{target}: {about}" if about else target


def _command_reference(app_info: AppInfo, tool: Tool) -> Iterator[str]:
    yield f"## {single_line(' '.join((app_info.name, *tool.cli_path)))}"
    yield from reference_sections(app_info, tool, 3)
