"""Man pages: an app and each of its commands, for people who read manuals.

    Portrait ─▶ {"file-tools.1": …, "file-tools-find-files.1": …}

What a page says about parameters and results is read from the schemas that programs get.
"""

from __future__ import annotations

from tooli.contract.schema import input_schema
from tooli.errors import CODES, NotFoundError, Suggestion, nearest
from tooli.views import man_sections as sections
from tooli.views import roff
from tooli.views.man_sections import flags_of, placeholder, section
from tooli.views.roff import bold, italic, prose

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.contract.tool import Param, Tool
    from tooli.views.portrait import Portrait

UNDATED = "1970-01-01"
"""The date of a page whose maker said none: a page must not change because a day has passed."""

_MOST_SPELLED_OUT = 12  # options of a synopsis
_MOST_RELATED = 20  # commands that a page refers to


def man_pages(portrait: Portrait, date: str = UNDATED) -> dict[str, str]:
    """The pages of an app by file name; an app that is one command has one page."""
    pages = _named(portrait)
    written = {
        name: _app_page(portrait, name, pages, date)
        if tool is None
        else _command_page(portrait, tool, name, pages, date)
        for name, tool in pages.items()
    }
    return {f"{name}.1": "\n".join(lines) + "\n" for name, lines in written.items()}


def page_of(portrait: Portrait, words: Sequence[str], date: str = UNDATED) -> str:
    """The page of a command, named by its words; the app's own where there are none."""
    pages = _named(portrait)
    wanted = " ".join(words).replace(".", " ").split()
    for name, tool in pages.items():
        if [*(tool.words if tool is not None else ())] == wanted:
            return man_pages(portrait, date)[f"{name}.1"]
    known = [" ".join(tool.words) for tool in pages.values() if tool is not None]
    meant = nearest(" ".join(wanted), known)
    raise NotFoundError(
        f"There is no command {' '.join(wanted)!r}.",
        field="command",
        suggestion=Suggestion("retry_with_modified_input", f"Try {meant!r}.") if meant else None,
    )


def _named(portrait: Portrait) -> dict[str, Tool | None]:
    """Commands by the names of their pages, the app first; no two of them differ only in case."""
    top = _slug(portrait.name)
    pages: dict[str, Tool | None] = {top: None}
    taken: set[str] = set()
    for tool in portrait.tools:
        name = base = "-".join([top, *map(_slug, tool.words)])
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
    portrait: Portrait, name: str, pages: Mapping[str, Tool | None], date: str
) -> list[str]:
    """What an app is, its commands, and what holds for all of them."""
    about = portrait.description.partition("\n\n")[0]
    usage = f"{bold(portrait.name)} {italic('command')} [{italic('options')}]"
    listed = [line for page, tool in pages.items() if tool for line in _listed(page, tool)]
    return [
        *_head(portrait, name, about or f"the commands of {portrait.name}", date),
        *section("SYNOPSIS", [usage]),
        *section("DESCRIPTION", roff.document(portrait.description)),
        *section("COMMANDS", listed),
        *_authors_own(portrait),
        *sections.framework_options(frozenset()),
        *sections.output_forms(),
        *sections.exit_status(),
        *sections.errors({}, CODES),
        *sections.environment({}, sections.VARIABLES),
    ]


def _command_page(
    portrait: Portrait, tool: Tool, name: str, pages: Mapping[str, Tool | None], date: str
) -> list[str]:
    """What a command does, takes and gives; where it is all of the app, the app's page as well."""
    doc = tool.doc
    alone = not tool.words
    schemas: dict[str, Any] = input_schema(tool).get("properties", {})
    shown = [(param, schemas.get(param.name, {})) for param in tool.public if not param.hidden]
    places = [one for one in shown if one[0].kind == "argument"]
    options = [one for one in shown if one[0].kind != "argument"]
    summary = doc.summary or (portrait.description.partition("\n\n")[0] if alone else "")
    described = [line for one in places for line in sections.parameter(*one, doc.params)]
    optional = [line for one in options for line in sections.parameter(*one, doc.params)]
    return [
        *_head(portrait, name, summary or f"the command {tool.name} of {portrait.name}", date),
        *section("SYNOPSIS", _synopsis(portrait.name, tool, places, options)),
        *section("DESCRIPTION", [*_description(portrait, tool), *sections.behaviour(tool)]),
        *section("ARGUMENTS", described),
        *section("OPTIONS", optional),
        *(_authors_own(portrait) if alone else ()),
        *_common_options(tool, pages),
        *sections.output(tool),
        *sections.exit_status(),
        *sections.errors(sections.own_errors(tool), CODES if alone else sections.usual(tool)),
        *sections.environment(sections.own_variables(tool), sections.variables(alone)),
        *section("EXAMPLES", sections.examples(portrait.name, tool)),
        *section("SEE ALSO", _see_also(tool, name, pages)),
    ]


def _head(portrait: Portrait, name: str, about: str, date: str) -> list[str]:
    source = " ".join(filter(None, (portrait.name, portrait.version)))
    said = " ".join(about.split()).rstrip(".")
    if not any([letter.isalnum() for letter in said]):  # indexes of manuals want words
        said = f"part of {name}"
    if said[1:2].islower() or said[1:2] == " ":
        said = said[0].lower() + said[1:]
    title, origin = roff.escape(name.upper()), roff.escape(source)
    return [
        '.\\" Written by tooli from the app itself; what is changed here is lost.',
        *(".nr HY 0", ".ds AD l"),  # no hyphens in what somebody may type, and even spaces
        f'.TH "{title}" 1 "{date}" "{origin}" "User Commands"',
        ".ad l",
        roff.heading("NAME"),
        roff.naming(name, said),
    ]


def _listed(page: str, tool: Tool) -> list[str]:
    """A command in the list of an app: how it is typed, its page, what it does."""
    about = prose(tool.doc.summary)
    return roff.item(f"{bold(' '.join(tool.words))}, {_reference(page)}", about)


def _reference(page: str) -> str:
    return f"{bold(page)}(1)"


def _authors_own(portrait: Portrait) -> list[str]:
    """The sections that the author of the app has written."""
    written = portrait.sections.items()
    return [line for title, text in written for line in section(title, roff.document(text))]


# ------------------------------------------------------------------ parts of a command's page


def _synopsis(
    program: str,
    tool: Tool,
    places: list[tuple[Param, dict[str, Any]]],
    options: list[tuple[Param, dict[str, Any]]],
) -> list[str]:
    """The command as it is typed; what is in brackets may be left out."""
    words: list[str] = []
    if len(options) > _MOST_SPELLED_OUT:
        needed = [one for one in options if one[0].required]
        words = [f"[{italic('options')}]"] if len(needed) < len(options) else []
        options = needed
    for param, schema in options:
        value = "" if param.is_flag else f" {placeholder(param, schema)}"
        word = f"{bold(flags_of(param)[0])}{value}"
        words.append(_optional(param, word))
    for param, schema in places:
        words.append(_optional(param, placeholder(param, schema)))
    return [bold(" ".join((program, *tool.words))), *map(roff.guarded, words)]


def _optional(param: Param, word: str) -> str:
    word = word.replace(" ", "\\ ")  # one piece: lines are broken between parameters
    dots = "\\&..." if param.many else ""
    return f"{word}{dots}" if param.required else f"[{word}]{dots}"


def _description(portrait: Portrait, tool: Tool) -> list[str]:
    doc = tool.doc
    said = [portrait.description] if not tool.words and portrait.description else []
    said += [text for text in (doc.summary, doc.description) if text and text not in said]
    return roff.document("\n\n".join(said))


def _common_options(tool: Tool, pages: Mapping[str, Tool | None]) -> list[str]:
    taken = frozenset([flag for p in tool.public for flag in (*p.flags, *p.negations)])
    if not tool.words:
        return sections.framework_options(taken)
    return sections.framework_in_short(taken, _reference(next(iter(pages))))


def _see_also(tool: Tool, name: str, pages: Mapping[str, Tool | None]) -> list[str]:
    """The app's page, and the pages of the commands beside this one."""
    if not tool.words:
        return []
    top, *others = pages
    beside = [
        page
        for page in others
        if page != name and (near := pages[page]) and near.words[:-1] == tool.words[:-1]
    ]
    return [", ".join([_reference(page) for page in [top, *beside[:_MOST_RELATED]]])]
