"""The start of SKILL.md: what an agent reads before it loads a skill, in YAML."""

from __future__ import annotations

from json import dumps, loads
from shlex import split
from textwrap import wrap

from tooli.describe import calls, sections
from tooli.describe.markdown import sentence, single_line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.describe.sections import AppInfo

SKILL_TARGETS = ("generic-skill", "claude-skill", "claude-code")
"""Who reads SKILL.md: any agent, an agent of Claude, or Claude Code, which is detected."""

_MAX_DESCRIPTION_LENGTH = 420  # agents keep the descriptions of all skills in context
_MAX_SPECIFIED_LENGTH = 1024  # of a description, in the specification of skills
_MAX_ABOUT_LENGTH = 500  # of the app's own description in it
_MAX_TASKS_LENGTH = 400


def skill_slug(name: str) -> str:
    """Return the name of the skill and its folder: lower case letters, digits, single hyphens."""
    letters = "".join([c if c.isascii() and c.isalnum() else "-" for c in name.lower()])
    parts = "-".join(filter(None, letters.split("-")))
    return parts[:64].strip("-") or "app"


def render_front_matter(app_info: AppInfo) -> str:
    """Return the YAML at the start of SKILL.md."""
    lines = ["---", f"name: {skill_slug(app_info.name)}", "description: >-"]
    lines += _fold_yaml(_skill_description(app_info))
    lines += [
        "compatibility: >-",
        *_fold_yaml(_requirement(app_info)),
    ]
    lines += ["metadata:", '  generator: "tooli"']
    if app_info.version:
        lines.append(f"  version: {_quote_yaml(app_info.version)}")
    if app_info.skill_target != SKILL_TARGETS[0]:
        lines.append(f"{_TARGET_LINE}{app_info.skill_target}")
    if app_info.command:
        lines.append(f"{_COMMAND_LINE}{_quote_yaml(app_info.program)}")
    return "\n".join([*lines, "---"])


def _requirement(app_info: AppInfo) -> str:
    if app_info.command:
        return f"Start the program with: {app_info.program}"
    return f"Requires the program {app_info.name} on the PATH."


def _skill_description(app_info: AppInfo) -> str:
    """Return the description in the front matter, which agents see before they load the skill."""
    about = sentence(app_info.description) or f"The commands of {app_info.name}."
    if not app_info.tools:
        return about[:_MAX_SPECIFIED_LENGTH]
    about = about[:_MAX_ABOUT_LENGTH]
    tasks = list(map(_task, app_info.tools))
    text = f"{about} Use it to {'; '.join(tasks)}."
    groups = {tool.path[0] for tool in app_info.tools if len(tool.path) > 1}
    names_groups = all([group.rstrip("s").lower() in text.lower() for group in groups])
    is_specific = names_groups and len({*tasks}) == len(tasks)
    if len(text) <= _MAX_DESCRIPTION_LENGTH and is_specific:
        return text
    return f"{about} {_list_groups(app_info, _MAX_SPECIFIED_LENGTH - len(about) - 1)}"


def _task(tool: Tool) -> str:
    """Return what a command does, as a part of a sentence."""
    task = single_line(tool.doc.summary or calls.command_title(tool)).rstrip(".")
    task = task.partition(";")[0].partition(". ")[0]
    return f"{task[:1].lower()}{task[1:]}"


def _list_groups(app_info: AppInfo, max_length: int) -> str:
    """Return the commands of all groups, or else the names of all groups, as a sentence.

    An agent loads a skill only if its description names the subject, so every group is named.
    """
    groups = sections.group_tools(app_info)
    top_level = groups.pop("", [])
    tasks = "; ".join(map(_task, top_level))
    names = [tool.path[0] for tool in top_level]
    listed = [
        f"{group} ({', '.join([' '.join(tool.path[1:]) for tool in tools])})"
        for group, tools in groups.items()
    ]
    attempts = [
        f"Use it to {tasks}. Commands: {', '.join(listed)}." if tasks else "",
        f"Commands: {', '.join([*names, *listed])}.",
        f"Commands: {', '.join([*groups, *names])}.",
    ]
    for text in filter(None, attempts):
        if len(text) <= (_MAX_TASKS_LENGTH if text.startswith("Use") else max_length):
            return text
    start = attempts[-1][: max_length - 11]
    return f"{start.rpartition(',')[0]}, and more."


def _fold_yaml(text: str) -> list[str]:
    """Return text as lines of a YAML block.

    Three hyphens are replaced, because they would end the front matter.
    """
    words = "".join([c if c.isprintable() else " " for c in text.replace("---", "—")]).split()
    return wrap(
        " ".join(words),
        98,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _quote_yaml(text: str) -> str:
    return dumps(single_line(text), ensure_ascii=False)


_TARGET_LINE = "  target: "
_COMMAND_LINE = "  command: "


def with_choices_of(app_info: AppInfo, skill_text: str) -> AppInfo:
    """Return the app's info with the target and the command of an existing SKILL.md."""
    for line in skill_text.replace("\r\n", "\n").split("\n---\n", 1)[0].split("\n"):
        if line.startswith(_TARGET_LINE) and line.removeprefix(_TARGET_LINE) in SKILL_TARGETS:
            app_info = app_info.replace(skill_target=line.removeprefix(_TARGET_LINE))
        if line.startswith(_COMMAND_LINE):
            app_info = app_info.replace(command=_read_command(line.removeprefix(_COMMAND_LINE)))
    return app_info


_COMMAND_NOTE = "Start the program with `"


def command_note(app_info: AppInfo) -> str:
    """Return a line about the command that starts the program; "" if its name does."""
    return f"{_COMMAND_NOTE}{app_info.program}`." if app_info.command else ""


def with_command_of_block(app_info: AppInfo, block: str) -> AppInfo:
    """Return the app's info with the command of an existing section of AGENTS.md or CLAUDE.md."""
    for line in block.split("\n"):
        if line.startswith(_COMMAND_NOTE):
            program = line.removeprefix(_COMMAND_NOTE).removesuffix("`.")
            return app_info.replace(command=_read_command(dumps(program)))
    return app_info


def _read_command(text: str) -> tuple[str, ...]:
    """Return the words of the command in the front matter; () if someone has damaged it."""
    try:
        return tuple(split(loads(text)))
    except (ValueError, TypeError, AttributeError):
        return ()
