"""Man pages: an app and each of its commands, for people who read manuals.

    Portrait ─▶ {"file-tools.1": …, "file-tools-find-files.1": …}

What a page says about parameters and results is read from the schemas that programs get.
"""

from __future__ import annotations

from tooli.describe import man_sections as sections
from tooli.describe import roff
from tooli.describe.man_sections import flag_names, placeholder, section
from tooli.describe.roff import bold, italic, prose
from tooli.errors import ERROR_CODES, NotFoundError, Suggestion, closest_match
from tooli.schema.json_schema import input_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.tool import Param, Tool
    from tooli.describe.app_info import AppInfo

DEFAULT_DATE = "1970-01-01"
"""The date of a page whose maker said none: a page must not change because a day has passed."""

_MAX_SYNOPSIS_OPTIONS = 12  # options of a synopsis
_MAX_SEE_ALSO = 20  # commands that a page refers to


def build_man_pages(app_info: AppInfo, date: str = DEFAULT_DATE) -> dict[str, str]:
    """The pages of an app by file name; an app that is one command has one page."""
    pages = _tools_by_page(app_info)
    lines_by_page = {
        name: _app_page(app_info, name, pages, date)
        if tool is None
        else _command_page(app_info, tool, name, pages, date)
        for name, tool in pages.items()
    }
    return {f"{name}.1": "\n".join(lines) + "\n" for name, lines in lines_by_page.items()}


def build_man_page(app_info: AppInfo, command_path: Sequence[str], date: str = DEFAULT_DATE) -> str:
    """The page of a command, named by its words; the app's own where there are none."""
    pages = _tools_by_page(app_info)
    wanted = " ".join(command_path).replace(".", " ").split()
    for name, tool in pages.items():
        if [*(tool.cli_path if tool is not None else ())] == wanted:
            return build_man_pages(app_info, date)[f"{name}.1"]
    known = [" ".join(tool.cli_path) for tool in pages.values() if tool is not None]
    suggestion_name = closest_match(" ".join(wanted), known)
    raise NotFoundError(
        f"There is no command {' '.join(wanted)!r}.",
        field="command",
        suggestion=Suggestion("retry_with_modified_input", f"Try {suggestion_name!r}.")
        if suggestion_name
        else None,
    )


def _tools_by_page(app_info: AppInfo) -> dict[str, Tool | None]:
    """Commands by the names of their pages, the app first; no two of them differ only in case."""
    top = _slug(app_info.name)
    pages: dict[str, Tool | None] = {top: None}
    taken: set[str] = set()
    for tool in app_info.tools:
        name = base = "-".join([top, *map(_slug, tool.cli_path)])
        count = 1
        while name.lower() in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name.lower())
        pages[name] = tool
    return pages


def _slug(name: str) -> str:
    """A name as a file may have it: café is cafe, and what has no letter like it is a hyphen."""
    from unicodedata import combining, normalize

    letters = [c for c in normalize("NFKD", name) if not combining(c)]
    known = [c if c.isascii() and (c.isalnum() or c in "._+") else " " for c in letters]
    return "-".join("".join(known).split()).strip(".") or "app"


# ------------------------------------------------------------------ pages


def _app_page(
    app_info: AppInfo, name: str, pages: Mapping[str, Tool | None], date: str
) -> list[str]:
    """What an app is, its commands, and what holds for all of them."""
    about = app_info.description.partition("\n\n")[0]
    usage = f"{bold(app_info.name)} {italic('command')} [{italic('options')}]"
    listed = [line for page, tool in pages.items() if tool for line in _command_item(page, tool)]
    return [
        *_page_header(app_info, name, about or f"the commands of {app_info.name}", date),
        *section("SYNOPSIS", [usage]),
        *section("DESCRIPTION", roff.render_text(app_info.description)),
        *section("COMMANDS", listed),
        *_author_sections(app_info),
        *sections.common_options_section(frozenset()),
        *sections.app_output_section(),
        *sections.exit_status_section(),
        *sections.errors_section({}, ERROR_CODES),
        *sections.environment_section({}, sections.ENVIRONMENT_VARIABLES),
    ]


def _command_page(
    app_info: AppInfo, tool: Tool, name: str, pages: Mapping[str, Tool | None], date: str
) -> list[str]:
    """What a command does, takes and gives; where it is all of the app, the app's page as well."""
    doc = tool.doc
    is_root = not tool.cli_path
    schemas: dict[str, Any] = input_schema(tool).get("properties", {})
    visible = [
        (param, schemas.get(param.name, {})) for param in tool.public_params if not param.hidden
    ]
    arguments = [one for one in visible if one[0].kind == "argument"]
    options = [one for one in visible if one[0].kind != "argument"]
    summary = doc.summary or (app_info.description.partition("\n\n")[0] if is_root else "")
    argument_lines = [
        line for one in arguments for line in sections.parameter_item(*one, doc.params)
    ]
    option_lines = [line for one in options for line in sections.parameter_item(*one, doc.params)]
    return [
        *_page_header(
            app_info, name, summary or f"the command {tool.name} of {app_info.name}", date
        ),
        *section("SYNOPSIS", _synopsis(app_info.name, tool, arguments, options)),
        *section(
            "DESCRIPTION", [*_description(app_info, tool), *sections.behavior_paragraph(tool)]
        ),
        *section("ARGUMENTS", argument_lines),
        *section("OPTIONS", option_lines),
        *(_author_sections(app_info) if is_root else ()),
        *_common_options(tool, pages),
        *sections.output_section(tool),
        *sections.exit_status_section(),
        *sections.errors_section(
            sections.declared_errors(tool), ERROR_CODES if is_root else sections.common_errors(tool)
        ),
        *sections.environment_section(
            sections.parameter_variables(tool), sections.framework_variables(is_root)
        ),
        *section("EXAMPLES", sections.example_lines(app_info.name, tool)),
        *section("SEE ALSO", _see_also(tool, name, pages)),
    ]


def _page_header(app_info: AppInfo, name: str, summary: str, date: str) -> list[str]:
    source = " ".join(filter(None, (app_info.name, app_info.version)))
    summary_line = " ".join(summary.split()).rstrip(".")
    if not any([letter.isalnum() for letter in summary_line]):  # indexes of manuals want words
        summary_line = f"part of {name}"
    if summary_line[1:2].islower() or summary_line[1:2] == " ":
        summary_line = summary_line[0].lower() + summary_line[1:]
    title, origin = roff.escape(name.upper()), roff.escape(source)
    return [
        '.\\" Written by tooli from the app itself; what is changed here is lost.',
        *(".nr HY 0", ".ds AD l"),  # no hyphens in what somebody may type, and even spaces
        f'.TH "{title}" 1 "{date}" "{origin}" "User Commands"',
        ".ad l",
        roff.heading("NAME"),
        roff.name_line(name, summary_line),
    ]


def _command_item(page: str, tool: Tool) -> list[str]:
    """A command in the list of an app: how it is typed, its page, what it does."""
    summary = prose(tool.doc.summary)
    return roff.tagged_item(f"{bold(' '.join(tool.cli_path))}, {_page_reference(page)}", summary)


def _page_reference(page: str) -> str:
    return f"{bold(page)}(1)"


def _author_sections(app_info: AppInfo) -> list[str]:
    """The sections that the author of the app has written."""
    author_texts = app_info.sections.items()
    return [line for title, text in author_texts for line in section(title, roff.render_text(text))]


# ------------------------------------------------------------------ parts of a command's page


def _synopsis(
    program: str,
    tool: Tool,
    arguments: list[tuple[Param, dict[str, Any]]],
    options: list[tuple[Param, dict[str, Any]]],
) -> list[str]:
    """The command as it is typed; what is in brackets may be left out."""
    command_path: list[str] = []
    if len(options) > _MAX_SYNOPSIS_OPTIONS:
        needed = [one for one in options if one[0].required]
        command_path = [f"[{italic('options')}]"] if len(needed) < len(options) else []
        options = needed
    for param, schema in options:
        value = "" if param.is_flag else f" {placeholder(param, schema)}"
        word = f"{bold(flag_names(param)[0])}{value}"
        command_path.append(_mark_optional(param, word))
    for param, schema in arguments:
        command_path.append(_mark_optional(param, placeholder(param, schema)))
    return [bold(" ".join((program, *tool.cli_path))), *map(roff.protect_line, command_path)]


def _mark_optional(param: Param, word: str) -> str:
    word = word.replace(" ", "\\ ")  # one piece: lines are broken between parameters
    dots = "\\&..." if param.is_multiple else ""
    return f"{word}{dots}" if param.required else f"[{word}]{dots}"


def _description(app_info: AppInfo, tool: Tool) -> list[str]:
    doc = tool.doc
    paragraphs = [app_info.description] if not tool.cli_path and app_info.description else []
    paragraphs += [
        text for text in (doc.summary, doc.description) if text and text not in paragraphs
    ]
    return roff.render_text("\n\n".join(paragraphs))


def _common_options(tool: Tool, pages: Mapping[str, Tool | None]) -> list[str]:
    taken = frozenset([flag for p in tool.public_params for flag in (*p.flags, *p.negations)])
    if not tool.cli_path:
        return sections.common_options_section(taken)
    return sections.common_options_summary(taken, _page_reference(next(iter(pages))))


def _see_also(tool: Tool, name: str, pages: Mapping[str, Tool | None]) -> list[str]:
    """The app's page, and the pages of the commands beside this one."""
    if not tool.cli_path:
        return []
    top, *others = pages
    siblings = [
        page
        for page in others
        if page != name and (sibling := pages[page]) and sibling.cli_path[:-1] == tool.cli_path[:-1]
    ]
    return [", ".join([_page_reference(page) for page in [top, *siblings[:_MAX_SEE_ALSO]]])]
