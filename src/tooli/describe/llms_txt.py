"""llms.txt and llms-full.txt: an app for models that read websites, as llmstxt.org has them.

llms.txt is a title, one quoted line, one paragraph, then lists of links; readers take nothing
else. The links lead to the pages of the commands, which stand beside it.
"""

from __future__ import annotations

from tooli.describe import sections, tool_facts
from tooli.describe.markdown import bullets, code, join_blocks, link, sentence, single_line
from tooli.describe.skill import reference_sections, render_reference_page

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

FULL_FILE_NAME = "llms-full.txt"


def render_llms_txt(app_info: AppInfo) -> str:
    """The index: what the app is, how it is called, and where each command is described."""
    return join_blocks(
        f"# {single_line(app_info.name)}",
        f"> {_summary_line(app_info)}",
        _usage_paragraph(app_info),
        _command_groups(app_info),
        "## Optional",
        bullets([f"{link(FULL_FILE_NAME, FULL_FILE_NAME)}: All of it in one file"]),
    )


def render_llms_full(app_info: AppInfo) -> str:
    """Everything in one file: the app, then every command's page."""
    return join_blocks(
        f"# {single_line(app_info.name)}",
        f"> {_summary_line(app_info)}",
        _usage_paragraph(app_info),
        _long_description(app_info),
        [block for tool in app_info.tools for block in _command_reference(app_info, tool)],
        "## Answers",
        sections.response_section(app_info),
        sections.exit_code_line(),
        bullets(sections.safety_rules(app_info)),
        sections.author_sections(app_info),
    )


def build_llms_files(app_info: AppInfo) -> dict[str, str]:
    """Both of them, and the pages that the index leads to, by their places in a folder."""
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
    """What the app is, in one line."""
    about = app_info.description.partition("\n\n")[0]
    return sentence(about) or f"The commands of {app_info.name}."


def _long_description(app_info: AppInfo) -> str:
    return app_info.description.partition("\n\n")[2]


def _usage_paragraph(app_info: AppInfo) -> str:
    """How commands are called, as one paragraph."""
    root_tools = [tool for tool in app_info.tools if not tool.cli_path]
    call = single_line(f"{app_info.name}{'' if root_tools else ' COMMAND'} … --json")
    version = f" (version {single_line(app_info.version)})" if app_info.version else ""
    return (
        f"{single_line(app_info.name)}{version} is a program for the command line. Call it as "
        f'{code(call)}: stdout is then one JSON document, `{{"ok":true,"result":…}}` or '
        '`{"ok":false,"error":{…}}`, where `error.suggestion` says what to do. '
        f"{code('--help-agent')} tells more about a command, `--schema` gives its contract."
    )


def _command_groups(app_info: AppInfo) -> Iterator[str]:
    """The commands, each group under a heading of its own."""
    groups: dict[str, list[Tool]] = {}
    for tool in app_info.tools:
        groups.setdefault(" ".join(tool.cli_path[:-1]), []).append(tool)
    for group, tools in groups.items():
        yield f"## Commands: {single_line(group)}" if group else "## Commands"
        yield bullets([_command_link(tool) for tool in tools])


def _command_link(tool: Tool) -> str:
    title = tool_facts.command_title(tool).replace("[", "(").replace("]", ")")
    annotations = [word for word in tool.behavior.labels() if word in ("read-only", "destructive")]
    about = " ".join(
        filter(
            None,
            (single_line(tool.doc.summary), f"({', '.join(annotations)})" if annotations else ""),
        )
    )
    target = link(title, sections.reference_path(tool))
    return f"{target}: {about}" if about else target


def _command_reference(app_info: AppInfo, tool: Tool) -> Iterator[str]:
    yield f"## {single_line(' '.join((app_info.name, *tool.cli_path)))}"
    yield from reference_sections(app_info, tool, 3)
