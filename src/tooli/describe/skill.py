"""Render SKILL.md and the pages of its commands, a skill that agents load on demand."""

from __future__ import annotations

from json import dumps

from tooli.describe import sections, tool_facts
from tooli.describe.agent_help import render_usage
from tooli.describe.markdown import bullets, code, fence, join_blocks, sentence, single_line
from tooli.describe.schema_text import format_type, object_properties
from tooli.schema.json_schema import output_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

_DETAIL_BUDGETS = (
    (sections.FULL, 1_900),
    (sections.SHORT, 2_600),
    (sections.LINES, 4_500),
    (sections.NAMES, 5_000),
    (sections.GROUPS, 5_000),
)
"""Token budget of each level of detail. Token estimates are about a third too high."""

_MAX_DESCRIPTION_LENGTH = 420  # agents keep the descriptions of all skills in context


def build_skill_files(app_info: AppInfo) -> dict[str, str]:
    """Return SKILL.md and a page for each command, by path."""
    files = {"SKILL.md": render_skill_md(app_info, linked=True)}
    for tool in app_info.tools:
        files[sections.reference_path(tool)] = render_reference_page(app_info, tool)
    return files


def skill_slug(name: str) -> str:
    """Return the name of the skill and its folder: lower case letters, digits, single hyphens."""
    letters = "".join([c if c.isascii() and c.isalnum() else "-" for c in name.lower()])
    parts = "-".join(filter(None, letters.split("-")))
    return parts[:64].strip("-") or "app"


def render_skill_md(app_info: AppInfo, *, linked: bool = False) -> str:
    """Return SKILL.md. With `linked`, it has links to the pages of the commands."""
    return sections.render_within_budget(
        lambda detail: _render_skill(app_info, detail, linked), *_DETAIL_BUDGETS
    )


def _render_skill(app_info: AppInfo, detail: int, linked: bool) -> str:
    workflow = list(sections.workflow_section(app_info)) if detail < sections.NAMES else []
    return f"{_front_matter(app_info)}\n\n" + join_blocks(
        f"# {single_line(app_info.name)}",
        app_info.description,
        "## Commands",
        sections.command_sections(app_info, detail, linked),
        ["## Workflows", *workflow] if workflow else [],
        "## Output",
        sections.response_section(app_info),
        sections.exit_code_line(),
        bullets(sections.safety_rules(app_info)),
        _caller_section(app_info),
        sections.author_sections(app_info),
    )


def _caller_section(app_info: AppInfo) -> list[str]:
    """Return the section about how an agent identifies itself."""
    line = f"TOOLI_CALLER=my-agent {sections.example_call(app_info)}"
    rows = [f"`{name}`: {text}" for name, text in sections.CALLER_VARIABLES]
    return ["## Caller", fence([line], "bash"), bullets(rows)]


# ------------------------------------------------------------------ front matter


def _front_matter(app_info: AppInfo) -> str:
    lines = ["---", f"name: {skill_slug(app_info.name)}", "description: >-"]
    lines += _fold_yaml(_skill_description(app_info))
    lines += [
        "compatibility: >-",
        *_fold_yaml(f"Requires the program {app_info.name} on the PATH."),
    ]
    lines += ["metadata:", '  generator: "tooli"']
    if app_info.version:
        lines.append(f"  version: {_quote_yaml(app_info.version)}")
    return "\n".join([*lines, "---"])


def _skill_description(app_info: AppInfo) -> str:
    """Return the description in the front matter, which agents see before they load the skill."""
    about = sentence(app_info.description) or f"The commands of {app_info.name}."
    text = f"{about[:600]} Use it to"
    for i, tool in enumerate(app_info.tools):
        task = single_line(tool.doc.summary or tool_facts.command_title(tool)).rstrip(".")
        task = task.partition(";")[0].partition(". ")[0]
        more = f"{';' if i else ''} {task[:1].lower()}{task[1:]}"
        if i and len(text) + len(more) > _MAX_DESCRIPTION_LENGTH:
            return f"{text}; and more."[:1024]
        text += more
    return f"{text}."[:1024] if app_info.tools else about[:1024]


def _fold_yaml(text: str) -> list[str]:
    """Return text as lines of a YAML block.

    Three hyphens are replaced, because they would end the front matter.
    """
    words = "".join([c if c.isprintable() else " " for c in text.replace("---", "—")])
    lines: list[str] = []
    line = " "
    for word in words.split():
        if len(line) > 1 and len(line) + 1 + len(word) > 98:
            lines.append(line)
            line = " "
        line += f" {word}"
    return [*lines, line]


def _quote_yaml(text: str) -> str:
    return dumps(single_line(text), ensure_ascii=False)


# ------------------------------------------------------------------ one command


def render_reference_page(app_info: AppInfo, tool: Tool) -> str:
    """Return the page of one command."""
    return join_blocks(
        f"# {app_info.name} {' '.join(tool.cli_path)}".rstrip(),
        reference_sections(app_info, tool, 2),
    )


def reference_sections(app_info: AppInfo, tool: Tool, level: int) -> Iterator[str]:
    """Yield the sections of a command's page. `level` is the level of their headings."""
    mark = "#" * level
    yield tool.doc.summary
    yield tool.doc.description or ""
    if tool.guidance.when_to_use:
        yield f"When to use it: {sentence(tool.guidance.when_to_use)}"
    facts = [*tool_facts.effect_phrases(tool), *tool_facts.requirement_phrases(tool)]
    yield bullets([f"{fact[:1].upper()}{fact[1:]}" for fact in facts])
    yield f"{mark} Usage"
    yield code(f"{app_info.name} {render_usage(tool)}")
    yield "\n".join(sections.parameter_bullets(tool))
    yield from _example_blocks(app_info, tool)
    returned = tool_facts.return_sentence(tool)
    if returned:
        yield f"{mark} Result"
        yield returned
        yield from _result_fields(tool)
    failures = tool_facts.declared_errors(tool)
    if failures:
        yield f"{mark} Errors"
        yield bullets([f"`{name}`: {text}; {tool_facts.remedy(name)}" for name, text in failures])
    yield from _related_commands(app_info, tool, mark)


def _example_blocks(app_info: AppInfo, tool: Tool) -> Iterator[str]:
    """Yield the author's examples, with their outputs if the examples were run."""
    if not tool.guidance.examples:
        yield fence([tool_facts.shortest_call(app_info.name, tool)], "bash")
    for i, example in enumerate(tool.guidance.examples):
        description = example.get("description")
        yield f"{single_line(str(description)).rstrip('.:')}:" if description else ""
        line = tool_facts.format_command_line(
            app_info.name, tool, example.get("args", ()), *tool_facts.output_flags(tool)
        )
        yield fence([line], "bash")
        if (tool.key, i) in app_info.example_outputs:
            yield fence([app_info.example_outputs[tool.key, i]], "json")


def _result_fields(tool: Tool) -> Iterator[str]:
    """Yield the documented fields of the result."""
    documented = [
        f"`{name}` ({format_type(inner)}): {single_line(str(inner['description']))}"
        for name, inner in object_properties(output_schema(tool) or {}).items()
        if inner.get("description")
    ]
    yield bullets(documented)


def _related_commands(app_info: AppInfo, tool: Tool, mark: str) -> Iterator[str]:
    following, preceding = (
        tool_facts.next_commands(tool),
        tool_facts.previous_commands(app_info, tool),
    )
    if following or preceding:
        yield f"{mark} Workflow"
        yield bullets(
            [
                *[f"Next: {code(name)}{f', {when}' if when else ''}" for name, when in following],
                *[f"Often after {code(name)}" for name in preceding],
            ]
        )
